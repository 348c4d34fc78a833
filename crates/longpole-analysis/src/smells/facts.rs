//! What the smells judge: the tables, the evidence, and covers of host and device time.

use longpole_trace::{ActivityId, Interval, IntervalSet, Ns, RangeId, StrId, ThreadId, Trace};

use super::{Ceiling, Evidence};
use crate::index::Owner;
use crate::ranges::is_users;
use crate::totals::DeviceTotals;
use crate::triage::Tables;
use crate::vendor;

/// Everything a smell may look at.
pub(crate) struct Facts<'a, 't> {
    pub(crate) tables: &'a Tables<'a, 't>,
    pub(crate) evidence: &'a Evidence,
    pub(crate) wall: Ns,
    /// Device time, summed over devices.
    pub(crate) busy: Ns,
    /// First start to last end of device work, summed over devices.
    pub(crate) span: Ns,
    /// Summed duration of device activity: what shares of operators, kernels and families are of.
    pub(crate) device_time: Ns,
    /// The repeated range that stands for a step.
    pub(crate) steps: Option<Steps>,
    /// Whether the device is AMD's.
    pub(crate) is_amd: bool,
    /// Ranks in scope.
    ranks: usize,
}

/// Host calls of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// How many.
    pub(crate) number: u64,
    /// Time covered by them.
    pub(crate) total: Ns,
    /// The part of it in which no device of their rank was busy.
    pub(crate) idle: Ns,
    /// When they ran, by rank.
    pub(crate) by_rank: Vec<IntervalSet>,
    /// When each began, by thread.
    pub(crate) starts: Vec<(ThreadId, Ns)>,
}

/// Device work of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Time covered by it.
    pub(crate) total: Ns,
    /// The part of it in which nothing else ran on its device.
    pub(crate) alone: Ns,
}

impl<'a, 't> Facts<'a, 't> {
    pub(crate) fn new(tables: &'a Tables<'a, 't>, evidence: &'a Evidence) -> Self {
        let totals = tables.totals;
        Self {
            tables,
            evidence,
            wall: totals.wall_ns,
            busy: totals.gpu_busy_ns.unwrap_or_default(),
            span: totals.gpu_span_ns().unwrap_or_default(),
            device_time: tables.ops.self_cuda_total_ns.unwrap_or_default(),
            steps: Steps::find(tables),
            ranks: tables.scope.ranks(tables.index.trace()).len(),
            is_amd: vendor::is_amd(tables.index.trace()),
        }
    }

