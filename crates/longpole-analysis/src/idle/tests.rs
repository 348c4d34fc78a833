//! One rule a test, on traces small enough to follow.

use longpole_trace::{Ns, SyncEvent, SyncKind, Trace};

use super::*;
use crate::sample::Sample;
use crate::scope::ScopeSpec;

/// The pieces of a trace: start, end, cause, and the host frame with what is around it.
fn pieces(trace: &Trace) -> Vec<String> {
    let index = TraceIndex::new(trace);
    let text = |name| trace.strings.get(name);
    idle_pieces(&index, &Scope::whole())
        .iter()
        .map(|piece| {
            let name = piece.frame.name.map_or("-", text);
            let inside = piece.frame.inside.map_or_else(String::new, |op| format!(" in {}", text(op)));
            format!("{}..{} {} {name}{inside}", piece.start.get(), piece.end.get(), piece.cause.code())
        })
        .collect()
}

#[test]
fn before_the_launch_the_host_decides_and_every_change_splits() {
    let mut sample = Sample::new();
    sample.range("step", 0, 1_000);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 80);
    sample.launch("cudaStreamSynchronize", 90, 30);
    sample.frame("serve.py(7): sample", 130, 100);
    sample.op("aten::mm", 150, 150);
    sample.launch("cudaMalloc", 160, 20);
    sample.launch("cudaFuncSetAttribute", 190, 10);
    sample.launch("cudaLaunchKernel", 210, 20).kernel("b", 250, 10);
    let trace = sample.finish();
    let want = [
        "100..120 blocked_in_sync cudaStreamSynchronize",
        "120..130 outside_operators step",
        "130..150 python serve.py(7): sample",
        "150..160 dispatch aten::mm",
        "160..180 allocation cudaMalloc in aten::mm",
        "180..190 dispatch aten::mm",
        "190..200 dispatch cudaFuncSetAttribute in aten::mm",
        "200..210 dispatch aten::mm",
        "210..250 launch_latency cudaLaunchKernel in aten::mm",
    ];
    assert_eq!(pieces(&trace), want);
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    let dispatch = table.causes.iter().find(|row| row.cause == IdleCause::Dispatch).unwrap();
    assert_eq!((dispatch.idle_ns, dispatch.intervals, dispatch.largest_ns, dispatch.largest_at), (Ns(40), 2, Ns(30), Ns(180)));
    let row = table.by_frame.iter().find(|row| row.name.as_deref() == Some("aten::mm")).unwrap();
    assert_eq!((row.kind, row.idle_ns, row.intervals), (FrameKind::Operator, Ns(30), 3));
    let range = &table.by_range[0];
    assert_eq!(
        (range.name.as_str(), range.calls, range.span_ns, range.idle_ns, range.empty_queue_ns),
        ("step", 1, Ns(240), Ns(150), Ns(110))
    );
    assert_eq!(range.causes[0], (IdleCause::Dispatch, Ns(40)));
}

