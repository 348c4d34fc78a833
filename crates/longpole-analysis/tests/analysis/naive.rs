//! Random small traces: the host tree, the links and the operator table against versions that are too slow to be wrong.

use std::collections::{BTreeMap, BTreeSet};

use longpole_analysis::{GroupBy, HostRow, OpRowKind, Scope, ScopeSpec, TraceIndex, memory_table, op_table};
use longpole_trace::{
    Activity, ActivityKind, ApiCall, HostOp, Lane, MemoryEvent, MemoryPlace, Ns, PythonFrame, Range, RankInfo, Tid, Trace, TraceBuilder,
};
use proptest::prelude::*;

/// A host event; its kind orders ties as the tree does.
#[derive(Clone, Debug, PartialEq)]
struct Host {
    kind: usize,
    name: usize,
    thread: usize,
    start: i64,
    dur: i64,
    id: u64,
}

#[derive(Clone, Debug)]
struct Work {
    start: i64,
    dur: i64,
    correlation: Option<u64>,
    external_id: Option<u64>,
}

#[derive(Clone, Debug)]
struct Alloc {
    thread: usize,
    at: i64,
    bytes: i64,
    on_device: bool,
}

#[derive(Clone, Debug)]
struct Frame {
    name: usize,
    thread: usize,
    start: i64,
    dur: i64,
}

#[derive(Clone, Debug)]
struct Case {
    host: Vec<Host>,
    work: Vec<Work>,
    allocs: Vec<Alloc>,
    frames: Vec<Frame>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const RANGE: usize = 0;
const OP: usize = 1;
const API: usize = 2;

fn cases() -> impl Strategy<Value = Case> {
    let host = (0..3_usize, 0..3_usize, 0..2_usize, 0..30_i64, -2..16_i64, 0..6_u64)
        .prop_map(|(kind, name, thread, start, dur, id)| Host { kind, name, thread, start, dur, id });
    let work = (0..40_i64, 0..9_i64, proptest::option::of(0..8_u64), proptest::option::of(0..8_u64))
        .prop_map(|(start, dur, correlation, external_id)| Work { start, dur, correlation, external_id });
    let alloc = (0..2_usize, 0..40_i64, -50..50_i64, any::<bool>()).prop_map(|(thread, at, bytes, on_device)| Alloc {
        thread,
        at,
        bytes,
        on_device,
    });
    let frame = (0..3_usize, 0..2_usize, 0..30_i64, -1..20_i64).prop_map(|(name, thread, start, dur)| Frame { name, thread, start, dur });
    (
        proptest::collection::vec(host, 0..24),
        proptest::collection::vec(work, 0..8),
        proptest::collection::vec(alloc, 0..6),
        proptest::collection::vec(frame, 0..10),
    )
        .prop_map(|(host, work, allocs, frames)| Case { host, work, allocs, frames })
}

/// Many calls and little work that share two correlation numbers.
fn crowded() -> impl Strategy<Value = Case> {
    cases().prop_map(|mut case| {
        for event in &mut case.host {
            (event.kind, event.id) = (API, event.id % 2);
        }
        for work in &mut case.work {
            work.correlation = work.correlation.map(|number| number % 2);
        }
        case
    })
}

fn build(case: &Case) -> Trace {
    let mut builder = TraceBuilder::new();
    let rank = builder.add_rank(RankInfo::default());
    let names: Vec<_> = NAMES.iter().map(|name| builder.trace_mut().strings.intern(name)).collect();
    builder.trace_mut().window.include(Ns(0), Ns(50));
    let process = builder.process(rank, 1);
    let threads: Vec<_> = (0..2).map(|tid| builder.thread(process, Tid::Number(tid))).collect();
    let device = builder.device(rank, 0);
    let lane = builder.lane(Lane { device, context: None, stream: 7 });
    for event in &case.host {
        let (name, thread, start, dur) = (names[event.name], threads[event.thread], Ns(event.start), Ns(event.dur));
        match event.kind {
            RANGE => builder.push_range(Range { name, thread, start, dur }),
            OP => builder.push_host_op(HostOp {
                name,
                thread,
                start,
                dur,
                external_id: Some(event.id),
                shapes: None,
                types: None,
                strides: None,
                values: None,
            }),
            _ => builder.push_api_call(ApiCall {
                name,
                thread,
                start,
                dur,
                correlation: Some(event.id),
                external_id: Some(event.name as u64),
            }),
        }
    }
    for work in &case.work {
        let (start, dur) = (Ns(work.start), Ns(work.dur));
        let (correlation, external_id) = (work.correlation, work.external_id);
        let kind = ActivityKind::Kernel;
        builder.push_activity(Activity {
            kind,
            name: names[0],
            lane,
            start,
            dur,
            correlation,
            external_id,
            detail: None,
            graph_node: None,
        });
    }
    for alloc in &case.allocs {
        let place = if alloc.on_device { MemoryPlace::Device } else { MemoryPlace::Host };
        let (thread, start) = (threads[alloc.thread], Ns(alloc.at));
        let (device, total_allocated, total_reserved) = (None, None, None);
        builder.push_memory_event(MemoryEvent { thread, start, bytes: alloc.bytes, place, device, total_allocated, total_reserved });
    }
    for frame in &case.frames {
        let (name, thread) = (names[frame.name], threads[frame.thread]);
        builder.push_frame(PythonFrame { name, thread, start: Ns(frame.start), dur: Ns(frame.dur) });
    }
    builder.finish()
}

fn end(event: &Host) -> i64 {
    event.start + event.dur.max(0)
}

/// Parents by definition: the latest earlier event that this one fits into and that nothing in between has closed. An event
/// closes those that it does not fit into, unless it fits into one opened after them.
fn parents(spans: &[(i64, i64)]) -> Vec<Option<usize>> {
    let fits = |inner: usize, outer: usize| spans[inner].0 < spans[outer].1 && spans[inner].1 <= spans[outer].1;
    let mut open_at = vec![vec![false; spans.len() + 1]; spans.len()];
    let mut parents = Vec::new();
    for at in 0..spans.len() {
        let holder = (0..at).rev().find(|&outer| open_at[outer][at] && fits(at, outer));
        for (outer, open) in open_at[..at].iter_mut().enumerate() {
            open[at + 1] = open[at] && holder.is_some_and(|holder| outer <= holder);
        }
        open_at[at][at + 1] = true;
        parents.push(holder);
    }
    parents
}

struct Node {
    /// Position in the case.
    event: usize,
    parent: Option<usize>,
    children: Vec<usize>,
    folded: bool,
}

struct Naive<'a> {
    case: &'a Case,
    nodes: Vec<Node>,
    /// The surviving node of each event.
    node_of: Vec<usize>,
}

