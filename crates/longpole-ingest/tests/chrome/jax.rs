//! What events of XLA become.

use std::fmt::Write as _;

use longpole_trace::{ActivityKind, Detail, LaunchConfig, MemcpyKind, Recorder, Transfer};

use crate::support::{calls, corpus_bytes, frames, of_kind, ops, problems, ranges, read, work, work_by_op};

const HEAD: &str = r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":2,"name":"process_name","args":{"name":"/device:GPU:1"}},{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},"#;

fn event(pid: u32, tid: u32, ts: f64, dur: f64, name: &str, args: &str) -> String {
    format!(r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":"{name}","args":{{{args}}}}}"#)
}

fn document(events: &[String]) -> Vec<u8> {
    format!("{HEAD}{},{{}}]}}", events.join(",")).into_bytes()
}

const KERNEL: &str =
    r#""kernel_details":"regs:32 static_shared:16 dynamic_shared:8 grid:2,1,1 block:128,1,1 occ_pct:50","context_id":"$$3""#;

#[test]
fn the_recorded_trace() {
    let found = read(&corpus_bytes("jax.trace.json.gz"));
    assert_eq!((found.source.format, found.trace.recorder), ("jax", Recorder::Xla));
    assert_eq!(problems(&found), []);
    assert_eq!(of_kind(&found, ActivityKind::Kernel), 15);
    assert_eq!(calls(&found).len(), 4, "launches are named by their kernel, and a host function was called");
    assert_eq!(frames(&found)["profiler.py:385 __init__"].0, 5);
    assert_eq!(ranges(&found)["step"].0, 5);
    let lane = &found.trace.lanes[0];
    assert_eq!((found.trace.devices[0].ordinal, lane.context, lane.stream), (0, Some(1), 14));
    let launch =
        LaunchConfig { grid: Some([256, 1, 1]), block: Some([128, 1, 1]), registers_per_thread: Some(168), shared_bytes: Some(98_328) };
    assert_eq!(found.trace.details[0], Detail::Launch(launch));
}

#[test]
fn device_work_calls_and_lines_derived_from_them() {
    let copy = r#""memcpy_details":"kind_src:pinned kind_dst:device size:4096 dest:0 async:1""#;
    let found = read(&document(&[
        event(701, 5, 10.0, 2.0, "cuLaunchKernel", r#""correlation_id":"7","device_id":"1""#),
        // The call that copies has details too.
        event(701, 5, 13.0, 2.0, "MemcpyH2D", &format!(r#"{copy},"correlation_id":"8","device_id":"1""#)),
        event(701, 5, 16.0, 2.0, "$a.py:1 f", ""),
        event(701, 5, 19.0, 2.0, "dot.1", r#""hlo_op":"dot.1","hlo_module":"jit_g""#),
        event(2, 13, 20.0, 5.0, "loop_fusion", &format!(r#"{KERNEL},"correlation_id":"7","hlo_op":"fusion.1","hlo_module":"jit_f""#)),
        event(2, 14, 26.0, 5.0, "MemcpyH2D", &format!(r#"{copy},"correlation_id":"8""#)),
        event(2, 14, 32.0, 1.0, "Memset", r#""memset_details":"kind:device num_bytes:64 async:1","correlation_id":"9""#),
        // Lines of the device that are no streams.
        event(2, 900, 20.0, 12.0, "jit_f", ""),
        event(2, 901, 20.0, 12.0, "fusion.1", r#""hlo_op":"fusion.1","hlo_module":"jit_f""#),
    ]));
    assert_eq!(problems(&found), []);
    let names = |sums: &crate::support::Sums| sums.keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(names(&work(&found)), "MemcpyH2D Memset loop_fusion");
    assert_eq!(names(&calls(&found)), "MemcpyH2D cuLaunchKernel");
    assert_eq!(names(&frames(&found)), "a.py:1 f");
    assert_eq!(names(&ranges(&found)), "");
    assert_eq!(ops(&found), [("jit_f/fusion.1".to_owned(), (1, 2_000)), ("jit_g/dot.1".to_owned(), (1, 2_000))].into());
    assert_eq!(work_by_op(&found), [("jit_f/fusion.1".to_owned(), (1, 5_000))].into());
    assert_eq!(found.trace.devices[0].ordinal, 1);
    let copied = Transfer { bytes: Some(4096), kind: MemcpyKind::HostToDevice, pageable: Some(false) };
    let filled = Transfer { bytes: Some(64), kind: MemcpyKind::Unknown, pageable: None };
    assert_eq!(found.trace.details[1..], [Detail::Transfer(copied), Detail::Transfer(filled)]);
}

#[test]
fn operations_that_one_call_launched_have_no_host_time_of_their_own() {
    let kernel = |ts: f64, op: &str| {
        event(
            2,
            13,
            ts,
            5.0,
            "k",
            &format!(r#"{KERNEL},"correlation_id":"7","hlo_op":"{op}","cuda_graph_id":"4","cuda_graph_node_id":"9""#),
        )
    };
    let found = read(&document(&[
        event(701, 5, 10.0, 8.0, "cuGraphLaunch (CudaGraph:4)", r#""correlation_id":"7","device_id":"1""#),
        kernel(20.0, "a"),
        kernel(30.0, "b"),
        kernel(40.0, "a"),
    ]));
    assert_eq!(ops(&found), [("a".to_owned(), (1, 0)), ("b".to_owned(), (1, 0))].into());
    assert_eq!(work_by_op(&found), [("a".to_owned(), (2, 10_000)), ("b".to_owned(), (1, 5_000))].into());
    assert_eq!((found.trace.graph_nodes[0].graph, found.trace.graph_nodes[0].node), (4, 9));
}

#[test]
fn graphs_recorded_as_a_whole_and_devices_that_are_no_gpu_are_named() {
    let found = read(&document(&[
        event(2, 13, 20.0, 5.0, "CudaGraphExecution", r#""cuda_graph_exec_id":"4","correlation_id":"7""#),
        r#"{"ph":"M","pid":3,"name":"process_name","args":{"name":"/device:TPU:0"}}"#.to_owned(),
        event(3, 1, 20.0, 5.0, "fusion", ""),
        event(701, 1, 20.0, 5.0, "host", ""),
    ]));
    assert_eq!(problems(&found), [("unknown_category", 1), ("graph_level_trace", 1), ("no_operators", 1)]);
    assert_eq!((of_kind(&found, ActivityKind::Other), ranges(&found).len()), (1, 1));
}

#[test]
fn a_trace_as_long_as_the_writer_writes_them_lacks_its_end() {
    let events = |count: usize| {
        let mut text = HEAD.to_owned();
        for at in 0..count {
            let _ = write!(text, r#"{{"ph":"X","pid":701,"tid":1,"ts":{at},"dur":1,"name":"e"}},"#);
        }
        read((text + "{}]}").as_bytes())
    };
    let codes = |count| problems(&events(count)).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(1_000_000), ["event_limit", "no_operators", "no_device_activity"]);
    assert_eq!(codes(999_999), ["no_operators", "no_device_activity"]);
}
