//! What `ceilings` answers with.

use longpole_trace::{DeviceId, IntervalSet, Ns};

use crate::idle::IdleCause;
use crate::steps::Part;

/// What a ceiling supposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CeilingKind {
    /// Device work costs nothing any more.
    WorkFree,
    /// Device work takes as long as moving its bytes must.
    AtMemoryFloor,
    /// Device work takes as long as its arithmetic must.
    AtComputeFloor,
    /// Kernels that follow each other become one.
    Fused,
    /// Idle time of one cause is gone.
    IdleGone,
    /// Steps are replayed from a device graph.
    GraphReplay,
    /// Host time during which the device idles is gone.
    HostTimeGone,
}

impl CeilingKind {
    /// The name used in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::WorkFree => "work_free",
            Self::AtMemoryFloor => "at_memory_floor",
            Self::AtComputeFloor => "at_compute_floor",
            Self::Fused => "fused",
            Self::IdleGone => "idle_gone",
            Self::GraphReplay => "graph_replay",
            Self::HostTimeGone => "host_time_gone",
        }
    }

    /// Whether it rests on more than that the thing were gone: on a floor, on another way to do the same.
    pub const fn is_supported(self) -> bool {
        matches!(self, Self::AtMemoryFloor | Self::AtComputeFloor | Self::Fused | Self::GraphReplay)
    }

    /// What is supposed, to stand after a figure; absent where the thing itself is gone.
    pub const fn supposed(self) -> Option<&'static str> {
        match self {
            Self::WorkFree | Self::IdleGone | Self::HostTimeGone => None,
            Self::AtMemoryFloor => Some("at its memory floor"),
            Self::AtComputeFloor => Some("at its arithmetic floor"),
            Self::Fused => Some("fused"),
            Self::GraphReplay => Some("replayed"),
        }
    }
}

/// What a ceiling is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeilingSubject {
    /// A role in one part of a step.
    Role {
        /// Position in [`crate::StepTable::groups`].
        group: u32,
        /// Its rows, as positions in [`crate::StepGroup::rows`].
        rows: Vec<u32>,
        /// The part of the step.
        part: Part,
        /// Its name.
        role: String,
    },
    /// Kernels that follow each other in a step.
    Chain {
        /// Position in [`crate::StepTable::groups`].
        group: u32,
        /// Their positions in [`crate::StepGroup::rows`], in order.
        rows: Vec<u32>,
        /// Their roles, in order.
        roles: Vec<String>,
    },
    /// The steps of a group.
    Steps {
        /// Position in [`crate::StepTable::groups`].
        group: u32,
        /// Its name.
        name: String,
    },
    /// Idle time of a cause.
    Cause {
        /// Inside the steps of this group; anywhere in the scope when absent.
        group: Option<u32>,
        /// The cause.
        cause: IdleCause,
    },
}

impl CeilingSubject {
    /// The group it belongs to.
    pub fn group(&self) -> Option<u32> {
        match self {
            Self::Role { group, .. } | Self::Chain { group, .. } | Self::Steps { group, .. } => Some(*group),
            Self::Cause { group, .. } => *group,
        }
    }
}

/// The most that one change can win.
#[derive(Clone, Debug, PartialEq)]
pub struct CeilingRow {
    /// What is changed.
    pub subject: CeilingSubject,
    /// What is supposed.
    pub kind: CeilingKind,
    /// The most it wins over the scope, summed over devices.
    pub ceiling_ns: Ns,
    /// The same as a share of the wall, 0..1, the mean over the devices it is on; absent when the wall has no length.
    pub share_of_wall: Option<f64>,
    /// The same for each step of the group, on the mean; absent for ceilings of no group.
    pub per_step_ns: Option<Ns>,
    /// What it rests on, in a sentence.
    pub basis: String,
    /// The time it is won from: no less than the ceiling. Two ceilings that share time do not add up. Empty from [`crate::step_ceilings`].
    pub time: Vec<(DeviceId, IntervalSet)>,
}

impl CeilingRow {
    /// Length of the time it is won from, summed over devices.
    pub fn time_ns(&self) -> Ns {
        self.time.iter().map(|(_, set)| set.total()).sum()
    }

    /// The most that several changes win together: no time is won twice.
    ///
    /// Ceilings that are all of their time are united. Of each other one, what lies outside that union counts, up to its ceiling; and all of
    /// those together count no more than their united time there.
    pub fn together(rows: &[&Self]) -> Ns {
        let (whole, part): (Vec<&Self>, Vec<&Self>) = rows.iter().partition(|row| row.ceiling_ns >= row.time_ns());
        let mut devices: Vec<DeviceId> = rows.iter().flat_map(|row| row.time.iter().map(|(device, _)| *device)).collect();
        devices.sort_unstable();
        devices.dedup();
        let on = |rows: &[&Self], device: DeviceId| {
            let sets = rows.iter().flat_map(|row| &row.time).filter(|(other, _)| *other == device);
            IntervalSet::from_unsorted(sets.flat_map(|(_, set)| set.intervals().iter().copied()).collect())
        };
        let taken: Vec<(DeviceId, IntervalSet)> = devices.iter().map(|&device| (device, on(&whole, device))).collect();
        let outside = |(device, set): &(DeviceId, IntervalSet)| {
            let taken = devices.binary_search(device).ok().map(|at| &taken[at].1);
            taken.map_or_else(|| set.total(), |taken| set.total_outside(taken))
        };
        let parts: Ns = part.iter().map(|row| row.ceiling_ns.min(row.time.iter().map(outside).sum())).sum();
        let room: Ns = devices.iter().map(|&device| outside(&(device, on(&part, device)))).sum();
        taken.iter().map(|(_, set)| set.total()).sum::<Ns>() + parts.min(room)
    }
}

/// Ceilings of a scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CeilingTable {
    /// Rows, largest first. They overlap: see [`CeilingRow::together`].
    pub rows: Vec<CeilingRow>,
    /// The wall that shares are of.
    pub wall_ns: Ns,
}

/// What a row of a group's table takes at least, and wins at most, for a step on the mean. Both add up over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCeiling {
    /// The least time that its operator calls must take; absent unless the floors of all of them are known.
    pub floor_ns: Option<Ns>,
    /// What they take above that.
    pub ceiling_ns: Option<Ns>,
}

/// The ceilings of a group of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupCeilings {
    /// By row of the group.
    pub rows: Vec<RowCeiling>,
    /// Largest first. They overlap: none may be added to another. Of a role that has a floor, that it were free is not listed.
    pub ceilings: Vec<CeilingRow>,
    /// The best supported: the largest that rests on more than that something were gone; where there is none, the largest of all.
    pub best: Option<usize>,
}

impl GroupCeilings {
    /// Sorts, and finds the best.
    pub(super) fn sort(&mut self) {
        self.ceilings.sort_by_key(|row| std::cmp::Reverse(row.ceiling_ns));
        let supported = self.ceilings.iter().position(|row| row.kind.is_supported());
        self.best = supported.or((!self.ceilings.is_empty()).then_some(0));
    }
}
