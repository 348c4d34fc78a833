//! Every schema gives the same answers, whatever columns it has; and what only some exports hold.

use longpole_trace::{Detail, MemcpyKind, Ns, SyncKind};
use rusqlite::types::Value;

use crate::made::{Export, VERSIONS, decode, int, thread};
use crate::support::{counts, kernels, launches, made, ranges, read, try_read};

const NEW: (u32, u32, u32) = (3, 25, 0);

#[test]
fn every_schema_gives_the_sums_of_a_plain_query() {
    for version in VERSIONS {
        for lazy in [true, false] {
            let file = made(version, |export| {
                if !lazy {
                    export.all_tables();
                }
                // Times before the session's start are negative.
                decode(export, thread(40, 41), 0, -500, 1);
            });
            let got = read(&file.path);
            assert_eq!(got.source.format, "nsys");
            assert_eq!(kernels(&got.trace), Export::kernels(&rusqlite::Connection::open(&file.path).unwrap()), "{version:?}");
            assert_eq!(counts(&got.problems), [("no_operators", 1)], "{version:?} {lazy}");
            assert_eq!(got.trace.window.bounds(), Some((Ns(-500), Ns(240))), "{version:?}");
            for (name, device, calls) in launches(&got.trace) {
                let expected = match name.split(' ').next() {
                    Some("Memcpy") => "cudaMemcpyAsync",
                    Some("Memset") => "cudaMemsetAsync",
                    _ => "cudaLaunchKernel",
                };
                assert_eq!((device, calls), (0, vec![(expected.to_owned(), 40)]), "{name}");
            }
            let layers = ranges(&got.trace);
            assert_eq!(layers, ["layer -495+255", "decode_step -500+370", "layer -125+255", "decode_step -130+370"], "{version:?}");
            let has_grid = got.trace.details.iter().any(|detail| match detail {
                Detail::Launch(launch) => launch.grid == Some([64, 2, 1]) && launch.shared_bytes == Some(1536),
                Detail::Transfer(_) => false,
            });
            let has_copy = got.trace.details.iter().any(|detail| match detail {
                Detail::Transfer(copy) => copy.kind == MemcpyKind::HostToDevice && copy.pageable == Some(true) && copy.bytes == Some(4096),
                Detail::Launch(_) => false,
            });
            assert!(has_grid && has_copy, "{:?}", got.trace.details);
        }
    }
}

#[test]
fn processes_that_share_numbers_are_told_apart() {
    // Two processes on GPUs of their own are recordings of their own; CUDA numbers them both 0.
    let apart = made(NEW, |export| {
        for (pid, gpu, base) in [(40, 1, 0), (50, 0, 7)] {
            decode(export, thread(pid, pid), 0, base, 1);
            export.add("TARGET_INFO_CUDA_DEVICE", &[("gpuId", int(gpu)), ("cudaId", int(0)), ("pid", int(pid))]);
            export.add("TARGET_INFO_GPU", &[("id", int(gpu)), ("name", Value::Text(format!("GPU {gpu}"))), ("cuDevice", int(gpu))]);
        }
    });
    let got = read(&apart.path).trace;
    let labels: Vec<_> = got.ranks.iter().map(|rank| rank.label.rsplit(' ').next().unwrap()).collect();
    assert_eq!(labels, ["50)", "40)"]);
    let names: Vec<_> = got.devices.iter().map(|device| (device.rank, device.properties.name.as_deref())).collect();
    assert_eq!(names, [(1, Some("GPU 1")), (0, Some("GPU 0"))]);
    assert!(launches(&got).iter().all(|(_, _, calls)| calls.len() == 1));
    // On one GPU they are processes of one recording, and each kernel still has the call of its own process.
    let together = made(NEW, |export| {
        decode(export, thread(40, 40), 0, 0, 1);
        decode(export, thread(50, 50), 0, 7, 1);
    });
    let got = read(&together.path).trace;
    assert_eq!(got.ranks.len(), 1);
    let pids: Vec<Vec<i64>> = launches(&got).into_iter().map(|(_, _, calls)| calls.into_iter().map(|(_, pid)| pid).collect()).collect();
    assert_eq!(pids.len(), 20);
    assert!(pids[..6].iter().all(|pids| pids == &[40]) && pids[6..12].iter().all(|pids| pids == &[50]), "{pids:?}");
}

