//! Where to look for what the first pass names.

use longpole_trace::{ActivityId, DeviceId, Ns, StrId, Trace};

use super::OverviewSources;
use super::gather::View;
use super::types::{EventOrigin, LaneKind, LanePlace, Moment, MomentSubject, OverviewLane, OverviewOptions};
use crate::families::Family;
use crate::idle::{CauseRow, IdleCause};
use crate::index::{HostRow, NodeId, TraceIndex, order::end_of};
use crate::scope::Scope;
use crate::smells::{Fact, FactValue, Smell};
use crate::steps::StepGroup;

/// A moment before its lane is known.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    subject: MomentSubject,
    label: &'static str,
    pub(super) start: Ns,
    pub(super) end: Ns,
    target: Target,
}

/// What is to be looked at.
#[derive(Clone, Copy, Debug)]
enum Target {
    Activity(u32),
    Node(NodeId),
    /// Idle time of a device, from when until when.
    Gap(DeviceId, Ns, Ns),
    Step(DeviceId, u32),
}

/// The largest gap of a cause.
fn gap(row: &CauseRow) -> Target {
    Target::Gap(row.largest_on, row.largest_at, row.largest_at + row.largest_ns)
}

/// The longest instance of each name, by kind of event.
struct Longest {
    activity: Vec<Option<(Ns, u32)>>,
    node: [Vec<Option<(Ns, NodeId)>>; 3],
}

impl Longest {
    fn find(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let (trace, tree) = (index.trace(), index.tree());
        let names = trace.strings.len();
        let (activity, node) = rayon::join(
            || {
                let mut longest: Vec<Option<(Ns, u32)>> = vec![None; names];
                for row in 0..trace.activities.len() {
                    if scope.includes_activity(index, ActivityId::from_index(row)) {
                        let dur = trace.activities.dur[row].max(Ns::ZERO);
                        let known = &mut longest[trace.activities.name[row].index()];
                        if known.is_none_or(|(most, _)| dur > most) {
                            *known = Some((dur, row as u32));
                        }
                    }
                }
                longest
            },
            || {
                let mut longest: [Vec<Option<(Ns, NodeId)>>; 3] = std::array::from_fn(|_| vec![None; names]);
                for node in tree.nodes() {
                    if scope.includes_node(index, node) {
                        let (row, _, dur) = tree.event(node);
                        let (kind, name) = match row {
                            HostRow::Range(id) => (0, trace.ranges.name[id.index()]),
                            HostRow::Op(id) => (1, trace.host_ops.name[id.index()]),
                            HostRow::Api(id) => (2, trace.api_calls.name[id.index()]),
                        };
                        let known = &mut longest[kind][name.index()];
                        if known.is_none_or(|(most, _)| dur > most) {
                            *known = Some((dur, node));
                        }
                    }
                }
                longest
            },
        );
        Self { activity, node }
    }
}

/// All spots: suspects first, then causes, steps, kernels, operators and ranges; and how many there would be without a limit.
pub(super) fn spots(index: &TraceIndex<'_>, scope: &Scope, sources: &OverviewSources<'_>, options: &OverviewOptions) -> (Vec<Spot>, usize) {
    let finder = Finder { index, sources, longest: Longest::find(index, scope) };
    let trace = index.trace();
    let mut spots = Vec::new();
    for (at, smell) in sources.triage.smells.iter().enumerate() {
        spots.extend(finder.smell(smell).map(|(label, target)| finder.spot(MomentSubject::Smell(at as u32), label, target)));
    }
    for row in &sources.idle.causes {
        spots.push(finder.spot(MomentSubject::Cause(row.cause), "the largest gap of this cause", gap(row)));
    }
    // Those with most device time.
    let mut groups: Vec<_> = sources.steps.groups.iter().enumerate().collect();
    let mut left_out = 0;
    if groups.len() > options.moments {
        groups.sort_by_key(|(at, group)| (std::cmp::Reverse(group.total_busy_ns), *at));
        let gone = groups.drain(options.moments..);
        left_out += gone.map(|(_, group)| group.steps.len().min(2)).sum::<usize>();
        groups.sort_by_key(|(at, _)| *at);
    }
    for (at, group) in groups {
        let slowest = group.steps.iter().max_by_key(|step| (step.span_ns(), std::cmp::Reverse(step.number)));
        let first = group.steps.first().filter(|first| slowest.is_some_and(|slowest| slowest.number != first.number));
        for (label, step) in slowest.map(|step| ("the slowest step", step)).into_iter().chain(first.map(|step| ("the first step", step))) {
            let subject = MomentSubject::Step(at as u32, step.number);
            let target = Target::Step(group.device, step.number);
            spots.push(Spot { subject, label, start: step.start, end: step.end, target });
        }
    }
    for row in sources.triage.kernels.iter().take(options.moments) {
        let found = trace.strings.find(&row.name).and_then(|name| Some((name, finder.longest.activity[name.index()]?)));
        if let Some((name, (_, row))) = found {
            spots.push(finder.spot(MomentSubject::Kernel(name), "its longest run", Target::Activity(row)));
        }
    }
    for row in sources.triage.ops.rows.iter().take(options.moments) {
        let found = trace.strings.find(&row.name).and_then(|name| Some((name, finder.longest.node[1][name.index()]?)));
        if let Some((name, (_, node))) = found {
            spots.push(finder.spot(MomentSubject::Op(name), "its longest call", Target::Node(node)));
        }
    }
    let (ranges, ranges_left_out) = finder.ranges(options.moments);
    spots.extend(ranges);
    let more = |all: usize| all.saturating_sub(options.moments);
    left_out += more(sources.triage.kernels.len()) + more(sources.triage.ops.rows.len()) + ranges_left_out;
    let all = spots.len() + left_out;
    (spots, all)
}

