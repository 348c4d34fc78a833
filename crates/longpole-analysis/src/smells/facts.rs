//! What the smells judge: the tables, the evidence, and covers of host and device time.

use longpole_trace::{ActivityId, Interval, IntervalSet, Ns, StrId, ThreadId, Trace};

use super::thresholds::RANGED_SHARE;
use super::{Ceiling, Evidence};
use crate::ceilings::{AtFloor, CeilingKind, above_floor};
use crate::covers::{Cover, sums};
use crate::host_pace::HostPace;
use crate::index::Owner;
use crate::phrases::{percent, percent_of};
use crate::ranges::is_users;
use crate::step_choice::Steps;
use crate::totals::DeviceTotals;
use crate::triage::{Calibration, Tables};
use crate::turns::Turns;
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
    /// Idle time for want of launches, once the run is warm.
    pub(crate) host_pace: HostPace,
    /// A step timed without the profiler, if there is one to compare with.
    pub(crate) calibration: Option<Calibration>,
    /// What is left of idle time and wall without the profiler, if the time given can be that of the step.
    pub(crate) plain: Option<Plain>,
    /// Without operators: whether ranges are around most of the device work.
    ranges_tell: bool,
    /// Whose turn it is on each stream.
    pub(crate) turns: Turns,
    /// Ranks in scope.
    ranks: usize,
}

/// The run without the profiler, as far as a timed step tells: device work takes as long, and idle time shrinks everywhere as it does
/// in the step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    /// The part of idle time that is left, 0..1.
    pub(crate) idle_left: f64,
    /// The wall that is left, the mean over devices.
    wall: Ns,
    /// Idle time in it.
    idle: Ns,
}

impl Plain {
    fn of(calibration: &Calibration, tables: &Tables<'_, '_>) -> Option<Self> {
        let idle_left = calibration.idle_left()?;
        let totals = tables.totals;
        let busy = Ns(totals.gpu_busy_ns?.get() / totals.devices.len().max(1) as i64);
        let idle = Ns(((totals.wall_ns - busy).get() as f64 * idle_left) as i64).max(Ns::ZERO);
        Some(Self { idle_left, wall: busy + idle, idle })
    }

    /// What is left of idle time.
    pub(crate) fn left(self, idle: Ns) -> Ns {
        Ns((idle.get() as f64 * self.idle_left) as i64)
    }
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
    /// The part of it in which nothing else ran on its device. What waits behind it on its stream does not run, and what waits behind others does
    /// not either.
    pub(crate) alone: Ns,
}