#[test]
fn graphs_recorded_as_a_whole_are_said_loudly() {
    let file = made(NEW, |export| {
        let own = thread(40, 40);
        export.call(own, "cudaGraphLaunch_v10000", 9, [100, 120]);
        let mut row = Export::place(own, 0, 9, [130, 990]).to_vec();
        row.extend([("graphId", int(3)), ("graphExecId", int(4))]);
        export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &row);
    });
    let got = read(&file.path);
    assert_eq!(counts(&got.problems), [("graph_level_trace", 1), ("no_operators", 1)]);
    assert_eq!(launches(&got.trace), [("CUDA graph 3".to_owned(), 0, vec![("cudaGraphLaunch".to_owned(), 40)])]);
}

#[test]
fn ranges_of_every_kind() {
    let file = made(NEW, |export| {
        let own = thread(40, 41);
        decode(export, own, 0, 0, 1);
        export.connection.execute_batch("DELETE FROM NVTX_EVENTS").unwrap();
        export.range(own, "never closed", 50, None);
        export.add(
            "NVTX_EVENTS",
            &[
                ("start", int(1)),
                ("eventType", int(75)),
                ("text", Value::Text("NCCL".to_owned())),
                ("globalTid", int(own)),
                ("domainId", int(1)),
            ],
        );
        export.registered_range(own, "ncclAllReduce", 1, [60, 70]);
        export.add(
            "NVTX_EVENTS",
            &[("start", int(80)), ("eventType", int(34)), ("text", Value::Text("mark".to_owned())), ("globalTid", int(own))],
        );
        export.add(
            "NVTX_EVENTS",
            &[
                ("start", int(5)),
                ("end", int(95)),
                ("eventType", int(60)),
                ("globalTid", int(own)),
                ("text", Value::Text("request".to_owned())),
            ],
        );
        export
            .add("NVTX_EVENTS", &[("start", int(5)), ("end", int(6)), ("eventType", int(59)), ("globalTid", int(own)), ("textId", int(1))]);
        export.add(
            "NVTX_EVENTS",
            &[
                ("start", int(7)),
                ("end", int(8)),
                ("eventType", int(59)),
                ("globalTid", int(own)),
                ("text", Value::Blob(b"caf\xe9".to_vec())),
            ],
        );
        export.range(own, "aten::mm, op_id = 3, sizes = [[2, 3], [3]]", 10, Some(20));
    });
    let got = read(&file.path);
    assert_eq!(
        ranges(&got.trace),
        ["NCCL:ncclAllReduce 60+10", "mark 80+0", "request 5+90", "(text 1 is missing) 5+1", "caf\u{FFFD} 7+1", "never closed 50+675"]
    );
    assert_eq!(counts(&got.problems), [("bad_utf8", 1), ("missing_name", 1), ("unclosed_range", 1), ("operators_from_ranges", 1)]);
    let ops = &got.trace.host_ops;
    let texts = [Some(ops.name[0]), ops.shapes(0)].map(|id| id.map(|id| got.trace.strings.get(id)));
    assert_eq!((ops.len(), texts), (1, [Some("aten::mm"), Some("[[2, 3], [3]]")]));
}

