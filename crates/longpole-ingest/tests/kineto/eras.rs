//! What traces of different years and back ends write, as small documents made from the format notes.

use longpole_trace::{ActivityKind, CollectivePlace, Detail, MemcpyKind, MemoryPlace, SyncKind, Tid};

use crate::support::{corpus, counts, document, event, read};

#[test]
fn capitalised_categories_and_text_thread_ids_of_2021() {
    let events = [
        r#"{"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 5, "tid": "25738", "ts": 1623142623460072, "dur": 10,
            "args": {"Device": 0, "External id": 7, "Input dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}}"#,
        r#"{"ph": "X", "cat": "Operator", "name": "ProfilerStep#3", "pid": 5, "tid": "25738", "ts": 1623142623460070, "dur": 90}"#,
        r#"{"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": "25738", "ts": 1623142623460073, "dur": 3,
            "args": {"cbid": 211, "correlation": 900, "external id": 7, "external ts": 1}}"#,
        r#"{"ph": "X", "cat": "Kernel", "name": "volta_sgemm", "pid": 1, "tid": "stream 7", "ts": 1623142623460080, "dur": 5,
            "args": {"queued": 0, "device": 1, "context": 1, "stream": 7, "correlation": 900, "external id": 7, "grid": [4, 1, 1], "block": [128, 1, 1]}}"#,
        r#"{"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 1, "tid": "stream 20", "ts": 1623142623460090, "dur": 1,
            "args": {"bytes": 64}}"#,
        r#"{"ph": "i", "name": "[memory]", "pid": 5, "tid": "25738", "ts": 1623142623460074, "s": "t", "args": {"Device Type": 1, "Device Id": 1, "Bytes": -512}}"#,
    ];
    let got = read(&document(&events.map(str::to_owned)), 1);
    let trace = &got.trace;
    assert_eq!((trace.host_ops.len(), trace.ranges.len(), trace.api_calls.len()), (1, 1, 1));
    assert_eq!(trace.threads[0].tid, Tid::Number(25738));
    assert_eq!(trace.host_ops.start[0].get(), 1_623_142_623_460_072_000);
    assert_eq!(trace.strings.get(trace.host_ops.shapes(0).unwrap()), "[[2, 3], [3, 4]]");
    assert_eq!((trace.activities.external_id(0), trace.api_calls.external_id(0)), (Some(7), Some(7)));
    let lanes: Vec<_> = trace.lanes.iter().map(|l| (trace.devices[l.device.index()].ordinal, l.stream)).collect();
    assert_eq!(lanes, [(1, 7), (1, 20)]);
    assert_eq!((trace.memory.bytes[0], trace.memory.place[0]), (-512, MemoryPlace::Device));
    assert_eq!(trace.base_unix_ns, Some(0));
    assert!(got.problems.is_empty(), "{:?}", got.problems);
}