impl<'a, 't> Facts<'a, 't> {
    pub(crate) fn new(tables: &'a Tables<'a, 't>, evidence: &'a Evidence, unprofiled_step: Option<Ns>) -> Self {
        let totals = tables.totals;
        let steps = Steps::find(tables.index, tables.scope);
        let timed = unprofiled_step.zip(steps.as_ref());
        let calibration = timed.and_then(|(unprofiled, steps)| Calibration::of(tables, evidence, steps, unprofiled));
        Self {
            tables,
            evidence,
            wall: totals.wall_ns,
            busy: totals.gpu_busy_ns.unwrap_or_default(),
            span: totals.gpu_span_ns().unwrap_or_default(),
            device_time: tables.ops.self_cuda_total_ns.unwrap_or_default(),
            host_pace: HostPace::of(tables.index, tables.scope, &evidence.pace, steps.as_ref(), &evidence.profiler),
            steps,
            plain: calibration.as_ref().and_then(|calibration| Plain::of(calibration, tables)),
            calibration,
            ranges_tell: totals.host_ops == 0 && ranges_tell(tables),
            turns: Turns::of(tables.index.trace()),
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

    /// A name cut to fit into a sentence, if names are cut.
    pub(crate) fn clip(&self, name: &str) -> String {
        self.tables.clip(name)
    }

    /// The same for a kernel's short name.
    pub(crate) fn clip_kernel(&self, name: &str) -> String {
        self.tables.clip_kernel(name)
    }

    fn share(&self, time: Ns, parts: usize) -> Option<f64> {
        share_of(time, self.wall, parts)
    }

    fn ceiling(&self, kind: CeilingKind, time: Ns, parts: usize) -> Option<Ceiling> {
        let win_fraction = self.share(time, parts)?;
        Some(Ceiling { win_ns: Ns(time.get() / parts.max(1) as i64).min(self.wall), win_fraction, is_calibrated: false, kind })
    }

    /// The same of the wall without the profiler, where that is known.
    fn plain_ceiling(&self, kind: CeilingKind, time: Ns, parts: usize) -> Option<Ceiling> {
        let Some(plain) = self.plain else { return self.ceiling(kind, time, parts) };
        let win_fraction = share_of(time, plain.wall, parts)?;
        Some(Ceiling { win_ns: Ns(time.get() / parts.max(1) as i64).min(plain.wall), win_fraction, is_calibrated: true, kind })
    }

    /// The share of the wall that device time covers, the mean over devices.
    pub(crate) fn device_share(&self, time: Ns) -> Option<f64> {
        self.share(time, self.tables.totals.devices.len())
    }

    /// The share of the wall that host time covers, the mean over ranks.
    pub(crate) fn host_share(&self, time: Ns) -> Option<f64> {
        self.share(time, self.ranks)
    }

    /// At most this device work can be won, the mean over devices.
    pub(crate) fn device_ceiling(&self, kind: CeilingKind, time: Ns) -> Option<Ceiling> {
        self.plain_ceiling(kind, time, self.tables.totals.devices.len())
    }

    /// At most this can be won of a part of the totals: that of the device with most of it.
    pub(crate) fn worst_device_ceiling(&self, part: impl Fn(&DeviceTotals) -> Ns) -> Option<Ceiling> {
        self.plain_ceiling(CeilingKind::WorkFree, self.tables.totals.devices.iter().map(part).max()?, 1)
    }

    /// At most this idle time of devices can be won, the mean over devices: what is left of it without the profiler.
    pub(crate) fn idle_ceiling(&self, kind: CeilingKind, time: Ns) -> Option<Ceiling> {
        self.device_ceiling(kind, self.plain.map_or(time, |plain| plain.left(time)))
    }

    /// At most this host time can be won once, the mean over ranks.
    pub(crate) fn host_ceiling(&self, time: Ns) -> Option<Ceiling> {
        self.ceiling(CeilingKind::HostTimeGone, time, self.ranks)
    }

    /// At most this host time can be won in steps, the mean over ranks: no more than the devices idle without the profiler.
    pub(crate) fn steady_host_ceiling(&self, time: Ns) -> Option<Ceiling> {
        let of_all = self.plain.map(|plain| Ns(plain.idle.get().saturating_mul(self.ranks.max(1) as i64)));
        self.plain_ceiling(CeilingKind::HostTimeGone, of_all.map_or(time, |idle| time.min(idle)), self.ranks)
    }

    /// At most this is won of device work: at its floor, where that is known for most of it; else all that nothing else runs beside.
    /// What was known of the floor comes with it.
    pub(crate) fn work_ceiling(&self, work: Work, holds: impl Fn(usize) -> bool) -> (Option<Ceiling>, Option<AtFloor>) {
        let floor = above_floor(self.tables.index, self.tables.scope, holds).filter(|floor| floor.unknown.get() <= floor.taken.get() / 2);
        let ceiling = match floor {
            Some(floor) => self.device_ceiling(floor.kind, floor.above.min(work.alone)),
            None => self.device_ceiling(CeilingKind::WorkFree, work.alone),
        };
        (ceiling, floor)
    }

    /// How busy devices are in their span, for a sentence. Of a step that was timed without the profiler it is known that this is not all.
    pub(crate) fn busy_of_span(&self) -> Option<String> {
        let profiled = if self.plain.is_some() { " under the profiler" } else { "" };
        Some(format!("{} of its span{profiled}", percent(self.busy, self.span)?))
    }

    /// How much devices idle without the profiler, said after what was seen under it.
    pub(crate) fn unprofiled_idle(&self) -> String {
        let calibration = self.calibration.as_ref().filter(|_| self.plain.is_some());
        let said = calibration.and_then(|calibration| {
            let idle = percent_of(1.0 - calibration.busy_fraction?);
            Some(format!("; without the profiler the GPU idles {idle} of a {}", self.clip(&calibration.step)))
        });
        said.unwrap_or_default()
    }

    /// How many ranks are in scope.
    pub(crate) fn ranks_in_scope(&self) -> usize {
        self.ranks.max(1)
    }

    /// Whether it is known who launches the device work: operators were recorded, or ranges are around most of it, or were when it was captured.
    pub(crate) fn knows_launchers(&self) -> bool {
        self.tables.totals.host_ops > 0 || self.ranges_tell
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

    /// Time of the devices inside their spans in which they ran nothing, from outside the scope neither.
    pub(crate) fn idle(&self) -> Ns {
        self.tables.totals.gpu_idle_ns.unwrap_or_default()
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
            found.idle += self.evidence.pace.busy.get(rank).map_or(set.total(), |busy| set.total_outside(busy));
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
        let activities = &trace.activities;
        let mut own: Vec<Vec<u32>> = vec![Vec::new(); trace.devices.len()];
        let mut other = own.clone();
        for row in 0..trace.activities.len() {
            let id = ActivityId::from_index(row);
            let device = trace.lanes[trace.activities.lane[row].index()].device.index();
            // What runs beside it may be from outside the scope.
            let is_own = self.tables.scope.includes_activity(index, id) && holds(row, index.links().owner(id));
            let side = if is_own { &mut own } else { &mut other };
            side[device].push(row as u32);
        }
        let mut work = Work::default();
        let whole = |row: &u32| Interval::new(activities.start[*row as usize], activities.dur[*row as usize]);
        let turn = |row: &u32| self.turns.of_row(trace, *row as usize);
        for mut sides in own.into_iter().zip(other).map(<[Vec<u32>; 2]>::from) {
            if !self.turns.are_whole() {
                let own = &mut sides[0];
                own.sort_by_key(|row| whole(row).start);
                work.total += sums(&mut [Cover::new(1, Box::new(own.iter().map(whole)))], 1)[1];
            }
            for rows in &mut sides {
                let start = |row: &u32| turn(row).start;
                if !rows.is_sorted_by_key(start) {
                    rows.sort_unstable_by_key(start);
                }
            }
            let [own, other] = &sides;
            let mut covers = [Cover::new(1, Box::new(own.iter().map(turn))), Cover::new(2, Box::new(other.iter().map(turn)))];
            let [_, alone, _, beside] = sums(&mut covers, 2)[..] else { continue };
            if self.turns.are_whole() {
                work.total += alone + beside;
            }
            work.alone += alone;
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

    /// When something was, after the first event.
    pub(crate) fn moment(&self, at: Ns) -> String {
        let first = self.trace().window.bounds().map_or(Ns::ZERO, |(first, _)| first);
        format!("at {}", crate::phrases::time(at - first))
    }

    /// Calls per step, if there are steps; calls outside of them are not counted.
    pub(crate) fn per_step(&self, calls: &Calls) -> Option<f64> {
        let steps = self.steps.as_ref()?;
        let inside = calls.starts.iter().filter(|&&(thread, at)| steps.contains(thread, at)).count();
        Some(inside as f64 / steps.instances.len() as f64)
    }
}

/// `time` as a share of some walls side by side, 0..1.
fn share_of(time: Ns, wall: Ns, parts: usize) -> Option<f64> {
    let whole = wall.get() as f64 * parts.max(1) as f64;
    (whole > 0.0).then(|| (time.get() as f64 / whole).clamp(0.0, 1.0))
}

/// Which interned strings satisfy a condition.
pub(crate) fn names_with(trace: &Trace, holds: impl Fn(&str) -> bool) -> Vec<bool> {
    trace.strings.iter().map(|(_, name)| holds(name)).collect()
}

/// Whether the user's ranges are around the launches of most device time, or around where replayed work was captured.
fn ranges_tell(tables: &Tables<'_, '_>) -> bool {
    let (index, trace) = (tables.index, tables.index.trace());
    let ranges = &trace.ranges;
    let mut open = vec![Vec::new(); trace.threads.len()];
    for row in (0..ranges.len()).filter(|&row| is_users(trace.strings.get(ranges.name[row]))) {
        open[ranges.thread[row].index()].push(Interval::new(ranges.start[row], ranges.dur[row]));
    }
    let open: Vec<IntervalSet> = open.into_iter().map(IntervalSet::from_unsorted).collect();
    if open.iter().all(IntervalSet::is_empty) {
        return false;
    }
    let (mut ranged, mut all) = (Ns::ZERO, Ns::ZERO);
    for row in 0..trace.activities.len() {
        let id = ActivityId::from_index(row);
        if !tables.scope.includes_activity(index, id) {
            continue;
        }
        let duration = trace.activities.dur[row].max(Ns::ZERO);
        let is_in = |(thread, at): (ThreadId, Ns)| open[thread.index()].contains(at);
        let is_ranged =
            index.launch(id).is_some_and(is_in) || trace.capture_of(id).is_some_and(|capture| is_in((capture.thread, capture.at)));
        all += duration;
        ranged += if is_ranged { duration } else { Ns::ZERO };
    }
    RANGED_SHARE.is_met(ranged, all)
}
