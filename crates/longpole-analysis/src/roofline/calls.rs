//! The work of single operator calls: what [`super::roofline`] adds up over calls of one kind, kept apart by call.

use longpole_trace::{ActivityId, Ns};

use super::collect::{Collector, Key};
use super::peaks::Peaks;
use super::table::peak_by_name;
use super::work::{Floor, Roof, UnknownWork, Work};
use crate::index::TraceIndex;

/// One operator call that launched device work itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallWork {
    /// Device time of all it launched, summed.
    pub(crate) device_ns: Ns,
    /// What it has to do, or why that is not known.
    pub(crate) work: Result<Work, UnknownWork>,
    /// How long that must take, if the device is known too.
    pub(crate) floor_ns: Option<Ns>,
    /// Which side of the roof that is.
    pub(crate) roof: Option<Roof>,
}

impl CallWork {
    /// Time above the floor: what a perfect kernel would win. Absent without a floor.
    pub(crate) fn above_floor_ns(&self) -> Option<Ns> {
        self.floor_ns.map(|floor| (self.device_ns - floor).max(Ns::ZERO))
    }
}

/// Marks an activity without a call.
const NO_CALL: u32 = u32::MAX;

/// The operator calls behind some activities, and which activities are whose.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallWorks {
    /// What calls of one kind have to do.
    kinds: Vec<Kind>,
    /// By call: its kind, and the device time of all it launched.
    kind: Vec<u32>,
    device_ns: Vec<Ns>,
    /// By row of the activities.
    call_of: Vec<u32>,
}

/// What a call has to do, and how long that must take.
#[derive(Clone, Copy, Debug)]
struct Kind {
    work: Result<Work, UnknownWork>,
    floor: Option<Floor>,
}

impl CallWorks {
    /// How many calls there are; they are numbered from 0.
    pub(crate) fn len(&self) -> usize {
        self.kind.len()
    }

    /// The number of the call that launched an activity, if an operator owns it and it was asked for.
    pub(crate) fn call_of(&self, activity: ActivityId) -> Option<u32> {
        self.call_of.get(activity.index()).copied().filter(|&call| call != NO_CALL)
    }

    /// A call by its number.
    pub(crate) fn call(&self, number: u32) -> Option<CallWork> {
        let kind = self.kinds.get(*self.kind.get(number as usize)? as usize)?;
        Some(CallWork {
            device_ns: *self.device_ns.get(number as usize)?,
            work: kind.work,
            floor_ns: kind.floor.map(|floor| floor.ns),
            roof: kind.floor.map(|floor| floor.roof),
        })
    }
}

/// Numbers the bits that are set, from `first` on: the number of a bit is that of the bits set before it. There may be many, and this
/// needs no table of them.
struct Numbers<'a> {
    bits: &'a [u64],
    before: Vec<u32>,
}

impl<'a> Numbers<'a> {
    fn new(bits: &'a [u64], first: u32) -> Self {
        let mut sum = first;
        let mut before: Vec<u32> = Vec::with_capacity(bits.len() + 1);
        for word in bits {
            before.push(sum);
            sum += word.count_ones();
        }
        before.push(sum);
        Self { bits, before }
    }

    fn end(&self) -> u32 {
        self.before.last().copied().unwrap_or_default()
    }

    fn of(&self, bit: usize) -> u32 {
        let below = self.bits[bit / 64] & ((1 << (bit % 64)) - 1);
        self.before[bit / 64] + below.count_ones()
    }
}

/// The operator calls behind the activities for which a condition on their row holds. The condition should take in all activities of a
/// call: the floor is that of the whole call.
pub(crate) fn call_works(index: &TraceIndex<'_>, peaks: Option<&Peaks>, holds: impl Fn(u32) -> bool) -> CallWorks {
    let trace = index.trace();
    let mut collector = Collector::new(index);
    collector.placed = Some(Vec::new());
    let mut collected = collector.run_on(holds);
    let placed = collected.placed.take().unwrap_or_default();
    let kinds = collected.groups.iter().map(|group| {
        let kernel = group.kernel.map(|(name, _)| trace.strings.get(name));
        let work = group.work;
        let floor = work.ok().zip(peaks).and_then(|(work, peaks)| work.floor(peaks, peak_by_name(work, kernel)));
        Kind { work, floor }
    });
    // A call has at most two entries: its own work, and what stands apart. The work that stands apart has no floor.
    let own = Numbers::new(&collected.counted[0], 0);
    let apart = Numbers::new(&collected.counted[1], own.end());
    let calls = apart.end() as usize;
    let mut works = CallWorks {
        kinds: kinds.collect(),
        kind: vec![u32::MAX; calls],
        device_ns: vec![Ns::ZERO; calls],
        call_of: vec![NO_CALL; trace.activities.len()],
    };
    for (row, group) in placed {
        let Some(node) = index.links().owner_node(ActivityId(row)) else { continue };
        let call = match collected.groups[group as usize].key {
            Key::Op(_) => own.of(node.index()),
            Key::Apart(..) => apart.of(node.index()),
            Key::NoOperator(_) => continue,
        };
        let kind = &mut works.kind[call as usize];
        if *kind == u32::MAX {
            *kind = group;
        }
        works.device_ns[call as usize] += trace.activities.dur[row as usize].max(Ns::ZERO);
        works.call_of[row as usize] = call;
    }
    works
}