#[test]
fn all_that_is_recorded_of_inputs_is_kept() {
    let args = r#", "args": {"Input Dims": [[2,3], []], "Input type": ["float", "Scalar"], "Input Strides": [[3,1], []], "Concrete Inputs": ["", "[-1, 2]"]}"#;
    let got = read(&document(&[event("cpu_op", "aten::sum", "1", "2", args)]), 1);
    let ops = &got.trace.host_ops;
    let texts = [ops.shapes(0), ops.types(0), ops.strides(0), ops.values(0)].map(|id| got.trace.strings.get(id.unwrap()));
    assert_eq!(texts, ["[[2, 3], []]", r#"["float", "Scalar"]"#, "[[3, 1], []]", r#"["", "[-1, 2]"]"#]);
}

#[test]
fn absolute_times_with_decimals_keep_every_nanosecond() {
    let got = read(&document(&[event("cpu_op", "a", "1712195495521716.781", "0.219", "")]), 1);
    assert_eq!(got.trace.host_ops.start[0].get(), 1_712_195_495_521_716_781);
    assert_eq!(got.trace.host_ops.end(0).get(), 1_712_195_495_521_717_000);
}

#[test]
fn an_external_id_that_is_the_correlation_is_ignored() {
    let kernel = |correlation: u32, external: u32| {
        let args = format!(r#", "args": {{"device": 0, "stream": 7, "correlation": {correlation}, "External id": {external}}}"#);
        event("kernel", "k", &format!("{correlation}"), "1", &args)
    };
    let op = event("cpu_op", "aten::mm", "1", "2", r#", "args": {"External id": 5}"#);
    let got = read(&document(&[op.clone(), kernel(5, 5), kernel(6, 6)]), 1);
    assert_eq!(counts(&got.problems), [("external_id_is_correlation", 1)]);
    assert_eq!(got.trace.activities.external_id(0), None);
    assert_eq!(got.trace.host_ops.external_id(0), Some(5));
    let got = read(&document(&[op, kernel(5, 5), kernel(6, 5)]), 1);
    assert_eq!(counts(&got.problems), []);
    assert_eq!(got.trace.activities.external_id(1), Some(5));
}

#[test]
fn rocm_copies_and_kernels() {
    let copy = r#", "args": {"device": 2, "stream": 0, "correlation": 31, "kind": "HostToDevice", "bytes": 4096}"#;
    let kernel =
        r#", "args": {"device": 2, "stream": 0, "correlation": 32, "kind": "Dispatch Kernel", "grid": [304, 1, 1], "block": [256, 1, 1]}"#;
    let got = read(&document(&[event("gpu_memcpy", "CopyHostToDevice", "1", "2", copy), event("kernel", "Cijk_", "4", "2", kernel)]), 1);
    let detail = |row: usize| got.trace.details[got.trace.activities.detail(row).unwrap().index()];
    let Detail::Transfer(transfer) = detail(0) else { panic!("a copy has a transfer") };
    assert_eq!((transfer.bytes, transfer.kind, transfer.pageable), (Some(4096), MemcpyKind::HostToDevice, None));
    let Detail::Launch(launch) = detail(1) else { panic!("a kernel has a launch shape") };
    assert_eq!((launch.grid, launch.registers_per_thread), (Some([304, 1, 1]), None));
}

#[test]
fn other_accelerators_are_kept_and_unknown_categories_counted() {
    let events = [
        event("mtia_runtime", "launch", "1", "2", r#", "args": {"correlation": 9}"#),
        event("mtia_ccp_events", "work", "2", "3", r#", "args": {"correlation": 9, "stream": 4, "device": 0}"#),
        event("something_new", "thing", "3", "1", r#", "args": {"x": 1}"#),
    ];
    let got = read(&document(&events), 1);
    assert_eq!(got.trace.api_calls.len(), 1);
    assert_eq!(got.trace.activities.kind, [ActivityKind::Other]);
    assert_eq!(counts(&got.problems), [("unknown_device_category", 1), ("unknown_category", 1), ("no_operators", 1)]);
}

#[test]
fn mirrored_annotations_and_bookkeeping_are_no_work_and_do_not_widen_the_window() {
    let events = [
        event("kernel", "k", "100", "10", r#", "args": {"device": 0, "stream": 7}"#),
        event("gpu_user_annotation", "decode", "50", "500", r#", "args": {"External id": 3}"#),
        event("Trace", "PyTorch Profiler (0)", "0", "9999", ""),
        event("overhead", "Buffer Flush", "5000", "3", ""),
        event("cuda_sync", "Stream Sync", "90", "40", r#", "args": {"stream": 7, "correlation": 1}"#),
    ];
    let got = read(&document(&events), 1);
    assert_eq!((got.trace.activities.len(), got.trace.ranges.len(), got.trace.overheads.len()), (1, 0, 1));
    // The synchronisation is an event of the run; the others are the profiler's own.
    assert_eq!(got.trace.window.bounds().map(|(a, b)| (a.get(), b.get())), Some((90_000, 130_000)));
}

#[test]
fn synchronisations_say_which_stream_waits_for_what() {
    let wait = r#", "args": {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1385,
        "wait_on_cuda_event_id": 19, "stream": 24, "correlation": 1389, "device": 0, "context": 1}"#;
    let asked = r#", "args": {"cuda_sync_kind": "Event Sync", "wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1,
        "wait_on_cuda_event_id": 9, "stream": -1, "correlation": 24, "device": 0, "context": 1}"#;
    let events = [
        event("cuda_sync", "Stream Wait Event", "90", "2", wait),
        event("cuda_sync", "Event Sync", "95", "1", asked),
        event("cuda_sync", "Context Sync", "99", "1", r#", "args": {"stream": -1, "device": 0, "context": 1}"#),
        event("cuda_event", "cudaEvent", "99", "1", r#", "args": {"stream": 20}"#),
        event("kernel", "k", "100", "10", r#", "args": {"device": 0, "stream": 7}"#),
    ];
    let got = read(&document(&events), 1).trace;
    let syncs = &got.sync_events;
    assert_eq!(syncs.kind, [SyncKind::StreamWaitsForEvent, SyncKind::Event, SyncKind::Context]);
    assert_eq!((syncs.start[0].get(), syncs.dur[0].get(), syncs.rank[0]), (90_000, 2_000, 0));
    assert_eq!((syncs.device[0], syncs.context[0], syncs.stream[0], syncs.wait_on_stream[0]), (Some(0), Some(1), Some(24), Some(20)));
    assert_eq!(syncs.event_record(0), Some(1385));
    assert_eq!((syncs.stream[1], syncs.wait_on_stream[1], syncs.event_record(1)), (None, None, None), "-1 is no stream and no call");
    assert_eq!((got.activities.len(), got.lanes.len(), got.api_calls.len()), (1, 1, 0), "they are no work, and name no lane");
}

#[test]
fn ids_past_63_bits_and_graph_nodes() {
    let args = r#", "args": {"device": 0, "stream": 7, "correlation": 10159970886766084423, "graph id": 3, "graph node id": 12884901889}"#;
    let got = read(&document(&[event("kernel", "k", "1", "1", args)]), 1);
    assert_eq!(got.trace.activities.correlation(0), Some(10_159_970_886_766_084_423));
    let node = got.trace.graph_nodes[got.trace.activities.graph_node(0).unwrap().index()];
    assert_eq!((node.graph, node.node), (3, 12_884_901_889));
}

#[test]
fn collectives_are_described_by_operators_and_kernels() {
    let group = r#""Process Group Name": "tp", "Process Group Ranks": "[0, 1]", "Group size": 2"#;
    let size = r#""In msg nelems": 64, "Out msg nelems": 128, "dtype": "BFloat16""#;
    let op = format!(r#", "args": {{"Collective name": "allgather", {group}, {size}, "Seq": 41, "Rank": 1, "Input type": ["float"]}}"#);
    let send =
        r#", "args": {"device": 3, "stream": 9, "Collective name": "send", "Process Group Ranks": [0, 1], "Src Rank": 1, "Dst Rank": 0}"#;
    let other = r#", "args": {"dtype": "float", "Group size": 4, "block size": 3}"#;
    let events = [
        event("cpu_op", "record_param_comms", "1", "2", &op),
        event("cpu_op", "aten::empty", "4", "1", other),
        event("kernel", "ncclDevKernel_SendRecv", "5", "2", send),
    ];
    let trace = read(&document(&events), 1).trace;
    assert_eq!((trace.host_ops.len(), trace.activities.len(), trace.collectives.len()), (2, 1, 2));
    let (op, kernel) = (trace.collectives.get(0), trace.collectives.get(1));
    let text = |id: Option<longpole_trace::StrId>| id.map(|id| trace.strings.get(id));
    assert_eq!([op.name, op.group, op.group_ranks, op.dtype].map(text), ["allgather", "tp", "[0, 1]", "BFloat16"].map(Some));
    assert_eq!((op.group_size, op.in_elements, op.out_elements, op.sequence), (Some(2), Some(64), Some(128), Some(41)));
    assert_eq!((op.place, op.start), (CollectivePlace::Host(trace.host_ops.thread[0]), trace.host_ops.start[0]));
    assert_eq!([kernel.name, kernel.group, kernel.group_ranks].map(text), [Some("send"), None, Some("[0, 1]")]);
    assert_eq!((kernel.source_rank, kernel.destination_rank, kernel.sequence), (Some(1), Some(0), None));
    assert_eq!((kernel.place, kernel.start), (CollectivePlace::Device(trace.activities.lane[0]), trace.activities.start[0]));
}

#[test]
fn every_collective_of_a_real_trace_is_described() {
    let trace = read(&corpus("nccl_rank0"), 2).trace;
    let on_device: Vec<_> = (0..trace.collectives.len())
        .map(|row| trace.collectives.get(row))
        .filter(|row| matches!(row.place, CollectivePlace::Device(_)))
        .collect();
    let kernels = trace.activities.name.iter().filter(|&&name| trace.strings.get(name).starts_with("nccl")).count();
    assert_eq!((on_device.len(), kernels), (33, 33));
    assert_eq!(on_device[0].in_elements, Some(2_097_152));
    assert!(on_device.iter().all(|row| row.group_size == Some(2)));
}
