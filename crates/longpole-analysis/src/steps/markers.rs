//! Which ranges are steps, and which work each holds.
//!
//! Ranges nest: a loop around steps, steps, parts of steps. From the outermost on, a range gives way to those inside when these
//! come several times in each, hold most of its work, and are whole steps rather than layers or parts of one; or when one inside each holds
//! all of it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Ns, RangeId};

use super::Program;
use super::looks::Looks;
use super::names::template;
use super::types::StepOptions;
use crate::index::TraceIndex;
use crate::ranges::is_users;
use crate::scope::{Scope, autograd_workers};

pub(super) const NONE: u32 = u32::MAX;
/// Share of a range's work that those inside must hold for the range to be a loop around steps.
const INSIDE: f64 = 0.7;
/// Share of all device work that the markers must hold to be used.
const HOLDS_MOST: f64 = 0.5;
/// Levels of nesting that are followed.
const DEPTH: usize = 16;

/// A range that may be a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    range: RangeId,
    start: Ns,
    end: Ns,
    /// The innermost one around it.
    pub(super) parent: u32,
    pub(super) class: u32,
    /// Device activities launched inside, at any depth.
    pub(super) work: u64,
}

/// Ranges with the device work they hold.
pub(super) struct Forest {
    pub(super) instances: Vec<Instance>,
    /// For each program, the innermost instance of each position.
    pub(super) inner: Vec<Vec<u32>>,
    pub(super) classes: usize,
}

/// Steps by marker: for each program, the marker of each step and its positions.
pub(super) struct Marked {
    pub(super) steps: Vec<Vec<(RangeId, Vec<u32>)>>,
}

/// The steps that ranges mark, if there are such and they hold most of the device work.
pub(super) fn marked(index: &TraceIndex<'_>, scope: &Scope, options: &StepOptions<'_>, programs: &[Program]) -> Option<Marked> {
    if options.ignore_ranges || index.trace().ranges.is_empty() {
        return None;
    }
    let forest = Forest::build(index, scope, options, programs)?;
    let chosen = forest.choose(programs);
    let instances = &forest.instances;
    // The chosen range around each instance, outer ones first.
    let mut step_of = vec![NONE; instances.len()];
    for at in 0..instances.len() {
        let parent = instances[at].parent;
        step_of[at] = match parent {
            _ if parent != NONE && step_of[parent as usize] != NONE => step_of[parent as usize],
            _ if chosen[instances[at].class as usize] => at as u32,
            _ => NONE,
        };
    }
    let (mut held, mut all) = (0_u64, 0_u64);
    let mut steps = Vec::new();
    for inner in &forest.inner {
        let mut positions: HashMap<u32, Vec<u32>, FixedState> = HashMap::default();
        for (position, &instance) in inner.iter().enumerate() {
            all += 1;
            if instance != NONE && step_of[instance as usize] != NONE {
                held += 1;
                positions.entry(step_of[instance as usize]).or_default().push(position as u32);
            }
        }
        let mut of_program: Vec<(u32, Vec<u32>)> = positions.into_iter().collect();
        of_program.sort_unstable_by_key(|(instance, _)| *instance);
        steps.push(of_program.into_iter().map(|(instance, positions)| (instances[instance as usize].range, positions)).collect());
    }
    let enough = if options.filter.is_some() { held > 0 } else { held > 0 && held as f64 >= all as f64 * HOLDS_MOST };
    enough.then_some(Marked { steps })
}

impl Forest {
    fn build(index: &TraceIndex<'_>, scope: &Scope, options: &StepOptions<'_>, programs: &[Program]) -> Option<Self> {
        let (trace, tree) = (index.trace(), index.tree());
        let ranges = &trace.ranges;
        let mut classes: HashMap<String, u32, FixedState> = HashMap::default();
        let mut class_of: HashMap<u32, Option<u32>, FixedState> = HashMap::default();
        let mut of_thread: Vec<Vec<Instance>> = vec![Vec::new(); trace.threads.len()];
        for row in 0..ranges.len() {
            let (start, dur, thread) = (ranges.start[row], ranges.dur[row], ranges.thread[row]);
            if dur <= Ns::ZERO || !scope.includes_host(trace, thread, start) {
                continue;
            }
            let class = *class_of.entry(ranges.name[row].0).or_insert_with(|| {
                let name = trace.strings.get(ranges.name[row]);
                let wanted = is_users(name) && options.filter.is_none_or(|accepts| accepts(name));
                let next = classes.len() as u32;
                wanted.then(|| *classes.entry(template(name)).or_insert(next))
            });
            let Some(class) = class else { continue };
            let range = RangeId::from_index(row);
            let around = tree.range_node(range).and_then(|node| tree.parent(node));
            if around.is_some_and(|around| tree.enclosing_op(around).is_some()) {
                continue;
            }
            of_thread[thread.index()].push(Instance { range, start, end: start + dur, parent: NONE, class, work: 0 });
        }
        if of_thread.iter().all(Vec::is_empty) {
            return None;
        }
        let mut forest = Self { instances: Vec::new(), inner: Vec::new(), classes: classes.len() };
        let innermost: Vec<Vec<(Ns, u32)>> = of_thread.into_iter().map(|instances| forest.nest(instances)).collect();
        let seen_by = seen_by(index, &innermost);
        for program in programs {
            let activities = &program.sequence.activities;
            let inner = activities.iter().map(|&activity| innermost_at(index, activity, &innermost, &seen_by)).collect();
            forest.inner.push(inner);
        }
        for &instance in forest.inner.iter().flatten() {
            if instance != NONE {
                forest.instances[instance as usize].work += 1;
            }
        }
        for at in (0..forest.instances.len()).rev() {
            let Instance { parent, work, .. } = forest.instances[at];
            if parent != NONE {
                forest.instances[parent as usize].work += work;
            }
        }
        Some(forest)
    }