impl<'a> Naive<'a> {
    fn new(case: &'a Case) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        for thread in 0..2 {
            let mut events: Vec<usize> = (0..case.host.len()).filter(|&event| case.host[event].thread == thread).collect();
            events.sort_by_key(|&event| (case.host[event].start, -end(&case.host[event]), case.host[event].kind));
            let spans: Vec<_> = events.iter().map(|&event| (case.host[event].start, end(&case.host[event]))).collect();
            let first = nodes.len();
            for (event, parent) in events.into_iter().zip(parents(&spans)) {
                let parent = parent.map(|parent| parent + first);
                if let Some(parent) = parent {
                    let child = nodes.len();
                    nodes[parent].children.push(child);
                }
                nodes.push(Node { event, parent, children: Vec::new(), folded: false });
            }
        }
        let mut node_of = vec![0; case.host.len()];
        for at in 0..nodes.len() {
            if !nodes[at].folded {
                node_of[nodes[at].event] = at;
            }
            let label = |node: &Node| (case.host[node.event].kind, case.host[node.event].name);
            while let &[child] = &nodes[at].children[..]
                && label(&nodes[child]) == label(&nodes[at])
                && !nodes[at].folded
            {
                nodes[child].folded = true;
                node_of[nodes[child].event] = at;
                nodes[at].children = std::mem::take(&mut nodes[child].children);
                for grandchild in nodes[at].children.clone() {
                    nodes[grandchild].parent = Some(at);
                }
            }
        }
        Self { case, nodes, node_of }
    }

    fn event(&self, node: usize) -> &'a Host {
        &self.case.host[self.nodes[node].event]
    }

    /// Counts the nanoseconds in no child.
    fn self_time(&self, node: usize) -> i64 {
        let event = self.event(node);
        let in_child = |at| self.nodes[node].children.iter().any(|&child| self.event(child).start <= at && at < end(self.event(child)));
        (event.start..end(event)).filter(|&at| !in_child(at)).count() as i64
    }

    fn launch(&self, work: &Work) -> Option<usize> {
        let shares = |event: &Host| event.kind == API && Some(event.id) == work.correlation;
        let mut calls: Vec<usize> = (0..self.case.host.len()).filter(|&event| shares(&self.case.host[event])).collect();
        calls.sort_by_key(|&event| {
            let call = &self.case.host[event];
            let same_operator = Some(call.name as u64) == work.external_id;
            let late = call.start > work.start;
            (!same_operator, late, if late { call.start } else { -call.start })
        });
        calls.first().copied()
    }

    fn enclosing_op(&self, event: usize) -> Option<usize> {
        let mut node = Some(self.node_of[event]);
        while let Some(at) = node
            && self.event(at).kind != OP
        {
            node = self.nodes[at].parent;
        }
        node
    }

    fn owner(&self, work: &Work) -> Option<usize> {
        let by_id = || {
            let named = |event: &Host| event.kind == OP && Some(event.id) == work.external_id;
            (0..self.case.host.len()).rev().find(|&event| named(&self.case.host[event])).map(|event| self.node_of[event])
        };
        self.launch(work).and_then(|call| self.enclosing_op(call)).or_else(by_id)
    }

    fn innermost(&self, thread: usize, at: i64) -> Option<usize> {
        let holds = |node: usize| self.event(node).thread == thread && self.event(node).start <= at && at <= end(self.event(node));
        (0..self.nodes.len()).rev().find(|&node| !self.nodes[node].folded && holds(node))
    }

    fn descendants(&self, node: usize) -> Vec<usize> {
        let mut all = vec![node];
        for &child in &self.nodes[node].children {
            all.extend(self.descendants(child));
        }
        all
    }

    fn stack(&self, node: usize, depth: usize) -> Vec<String> {
        let event = self.event(node);
        let mut frames: Vec<&Frame> = self.case.frames.iter().filter(|frame| frame.thread == event.thread).collect();
        frames.sort_by_key(|frame| (frame.start, -(frame.start + frame.dur.max(0))));
        let spans: Vec<_> = frames.iter().map(|frame| (frame.start, frame.start + frame.dur.max(0))).collect();
        let parents = parents(&spans);
        let mut at = frames.iter().rposition(|frame| frame.start <= event.start);
        while let Some(inner) = at
            && spans[inner].1 <= event.start
        {
            at = parents[inner];
        }
        std::iter::successors(at, |&frame| parents[frame]).take(depth).map(|frame| NAMES[frames[frame].name].to_owned()).collect()
    }
}

