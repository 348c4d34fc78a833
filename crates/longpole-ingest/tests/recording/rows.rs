//! What each record becomes.

use longpole_recording::{Context, EventRecord, GraphNode, Kernel, Memcpy, Memset, Nvtx, Overhead, PeerCopy, Sync, Thread};
use longpole_trace::{ActivityId, ActivityKind, Detail, MemcpyKind, Ns, ProblemCode, Recorder, SyncKind, Tid};

use crate::made::{Made, T0, problem, ranges, read};

#[test]
fn kernels_and_calls_are_joined_and_named_as_elsewhere() {
    let mut made = Made::new(4711).process(None).device(0, 9);
    made = made.launch(4712, 1_000, "_Z9vectorAddPKfS0_Pfi", 0).launch(4712, 3_000, "triton_poi_fused_0", 0);
    let name = made.writer.string(b"decode loop");
    made.writer.thread(&Thread { tid: 4712, name });
    let imported = read(&made.end());
    let trace = &imported.trace;
    let name = |id| trace.strings.get(id);
    let kernels: Vec<_> = trace.activities.name.iter().map(|id| name(*id)).collect();
    assert_eq!(kernels, ["vectorAdd(float const*, float const*, float*, int)", "triton_poi_fused_0"]);
    assert!(trace.api_calls.name.iter().all(|id| name(*id) == "cudaLaunchKernel"));
    assert_eq!(trace.activities.correlation(1), trace.api_calls.correlation(1));
    assert!(trace.activities.correlation(0) != trace.activities.correlation(1));
    assert_eq!((trace.activities.start[0], trace.activities.dur[0]), (Ns(T0 as i64 + 1_500), Ns(400)));
    let Detail::Launch(launch) = trace.details[trace.activities.detail(0).unwrap().index()] else { panic!("a kernel was launched") };
    assert_eq!((launch.grid, launch.block), (Some([8, 1, 1]), Some([128, 1, 1])));
    assert_eq!((launch.registers_per_thread, launch.shared_bytes), (Some(40), Some(1040)));
    let device = &trace.devices[0].properties;
    assert_eq!((device.name.as_deref(), device.sm_count, device.compute_capability), (Some("NVIDIA H200"), Some(132), Some((9, 0))));
    assert_eq!(trace.versions.cuda_driver.as_deref(), Some("13.0"));
    assert_eq!((trace.processes[0].pid, trace.processes[0].name.map(name)), (4711, Some("engine")));
    assert_eq!(trace.threads[0].name.map(name), Some("decode loop"));
    assert_eq!((trace.recorder, trace.base_unix_ns), (Recorder::Longpole, Some(0)));
    assert_eq!(imported.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), [ProblemCode::NoOperators]);
}

#[test]
fn copies_and_sets_say_where_from_and_where_to() {
    let mut made = Made::new(1);
    let copy = |kind, source, destination| Memcpy { start: T0, end: T0 + 5, bytes: 64, kind, source, destination, ..Memcpy::default() };
    for record in [copy(1, 2, 3), copy(2, 3, 1), copy(8, 3, 3)] {
        made.writer.memcpy(&record);
    }
    made.writer.memset(&Memset { start: T0, end: T0 + 5, bytes: 32, memory: 3, ..Memset::default() });
    made.writer.peer_copy(&PeerCopy { start: T0, end: T0 + 5, bytes: 16, source_device: 0, destination_device: 1, ..PeerCopy::default() });
    let trace = read(&made.end()).trace;
    let found: Vec<_> = (0..trace.activities.len())
        .map(|row| {
            let Detail::Transfer(transfer) = trace.details[trace.activities.detail(row).unwrap().index()] else { panic!("bytes moved") };
            (trace.strings.get(trace.activities.name[row]), transfer.kind, transfer.pageable, transfer.bytes)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("Memcpy HtoD (Pinned -> Device)", MemcpyKind::HostToDevice, Some(false), Some(64)),
            ("Memcpy DtoH (Device -> Pageable)", MemcpyKind::DeviceToHost, Some(true), Some(64)),
            ("Memcpy DtoD (Device -> Device)", MemcpyKind::DeviceToDevice, None, Some(64)),
            ("Memset (Device)", MemcpyKind::Unknown, None, Some(32)),
            ("Memcpy PtoP (Device -> Device)", MemcpyKind::PeerToPeer, None, Some(16)),
        ]
    );
    assert_eq!(trace.activities.kind[3], ActivityKind::Memset);
}