struct Finder<'a, 't> {
    index: &'a TraceIndex<'t>,
    sources: &'a OverviewSources<'a>,
    longest: Longest,
}

impl Finder<'_, '_> {
    fn trace(&self) -> &Trace {
        self.index.trace()
    }

    fn spot(&self, subject: MomentSubject, label: &'static str, target: Target) -> Spot {
        let (start, end) = match target {
            Target::Activity(row) => {
                let activities = &self.trace().activities;
                (activities.start[row as usize], end_of(activities.start[row as usize], activities.dur[row as usize]))
            }
            Target::Node(node) => (self.index.tree().start(node), self.index.tree().end(node)),
            Target::Gap(_, start, end) => (start, end),
            Target::Step(device, number) => {
                let groups = self.sources.steps.groups.iter().filter(|group| group.device == device);
                let mut all = groups.flat_map(|group| group.steps.iter().chain(group.left_out.iter().map(|left| &left.step)));
                let step = all.find(|step| step.number == number);
                step.map_or((Ns::ZERO, Ns::ZERO), |step| (step.start, step.end))
            }
        };
        Spot { subject, label, start, end, target }
    }

    /// The longest instance of each range, those with most time first; and how many ranges there are more.
    fn ranges(&self, most: usize) -> (Vec<Spot>, usize) {
        let trace = self.trace();
        let mut longest: Vec<(&str, Ns, NodeId)> = Vec::new();
        for (name, found) in self.longest.node[0].iter().enumerate() {
            if let Some((dur, node)) = found {
                let name = trace.strings.get(StrId(name as u32));
                // As the range table has it.
                let name = if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name };
                longest.push((name, *dur, *node));
            }
        }
        longest.sort_by_key(|&(_, dur, node)| (std::cmp::Reverse(dur), node));
        let mut seen: hashbrown::HashSet<&str, foldhash::fast::FixedState> = hashbrown::HashSet::default();
        longest.retain(|(name, ..)| seen.insert(name));
        let left_out = longest.len().saturating_sub(most);
        longest.truncate(most);
        let spot = |(name, _, node): (&str, Ns, NodeId)| {
            self.spot(MomentSubject::Range(name.to_owned()), "its longest instance", Target::Node(node))
        };
        (longest.into_iter().map(spot).collect(), left_out)
    }

    /// What shows a suspect: an instance of what it is about, or the largest gap of the causes that it stands for.
    fn smell(&self, smell: &Smell) -> Option<(&'static str, Target)> {
        let (code, subject) = (smell.code, smell.subject.as_str());
        let causes: &[IdleCause] = match code {
            "allocation" => &[IdleCause::Allocation],
            "synchronisation" => &[IdleCause::BlockedInSync],
            "data_loading" => &[IdleCause::OutsideOperators, IdleCause::Python],
            "host_bound" => &[IdleCause::Dispatch, IdleCause::Python, IdleCause::OutsideOperators, IdleCause::GraphLaunch],
            "compile_or_load" | "cold_start" => &[IdleCause::CompileOrLoad],
            "profiler_distorts" => &[IdleCause::Profiler],
            _ => &[],
        };
        let of_causes = self.sources.idle.causes.iter().filter(|row| causes.contains(&row.cause));
        if let Some(row) = of_causes.max_by_key(|row| (row.largest_ns, row.cause)) {
            return Some(("the largest gap of this cause", gap(row)));
        }
        let steps = || self.sources.steps.groups.iter();
        match code {
            "slow_steps" | "shape_churn" => {
                // The one that is named, where one is: it is the slowest on the host, which need not be the slowest on the device.
                if let Some(named) = smell.evidence.iter().find_map(slowest_step) {
                    let of_group = |group: &'_ StepGroup| {
                        group.steps.iter().chain(group.left_out.iter().map(|left| &left.step)).any(|step| step.number == named)
                    };
                    let group = steps().find(|group| of_group(group))?;
                    return Some(("the slowest step", Target::Step(group.device, named)));
                }
                let slowest = steps().flat_map(|group| group.slow_steps.iter().map(move |slow| (slow, group)));
                let slowest = slowest.max_by_key(|(slow, _)| slow.excess_ns);
                if let Some((slow, group)) = slowest {
                    let number = group.steps.get(slow.step as usize)?.number;
                    return Some(("the slowest step", Target::Step(group.device, number)));
                }
            }
            "copies" => {
                let copies = self.sources.triage.kernels.iter().filter(|row| row.kind == longpole_trace::ActivityKind::Memcpy);
                return self.run(&copies.max_by_key(|row| row.max_ns)?.name, "the longest copy");
            }
            "communication" => {
                let kernels = self.sources.triage.kernels.iter().filter(|row| row.family == Family::Communication);
                return self.run(&kernels.max_by_key(|row| row.max_ns)?.name, "the longest collective");
            }
            _ => {}
        }
        self.named(subject).or_else(|| self.shown(code))
    }

    fn run(&self, name: &str, label: &'static str) -> Option<(&'static str, Target)> {
        let name = self.trace().strings.find(name)?;
        self.longest.activity[name.index()].map(|(_, row)| (label, Target::Activity(row)))
    }

    /// The longest instance of something of this name.
    fn named(&self, subject: &str) -> Option<(&'static str, Target)> {
        let of_short_name = self.sources.triage.kernels.iter().find(|row| row.short_name == subject);
        let name = of_short_name.map_or(subject, |row| &row.name);
        let id = self.trace().strings.find(name)?;
        if let Some((_, row)) = self.longest.activity[id.index()] {
            return Some(("its longest run", Target::Activity(row)));
        }
        let of = |kind: usize| self.longest.node[kind][id.index()].map(|(_, node)| Target::Node(node));
        let instance = of(1).or_else(|| of(2)).map(|target| ("its longest call", target));
        instance.or_else(|| of(0).map(|target| ("its longest instance", target)))
    }

    /// What is typical of a suspect that is about no single thing.
    fn shown(&self, code: &str) -> Option<(&'static str, Target)> {
        match code {
            "one_kernel" | "top_family" | "memory_traffic" | "many_tiny_kernels" => {
                self.run(&self.sources.triage.kernels.first()?.name, "the longest run of the kernel with most time")
            }
            "stall" | "record_cpu" | "blocking_call" => {
                let row = self.sources.idle.causes.iter().max_by_key(|row| (row.largest_ns, row.cause))?;
                Some(("the largest gap", gap(row)))
            }
            _ => None,
        }
    }
}

