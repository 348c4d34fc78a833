//! What a recorder wrote of collective operations: which group, how much data, of what type, in which order.
//!
//! The rows describe events of other tables and stand beside them, because one event in hundreds has them: a row names the
//! host thread or device stream that its event is on, and the event's start.

use crate::columns::{OptId, OptU64};
use crate::ids::{LaneId, StrId, ThreadId};
use crate::ns::Ns;

/// What a row of [`Collectives`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectivePlace {
    /// A host operator on this thread.
    Host(ThreadId),
    /// A device activity on this stream.
    Device(LaneId),
}

/// A description of a collective operation, as one row. Absent members were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Where the event is that it describes.
    pub place: CollectivePlace,
    /// When that event starts.
    pub start: Ns,
    /// Name of the operation, e.g. `allreduce`.
    pub name: Option<StrId>,
    /// Name of the process group.
    pub group: Option<StrId>,
    /// Ranks of the process group, e.g. `[0, 1]`; long lists are cut by the recorder.
    pub group_ranks: Option<StrId>,
    /// Element type, e.g. `BFloat16`.
    pub dtype: Option<StrId>,
    /// Ranks in the group.
    pub group_size: Option<u32>,
    /// Elements that this rank puts in.
    pub in_elements: Option<u64>,
    /// Elements that this rank gets out.
    pub out_elements: Option<u64>,
    /// Number of the operation within its group.
    pub sequence: Option<u64>,
    /// Sending rank of a point-to-point operation.
    pub source_rank: Option<u32>,
    /// Receiving rank of a point-to-point operation.
    pub destination_rank: Option<u32>,
}

/// Descriptions of collective operations, in file order.
#[derive(Debug, Default)]
pub struct Collectives {
    /// Where the described events are.
    pub place: Vec<CollectivePlace>,
    /// When they start.
    pub start: Vec<Ns>,
    pub(crate) name: OptId,
    pub(crate) group: OptId,
    pub(crate) group_ranks: OptId,
    pub(crate) dtype: OptId,
    pub(crate) group_size: OptId,
    pub(crate) in_elements: OptU64,
    pub(crate) out_elements: OptU64,
    pub(crate) sequence: OptU64,
    pub(crate) source_rank: OptId,
    pub(crate) destination_rank: OptId,
}

impl Collectives {
    pub(crate) fn push(&mut self, row: Collective) {
        self.place.push(row.place);
        self.start.push(row.start);
        self.name.push(row.name.map(|s| s.0));
        self.group.push(row.group.map(|s| s.0));
        self.group_ranks.push(row.group_ranks.map(|s| s.0));
        self.dtype.push(row.dtype.map(|s| s.0));
        self.group_size.push(row.group_size);
        self.in_elements.push(row.in_elements);
        self.out_elements.push(row.out_elements);
        self.sequence.push(row.sequence);
        self.source_rank.push(row.source_rank);
        self.destination_rank.push(row.destination_rank);
    }

    /// The row at `index`.
    pub fn get(&self, index: usize) -> Collective {
        Collective {
            place: self.place[index],
            start: self.start[index],
            name: self.name.get(index).map(StrId),
            group: self.group.get(index).map(StrId),
            group_ranks: self.group_ranks.get(index).map(StrId),
            dtype: self.dtype.get(index).map(StrId),
            group_size: self.group_size.get(index),
            in_elements: self.in_elements.get(index),
            out_elements: self.out_elements.get(index),
            sequence: self.sequence.get(index),
            source_rank: self.source_rank.get(index),
            destination_rank: self.destination_rank.get(index),
        }
    }

    /// Renames texts; `moved` holds the new id of every old one.
    pub(crate) fn rename_texts(&mut self, moved: &[StrId]) {
        for column in [&mut self.name, &mut self.group, &mut self.group_ranks, &mut self.dtype] {
            column.rename(moved);
        }
    }
}
