//! The real importer against a slow, plain reader that shares nothing with it: the same rows in the same order.

use std::fmt::Debug;

use longpole_trace::{Ns, StrId, ThreadId, Trace};

use crate::harness::{CORPUS, root, trace};
use crate::parity::read;
use crate::slow_reader;

fn rows(count: usize, row: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(row).collect()
}

fn line(name: &str, start: Ns, dur: Ns, rest: impl Debug) -> String {
    format!("{name} {start} {dur} {rest:?}")
}

/// The rows of every table as text, ids resolved and times counted from the first event, so that neither the order in which a reader
/// hands out ids nor its choice of base shows.
pub(crate) fn tables(trace: &Trace) -> [(&'static str, Vec<String>); 7] {
    let base = trace.window.bounds().map_or(Ns(0), |(first, _)| first);
    let text = |id: StrId| trace.strings.get(id);
    let thread = |id: ThreadId| {
        let thread = &trace.threads[id.index()];
        (trace.processes[thread.process.index()].pid, thread.tid.clone())
    };
    let (ops, calls, acts) = (&trace.host_ops, &trace.api_calls, &trace.activities);
    let (ranges, memory, frames, overheads) = (&trace.ranges, &trace.memory, &trace.frames, &trace.overheads);
    [
        (
            "operators",
            rows(ops.len(), |i| {
                let described = [ops.shapes(i), ops.types(i), ops.strides(i), ops.values(i)].map(|id| id.map(text));
                line(text(ops.name[i]), ops.start[i] - base, ops.dur[i], (thread(ops.thread[i]), ops.external_id(i), described))
            }),
        ),
        (
            "API calls",
            rows(calls.len(), |i| {
                let ids = (calls.correlation(i), calls.external_id(i));
                line(text(calls.name[i]), calls.start[i] - base, calls.dur[i], (thread(calls.thread[i]), ids))
            }),
        ),
        (
            "activities",
            rows(acts.len(), |i| {
                let lane = &trace.lanes[acts.lane[i].index()];
                let place = (trace.devices[lane.device.index()].ordinal, lane.context, lane.stream);
                let ids = (acts.correlation(i), acts.external_id(i));
                line(text(acts.name[i]), acts.start[i] - base, acts.dur[i], (acts.kind[i], place, ids))
            }),
        ),
        ("ranges", rows(ranges.len(), |i| line(text(ranges.name[i]), ranges.start[i] - base, ranges.dur[i], thread(ranges.thread[i])))),
        (
            "memory events",
            rows(memory.len(), |i| {
                let totals = (memory.device(i), memory.total_allocated(i), memory.total_reserved(i));
                line("", memory.start[i] - base, Ns(0), (memory.bytes[i], memory.place[i], totals, thread(memory.thread[i])))
            }),
        ),
        ("frames", rows(frames.len(), |i| line(text(frames.name[i]), frames.start[i] - base, frames.dur[i], thread(frames.thread[i])))),
        ("overheads", rows(overheads.len(), |i| line(text(overheads.name[i]), overheads.start[i] - base, overheads.dur[i], ()))),
    ]
}

#[test]
fn the_importer_and_the_slow_reader_agree() {
    let mut seen = [0; 7];
    for name in CORPUS {
        let path = root().join(trace(name));
        let (fast, slow) = (read(&path), slow_reader::read(&path));
        assert_eq!(fast.recorded.memory, slow.recorded.memory, "{name}");
        assert_eq!(fast.recorded.shapes, slow.recorded.shapes, "{name}");
        assert_eq!(fast.recorded.stacks, slow.recorded.stacks, "{name}");
        for (table, ((what, fast), (_, slow))) in tables(&fast).iter().zip(tables(&slow)).enumerate() {
            assert_eq!(fast.len(), slow.len(), "{name}: {what}");
            for (row, (fast, slow)) in fast.iter().zip(&slow).enumerate() {
                assert_eq!(fast, slow, "{name}: {what}, row {row}");
            }
            seen[table] += fast.len();
        }
    }
    assert!(seen.iter().all(|&rows| rows > 0), "the corpus has rows of every kind: {seen:?}");
}