#[test]
fn ranges_nest_by_thread_and_domain_and_may_end_on_another_thread() {
    let made = Made::new(1)
        .launch(7, 0, "k", 0)
        .nvtx(Nvtx::POP, 7, 5, "", "", None)
        .nvtx(Nvtx::PUSH, 7, 10, "", "step", None)
        .nvtx(Nvtx::PUSH, 7, 20, "NCCL", "all reduce", None)
        .nvtx(Nvtx::PUSH, 8, 30, "", "other thread", None)
        .nvtx(Nvtx::PUSH, 7, 40, "", "inner", None)
        .nvtx(Nvtx::POP, 7, 50, "", "", None)
        .nvtx(Nvtx::POP, 7, 60, "", "", None)
        .nvtx(Nvtx::POP, 7, 70, "NCCL", "", None)
        .nvtx(Nvtx::START, 7, 80, "", "request", Some(3))
        .nvtx(Nvtx::START, 7, 85, "", "request", Some(4))
        .nvtx(Nvtx::END, 8, 95, "", "", Some(3))
        .nvtx(Nvtx::MARK, 8, 97, "", "token", None)
        .nvtx(Nvtx::PUSH, 7, 100, "", "never closed", None);
    let imported = read(&made.end());
    assert_eq!(
        ranges(&imported.trace),
        [
            "10 +50 step Number(7)",
            "100 +800 never closed Number(7)",
            "20 +50 NCCL:all reduce Number(7)",
            "30 +870 other thread Number(8)",
            "40 +10 inner Number(7)",
            "80 +15 request Number(7)",
            "85 +815 request Number(7)",
            "97 +0 token Number(8)",
        ]
    );
    assert_eq!(problem(&imported, ProblemCode::UnclosedRange).unwrap().0, 3);
    assert_eq!(problem(&imported, ProblemCode::RangeOpenedBefore).unwrap().0, 1);
}

/// Threads write side by side: what one of them ended may come before what another started.
#[test]
fn an_end_may_stand_before_its_start_and_a_number_may_come_again() {
    let made = Made::new(1)
        .launch(7, 0, "k", 0)
        .nvtx(Nvtx::END, 8, 95, "", "", Some(3))
        .nvtx(Nvtx::START, 7, 80, "", "request", Some(3))
        .nvtx(Nvtx::START, 7, 85, "", "again", Some(4))
        .nvtx(Nvtx::START, 7, 88, "", "again", Some(4))
        .nvtx(Nvtx::END, 7, 90, "", "", Some(4))
        .nvtx(Nvtx::END, 8, 99, "", "", Some(77));
    let imported = read(&made.end());
    assert_eq!(ranges(&imported.trace), ["80 +15 request Number(7)", "85 +815 again Number(7)", "88 +2 again Number(7)"]);
    assert_eq!(problem(&imported, ProblemCode::UnclosedRange).unwrap().0, 1);
    assert_eq!(problem(&imported, ProblemCode::RangeOpenedBefore).unwrap().0, 1);
}

#[test]
fn operators_that_pytorch_announces_are_operators() {
    let made = Made::new(1)
        .nvtx(Nvtx::PUSH, 7, 10, "", "aten::mm, seq = 12, op_id = 3, sizes = [[2, 3], [3, 4]]", None)
        .launch(7, 20, "gemm", 0)
        .nvtx(Nvtx::POP, 7, 600, "", "", None);
    let imported = read(&made.end());
    let ops = &imported.trace.host_ops;
    assert_eq!(imported.trace.strings.get(ops.name[0]), "aten::mm");
    assert_eq!(imported.trace.strings.get(ops.shapes(0).unwrap()), "[[2, 3], [3, 4]]");
    assert_eq!(problem(&imported, ProblemCode::OperatorsFromRanges).unwrap().0, 1);
    assert!(problem(&imported, ProblemCode::NoOperators).is_none());
}

#[test]
fn kernels_of_graphs_name_their_node() {
    let mut made = Made::new(1);
    let name = made.writer.string(b"k");
    let kernel = |node, graph| Kernel { start: T0, end: T0 + 1, name, correlation: 5, graph_node: node, graph, ..Kernel::default() };
    for record in [kernel(Some(12 << 32 | 3), None), kernel(Some(12 << 32 | 4), Some(12)), kernel(None, None), kernel(Some(0), Some(0))] {
        made.writer.kernel(&record);
    }
    let trace = read(&made.end()).trace;
    let node =
        |row| trace.activities.graph_node(row).map(|id| (trace.graph_nodes[id.index()].graph, trace.graph_nodes[id.index()].node & 0xff));
    assert_eq!([node(0), node(1), node(2), node(3)], [Some((12, 3)), Some((12, 4)), None, None]);
}

