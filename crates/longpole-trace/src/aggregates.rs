//! Device work in sum: what a source says of a kernel, layer or scope when it has no timeline.
//!
//! Some profilers add up while they record: they keep how often something ran and how long it took in all, not when. No event is made up
//! of that. A row is a node of a tree (or one of a list); its parent comes before it. All numbers of a row are its own: what nodes inside
//! it took is in their rows, so that the sum over rows is the sum of everything.

use crate::columns::{OptId, OptU64};
use crate::ids::{AggregateId, DeviceId, StrId};
use crate::ns::Ns;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AggregateKind {
    /// A scope of the program: a function, a region that the user named.
    Scope,
    /// A kernel.
    Kernel,
    /// A layer of a compiled network, which is one or more kernels.
    Layer,
}

/// The width of the type that operations were counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlopWidth {
    /// Not said.
    Unknown,
    /// 4 bits.
    Bits4,
    /// 8 bits.
    Bits8,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

impl FlopWidth {
    /// All of them, in the order of the enumeration.
    pub const ALL: [Self; 6] = [Self::Unknown, Self::Bits4, Self::Bits8, Self::Bits16, Self::Bits32, Self::Bits64];
}

/// What a row says beyond how often and how long; all calls together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateDetail {
    /// Median time of a call.
    pub median_ns: Option<Ns>,
    /// Clock cycles of the device, where those were counted instead of time.
    pub cycles: Option<u64>,
    /// Host time.
    pub host_ns: Option<Ns>,
    /// Bytes that the program says it moved.
    pub bytes: Option<u64>,
    /// Operations that the program says it did, by the width of their type.
    pub flops: [Option<u64>; FlopWidth::ALL.len()],
}

impl AggregateDetail {
    /// Operations of every width; absent when none were counted.
    pub fn all_flops(&self) -> Option<u64> {
        self.flops.iter().flatten().copied().reduce(u64::saturating_add)
    }
}

/// One kernel, layer or scope, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// What it is about.
    pub kind: AggregateKind,
    /// Its name.
    pub name: StrId,
    /// The recording, an index into [`crate::Trace::ranks`].
    pub rank: u32,
    /// The row around it, which comes before it.
    pub parent: Option<AggregateId>,
    /// How often it ran, if that was counted.
    pub count: Option<u64>,
    /// Device time of all these calls, without that of rows inside.
    pub device_ns: Option<Ns>,
    /// The device, if said.
    pub device: Option<DeviceId>,
    /// Everything else, if there is anything.
    pub detail: AggregateDetail,
}

/// Device work in sum, parents before what is inside them.
#[derive(Debug, Default)]
pub struct Aggregates {
    /// What rows are about.
    pub kind: Vec<AggregateKind>,
    /// Their names.
    pub name: Vec<StrId>,
    /// Recordings, indexes into [`crate::Trace::ranks`].
    pub rank: Vec<u32>,
    parent: OptId,
    count: OptU64,
    device_ns: OptU64,
    device: OptId,
    /// Positions in `details`: most rows of a tree have none.
    detail: OptId,
    details: Vec<AggregateDetail>,
}

impl Aggregates {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    pub(crate) fn push(&mut self, row: Aggregate) {
        self.kind.push(row.kind);
        self.name.push(row.name);
        self.rank.push(row.rank);
        self.parent.push(row.parent.map(|parent| parent.0));
        self.count.push(row.count);
        self.device_ns.push(row.device_ns.map(|time| time.get().max(0).unsigned_abs()));
        self.device.push(row.device.map(|device| device.0));
        let detail = (row.detail != AggregateDetail::default()).then_some(self.details.len() as u32);
        if detail.is_some() {
            self.details.push(row.detail);
        }
        self.detail.push(detail);
    }

    /// The row around row `index`, which comes before it.
    pub fn parent(&self, index: usize) -> Option<AggregateId> {
        self.parent.get(index).map(AggregateId)
    }

    /// How often it ran.
    pub fn count(&self, index: usize) -> Option<u64> {
        self.count.get(index)
    }

    /// Device time of all calls, without that of rows inside.
    pub fn device_ns(&self, index: usize) -> Option<Ns> {
        self.device_ns.get(index).map(|time| Ns(i64::try_from(time).unwrap_or(i64::MAX)))
    }

    /// The device.
    pub fn device(&self, index: usize) -> Option<DeviceId> {
        self.device.get(index).map(DeviceId)
    }

    /// Everything else; all of it absent where nothing is recorded.
    pub fn detail(&self, index: usize) -> AggregateDetail {
        self.detail.get(index).map(|at| self.details[at as usize]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let mut table = Aggregates::default();
        let flops = [None, None, Some(5), Some(7), None, None];
        let detail = AggregateDetail { bytes: Some(9), flops, ..AggregateDetail::default() };
        let scope = Aggregate {
            kind: AggregateKind::Scope,
            name: StrId(0),
            rank: 0,
            parent: None,
            count: None,
            device_ns: None,
            device: None,
            detail: AggregateDetail::default(),
        };
        table.push(scope);
        let parent = Some(AggregateId(0));
        table.push(Aggregate { kind: AggregateKind::Kernel, parent, count: Some(2), device_ns: Some(Ns(11)), detail, ..scope });
        assert_eq!((table.len(), table.parent(0), table.parent(1)), (2, None, parent));
        assert_eq!((table.count(0), table.device_ns(0), table.count(1), table.device_ns(1)), (None, None, Some(2), Some(Ns(11))));
        assert_eq!((table.detail(0), table.detail(1)), (AggregateDetail::default(), detail));
        assert_eq!((detail.all_flops(), table.detail(0).all_flops()), (Some(12), None));
    }
}