    pub(crate) fn trace(&self) -> &'t Trace {
        self.tables.index.trace()
    }

    /// The profiler of single kernels that works on this device.
    pub(crate) fn kernel_profiler(&self) -> &'static str {
        vendor::kernel_profiler(self.is_amd)
    }

    /// What a recorded sequence of launches is called on this device.
    pub(crate) fn graphs(&self) -> &'static str {
        vendor::graphs(self.is_amd)
    }

    fn share(&self, time: Ns, parts: usize) -> Option<f64> {
        let whole = self.wall.get() as f64 * parts.max(1) as f64;
        (whole > 0.0).then(|| (time.get() as f64 / whole).clamp(0.0, 1.0))
    }

    fn ceiling(&self, time: Ns, parts: usize) -> Option<Ceiling> {
        let win_fraction = self.share(time, parts)?;
        Some(Ceiling { win_ns: Ns(time.get() / parts.max(1) as i64).min(self.wall), win_fraction })
    }

    /// The share of the wall that device time covers, the mean over devices.
    pub(crate) fn device_share(&self, time: Ns) -> Option<f64> {
        self.share(time, self.tables.totals.devices.len())
    }

    /// The share of the wall that host time covers, the mean over ranks.
    pub(crate) fn host_share(&self, time: Ns) -> Option<f64> {
        self.share(time, self.ranks)
    }

    /// At most this device time can be won, the mean over devices.
    pub(crate) fn device_ceiling(&self, time: Ns) -> Option<Ceiling> {
        self.ceiling(time, self.tables.totals.devices.len())
    }

    /// At most this can be won of a part of the totals: that of the device with most of it.
    pub(crate) fn worst_device_ceiling(&self, part: impl Fn(&DeviceTotals) -> Ns) -> Option<Ceiling> {
        self.ceiling(self.tables.totals.devices.iter().map(part).max()?, 1)
    }

    /// At most this host time can be won, the mean over ranks.
    pub(crate) fn host_ceiling(&self, time: Ns) -> Option<Ceiling> {
        self.ceiling(time, self.ranks)
    }

    /// Whether anything is known of a device; without, nobody can say that it idled.
    pub(crate) fn has_device(&self) -> bool {
        !self.tables.totals.devices.is_empty()
    }

    /// Whether the scope leaves out all of the device work that the trace has: then nothing is wrong with the recording.
    pub(crate) fn has_work_outside_scope(&self) -> bool {
        !self.has_device() && !self.tables.scope.is_whole() && !self.trace().activities.is_empty()
    }

    /// What is said after host time in which no device was busy.
    pub(crate) fn with_idle(&self) -> &'static str {
        if self.has_device() { " with the GPU idle" } else { "" }
    }

    /// Host time in which no device was busy, as evidence.
    pub(crate) fn idle_part(&self, calls: &Calls) -> Option<Ns> {
        self.has_device().then_some(calls.idle)
    }

    /// Idle time of the devices inside their spans.
    pub(crate) fn idle(&self) -> Ns {
        self.span - self.busy
    }

    /// Host intervals as a cover, given as (thread, interval).
    pub(crate) fn cover(&self, intervals: impl Iterator<Item = (ThreadId, Interval)>) -> Calls {
        let trace = self.trace();
        let mut by_rank = vec![Vec::new(); trace.ranks.len().max(1)];
        let mut found = Calls::default();
        for (thread, interval) in intervals {
            found.number += 1;
            found.starts.push((thread, interval.start));
            if let Some(of_rank) = by_rank.get_mut(trace.thread_rank(thread) as usize) {
                of_rank.push(interval);
            }
        }
        found.by_rank = by_rank.into_iter().map(IntervalSet::from_unsorted).collect();
        for (rank, set) in found.by_rank.iter().enumerate() {
            found.total += set.total();
            found.idle += self.evidence.busy.get(rank).map_or(set.total(), |busy| set.difference(busy).total());
        }
        found
    }

    /// The API calls in scope whose name satisfies a condition.
    pub(crate) fn api_calls(&self, holds: impl Fn(&str) -> bool) -> Calls {
        let trace = self.trace();
        let calls = &trace.api_calls;
        let mask = names_with(trace, holds);
        self.cover(self.rows_of(&mask, &calls.name, &calls.thread, &calls.start, &calls.dur))
    }

    /// The operators in scope whose name satisfies a condition.
    pub(crate) fn operators(&self, holds: impl Fn(&str) -> bool) -> Calls {
        let trace = self.trace();
        let ops = &trace.host_ops;
        let mask = names_with(trace, holds);
        self.cover(self.rows_of(&mask, &ops.name, &ops.thread, &ops.start, &ops.dur))
    }

    /// Rows of a host table in scope whose name is in a mask.
    pub(crate) fn rows_of(
        &self,
        mask: &[bool],
        names: &[StrId],
        threads: &[ThreadId],
        starts: &[Ns],
        durs: &[Ns],
    ) -> impl Iterator<Item = (ThreadId, Interval)> {
        let (trace, scope) = (self.trace(), self.tables.scope);
        (0..names.len())
            .filter(move |&row| mask[names[row].index()] && scope.includes_host(trace, threads[row], starts[row]))
            .map(move |row| (threads[row], Interval::new(starts[row], durs[row])))
    }

    /// The device work in scope for which a condition on its row and owner holds.
    pub(crate) fn work(&self, holds: impl Fn(usize, Owner) -> bool) -> Work {
        let (index, trace) = (self.tables.index, self.trace());
        let mut own = vec![Vec::new(); trace.devices.len()];
        let mut other = own.clone();
        for row in 0..trace.activities.len() {
            let id = ActivityId::from_index(row);
            if self.tables.scope.includes_activity(index, id) {
                let device = trace.lanes[trace.activities.lane[row].index()].device.index();
                let side = if holds(row, index.links().owner(id)) { &mut own } else { &mut other };
                side[device].push(Interval::new(trace.activities.start[row], trace.activities.dur[row]));
            }
        }
        let mut work = Work::default();
        for (own, other) in own.into_iter().zip(other) {
            let own = IntervalSet::from_unsorted(own);
            work.total += own.total();
            work.alone += own.difference(&IntervalSet::from_unsorted(other)).total();
        }
        work
    }

    /// The work of one kernel name.
    pub(crate) fn kernel_work(&self, name: &str) -> Work {
        let trace = self.trace();
        let Some(name) = trace.strings.find(name) else { return Work::default() };
        self.work(|row, _| trace.activities.name[row] == name)
    }

    /// An interval as `--time` takes it, widened to whole microseconds.
    pub(crate) fn window(&self, interval: Interval) -> String {
        let first = self.trace().window.bounds().map_or(Ns::ZERO, |(first, _)| first);
        let micros = |time: Ns| time.get().div_euclid(1_000);
        format!("{}us..{}us", micros(interval.start - first), micros(interval.end - first) + 1)
    }

    /// Calls per step, if there are steps; calls outside of them are not counted.
    pub(crate) fn per_step(&self, calls: &Calls) -> Option<f64> {
        let steps = self.steps.as_ref()?;
        let inside = calls.starts.iter().filter(|&&(thread, at)| steps.contains(thread, at)).count();
        Some(inside as f64 / steps.instances.len() as f64)
    }
}