#[test]
fn what_else_an_export_says() {
    let file = made(NEW, |export| {
        let own = thread(40, 41);
        decode(export, own, 0, 1_000, 1);
        let process = own & !0xFF_FFFF;
        export.add("PROCESSES", &[("globalPid", int(process)), ("pid", int(40)), ("name", Value::Text("python3".to_owned()))]);
        let name = int(export.text("main"));
        export.add("ThreadNames", &[("nameId", name.clone()), ("globalTid", int(own))]);
        export.add("TARGET_INFO_SESSION_START_TIME", &[("utcEpochNs", int(1_780_000_000_000_000_000)), ("systemClockNs", int(400))]);
        export.add("PROFILER_OVERHEAD", &[("start", int(0)), ("end", int(5)), ("nameId", name)]);
        export.add("SCHED_EVENTS", &[("start", int(0)), ("cpu", int(1)), ("globalTid", int(own))]);
        let record =
            [("streamId", int(7)), ("correlationId", int(2)), ("globalPid", int(process)), ("eventId", int(3)), ("eventSyncId", int(11))];
        export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &record);
        let mut row = Export::place(own, 0, 90, [1_100, 1_105]).to_vec();
        row.extend([("syncType", int(2)), ("eventId", int(3)), ("eventSyncId", int(11))]);
        export.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &row);
        // Secrets stand here, and in old exports bytes that are no text.
        export.add(
            "TARGET_INFO_SYSTEM_ENV",
            &[("name", Value::Blob(vec![0xFF, 0xFE])), ("value", Value::Text("AWS_SECRET_ACCESS_KEY=hunter2".to_owned()))],
        );
    });
    let got = read(&file.path);
    let trace = &got.trace;
    assert_eq!(counts(&got.problems), [("unused_tables", 1), ("no_operators", 1)]);
    assert_eq!(trace.base_unix_ns, Some(1_779_999_999_999_999_600));
    let name = |id| trace.strings.get(id);
    assert_eq!((trace.processes[0].name.map(name), trace.threads[0].name.map(name)), (Some("python3"), Some("main")));
    assert_eq!((trace.overheads.len(), trace.sync_events.kind[0]), (1, SyncKind::StreamWaitsForEvent));
    assert_eq!((trace.sync_events.wait_on_stream[0], trace.sync_events.event_record(0)), (Some(7), Some(2)));
    assert!(trace.strings.iter().all(|(_, text)| !text.contains("hunter2")));
}

#[test]
fn what_the_host_did_beside_calls() {
    for version in VERSIONS {
        let file = made(version, |export| {
            let own = thread(40, 41);
            decode(export, own, 0, 1_000, 1);
            export.os_call(own, "pthread_cond_wait", [900, 1_020]);
            export.os_call(own, "read", [1_040, 1_050]);
            // Nothing else is known of this thread: it launches no work, so that no device waits for it.
            export.os_call(thread(40, 99), "poll", [0, 90_000]);
            export.sample(own, 7, 1_060, &[Some("tokenize"), Some("main")]);
            export.sample(own, 3, 1_061, &[None, Some("main")]);
            export.sample(own, 5, 1_062, &[]);
            export.sample(thread(40, 99), 9, 1_063, &[Some("elsewhere")]);
        });
        for threads in [1, 3] {
            let got = try_read(&file.path, threads).unwrap();
            let (trace, calls, samples) = (&got.trace, &got.trace.os_calls, &got.trace.cpu_samples);
            let name = |id| trace.strings.get(id);
            let calls: Vec<_> = (0..calls.len()).map(|row| (name(calls.name[row]), calls.start[row].get(), calls.dur[row].get())).collect();
            assert_eq!(calls, [("pthread_cond_wait", 900, 120), ("read", 1_040, 10)], "{version:?}");
            let samples: Vec<_> = (0..samples.len()).map(|row| (name(samples.name[row]), samples.start[row].get())).collect();
            assert_eq!(
                samples,
                [("tokenize", 1_060), ("(somewhere in libcuda.so.1)", 1_061), ("(no function recorded)", 1_062)],
                "{version:?}"
            );
            assert_eq!(trace.window.bounds(), Some((Ns(1_000), Ns(1_740))), "they make the recording no longer");
            assert_eq!((trace.threads.len(), counts(&got.problems)), (1, vec![("no_operators", 1)]), "{version:?}");
        }
    }
}

#[test]
fn a_database_of_something_else_is_said_in_one_sentence() {
    let file = made(NEW, |export| export.connection.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap());
    let error = try_read(&file.path, 2).unwrap_err().to_string();
    assert!(error.contains("without the tables of an Nsight Systems export (it has `META_DATA_EXPORT`, `t`)"), "{error}");
    let file = made(NEW, Export::all_tables);
    let error = try_read(&file.path, 2).unwrap_err().to_string();
    assert!(error.contains("an Nsight Systems export without calls, ranges or device work"), "{error}");
}