#[test]
fn profiler_and_compiler() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 80);
    sample.range("compile_inner (dynamo_timed)", 110, 20);
    sample.op("aten::fake", 115, 5);
    sample.op("aten::mm", 140, 100);
    for (name, start, dur) in [("Buffer Flush", 145, 10), ("Command Buffer Full", 160, 10), ("Lazy Function Loading", 185, 30)] {
        let name = sample.builder.trace_mut().strings.intern(name);
        sample.builder.push_overhead(longpole_trace::Overhead { name, start: Ns(start), dur: Ns(dur) });
    }
    sample.launch("cudaLaunchKernel", 180, 40).kernel("b", 230, 10);
    let want = [
        "100..110 outside_operators -",
        "110..130 compile_or_load compile_inner (dynamo_timed)",
        "130..140 outside_operators -",
        "140..145 dispatch aten::mm",
        "145..155 profiler Buffer Flush",
        "155..180 dispatch aten::mm",
        "180..185 launch_latency cudaLaunchKernel in aten::mm",
        "185..215 compile_or_load Lazy Function Loading",
        "215..230 launch_latency cudaLaunchKernel in aten::mm",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn the_first_launch_of_a_kernel_loads_it() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 10);
    sample.launch("cudaLaunchKernel", 30, 200_000).kernel("b", 200_040, 10);
    sample.launch("cudaLaunchKernel", 200_050, 200_000).kernel("b", 400_060, 10);
    let want = [
        "20..30 nothing_recorded -",
        "30..200030 compile_or_load cudaLaunchKernel",
        "200030..200040 launch_latency cudaLaunchKernel",
        "200050..400060 launch_latency cudaLaunchKernel",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn a_thread_of_which_only_calls_are_known() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 80);
    sample.launch("cudaDeviceGetAttribute", 110, 10);
    sample.launch("cudaLaunchKernel", 130, 5).kernel("b", 150, 10);
    let want = [
        "100..110 nothing_recorded -",
        "110..120 outside_operators cudaDeviceGetAttribute",
        "120..130 nothing_recorded -",
        "130..150 launch_latency cudaLaunchKernel",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn a_graph_that_runs_is_its_own_cause_whatever_the_host_does() {
    let mut sample = Sample::new();
    sample.op("aten::other", 0, 900);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("before", 20, 30);
    sample.launch("cudaGraphLaunch", 60, 50).kernel("a", 120, 10).kernel("b", 140, 10).kernel("c", 155, 10);
    sample.launch("cudaStreamSynchronize", 125, 100);
    let want = [
        "50..60 dispatch aten::other",
        "60..110 graph_launch cudaGraphLaunch in aten::other",
        "110..120 launch_latency cudaGraphLaunch in aten::other",
        "130..140 graph_internal cudaGraphLaunch in aten::other",
        "150..155 graph_internal cudaGraphLaunch in aten::other",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn queued_work_waits_for_its_stream_another_stream_or_an_engine() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 30_000);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("same stream", 30_020, 80);
    sample.launch("cudaMemcpyAsync", 20, 5).memcpy("Memcpy DtoH (Device -> Pinned)", 30_103, 7);
    sample.on_device(0, 20);
    sample.launch("cudaLaunchKernel", 30, 5).kernel("other stream", 30_115, 5);
    let want = [
        "30010..30020 launch_latency cudaLaunchKernel",
        "30100..30103 copy_engine cudaMemcpyAsync",
        "30110..30115 dependency cudaLaunchKernel",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn work_of_another_stream_launched_a_moment_ago_is_just_starting() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 90);
    sample.on_device(0, 20);
    sample.launch("cudaLaunchKernel", 90, 5).kernel("b", 104, 10);
    assert_eq!(pieces(&sample.finish()), ["100..104 launch_latency cudaLaunchKernel"]);
}

fn stream_wait(sample: &mut Sample, at: i64, stream: i64, wait_on_stream: i64, event_record: u64) {
    sample.builder.push_sync_event(SyncEvent {
        kind: SyncKind::StreamWaitsForEvent,
        rank: 0,
        start: Ns(at),
        dur: Ns(1),
        device: Some(0),
        context: Some(1),
        stream: Some(stream),
        wait_on_stream: Some(wait_on_stream),
        event_record: Some(event_record),
    });
}

#[test]
fn a_stream_that_waited_for_an_event() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 90);
    sample.launch("cudaEventRecord", 20, 2);
    stream_wait(&mut sample, 30, 20, 7, 2);
    sample.on_device(0, 20);
    sample.launch("cudaLaunchKernel", 40, 5).kernel("b", 104, 10);
    // The event was over before this one was launched: it waited for nothing.
    stream_wait(&mut sample, 200, 20, 7, 2);
    sample.launch("cudaLaunchKernel", 205, 5).kernel("c", 220, 10);
    let found = pieces(&sample.finish());
    assert_eq!(found[0], "100..104 event_wait cudaLaunchKernel");
    assert_eq!(found.last().unwrap(), "205..220 launch_latency cudaLaunchKernel");
}