/// Calls, host time, self host time, self and total device time, then self and total bytes of host and device.
type Sums = [i64; 9];

/// The operator table by definition, of what starts in `window`.
fn naive_table(case: &Case, window: (i64, i64), depth: Option<usize>) -> BTreeMap<(String, Vec<String>), Sums> {
    let naive = Naive::new(case);
    let inside = |at: i64| window.0 <= at && at < window.1;
    let mut own = vec![[0_i64; 3]; naive.nodes.len()];
    let mut table: BTreeMap<_, Sums> = BTreeMap::new();
    let mut launches = BTreeSet::new();
    for (at, work) in case.work.iter().enumerate() {
        let launch = naive.launch(work);
        let owner = naive.owner(work);
        // Without a call the operator that the work names stands for its launch.
        let began = launch.map(|call| case.host[call].start).or_else(|| owner.map(|owner| naive.event(owner).start));
        if !inside(began.unwrap_or(work.start)) {
            continue;
        }
        if let Some(owner) = owner {
            own[owner][0] += work.dur;
            continue;
        }
        let name = launch.map_or("launch not recorded", |call| NAMES[case.host[call].name]);
        let row = table.entry((format!("(no operator) {name}"), Vec::new())).or_default();
        row[3] += work.dur;
        row[4] += work.dur;
        let launch_key = (launch, work.correlation, if launch.is_none() && work.correlation.is_none() { at } else { 0 });
        if launches.insert(launch_key) {
            row[0] += 1;
        }
    }
    for alloc in &case.allocs {
        if let Some(node) = naive.innermost(alloc.thread, alloc.at)
            && inside(alloc.at)
        {
            own[node][if alloc.on_device { 2 } else { 1 }] += alloc.bytes;
        }
    }
    for node in 0..naive.nodes.len() {
        let event = naive.event(node);
        if naive.nodes[node].folded || event.kind == RANGE {
            continue;
        }
        let counted = inside(event.start);
        if !counted && own[node] == [0; 3] {
            continue;
        }
        let kind = if event.kind == API { "api " } else { "" };
        let stack = depth.map(|depth| naive.stack(node, depth)).unwrap_or_default();
        let row = table.entry((format!("{kind}{}", NAMES[event.name]), stack)).or_default();
        let holders = if counted { naive.descendants(node) } else { vec![node] };
        for (column, at) in [(3, 0), (5, 1), (7, 2)] {
            row[column] += own[node][at];
            row[column + 1] += holders.iter().map(|&holder| own[holder][at]).sum::<i64>();
        }
        if counted {
            row[0] += 1;
            row[1] += event.dur.max(0);
            row[2] += naive.self_time(node);
        }
    }
    table
}