#[test]
fn nodes_of_graphs_say_where_they_were_captured() {
    let (made, copy, other) = (7 << 32 | 1, 12 << 32 | 3, 12 << 32 | 4);
    let mut recording = Made::new(1)
        .nvtx(Nvtx::PUSH, 7, 10, "", "capture", None)
        .nvtx(Nvtx::PUSH, 7, 20, "", "attention", None)
        .nvtx(Nvtx::POP, 7, 30, "", "", None)
        .nvtx(Nvtx::POP, 7, 40, "", "", None)
        .launch(7, 100, "plain", 0);
    let name = recording.writer.string(b"k");
    let node = |node, original, at| GraphNode { node, original, time: T0 + at, tid: 7, ..GraphNode::default() };
    // One of a thread of which nothing else is known, one that no kernel names.
    let strange = GraphNode { tid: 99, ..node(13 << 32, None, 26) };
    for record in [node(made, None, 25), node(copy, Some(made), 35), node(other, Some(1), 36), strange, node(5, None, 27)] {
        recording.writer.graph_node(&record);
    }
    for id in [copy, other, 13 << 32, copy] {
        let kernel = Kernel { start: T0 + 200, end: T0 + 201, name, correlation: 9, graph_node: Some(id), ..Kernel::default() };
        recording.writer.kernel(&kernel);
    }
    let trace = read(&recording.end()).trace;
    assert_eq!(trace.captures.len(), 1, "{:?}", trace.captures);
    let of = |row| trace.capture_of(ActivityId::from_index(row)).map(|capture| (capture.rank, capture.at.get() - T0 as i64));
    // In the order of the recording: the kernel of a call, then the four of nodes.
    assert_eq!([0, 1, 2, 3, 4].map(of), [None, Some((0, 25)), None, None, Some((0, 25))]);
    let capture = trace.captures[0];
    assert_eq!(trace.threads[capture.thread.index()].tid, Tid::Number(7));
}

/// Two processes of one recording may give the same number to nodes of their own.
#[test]
fn nodes_that_two_processes_call_alike_are_nobodys() {
    let process = |pid: u32, at: u64| {
        let mut made = Made::new(pid).launch(pid, 0, "plain", 0);
        let name = made.writer.string(b"k");
        made.writer.graph_node(&GraphNode { node: 5, time: T0 + at, tid: pid, ..GraphNode::default() });
        made.writer.kernel(&Kernel { start: T0 + 9, end: T0 + 10, name, correlation: 9, graph_node: Some(5), ..Kernel::default() });
        made.end()
    };
    let trace = read(&[process(10, 1), process(11, 2)].concat()).trace;
    assert_eq!((trace.ranks.len(), trace.captures.len()), (1, 0));
}

#[test]
fn waits_say_what_they_waited_for() {
    let mut made = Made::new(1).launch(7, 0, "k", 3);
    made.writer.context(&Context { context: 1, device: 3, null_stream: None });
    let record = |correlation, stream, event_sync| EventRecord { event: 5, context: 1, stream, correlation, event_sync };
    for record in [record(10, 7, Some(100)), record(20, 8, Some(101)), record(30, 9, Some(102))] {
        made.writer.event_record(&record);
    }
    let wait = |kind, correlation, event_sync| Sync {
        start: T0 + 5,
        end: T0 + 9,
        kind,
        correlation,
        context: 1,
        stream: Some(u32::MAX),
        event: Some(5),
        event_sync,
    };
    // The last record before the call, and the one that is named.
    made.writer.sync(&wait(Sync::STREAM_WAIT_EVENT, 25, None));
    made.writer.sync(&wait(Sync::EVENT, 40, Some(100)));
    made.writer.sync(&wait(Sync::EVENT, 5, None));
    made.writer.sync(&Sync { stream: Some(7), event: None, ..wait(Sync::STREAM, 50, None) });
    let trace = read(&made.end()).trace;
    let syncs = &trace.sync_events;
    let found: Vec<_> =
        (0..syncs.len()).map(|row| (syncs.kind[row], syncs.stream[row], syncs.wait_on_stream[row], syncs.event_record(row))).collect();
    assert_eq!(
        found,
        [
            (SyncKind::StreamWaitsForEvent, None, Some(8), Some(20)),
            (SyncKind::Event, None, Some(7), Some(10)),
            (SyncKind::Event, None, None, None),
            (SyncKind::Stream, Some(7), None, None),
        ]
    );
    assert!(syncs.device.iter().all(|device| *device == Some(3)));
}

#[test]
fn overheads_are_called_as_kineto_calls_them() {
    let mut made = Made::new(1).launch(7, 0, "k", 0);
    for kind in [0x1_0000, 0x6_0000, 0x99] {
        made.writer.overhead(&Overhead { start: T0 + 1, end: T0 + 2, kind, tid: None, correlation: None });
    }
    let trace = read(&made.end()).trace;
    let names: Vec<_> = trace.overheads.name.iter().map(|id| trace.strings.get(*id)).collect();
    assert_eq!(names, ["Buffer Flush", "Command Buffer Full", "Overhead 153"]);
}