#[test]
fn what_a_launch_cannot_take_has_another_reason() {
    let late = |waits: bool| {
        let mut sample = Sample::new();
        sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 90);
        if waits {
            sample.launch("cudaStreamWaitEvent", 110, 2);
        }
        sample.launch("cudaLaunchKernel", 120, 5).kernel("b", 90_000, 10);
        pieces(&sample.finish()).pop().unwrap()
    };
    assert_eq!(late(false), "15125..90000 nothing_recorded cudaLaunchKernel");
    assert_eq!(late(true), "15125..90000 event_wait cudaLaunchKernel");
}

#[test]
fn work_from_before_the_recording_and_work_of_no_launch() {
    let mut sample = Sample::new();
    sample.orphan("a", 10, 10);
    sample.orphan("b", 25, 10);
    sample.launch("cudaLaunchKernel", 30, 5).kernel("c", 40, 10);
    sample.orphan("d", 60, 10);
    let want = ["20..25 launch_latency -", "35..40 launch_latency cudaLaunchKernel", "50..60 nothing_recorded -"];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn a_gpu_that_works_for_others_is_not_idle() {
    let mut sample = Sample::new();
    sample.range("step", 0, 100);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 30);
    sample.launch("cudaLaunchKernel", 60, 5).kernel("b", 200, 10);
    sample.on_thread(2);
    sample.launch("cudaLaunchKernel", 70, 5).kernel("other", 100, 80);
    sample.launch("cudaLaunchKernel", 80, 5).kernel("later", 400, 80);
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let spec = ScopeSpec { range: Some("step".to_owned()), ..ScopeSpec::default() };
    let table = idle_table(&index, &Scope::resolve(&index, &spec).unwrap());
    assert_eq!((table.span_ns, table.idle_ns), (Some(Ns(190)), Some(Ns(50 + 20))));
    assert_eq!(table.by_range.iter().map(|row| row.idle_ns).collect::<Vec<_>>(), [Ns(70)]);
    assert_eq!(idle_table(&index, &Scope::whole()).idle_ns, Some(Ns(50 + 20 + 190)));
}

#[test]
fn the_queue_over_time() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 5).kernel("a", 10, 40);
    sample.launch("cudaGraphLaunch", 20, 5).kernel("b", 50, 10).kernel("c", 60, 10);
    sample.launch("cudaLaunchKernel", 90, 5).kernel("d", 100, 10);
    sample.orphan("e", 120, 10);
    let trace = sample.finish();
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    let queue = &table.devices[0].queue;
    // Two from 20 to 50, one from 50 to 60, one from 90 to 100, over 120 ns.
    assert_eq!(queue.mean_depth, Some(80.0 / 120.0));
    assert_eq!((queue.window_ns, queue.max_depth, queue.unlaunched), (Ns(120), 2, 1));
    // 70 to 90; nobody knows about 110 to 120.
    assert_eq!((queue.empty_ns, queue.empty_fraction()), (Ns(20), Some(20.0 / 120.0)));
    assert_eq!(table.queue, *queue);
    let samples = &table.devices[0].queue_over_time;
    assert_eq!((samples[0].start, samples.last().unwrap().end), (Ns(10), Ns(130)));
    assert!(samples.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(samples.iter().map(|slice| slice.max_depth).max(), Some(2));
}

#[test]
fn without_device_work_there_is_no_idle_time() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 10);
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    assert_eq!(idle_table(&index, &Scope::whole()), IdleTable::default());
    assert!(idle_pieces(&index, &Scope::whole()).is_empty());
}

#[test]
fn more_devices_than_are_told_apart_on_one_thread() {
    let mut sample = Sample::new();
    let devices = IdleTable::SPLIT_TOGETHER as i64 + 3;
    for device in 0..devices {
        sample.on_device(device, 7);
        sample.launch("cudaLaunchKernel", device, 1).kernel("a", 200, 10);
    }
    for at in 0..20 {
        sample.op("aten::mm", 250 + 20 * at, 10);
    }
    for device in 0..devices {
        sample.on_device(device, 7);
        sample.launch("cudaLaunchKernel", 700 + device, 1).kernel("b", 1_000, 10);
    }
    let trace = sample.finish();
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!((table.unsplit_gaps, table.idle_ns), (3, Some(Ns(790 * devices))));
    assert_eq!(table.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), Ns(790 * devices));
    let dispatch = table.causes.iter().find(|row| row.cause == IdleCause::Dispatch).unwrap();
    assert_eq!(dispatch.idle_ns, Ns(200 * IdleTable::SPLIT_TOGETHER as i64));
}

