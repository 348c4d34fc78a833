//! What is recorded.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use longpole_recording::{
    Api, Clock, Context, Cost, Dropped, EventRecord, Family, GraphNode, Kernel, Memcpy, Memset, Nvtx, Overhead, PeerCopy, RangeState, Sync,
    Thread,
};

use crate::harness::{Run, is_watched};

fn counts<const N: usize>(pairs: [(&str, usize); N]) -> BTreeMap<String, usize> {
    pairs.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Every family with every field, in the sizes that each version of CUPTI gives its records. What a version does not have reads as absent, though the
/// mock puts other bytes there.
#[test]
fn every_family_is_read_in_every_version() {
    for version in [18, 20, 26, 28, 130_000, 130_200, 130_400] {
        let got = Run::new("cuda work").env("MOCK_CUPTI_VERSION", version.to_string()).env("LONGPOLE_RECORD_API", "all").recording();
        assert_eq!(got.process().cupti, Some(version));
        let kernels = got.records::<Kernel>();
        let kernel = kernels[0];
        assert_eq!(got.text(kernel.name), "work_kernel", "{version}");
        let correlation = kernel.correlation;
        let expected = Kernel {
            queued: None,
            submitted: None,
            device: 0,
            context: 1,
            stream: 7,
            grid_x: 132,
            grid_y: 2,
            grid_z: 1,
            block_x: 128,
            block_y: 1,
            block_z: 1,
            cluster_x: 2,
            cluster_y: 1,
            cluster_z: 1,
            registers: 40,
            static_shared: 1024,
            dynamic_shared: 2048,
            local: 0,
            graph_node: None,
            graph: None,
            channel: None,
            ..kernel
        };
        assert_eq!(kernels, [expected], "{version}");
        assert_eq!(kernel.end - kernel.start, 2000);

        let copy = got.records::<Memcpy>()[0];
        assert_eq!((copy.bytes, copy.kind, copy.source, copy.destination), (4096, 1, 1, 3), "{version}");
        assert_eq!((copy.device, copy.context, copy.stream, copy.correlation), (0, 1, 7, correlation + 1));
        assert_eq!((copy.end - copy.start, copy.graph_node, copy.graph, copy.channel), (500, None, None, None));

        let set = got.records::<Memset>()[0];
        assert_eq!((set.bytes, set.value, set.memory), (512, 9, 3), "{version}");
        assert_eq!((set.device, set.context, set.stream, set.correlation), (0, 1, 7, correlation + 2));
        assert_eq!((set.end - set.start, set.graph_node, set.graph, set.channel), (400, Some(77), Some(8), Some(7)));

        let peer = got.records::<PeerCopy>()[0];
        assert_eq!((peer.bytes, peer.source_device, peer.destination_device), (1 << 20, 1, 2), "{version}");
        assert_eq!((peer.device, peer.context, peer.stream, peer.correlation), (1, 4, 9, correlation + 3));
        assert_eq!((peer.end - peer.start, peer.graph_node, peer.graph, peer.channel), (300, None, None, None));

        let wait = got.records::<Sync>()[0];
        assert_eq!((wait.kind, wait.correlation, wait.context), (Sync::CONTEXT, correlation + 4, 1), "{version}");
        assert_eq!((wait.end - wait.start, wait.stream, wait.event, wait.event_sync), (100, None, None, None));

        let event = got.records::<EventRecord>()[0];
        let sync = (version >= 26).then_some(12);
        assert_eq!((event.event, event.context, event.stream, event.event_sync), (33, 1, 7, sync), "{version}");

        let overhead = got.records::<Overhead>()[0];
        let related = (version >= 20).then_some(4711);
        assert_eq!((overhead.kind, overhead.tid, overhead.correlation), (65_536, Some(got.pid), related), "{version}");
        assert_eq!(overhead.end - overhead.start, 50);

        let calls = got.records::<Api>();
        assert_eq!(calls.iter().map(|call| call.correlation - correlation).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{version}");
        for call in calls {
            assert_eq!((call.domain, call.tid, call.result, call.end - call.start), (Api::RUNTIME, got.pid, 0, 1000));
        }
        let contexts: Vec<_> = got.records::<Context>().iter().map(|context| (context.context, context.device)).collect();
        assert_eq!(contexts, [(1, 0)]);
        assert_eq!((got.lost(), got.refusals()), (BTreeMap::new(), vec![]));
    }
}

/// What makes every launch longer is left out unless all is wanted.
#[test]
fn waits_and_events_come_with_all_calls_only() {
    let usual = Run::new("cuda work").recording();
    assert_eq!((usual.count(Family::Sync), usual.count(Family::EventRecord)), (0, 0));
    assert_eq!((usual.count(Family::Kernel), usual.count(Family::Memcpy), usual.count(Family::Overhead)), (1, 1, 1));
    assert_eq!(usual.calls()["cudaDeviceSynchronize_v3020"], 1, "the call that waits is there");
    let all = Run::new("cuda work").env("LONGPOLE_RECORD_API", "all").recording();
    assert_eq!((all.count(Family::Sync), all.count(Family::EventRecord)), (1, 1));
}

/// Calls that ask for something are left out, whether the library can switch functions or has to be filtered, unless all are wanted.
#[test]
fn calls_are_chosen() {
    let steps = "cuda launch:3 noise:5";
    for version in ["18", "130000"] {
        let chosen = Run::new(steps).env("MOCK_CUPTI_VERSION", version).recording();
        assert_eq!(chosen.calls(), counts([("cudaLaunchKernel_v7000", 3)]), "{version}");
        let all = Run::new(steps).env("MOCK_CUPTI_VERSION", version).env("LONGPOLE_RECORD_API", "all").recording();
        assert_eq!(all.calls(), counts([("cudaLaunchKernel_v7000", 3), ("cudaGetDevice_v3020", 5), ("cuCtxGetCurrent", 5)]), "{version}");
        assert!(all.records::<Api>().iter().any(|call| call.domain == Api::DRIVER));
    }
}

#[test]
fn threads_are_told_apart() {
    let got = Run::new("nvtx:0 cuda threads:8x200").recording();
    assert_eq!(got.kernels(), counts([("threaded_kernel", 1600)]));
    assert_eq!(got.count(Family::Nvtx), 3200);
    let mut by_thread: BTreeMap<u32, Vec<Nvtx>> = BTreeMap::new();
    for event in got.records::<Nvtx>() {
        by_thread.entry(event.tid).or_default().push(event);
    }
    assert_eq!(by_thread.len(), 8);
    let calls = got.records::<Api>();
    for (tid, events) in by_thread {
        // In order within a thread, and each launch within the range that is open on its thread then.
        assert!(events.is_sorted_by_key(|event| event.time));
        let mut launches = calls.iter().filter(|call| call.tid == tid);
        for pair in events.chunks(2) {
            assert_eq!((pair[0].kind, pair[1].kind), (Nvtx::PUSH, Nvtx::POP));
            let call = launches.next().unwrap();
            // The mock's calls begin a microsecond before they are made.
            assert!(pair[0].time <= call.end && call.end <= pair[1].time);
        }
        assert!(launches.next().is_none());
    }
}

#[test]
fn graphs_are_recorded_node_by_node() {
    let got = Run::new("cuda graph:5x3").recording();
    assert_eq!(got.kernels(), counts([("graph_kernel", 15)]));
    assert_eq!(got.calls(), counts([("cudaGraphLaunch_v10000", 3)]));
    let nodes = got.records::<GraphNode>();
    assert_eq!(nodes.len(), 10, "captured, and copied when the graph was made executable");
    let copies: BTreeMap<u64, u64> = nodes.iter().filter_map(|node| Some((node.node, node.original?))).collect();
    for kernel in got.records::<Kernel>() {
        assert_eq!((kernel.graph, kernel.channel), (Some(6), Some(7)));
        let original = copies[&kernel.graph_node.unwrap()];
        assert!(nodes.iter().any(|node| node.node == original && node.original.is_none() && node.graph == Some(5) && node.tid == got.pid));
    }
}

/// More than several buffers hold, and more events than a list does between two visits of the worker.
#[test]
fn floods_are_recorded_or_counted() {
    let size = if is_watched() { 3000 } else { 120_000 };
    let got = Run::new(&format!("cuda nvtx:0 launch:{size} nvtx-flood:{size}")).recording();
    assert_eq!(got.kernels(), counts([("decode_kernel", size)]));
    assert_eq!(got.calls(), counts([("cudaLaunchKernel_v7000", size)]));
    let lost: u64 = got.records::<Dropped>().iter().filter(|lost| lost.family == Family::Nvtx.number()).map(|lost| lost.count).sum();
    assert_eq!(got.count(Family::Nvtx) + lost, size as u64);
    let cost = *got.records::<Cost>().last().unwrap();
    assert!(
        cost.callbacks >= got.count(Family::Nvtx) && cost.callback_ns > 0 && cost.page_ns > 0 && cost.bytes > 0 && cost.pages > 0,
        "{cost:?}"
    );
    assert!(cost.setup_ns > 0 && cost.exit_ns > 0 && cost.buffer_bytes >= 2 << 20, "{cost:?}");
}

#[test]
fn faults_of_the_library_are_counted() {
    let lost = |fault: &str| {
        let got = Run::new(&format!("cuda launch:2 fault:{fault} launch:2")).recording();
        (got.kernels().values().sum::<usize>(), got.lost())
    };
    // Of kinds and sizes that nobody knows: passed over.
    assert_eq!(lost("unknown"), (4, BTreeMap::from([(Dropped::UNKNOWN_KIND, 4)])));
    // The same record for ever, or the first one again: the rest of the buffer is given up.
    let stuck = BTreeMap::from([(Dropped::UNKNOWN_KIND, 1), (Dropped::DAMAGED, 1)]);
    assert_eq!(lost("same"), (2, stuck.clone()));
    assert_eq!(lost("back"), (2, stuck));
    assert_eq!(lost("error"), (2, BTreeMap::from([(Dropped::UNKNOWN_KIND, 1)])));
    // The last kernel lacks its last bytes.
    let got = Run::new("cuda launch:2 fault:cut").recording();
    assert_eq!(got.kernels(), counts([("decode_kernel", 2)]));
    assert_eq!(got.lost(), BTreeMap::from([(Dropped::UNKNOWN_KIND, 1), (Dropped::DAMAGED, 1)]));
}

#[test]
fn records_that_the_library_dropped_are_counted() {
    let got = Run::new("cuda launch:1 drop:41 sleep:1200 drop:1").recording();
    assert_eq!(got.lost(), BTreeMap::from([(Dropped::CUPTI, 42)]));
}

/// Records that are unfinished until the end come with the forced flush.
#[test]
fn late_records_come_at_the_end() {
    let got = Run::new("cuda hold launch:100 sleep:1200 launch:100").recording();
    assert_eq!(got.kernels(), counts([("decode_kernel", 200)]));
}

#[test]
fn every_nvtx_call_is_recorded() {
    let got = Run::new("nvtx:0 every-nvtx-call").recording();
    let events = got.nvtx();
    let expected = [
        "mark narrow",
        "mark weit ∞",
        "mark narrow",
        "mark narrow",
        "mark narrow",
        "mark narrow",
        "mark narrow",
        "mark narrow",
        "mark",
        "push weit ∞",
        "push narrow",
        "push weit ∞",
        "pop",
        "pop",
        "pop",
        "start weit ∞",
        "start narrow",
        "start weit ∞",
        "end",
        "end",
        "end",
        "mark registered",
        "push registered",
        "push weit ∞",
        "pop",
        "pop",
        "start weit ∞",
        "end",
        "mark",
        "mark",
        "mark",
    ];
    assert_eq!(events, expected);
    let records = got.records::<Nvtx>();
    // What else attributes carry is not kept.
    for event in &records {
        assert_eq!((event.color, event.category, got.text(event.payload), got.text(event.category_name)), (None, None, "", ""));
    }
    // Starts and ends are tied by their numbers, ends coming in another order.
    let ranges: Vec<_> = records[15..21].iter().map(|event| event.range.unwrap()).collect();
    assert_eq!(ranges[3..], [ranges[1], ranges[0], ranges[2]]);
    let domains: Vec<_> = records[21..28].iter().map(|event| got.text(event.domain)).collect();
    assert_eq!(domains, ["engine", "engine", "weit ∞", "engine", "weit ∞", "engine", "engine"]);
    assert!(records[..21].iter().all(|event| got.text(event.domain).is_empty()));
    let threads: Vec<_> = got.records::<Thread>().iter().map(|thread| (thread.tid, got.text(thread.name).to_owned())).collect();
    assert_eq!(threads, [(got.pid, "main thread".to_owned()), (77, "weit ∞".to_owned())]);
}

/// The entry is called for every module, in any order with the driver's.
#[test]
fn every_module_of_the_program_is_connected() {
    let steps = "push:early nvtx:0 push:a push1:not_yet cuda nvtx:1 push1:b pop1 pop nvtx:0 nvtx:1 push:c pop";
    assert_eq!(Run::new(steps).recording().nvtx(), ["push a", "push b", "pop", "pop", "push c", "pop"]);
}

#[test]
fn profiler_calls_switch_when_asked_and_are_noted_otherwise() {
    let steps = "cuda nvtx:0 launch:1 push:before pop profiler:on push:in launch:2 pop profiler:off launch:4 profiler:on launch:8 profiler:off launch:16";
    let on = RangeState::PROFILER;
    for version in ["18", "130000"] {
        let ranged = Run::new(steps).env("LONGPOLE_RECORD_RANGE", "profiler").env("MOCK_CUPTI_VERSION", version).recording();
        assert_eq!(ranged.kernels(), counts([("decode_kernel", 10)]), "{version}");
        assert_eq!(ranged.nvtx(), ["push in", "pop"]);
        assert_eq!(ranged.switches(), [(1, on), (0, on), (1, on), (0, on)]);
        assert_eq!(ranged.calls()["cudaLaunchKernel_v7000"], 10, "{version}");
    }
    let whole = Run::new(steps).recording();
    assert_eq!(whole.kernels(), counts([("decode_kernel", 31)]));
    assert_eq!(whole.switches(), [(1, on), (0, on), (1, on), (0, on)]);
}

#[test]
fn nvtx_ranges_switch() {
    let steps = "cuda nvtx:0 launch:1 push:step push:decode launch:2 push:decode launch:4 pop launch:8 pop launch:16 pop push:decode launch:32 pop launch:64";
    let got = Run::new(steps).env("LONGPOLE_RECORD_RANGE", "nvtx:decode").recording();
    assert_eq!(got.kernels(), counts([("decode_kernel", 2 + 4 + 8 + 32)]));
    assert_eq!(got.nvtx(), ["push decode", "push decode", "pop", "pop", "push decode", "pop"]);
    assert!(got.switches().iter().all(|&(_, cause)| cause == RangeState::NVTX));
    let names = got.records::<RangeState>();
    assert!(names.iter().all(|switch| got.text(switch.name) == "decode"));
    let other_domain = Run::new(steps).env("LONGPOLE_RECORD_RANGE", "nvtx:decode@engine").recording();
    assert_eq!((other_domain.kernels(), other_domain.nvtx()), (BTreeMap::new(), vec![]));
}

#[test]
fn delay_and_duration_are_kept() {
    let steps = "cuda launch:1 sleep:900 launch:2 sleep:1500 launch:4";
    let got = Run::new(steps).env("LONGPOLE_RECORD_DELAY_MS", "300").env("LONGPOLE_RECORD_DURATION_MS", "1000").recording();
    assert_eq!(got.kernels(), counts([("decode_kernel", 2)]));
    assert_eq!(got.switches(), [(1, RangeState::TIMER), (0, RangeState::TIMER)]);
    let process = got.process();
    assert_eq!((process.delay_ms, process.duration_ms), (Some(300), Some(1000)));
}

/// Times are of CUPTI's clock, also those that the recorder reads itself, and the clock is tied to the wall clock at both ends.
#[test]
fn clocks_are_tied_together() {
    let hour = 3_600_000_000_000i64;
    for ahead in [0, hour] {
        let got = Run::new("cuda nvtx:0 push:a launch:1 pop").env("MOCK_CUPTI_CLOCK", ahead.to_string()).recording();
        let clocks = got.records::<Clock>();
        assert!(clocks.len() >= 2, "{clocks:?}");
        for clock in &clocks {
            let apart = clock.cupti.cast_signed() - clock.realtime.cast_signed();
            assert!((apart - ahead).abs() < 1_000_000_000, "{clock:?}");
        }
        let call = got.records::<Api>()[0];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let event = got.records::<Nvtx>()[1];
        assert!((event.time.cast_signed() - call.end.cast_signed()).abs() < 10_000_000_000, "{event:?} {call:?}");
        assert!((now + ahead - event.time.cast_signed()).abs() < 120_000_000_000);
    }
}

#[test]
fn the_process_is_described() {
    let got = Run::new("cuda launch:1").env("LONGPOLE_RECORD_COMMAND_LINE", "1").env("RANK", "3").env("WORLD_SIZE", "8").recording();
    let process = got.process();
    assert_eq!((process.pid, process.rank, process.world_size), (got.pid, Some(3), Some(8)));
    assert!(process.parent > 0);
    if !is_watched() {
        assert_eq!(got.text(process.executable), "mock-gpu-program");
    }
    assert!(got.text(process.command_line).ends_with("cuda launch:1"), "{}", got.text(process.command_line));
    let silent = Run::new("cuda launch:1").recording();
    assert_eq!(silent.text(silent.process().command_line), "", "it may hold secrets");
}