/// The step that a suspect names as the slowest.
fn slowest_step(fact: &Fact) -> Option<u32> {
    match fact.value {
        FactValue::Count(number) if fact.key == "slowest_step" => u32::try_from(number).ok(),
        _ => None,
    }
}

/// Finds the lanes of spots, and their events among those that are kept.
pub(super) fn placed(view: &View<'_, '_>, spots: Vec<Spot>, lanes: &[OverviewLane]) -> Vec<Moment> {
    let trace = view.index.trace();
    let place = |target: Target| match target {
        Target::Activity(row) => (LaneKind::Stream, LanePlace::Stream(trace.activities.lane[row as usize])),
        Target::Node(node) => {
            let kind = match view.index.tree().row(node) {
                HostRow::Range(_) => LaneKind::Ranges,
                HostRow::Op(_) => LaneKind::Ops,
                HostRow::Api(_) => LaneKind::Calls,
            };
            (kind, LanePlace::Thread(view.index.tree().thread(node)))
        }
        Target::Gap(device, ..) => (LaneKind::Gaps, LanePlace::Device(device)),
        Target::Step(device, _) => (LaneKind::Steps, LanePlace::Device(device)),
    };
    let number_of: hashbrown::HashMap<(LaneKind, LanePlace), usize, foldhash::fast::FixedState> =
        lanes.iter().enumerate().map(|(at, lane)| ((lane.kind, lane.place), at)).collect();
    let moment = |spot: Spot| {
        let lane = number_of.get(&place(spot.target)).copied();
        let event = lane.and_then(|lane| {
            let lane = &lanes[lane];
            let first = lane.events.partition_point(|event| event.start < spot.start);
            let at_start = lane.events[first..].iter().take_while(|event| event.start == spot.start);
            let is_it = |origin: EventOrigin| match (spot.target, origin) {
                (Target::Activity(row), EventOrigin::Activity(id)) => id.0 == row,
                (Target::Node(node), EventOrigin::Node(id)) => id == node,
                (Target::Gap(..), EventOrigin::Stretch(_)) => true,
                (Target::Step(_, number), EventOrigin::Step(id)) => id == number,
                _ => false,
            };
            let at = at_start.into_iter().position(|event| is_it(event.origin))?;
            Some(lane.first + (first + at) as u32)
        });
        Moment { subject: spot.subject, label: spot.label, start: spot.start, end: spot.end, lane: lane.map(|lane| lane as u32), event }
    };
    spots.into_iter().map(moment).collect()
}
