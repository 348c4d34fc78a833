//! Files, directories, archives and compressed streams.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_ingest::{ImportError, ImportOptions, Imported, Input, import, import_bytes};

use crate::support::{assert_same, corpus, counts, document, dump, event, read};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn from_path(path: &std::path::Path) -> Result<Imported, ImportError> {
    import(&Input::Path(path.to_owned()), &ImportOptions { threads: 2, arguments: true, progress: None })
}

#[test]
fn compression_does_not_change_the_trace() {
    let bytes = corpus("qwen3_stack");
    let want = dump(&read(&bytes, 2).trace);
    let half = bytes.len() / 2;
    let two_members = [gzip(&bytes[..half]), gzip(&bytes[half..])].concat();
    for (label, packed) in [("gzip", gzip(&bytes)), ("two members", two_members), ("zstd", zstd::encode_all(&bytes[..], 1).unwrap())] {
        let got = read(&packed, 2);
        assert_same(&want, &dump(&got.trace), label);
        assert_eq!(got.source.bytes, bytes.len() as u64, "{label}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plain.json");
    fs::write(&path, &bytes).unwrap();
    let got = from_path(&path).unwrap();
    assert_same(&want.replace("bytes in memory", &path.display().to_string()), &dump(&got.trace), "plain file");
}

#[test]
fn a_directory_and_an_archive_of_ranks_are_one_trace() {
    let directory = tempfile::tempdir().unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    for name in ["nccl_rank1", "nccl_rank0"] {
        let bytes = corpus(name);
        let packed = if name == "nccl_rank1" { gzip(&bytes) } else { bytes.clone() };
        let file = if name == "nccl_rank1" { format!("{name}.json.gz") } else { format!("{name}.json") };
        fs::write(directory.path().join(&file), &packed).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_size(packed.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, format!("run/{file}"), &packed[..]).unwrap();
    }
    fs::write(directory.path().join("notes.txt"), "not a trace").unwrap();
    let tar_gz = gzip(&archive.into_inner().unwrap());
    let from_directory = from_path(directory.path()).unwrap();
    let from_archive = read(&tar_gz, 2);
    let ranks = |imported: &Imported| imported.trace.ranks.iter().map(|r| (r.rank, r.world_size, r.label.clone())).collect::<Vec<_>>();
    assert_eq!(ranks(&from_directory), [(0, Some(2), "nccl_rank0.json".to_owned()), (1, Some(2), "nccl_rank1.json.gz".to_owned())]);
    assert_eq!(ranks(&from_archive), [ranks(&from_directory)[1].clone(), ranks(&from_directory)[0].clone()]);
    let device_ns = |imported: &Imported| imported.trace.activities.dur.iter().map(|d| d.get()).sum::<i64>();
    let apart: i64 = ["nccl_rank0", "nccl_rank1"].iter().map(|name| device_ns(&read(&corpus(name), 1))).sum();
    assert_eq!((device_ns(&from_directory), device_ns(&from_archive)), (apart, apart));
}

/// Recordings of different quarters count from different bases; on one axis they must keep their true distance.
#[test]
fn rank_files_with_different_bases_are_aligned() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, base: i64, ts: &str| {
        let events = event("cpu_op", "aten::mm", ts, "2", "");
        let text = format!(r#"{{"traceEvents": [{events}], "baseTimeNanoseconds": {base}}}"#);
        fs::write(directory.path().join(name), text).unwrap();
    };
    write("rank0.json", 1_000_000_000_000_000_000, "500.25");
    write("rank1.json", 1_000_000_000_000_600_000, "1");
    write("rank2.json", 1_000_000_000_000_000_000, "700");
    let got = from_path(directory.path()).unwrap();
    let starts: Vec<_> = got.trace.host_ops.start.iter().map(|s| s.get()).collect();
    assert_eq!(starts, [500_250, 601_000, 700_000]);
    assert_eq!(got.trace.window.bounds().map(|(a, b)| (a.get(), b.get())), Some((500_250, 702_000)));
    assert_eq!(got.trace.base_unix_ns, Some(1_000_000_000_000_000_000));
}

#[test]
fn a_bad_file_of_a_set_is_counted_and_the_rest_read() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rank0.json"), document(&[event("cpu_op", "a", "1", "2", "")])).unwrap();
    fs::write(directory.path().join("rank1.json"), b"{\"something\": 1}").unwrap();
    let got = from_path(directory.path()).unwrap();
    assert_eq!(got.trace.ranks.len(), 1);
    assert!(counts(&got.problems).contains(&("unusable_file", 1)), "{:?}", got.problems);
}

#[test]
fn unusable_inputs_say_what_they_are() {
    let message = |bytes: &[u8]| import_bytes(bytes, 2).map(|_| ()).unwrap_err().to_string();
    for (bytes, found) in [
        (&b""[..], "found an empty file"),
        (b"  \n", "found an empty file"),
        (b"[]", "found an event list with no readable event"),
        (b"{}", "found JSON that is not an object with members"),
        (br#"{"profiles": [], "shared": {}}"#, "found a speedscope profile"),
        (br#"{"schema": "1.1", "nodes": []}"#, "found a PyTorch execution trace"),
        (br#"[{"count": 5}]"#, "found a TensorRT layer profile without a readable layer"),
        (br#"[{"frame": {"name": "ROOT"}, "metrics": {}, "children": []}]"#, "found a Proton profile without a readable kernel or scope"),
        (br#"{"some": [], "thing": {}}"#, "found JSON with the keys `some`, `thing` and no `traceEvents`"),
        (b"NVR\0\x02\0\0\0", "found an Nsight Compute report"),
        (b"\x80\x04\x95", "found a Python pickle"),
        (b"\x0a\x10\x08\x01\x12/host:CPU", "found an XLA profile"),
        (br#"{"traceEvents": []}"#, "found an event list with no readable event"),
        (b"SQLite format 3\0....", "found an SQLite database"),
        (&[0; 10_240], "found an empty archive"),
        (b"hello", "found bytes that begin with \"hello\""),
        (br#"[{"ph": "M", "name": "process_name", "pid": 1}]"#, "found 1 event, which is no operator"),
    ] {
        let text = message(bytes);
        assert!(text.contains(found), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let missing = from_path(std::path::Path::new("no/such/file.json")).map(|_| ()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read `no/such/file.json`: "), "{missing}");
}
