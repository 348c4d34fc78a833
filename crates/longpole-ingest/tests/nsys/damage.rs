//! Hostile and damaged exports: the readable part with counted problems, or one sentence; never a panic.

use std::fs;
use std::io::Read as _;

use longpole_ingest::import_bytes;
use rusqlite::types::Value;

use crate::made::{Export, decode, int, thread};
use crate::support::{counts, kernels, made, read, try_read};

const NEW: (u32, u32, u32) = (3, 25, 0);

/// An export of some hundred pages.
fn large(export: &Export) {
    export.connection.execute_batch("PRAGMA page_size = 1024; VACUUM").unwrap();
    export.connection.execute_batch("BEGIN").unwrap();
    for step in 0..150 {
        decode(export, thread(40, 41), 0, step * 1_000, 1 + step * 10);
    }
    export.connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn edits_and_cuts_never_panic() {
    let file = made(NEW, large);
    let whole = fs::read(&file.path).unwrap();
    let all: usize = kernels(&read(&file.path).trace).values().map(Vec::len).sum();
    assert_eq!(all, 900);
    let mut state = 20_261_129_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut partial, mut refused) = (0, 0);
    for round in 0..200 {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(1 + random(whole.len()));
        } else {
            for _ in 0..=random(40) {
                // Half of the edits hit headers of pages, which hold the tree together.
                let at = if random(2) == 0 { random(whole.len()) } else { random(whole.len() / 1024) * 1024 + random(16) };
                bytes[at] = random(256) as u8;
            }
        }
        fs::write(&file.path, &bytes).unwrap();
        let results = [1, 3].map(|threads| try_read(&file.path, threads).map(|got| (kernels(&got.trace), counts(&got.problems))));
        match results {
            [Ok(mut alone), Ok(mut together)] => {
                // How often damage is met depends on where stretches begin, so on their number; what is read does not.
                for (code, count) in alone.1.iter_mut().chain(&mut together.1) {
                    *count = if *code == "damaged_pages" { 1 } else { *count };
                }
                assert_eq!(alone, together, "round {round}");
                let read: usize = alone.0.values().map(Vec::len).sum();
                // A row that is missing is never silent.
                assert!(read >= all || alone.1.iter().any(|(code, _)| *code != "no_operators"), "round {round}: {read} {:?}", alone.1);
                partial += 1;
            }
            [Err(alone), Err(together)] => {
                assert_eq!(alone.to_string(), together.to_string());
                refused += 1;
            }
            other => panic!("round {round}: threads changed the result: {other:?}"),
        }
    }
    assert!(partial > 50 && refused > 0, "{partial} {refused}");
}

#[test]
fn nothing_in_the_file_acts() {
    let file = made(NEW, |export| {
        decode(export, thread(40, 41), 0, 0, 1);
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS \"end\" FROM n";
        let sql = format!(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS {endless};
             CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN DELETE FROM NVTX_EVENTS; END;
             ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN returned AS (hex(zeroblob(500000000))) VIRTUAL;"
        );
        export.connection.execute_batch(&sql).unwrap();
    });
    let got = read(&file.path);
    assert_eq!(counts(&got.problems), [("not_a_table", 1), ("no_operators", 1)]);
    assert_eq!(kernels(&got.trace).values().map(Vec::len).sum::<usize>(), 6);
}

#[test]
fn values_of_the_wrong_type_are_missing_and_counted() {
    let file = made(NEW, |export| {
        let own = thread(40, 41);
        decode(export, own, 0, 0, 1);
        export.kernel(own, 0, "odd", 80, [400, 410]);
        export
            .connection
            .execute_batch("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'many', streamId = 7.0 WHERE correlationId = 80")
            .unwrap();
        export.kernel(own, 0, "untimed", 81, [400, 410]);
        export.connection.execute_batch("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = NULL WHERE correlationId = 81").unwrap();
        export.kernel(own, 0, "backwards", 82, [420, 410]);
        export.kernel(own, 0, "endless", 83, [420, 420 + 2 * 86_400_000_000_000]);
        export.kernel(own, 0, "far", 84, [i64::MAX - 5, i64::MAX]);
        export.kernel(own, 0, "astray", 85, [40 * 86_400_000_000_000, 40 * 86_400_000_000_000 + 5]);
        let mut long = vec![b'x'; 3 << 20];
        long[0] = b'y';
        export.add(
            "NVTX_EVENTS",
            &[("start", int(1)), ("end", int(2)), ("eventType", int(59)), ("text", Value::Blob(long)), ("globalTid", int(own))],
        );
    });
    let got = read(&file.path);
    let expected = [
        ("missing_time", 2),
        ("stray_time", 1),
        ("implausible_duration", 1),
        ("end_before_start", 1),
        ("number_too_large", 2),
        ("unexpected_value", 2),
        ("no_operators", 1),
    ];
    let mut found = counts(&got.problems);
    found.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    let names: Vec<String> = kernels(&got.trace).into_keys().collect();
    assert_eq!(names, ["backwards", "gemm<float>", "odd", "softmax<float>"]);
    assert_eq!(got.trace.ranges.len(), 4, "the range with a huge text is left out");
}

#[test]
fn streams_are_read_like_files() {
    let file = made(NEW, large);
    let bytes = fs::read(&file.path).unwrap();
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(&bytes[..], flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    let (plain, unpacked) = (import_bytes(&bytes, 2).unwrap(), import_bytes(&packed, 2).unwrap());
    let expected = kernels(&read(&file.path).trace);
    assert_eq!((kernels(&plain.trace), kernels(&unpacked.trace)), (expected.clone(), expected));
}

#[test]
fn reports_need_nsys() {
    let error = import_bytes(b"NVIDIA Tegra Profiler report and more bytes", 1).unwrap_err().to_string();
    assert!(error.contains("run `nsys export --type sqlite --output REPORT.sqlite REPORT.nsys-rep`"), "{error}");
}

#[test]
fn an_export_whose_times_are_all_wrong_says_so() {
    let own = thread(40, 41);
    let file = made(NEW, |export| {
        decode(export, own, 0, 1_000, 1);
        for kind in ["KERNEL", "MEMCPY", "MEMSET", "RUNTIME"] {
            export.connection.execute_batch(&format!("UPDATE CUPTI_ACTIVITY_KIND_{kind} SET start = NULL")).unwrap();
        }
        export.connection.execute_batch("UPDATE NVTX_EVENTS SET start = NULL").unwrap();
    });
    let error = try_read(&file.path, 2).unwrap_err().to_string();
    assert!(error.contains("events were all set aside: their times are missing"), "{error}");
}

#[test]
fn a_cut_stream_is_named_where_nothing_of_it_can_be_read() {
    let file = made(NEW, large);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, &fs::read(&file.path).unwrap()).unwrap();
    let packed = encoder.finish().unwrap();
    let told = (1..8).filter_map(|eighth| import_bytes(&packed[..packed.len() * eighth / 8], 2).err());
    let told: Vec<String> = told.map(|error| error.to_string()).collect();
    assert!(!told.is_empty() && told.iter().all(|error| error.contains("compressed stream that is cut")), "{told:?}");
}
