//! Reports inside zstd, in all the ways a zstd stream may be written.

use std::io::Write;

use longpole_ncu::{Error, Report, TroubleCode};

use crate::eras::all_of;
use crate::files;

fn recorded() -> Vec<u8> {
    std::fs::read(files::root().join("corpus/ncu/kern_basic.ncu-rep")).unwrap()
}

fn skippable(number: u8, length: u32) -> Vec<u8> {
    let mut frame = vec![0x50 | number, 0x2a, 0x4d, 0x18];
    frame.extend(length.to_le_bytes());
    frame.extend(std::iter::repeat_n(b'x', length as usize));
    frame
}

/// A frame that does not say how much comes out of it.
fn frame_of_unknown_size(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn contents(report: &Report) -> String {
    format!("{:?} {:?} {:?}", report.session(), report.processes(), all_of(report))
}

#[test]
fn frames_of_all_kinds_hold_one_report() {
    let plain = recorded();
    let (first, rest) = plain.split_at(3);
    let (second, third) = rest.split_at(200_000);
    let packed = [
        skippable(0, 5),
        zstd::bulk::compress(first, 1).unwrap(),
        skippable(15, 70_000),
        frame_of_unknown_size(second),
        zstd::bulk::compress(&[], 3).unwrap(),
        zstd::bulk::compress(third, 19).unwrap(),
        skippable(3, 0),
    ]
    .concat();
    let report = Report::read(&packed[..], "packed").unwrap();
    assert_eq!((report.format(), report.bytes()), ("ncu-repz", plain.len() as u64));
    assert!(report.troubles().is_empty(), "{:?}", report.troubles());
    assert!(contents(&report) == contents(&Report::read(&plain[..], "plain").unwrap()), "the compressed report differs");
}

#[test]
fn a_file_and_a_stream_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    std::fs::write(&path, zstd::bulk::compress(&recorded(), 3).unwrap()).unwrap();
    let of_file = Report::open(&path).unwrap();
    let of_plain_file = Report::open(&files::root().join("corpus/ncu/kern_basic.ncu-rep")).unwrap();
    assert_eq!((of_file.format(), of_plain_file.format()), ("ncu-repz", "ncu-rep"));
    assert!(contents(&of_file) == contents(&of_plain_file), "the compressed report differs");
}

#[test]
fn what_stands_before_a_cut_or_damage_is_read() {
    let plain = recorded();
    let packed = frame_of_unknown_size(&plain);
    let whole = all_of(&Report::read(&plain[..], "plain").unwrap());
    let (mut kernels, mut unusable) = (Vec::new(), 0);
    for part in 1..20 {
        let cut = packed.len() * part / 20;
        let mut damaged = packed.clone();
        damaged[cut] ^= 0xff;
        for input in [&packed[..cut], &damaged] {
            match Report::read(input, "cut") {
                Ok(report) => {
                    let results = all_of(&report);
                    kernels.push(results.len());
                    for (result, expected) in results.iter().zip(&whole) {
                        assert_eq!(result.name, expected.name);
                    }
                    let is_whole = report.bytes() == plain.len() as u64;
                    let codes: Vec<_> = report.troubles().iter().map(|trouble| trouble.code).collect();
                    assert!(is_whole || codes.contains(&TroubleCode::DamagedReportCompression), "{cut}: {codes:?}");
                }
                Err(Error::Unusable { .. }) => unusable += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(kernels.iter().any(|&count| count > 0 && count < whole.len()), "{kernels:?}");
    assert!(unusable < 30, "{unusable} of 38 inputs gave nothing");
}

#[test]
fn what_is_no_report_inside_is_said() {
    let not_reports = [
        zstd::bulk::compress(b"{\"traceEvents\": []}", 3).unwrap(),
        zstd::bulk::compress(b"NVR", 3).unwrap(),
        skippable(0, 9),
        vec![0x28, 0xb5, 0x2f, 0xfd],
        vec![0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff],
    ];
    for input in not_reports {
        let error = Report::read(&input[..], "packed").unwrap_err().to_string();
        assert!(error.contains("`packed`") && error.contains("a report inside the zstd stream"), "{error}");
    }
}