/// Calls into the operating system say where the host was; why is said by what is around them.
#[test]
fn calls_into_the_operating_system_name_the_frame_and_not_the_cause() {
    let mut sample = Sample::new();
    sample.range("step", 0, 1_000);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 80);
    sample.launch("cudaStreamSynchronize", 90, 30);
    // Inside a runtime call it is that call's business.
    sample.os_call("poll", 95, 20);
    sample.os_call("pthread_cond_wait", 130, 30);
    sample.op("aten::mm", 170, 100);
    sample.os_call("read", 180, 10);
    sample.os_call("mmap", 185, 2);
    // It starts with the call that it is inside of.
    sample.launch("cudaMalloc", 200, 20);
    sample.os_call("ioctl", 200, 20);
    sample.launch("cudaLaunchKernel", 240, 20).kernel("b", 250, 10);
    let trace = sample.finish();
    let want = [
        "100..120 blocked_in_sync cudaStreamSynchronize",
        "120..130 outside_operators step",
        "130..160 outside_operators pthread_cond_wait",
        "160..170 outside_operators step",
        "170..180 dispatch aten::mm",
        "180..185 dispatch read in aten::mm",
        "185..187 dispatch mmap in aten::mm",
        "187..190 dispatch read in aten::mm",
        "190..200 dispatch aten::mm",
        "200..220 allocation cudaMalloc in aten::mm",
        "220..240 dispatch aten::mm",
        "240..250 launch_latency cudaLaunchKernel in aten::mm",
    ];
    assert_eq!(pieces(&trace), want);
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    let row = table.by_frame.iter().find(|row| row.name.as_deref() == Some("pthread_cond_wait")).unwrap();
    assert_eq!((row.kind, row.cause, row.idle_ns), (FrameKind::OsCall, IdleCause::OutsideOperators, Ns(30)));
    assert_eq!(table.host_samples, None, "none were recorded");
    let ops = crate::op_table(&TraceIndex::new(&trace), &Scope::whole(), crate::GroupBy::Name).rows;
    assert!(
        ops.iter().all(|row| !["poll", "read", "mmap", "ioctl", "pthread_cond_wait"].contains(&row.name.as_str())),
        "they are no operators"
    );
}

/// Where nothing but calls was recorded of a thread, what it did between them is known for calls into the operating system alone.
#[test]
fn on_a_thread_with_calls_alone_the_operating_system_still_tells() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 30);
    sample.os_call("sem_wait", 60, 20);
    sample.launch("cudaLaunchKernel", 100, 5).kernel("b", 110, 10);
    let want = [
        "50..60 nothing_recorded -",
        "60..80 outside_operators sem_wait",
        "80..100 nothing_recorded -",
        "100..110 launch_latency cudaLaunchKernel",
    ];
    assert_eq!(pieces(&sample.finish()), want);
}

#[test]
fn samples_count_where_a_device_waited_for_their_thread() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 20, 30);
    sample.launch("cudaLaunchKernel", 100, 5).kernel("b", 110, 10);
    sample.on_device(1, 7);
    sample.launch("cudaLaunchKernel", 12, 5).kernel("c", 20, 40);
    sample.launch("cudaLaunchKernel", 104, 5).kernel("d", 120, 10);
    // Both devices wait from 60 on: that is one sample. Before, one of them does.
    for (name, at) in [("early", 49), ("tokenize", 50), ("tokenize", 70), ("schedule", 99), ("launch", 102), ("late", 104)] {
        sample.cpu_sample(name, at);
    }
    sample.on_thread(2);
    sample.cpu_sample("of another thread", 70);
    let trace = sample.finish();
    let found = idle_table(&TraceIndex::new(&trace), &Scope::whole()).host_samples.unwrap();
    let rows: Vec<(&str, u64)> = found.rows.iter().map(|row| (row.name.as_str(), row.samples)).collect();
    assert_eq!((found.samples, rows), (4, vec![("tokenize", 2), ("launch", 1), ("schedule", 1)]));
}