/// Calls that made events, allocations, bytes allocated and freed, peak: by name and place.
fn naive_memory(case: &Case) -> BTreeMap<(String, MemoryPlace), [i64; 5]> {
    let naive = Naive::new(case);
    let mut allocs: Vec<&Alloc> = case.allocs.iter().collect();
    allocs.sort_by_key(|alloc| alloc.at);
    let operator = |alloc: &Alloc| naive.innermost(alloc.thread, alloc.at).and_then(|node| naive.enclosing_op(naive.nodes[node].event));
    let peak = |events: Vec<&Alloc>| {
        let mut held = 0;
        events
            .iter()
            .map(|alloc| {
                held += alloc.bytes;
                held
            })
            .max()
            .unwrap_or(0)
            .max(0)
    };
    let mut table: BTreeMap<_, [i64; 5]> = BTreeMap::new();
    for on_device in [false, true] {
        let place = if on_device { MemoryPlace::Device } else { MemoryPlace::Host };
        let here: Vec<&Alloc> = allocs.iter().copied().filter(|alloc| alloc.on_device == on_device).collect();
        for alloc in &here {
            let name = operator(alloc).map_or("(outside any operator)", |node| NAMES[naive.event(node).name]);
            let row = table.entry((name.to_owned(), place)).or_default();
            row[1] += i64::from(alloc.bytes >= 0);
            row[2] += alloc.bytes.max(0);
            row[3] += -alloc.bytes.min(0);
        }
        for node in (0..naive.nodes.len()).filter(|&node| naive.event(node).kind == OP && !naive.nodes[node].folded) {
            if let Some(row) = table.get_mut(&(NAMES[naive.event(node).name].to_owned(), place)) {
                let family = naive.descendants(node);
                row[0] += i64::from(here.iter().any(|alloc| operator(alloc) == Some(node)));
                let inside = here.iter().copied().filter(|alloc| operator(alloc).is_some_and(|owner| family.contains(&owner)));
                row[4] = row[4].max(peak(inside.collect()));
            }
        }
        if let Some(row) = table.get_mut(&("(outside any operator)".to_owned(), place)) {
            row[4] = peak(here.iter().copied().filter(|alloc| operator(alloc).is_none()).collect());
        }
    }
    table
}