    /// Adds the ranges of a thread, each after those around it; gives the innermost one from each time on.
    fn nest(&mut self, mut instances: Vec<Instance>) -> Vec<(Ns, u32)> {
        instances.sort_by_key(|instance| (instance.start, std::cmp::Reverse(instance.end)));
        let mut changes = Vec::with_capacity(instances.len() * 2);
        let mut open: Vec<u32> = Vec::new();
        for mut instance in instances {
            // Of ranges that overlap without nesting, the later one takes over.
            while let Some(&top) = open.last() {
                let end = self.instances[top as usize].end;
                if end >= instance.end {
                    break;
                }
                open.pop();
                if end <= instance.start {
                    changes.push((end, open.last().copied().unwrap_or(NONE)));
                }
            }
            instance.parent = open.last().copied().unwrap_or(NONE);
            let at = self.instances.len() as u32;
            changes.push((instance.start, at));
            open.push(at);
            self.instances.push(instance);
        }
        while let Some(top) = open.pop() {
            changes.push((self.instances[top as usize].end, open.last().copied().unwrap_or(NONE)));
        }
        changes
    }

    /// Which classes of ranges are steps.
    fn choose(&self, programs: &[Program]) -> Vec<bool> {
        // Instances and work of each class, and of each class directly inside another (or outermost).
        let mut own = vec![(0_u64, 0_u64); self.classes];
        let mut inside: HashMap<(u32, u32), (u64, u64), FixedState> = HashMap::default();
        for instance in &self.instances {
            let around = if instance.parent == NONE { NONE } else { self.instances[instance.parent as usize].class };
            for (count, work) in [&mut own[instance.class as usize], inside.entry((around, instance.class)).or_default()] {
                *count += 1;
                *work += instance.work;
            }
        }
        let mut children: HashMap<u32, Vec<(u32, u64, u64)>, FixedState> = HashMap::default();
        for (&(around, class), &(count, work)) in &inside {
            if work > 0 && around != class {
                children.entry(around).or_default().push((class, count, work));
            }
        }
        let mut looks = Looks::new(self, programs);
        let mut chosen = vec![false; self.classes];
        let mut visited = vec![false; self.classes];
        let mut open: Vec<(u32, usize)> = children.get(&NONE).into_iter().flatten().map(|&(class, _, _)| (class, 0)).collect();
        while let Some((class, depth)) = open.pop() {
            if std::mem::replace(&mut visited[class as usize], true) {
                continue;
            }
            let (count, work) = own[class as usize];
            let inner = children.get(&class).map_or(&[][..], Vec::as_slice);
            let held: u64 = inner.iter().map(|child| child.2).sum();
            let mut repeated: Vec<(u32, u64, u64)> = inner.iter().filter(|child| child.1 >= 2 * count).copied().collect();
            repeated.sort_unstable_by_key(|&(class, _, work)| (std::cmp::Reverse(work), class));
            let repeated: Vec<u32> = repeated.into_iter().map(|(class, _, _)| class).collect();
            let by_repeats = !repeated.is_empty() && held as f64 >= work as f64 * INSIDE && looks.are_steps(class, &repeated);
            let repeats_below = || inner.iter().any(|child| children.get(&child.0).is_some_and(|below| below.iter().any(|b| b.1 >= 2)));
            let by_loop_inside = count == 1 && held as f64 >= work as f64 * INSIDE && repeats_below();
            // A range around one other each, of one name or of several, with nothing besides.
            let inner_count: u64 = inner.iter().map(|child| child.1).sum();
            let is_wrapper = !inner.is_empty() && inner_count == count && held == work;
            let is_loop = by_repeats || by_loop_inside || is_wrapper;
            if is_loop && depth < DEPTH {
                open.extend(inner.iter().map(|child| (child.0, depth + 1)));
            } else {
                chosen[class as usize] = true;
            }
        }
        chosen
    }
}

/// For each thread, the thread whose ranges hold its launches: its own, or for an autograd worker that with most of its process.
fn seen_by(index: &TraceIndex<'_>, innermost: &[Vec<(Ns, u32)>]) -> Vec<usize> {
    let trace = index.trace();
    let mut most: Vec<Option<usize>> = vec![None; trace.processes.len()];
    for (thread, changes) in innermost.iter().enumerate() {
        let most = &mut most[trace.threads[thread].process.index()];
        if !changes.is_empty() && most.is_none_or(|known| innermost[known].len() < changes.len()) {
            *most = Some(thread);
        }
    }
    let workers = autograd_workers(index);
    (0..innermost.len())
        .map(|thread| if workers[thread] { most[trace.threads[thread].process.index()].unwrap_or(thread) } else { thread })
        .collect()
}

/// The innermost range around the launch of an activity.
fn innermost_at(index: &TraceIndex<'_>, activity: ActivityId, innermost: &[Vec<(Ns, u32)>], seen_by: &[usize]) -> u32 {
    let Some((thread, at)) = index.launch(activity) else { return NONE };
    let changes = &innermost[seen_by[thread.index()]];
    let after = changes.partition_point(|&(time, _)| time <= at);
    after.checked_sub(1).map_or(NONE, |before| changes[before].1)
}