/// Ranges that the framework opens around a part of a step.
fn is_part_of_a_step(range: &str) -> bool {
    range.starts_with("enumerate(DataLoader)") || range.starts_with("Optimizer.")
}

/// Which interned strings satisfy a condition.
pub(crate) fn names_with(trace: &Trace, holds: impl Fn(&str) -> bool) -> Vec<bool> {
    trace.strings.iter().map(|(_, name)| holds(name)).collect()
}

/// One instance of a range.
type Instance = (RangeId, Interval);

/// Instances of the repeated range that stands for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Its name; `ProfilerStep#3` is `ProfilerStep*`.
    pub(crate) name: String,
    /// Its thread.
    pub(crate) thread: ThreadId,
    /// Its instances in order of time.
    pub(crate) instances: Vec<(RangeId, Interval)>,
}

impl Steps {
    /// Of the ranges of users that repeat on one thread, the one that covers most host time; a range around it that covers about the same
    /// stands for it, since that is the whole step.
    fn find(tables: &Tables<'_, '_>) -> Option<Self> {
        let trace = tables.index.trace();
        let ranges = &trace.ranges;
        let mut groups: Vec<(&str, ThreadId, Vec<Instance>)> = Vec::new();
        let mut known = hashbrown::HashMap::<(&str, ThreadId), usize, foldhash::fast::FixedState>::default();
        for row in 0..ranges.len() {
            let name = trace.strings.get(ranges.name[row]);
            if !is_users(name) || is_part_of_a_step(name) || !tables.scope.includes_host(trace, ranges.thread[row], ranges.start[row]) {
                continue;
            }
            let name = if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name };
            let at = *known.entry((name, ranges.thread[row])).or_insert(groups.len());
            if at == groups.len() {
                groups.push((name, ranges.thread[row], Vec::new()));
            }
            groups[at].2.push((RangeId::from_index(row), Interval::new(ranges.start[row], ranges.dur[row])));
        }
        let total = |instances: &[(RangeId, Interval)]| instances.iter().map(|(_, interval)| interval.len()).sum::<Ns>();
        groups.retain(|(_, _, instances)| instances.len() > 1);
        let most = groups.iter().map(|(_, _, instances)| total(instances)).max()?;
        let (name, thread, mut instances) = groups
            .into_iter()
            .filter(|(_, _, instances)| total(instances).get() >= most.get() / 10 * 9)
            .min_by_key(|(_, _, instances)| (instances.len(), std::cmp::Reverse(total(instances))))?;
        instances.sort_by_key(|&(range, interval)| (interval.start, range));
        Some(Self { name: name.to_owned(), thread, instances })
    }

    /// Whether a time lies before the second step.
    pub(crate) fn is_before_second(&self, at: Ns) -> bool {
        self.instances.get(1).is_some_and(|(_, second)| at < second.start)
    }

    /// Whether a host event of a thread begins in a step.
    pub(crate) fn contains(&self, thread: ThreadId, at: Ns) -> bool {
        thread == self.thread && self.position(at).is_some()
    }

    /// The step that a time lies in.
    pub(crate) fn position(&self, at: Ns) -> Option<usize> {
        let after = self.instances.partition_point(|(_, interval)| interval.start <= at);
        after.checked_sub(1).filter(|&before| at < self.instances[before].1.end)
    }

    /// The median duration of the instances given, the lower of two.
    pub(crate) fn median(instances: &[(RangeId, Interval)]) -> Ns {
        let mut durations: Vec<Ns> = instances.iter().map(|(_, interval)| interval.len()).collect();
        durations.sort_unstable();
        durations.len().checked_sub(1).map_or(Ns::ZERO, |last| durations[last / 2])
    }
}