fn our_table(index: &TraceIndex<'_>, scope: &Scope, by: GroupBy) -> BTreeMap<(String, Vec<String>), Sums> {
    let table = op_table(index, scope, by);
    let device_total: i64 = table.rows.iter().filter_map(|row| row.self_cuda_ns).map(Ns::get).sum();
    assert_eq!(table.self_cuda_total_ns.map_or(0, Ns::get), device_total);
    let time = |time: Option<Ns>| time.map_or(0, Ns::get);
    let rows = table.rows.into_iter().map(|row| {
        let kind = if row.kind == OpRowKind::ApiCall { "api " } else { "" };
        let bytes = [row.self_cpu_mem_bytes, row.cpu_mem_bytes, row.self_cuda_mem_bytes, row.cuda_mem_bytes].map(Option::unwrap_or_default);
        let times = [time(row.cpu_ns), time(row.self_cpu_ns), time(row.self_cuda_ns), time(row.cuda_ns)];
        let sums = [row.calls as i64, times[0], times[1], times[2], times[3], bytes[0], bytes[1], bytes[2], bytes[3]];
        ((format!("{kind}{}", row.name), row.stack.unwrap_or_default()), sums)
    });
    let count = rows.len();
    let map: BTreeMap<_, _> = rows.collect();
    assert_eq!(map.len(), count, "rows are distinct");
    map
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tree_is_the_naive_one(case in cases()) {
        let trace = build(&case);
        let index = TraceIndex::new(&trace);
        let (tree, naive) = (index.tree(), Naive::new(&case));
        let mut seen = [0; 3];
        // Rows of each kind are numbered in the order of the case.
        let row = |kind: usize, number: usize| match kind {
            RANGE => tree.range_node(longpole_trace::RangeId::from_index(number)),
            OP => tree.op_node(longpole_trace::HostOpId::from_index(number)),
            _ => tree.api_node(longpole_trace::ApiCallId::from_index(number)),
        };
        let mut ours = Vec::new();
        for event in &case.host {
            ours.push(row(event.kind, seen[event.kind]).unwrap());
            seen[event.kind] += 1;
        }
        for (event, &node) in ours.iter().enumerate() {
            let expected = naive.node_of[event];
            prop_assert_eq!(node, ours[naive.nodes[expected].event], "event {} folded elsewhere", event);
            let parent = naive.nodes[expected].parent.map(|parent| ours[naive.nodes[parent].event]);
            prop_assert_eq!(tree.parent(node), parent, "parent of event {}", event);
            prop_assert_eq!(tree.children(node).count(), naive.nodes[expected].children.len());
            prop_assert_eq!(tree.subtree(node).count(), naive.descendants(expected).len());
        }
        prop_assert_eq!(tree.len(), naive.nodes.iter().filter(|node| !node.folded).count());
        prop_assert_eq!(tree.folded() as usize + tree.len(), case.host.len());
        for thread in 0..2 {
            for at in -1..50 {
                let expected = naive.innermost(thread, at).map(|node| ours[naive.nodes[node].event]);
                prop_assert_eq!(tree.innermost_at(longpole_trace::ThreadId::from_index(thread), Ns(at)), expected);
            }
        }
        for pair in tree.nodes().collect::<Vec<_>>().windows(2) {
            prop_assert!(tree.thread(pair[0]) != tree.thread(pair[1]) || tree.start(pair[0]) <= tree.start(pair[1]));
        }
        prop_assert!(tree.nodes().all(|node| matches!(tree.row(node), HostRow::Range(_)) || tree.enclosing_op(node).is_none_or(|op| op <= node)));
    }

    #[test]
    fn the_launch_is_the_naive_one_where_many_calls_share_a_number(case in crowded()) {
        let trace = build(&case);
        let index = TraceIndex::new(&trace);
        let naive = Naive::new(&case);
        for (row, work) in case.work.iter().enumerate() {
            // All host events are calls here, so that they are numbered as the case numbers them.
            let call = index.links().call(longpole_trace::ActivityId::from_index(row)).map(longpole_trace::ApiCallId::index);
            prop_assert_eq!(call, naive.launch(work));
        }
    }

    #[test]
    fn table_is_the_naive_one(case in cases(), from in 0..20_i64, length in 1..30_i64, depth in 0..3_usize) {
        let trace = build(&case);
        let index = TraceIndex::new(&trace);
        prop_assert_eq!(our_table(&index, &Scope::whole(), GroupBy::Name), naive_table(&case, (i64::MIN, i64::MAX), None));
        prop_assert_eq!(our_table(&index, &Scope::whole(), GroupBy::Stack(depth)), naive_table(&case, (i64::MIN, i64::MAX), Some(depth)));
        let spec = ScopeSpec { time: Some((Ns(from), Ns(from + length))), ..ScopeSpec::default() };
        let scope = Scope::resolve(&index, &spec).unwrap();
        prop_assert_eq!(our_table(&index, &scope, GroupBy::Name), naive_table(&case, (from, from + length), None));
    }

    #[test]
    fn memory_is_the_naive_one(case in cases()) {
        let trace = build(&case);
        let table = memory_table(&TraceIndex::new(&trace), &Scope::whole());
        prop_assert!(table.rows.iter().all(|row| row.net_bytes == row.allocated_bytes as i64 - row.freed_bytes as i64));
        let ours: BTreeMap<_, _> = table.rows.into_iter().map(|row| {
            let sums = [row.calls, row.allocations, row.allocated_bytes, row.freed_bytes, row.peak_bytes];
            ((row.name, row.place), sums.map(|sum| sum as i64))
        }).collect();
        prop_assert_eq!(ours, naive_memory(&case));
    }
}
