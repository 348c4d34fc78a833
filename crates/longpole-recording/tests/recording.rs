//! Recordings written and read back: whole, cut, damaged, one behind the other, on a full disk, and of every version ever written.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use longpole_recording::{
    Api, Clock, Context, Cost, Device, Dropped, End, EventRecord, Family, Fault, FaultKind, GraphNode, Header, Kernel, Memcpy, Memset,
    Nvtx, Overhead, PeerCopy, Process, RandomAccess, RangeState, Record, Recording, Refused, Sink, StringId, Sync, Thread, Writer,
    copy_whole_frames, is_recording, read, read_file,
};
use proptest::prelude::*;

/// Calls a macro with each family's type.
macro_rules! for_each_family {
    ($call:ident $arguments:tt) => {
        $call!($arguments Kernel Memcpy Memset PeerCopy Api Sync Overhead GraphNode Nvtx EventRecord Clock Device Process Thread Context Dropped Cost Refused RangeState End)
    };
}

/// A record from any numbers: what a reader makes of columns.
fn record<R: Record>(words: &[u64]) -> R {
    R::from_words(words)
}

/// What a file is read as: every record of every family as text, the texts, and what could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Read {
    recordings: Vec<(Header, Vec<String>, Vec<Vec<u8>>)>,
    faults: Vec<FaultKind>,
    ends: usize,
}

macro_rules! texts_of_families {
    (($recording:ident, $texts:ident) $($family:ident)*) => {
        $($texts.extend($recording.records::<$family>().iter().map(|record| format!("{record:?}")));)*
    };
}

fn read_all(bytes: &[u8]) -> Read {
    let (recordings, faults) = read(bytes);
    let all = everything(recordings, &faults);
    // From a file, read in odd pieces, comes the same.
    let file = Pieces { bytes: bytes.to_vec(), cut_at: AtomicU64::new(u64::MAX) };
    let found = read_file(&file, &mut |_| {});
    assert!(found.error.is_none());
    assert_eq!(everything(found.recordings, &found.faults), all);
    all
}

fn everything(mut recordings: Vec<Recording<'_>>, faults: &[Fault]) -> Read {
    let mut all = Read { faults: faults.iter().map(|fault| fault.kind).collect(), ..Read::default() };
    for recording in &mut recordings {
        let mut texts = Vec::new();
        for_each_family!(texts_of_families(recording, texts));
        all.ends += usize::from(recording.has_end());
        all.faults.extend(recording.faults.iter().map(|fault| fault.kind));
        let strings = recording.strings.iter().map(|(_, text)| text.to_vec()).collect();
        all.recordings.push((recording.header, texts, strings));
    }
    all
}

/// A file that gives a few bytes at a time, and cannot be read from some place on.
#[derive(Debug)]
struct Pieces {
    bytes: Vec<u8>,
    cut_at: AtomicU64,
}

impl RandomAccess for Pieces {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.cut_at.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is broken"));
        }
        let rest = &self.bytes[(offset as usize).min(self.bytes.len())..];
        let length = rest.len().min(buffer.len()).min(1 + offset as usize % 70_001);
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// One kernel of the sample, the `i`th.
fn kernel(i: u64, name: StringId) -> Kernel {
    Kernel {
        start: 1_790_000_000_000_000_000 + i * 5_000,
        end: 1_790_000_000_000_000_000 + i * 5_000 + 3_000 + i % 7,
        device: 1,
        context: 2,
        stream: 7,
        correlation: 100 + i as u32,
        name,
        grid_x: 132,
        grid_y: 1,
        grid_z: 1,
        block_x: 256,
        block_y: 1,
        block_z: 1,
        registers: 64,
        dynamic_shared: 49_152,
        graph_node: (i % 2 == 1).then_some((4 << 32) | i),
        graph: (i % 2 == 1).then_some(4),
        channel: Some(12),
        ..Kernel::default()
    }
}

/// A recording with something of everything.
fn sample() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Header { pid: 4711, started_at_ns: 1_790_000_000_000_000_000 }).unwrap();
    let executable = writer.string(b"python3.12");
    writer.process(&Process {
        pid: 4711,
        parent: 4710,
        executable,
        cuda_driver: Some(13_000),
        api: Process::API_LAUNCH,
        ..Process::default()
    });
    let clock = |i: u64| Clock { cupti: i, realtime: i + 10, monotonic: i / 2, uncertainty: 80 };
    writer.clock(&clock(1_790_000_000_000_000_000));
    let name = writer.string(b"NVIDIA H200");
    writer.device(&Device { device: 1, name, sm_count: Some(132), memory_bytes: Some(150_000_000_000), ..Device::default() });
    writer.context(&Context { context: 2, device: 1, null_stream: Some(7) });
    let worker = writer.string("w\u{f6}rker".as_bytes());
    writer.thread(&Thread { tid: 4712, name: worker });
    for i in 0..400 {
        let name = writer.string(format!("_Z6kernel{}v", i % 3).as_bytes());
        writer.kernel(&kernel(i, name));
        let name = writer.string(b"cudaLaunchKernel_v7000");
        let start = 1_790_000_000_000_000_000 + i * 4_000;
        writer.api(&Api {
            start,
            end: start + 900,
            domain: Api::RUNTIME,
            cbid: 211,
            name,
            tid: 4712,
            correlation: 100 + i as u32,
            result: 0,
        });
    }
    writer.flush();
    writer.memcpy(&Memcpy {
        start: 5,
        end: 9,
        bytes: 4096,
        kind: 1,
        source: 2,
        destination: 3,
        device: 1,
        correlation: 9,
        ..Memcpy::default()
    });
    writer.memset(&Memset { start: 6, end: 7, bytes: 64, value: 0, memory: 3, ..Memset::default() });
    writer.peer_copy(&PeerCopy { start: 6, end: 7, bytes: 64, source_device: 0, destination_device: 1, ..PeerCopy::default() });
    writer.sync(&Sync { start: 1, end: 2, kind: Sync::STREAM, stream: Some(7), ..Sync::default() });
    writer.overhead(&Overhead { start: 1, end: 2, kind: 65_536, tid: Some(3), correlation: None });
    writer.graph_node(&GraphNode {
        node: (4 << 32) | 1,
        time: 3,
        tid: 4712,
        original: Some((3 << 32) | 1),
        graph: Some(4),
        correlation: None,
    });
    let (domain, name) = (writer.string(b"NCCL"), writer.string(b"all reduce"));
    writer.nvtx(&Nvtx { time: 1, kind: Nvtx::PUSH, tid: 4712, domain, name, color: Some(0xff00_ff00), ..Nvtx::default() });
    writer.nvtx(&Nvtx { time: 2, kind: Nvtx::POP, tid: 4712, domain, ..Nvtx::default() });
    writer.dropped(&Dropped { family: Family::Kernel.number(), count: 3, reason: Dropped::CUPTI, time: 4 });
    writer.refused(&Refused { reason: Refused::SUBSCRIBER_TAKEN, code: 39, ..Refused::default() });
    writer.range_state(&RangeState { on: 1, cause: RangeState::PROFILER, time: 8, tid: 4712, name: StringId::NONE });
    writer.cost(&Cost { callbacks: 800, callback_ns: 160_000, pages: 4, page_ns: 90_000, ..Cost::default() });
    writer.clock(&clock(1_790_000_000_100_000_000));
    writer.finish(&End { time: 1_790_000_000_100_000_000, status: Some(-1) }).unwrap();
    bytes
}

/// Where frames end, and the header.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![32];
    while let Some(frame) = bytes.get(*ends.last().unwrap()..).filter(|rest| !rest.is_empty()) {
        let length = u32::from_le_bytes(frame[4..8].try_into().unwrap()) as usize;
        ends.push(ends.last().unwrap() + 20 + length);
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Records of any family with any values come back, in their order.
    #[test]
    fn what_is_written_is_read(words in proptest::collection::vec(any::<u64>(), 0..600), texts in proptest::collection::vec(".{0,40}", 0..20)) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, Header { pid: 1, started_at_ns: 2 }).unwrap();
        let ids: Vec<StringId> = texts.iter().map(|text| writer.string(text.as_bytes())).collect();
        let mut wanted = Vec::new();
        macro_rules! write_rows {
            ($nothing:tt $($family:ident)*) => {
                $(for row in words.chunks_exact($family::COLUMNS) {
                    let record: $family = record(row);
                    writer.record(&record);
                    wanted.push(format!("{record:?}"));
                    if row[0] % 16 == 0 {
                        writer.flush();
                    }
                })*
            };
        }
        for_each_family!(write_rows ());
        let end = End::default();
        writer.finish(&end).unwrap();
        wanted.push(format!("{end:?}"));
        let (mut recordings, faults) = read(&bytes);
        prop_assert!(faults.is_empty() && recordings.len() == 1 && recordings[0].faults.is_empty());
        for (id, text) in ids.iter().zip(&texts) {
            prop_assert_eq!(recordings[0].strings.text(*id).unwrap(), text.as_str());
        }
        let recording: &mut Recording<'_> = &mut recordings[0];
        let mut found = Vec::new();
        for_each_family!(texts_of_families (recording, found));
        prop_assert_eq!(found, wanted);
    }

    /// Any bytes, and any bytes behind a header, are read without harm.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
        let mut behind = sample()[..32].to_vec();
        behind.extend_from_slice(&bytes);
        read_all(&behind);
    }
}

#[test]
fn a_cut_anywhere_leaves_whole_frames_and_no_end() {
    let bytes = sample();
    let whole = read_all(&bytes);
    let ends = frame_ends(&bytes);
    assert_eq!((whole.ends, whole.faults.len(), *ends.last().unwrap()), (1, 0, bytes.len()));
    for cut in 0..bytes.len() {
        let found = read_all(&bytes[..cut]);
        assert_eq!(found.ends, 0, "cut at {cut}");
        let on_edge = ends.contains(&cut) || cut == 0;
        assert_eq!(found.faults.is_empty(), on_edge, "cut at {cut}: {:?}", found.faults);
        assert!(found.faults.iter().all(|fault| *fault == FaultKind::Cut || cut < 8), "cut at {cut}: {:?}", found.faults);
        // As much as up to the last whole frame, and nothing else.
        let edge = ends.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
        assert_eq!(found.recordings, read_all(&bytes[..edge]).recordings, "cut at {cut}");
        assert_eq!(found.recordings.is_empty(), cut < 32);
    }
}

#[test]
fn a_flipped_byte_costs_its_frame_only() {
    let bytes = sample();
    let whole = read_all(&bytes);
    let (_, wanted, texts) = &whole.recordings[0];
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        let found = read_all(&damaged);
        assert!(!found.faults.is_empty(), "flip at {at} goes unnoticed");
        if at < 32 {
            // Without a header there is nothing to say whose frames they are.
            assert!(found.recordings.is_empty());
            continue;
        }
        let (_, records, found_texts) = &found.recordings[0];
        assert!(records.iter().all(|record| wanted.contains(record)), "flip at {at}");
        assert!(records.len() < wanted.len() || found_texts.len() < texts.len(), "flip at {at}");
    }
}

#[test]
fn recordings_one_behind_the_other_are_several_even_after_a_torn_one() {
    let bytes = sample();
    let half = frame_ends(&bytes)[3] + 30;
    for first in [&bytes[..], &bytes[..half]] {
        let both = [first, &bytes].concat();
        let (recordings, faults) = read(&both);
        assert_eq!((recordings.len(), faults.len()), (2, 0));
        assert_eq!(recordings[1].place, first.len() as u64..both.len() as u64);
        assert_eq!((recordings[0].has_end(), recordings[1].has_end()), (first.len() == bytes.len(), true));
        // Cut down to its place, a recording is whole frames only.
        assert!(read(&both[..recordings[0].place.end as usize]).0[0].faults.is_empty());
    }
    assert!(is_recording(&bytes) && !is_recording(b"LPREC") && !is_recording(b"{"));
}

#[test]
fn copies_end_with_a_whole_frame() {
    let bytes = sample();
    let ends = frame_ends(&bytes);
    for cut in (0..bytes.len()).step_by(7).chain([bytes.len()]) {
        let mut out = Vec::new();
        let copied = copy_whole_frames(&bytes[..cut], &mut out).unwrap();
        let edge = ends.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
        assert_eq!((out.len(), copied.bytes, copied.torn_bytes), (edge, edge as u64, (cut - edge) as u64));
        assert_eq!(out, bytes[..edge]);
        let found = read(&out).0;
        assert_eq!(copied.header, found.first().map(|recording| recording.header));
        for family in Family::ALL {
            assert_eq!(copied.count(*family), found.first().map_or(0, |recording| recording.count(*family)));
        }
    }
    // Damage is for the reader to find.
    let damaged = [&bytes[..100], b"???", &bytes[100..]].concat();
    let mut out = Vec::new();
    copy_whole_frames(&damaged[..], &mut out).unwrap();
    assert_eq!(read_all(&out), read_all(&damaged));
}

#[test]
fn frames_that_ask_for_too_much_are_left_out() {
    let ok = sample();
    let crc = |bytes: &[u8]| {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
        })
    };
    let frame = |kind: u16, version: u16, payload: &[u8]| {
        let mut bytes = b"LPf\x01".to_vec();
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(version.to_le_bytes());
        bytes.extend(crc(payload).to_le_bytes());
        bytes.extend(crc(&bytes[..16]).to_le_bytes());
        bytes.extend(payload);
        bytes
    };
    let payload = |records: u32, columns: u16, method: u16, body_bytes: u32, body: &[u8]| {
        let mut bytes = records.to_le_bytes().to_vec();
        bytes.extend(columns.to_le_bytes());
        bytes.extend(method.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(body_bytes.to_le_bytes());
        bytes.extend(body);
        bytes
    };
    let zeros = zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap();
    let cases = [
        ("a bomb", frame(16, 1, &payload(1, 1, 1, 1 << 20, &zeros)), FaultKind::Damaged),
        ("more records than bytes", frame(16, 1, &payload(u32::MAX, 25, 0, 8, &[0; 8])), FaultKind::Damaged),
        ("a body shorter than it says", frame(16, 1, &payload(1, 1, 0, 64, &[0; 8])), FaultKind::Damaged),
        ("an unknown method", frame(16, 1, &payload(1, 1, 9, 8, &[0; 8])), FaultKind::Damaged),
        ("a text longer than its frame", frame(1, 1, &payload(1, 0, 0, 8, &[255; 8])), FaultKind::Damaged),
        ("a number that does not end", frame(16, 1, &payload(1, 1, 0, 5, &[1, 0, 0, 0, 0x80])), FaultKind::Damaged),
        ("an unknown family", frame(999, 1, &payload(1, 1, 0, 5, &[1, 0, 0, 0, 0])), FaultKind::UnknownKind(999)),
        ("a later version of a family", frame(16, 2, &payload(1, 1, 0, 5, &[1, 0, 0, 0, 0])), FaultKind::UnknownKind(16)),
    ];
    for (what, bad, kind) in cases {
        let bytes = [&ok[..32], &bad, &ok[32..]].concat();
        let found = read_all(&bytes);
        assert_eq!(found.faults, [kind], "{what}");
        assert_eq!(found.recordings, read_all(&ok).recordings, "{what}");
    }
}

#[test]
fn a_later_version_is_said_to_be_one() {
    let mut bytes = sample();
    bytes[8] = 2;
    let crc = {
        let header = &bytes[..28];
        !header.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
        })
    };
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    let both = [&bytes[..], &sample()].concat();
    let (recordings, faults) = read(&both);
    assert_eq!((recordings.len(), faults[0].kind, faults.len()), (1, FaultKind::NewerVersion(2), 1));
    assert_eq!(faults[0].to_string(), "the recording at byte 0 is of format version 2, which is newer than this reader");
}

/// Writes up to a limit, then fails as a full disk does, in the middle of what it was given.
struct Disk {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.room);
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= fits;
        self.bytes.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Disk {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.room += self.bytes.len() - length as usize;
        self.bytes.truncate(length as usize);
        Ok(())
    }
}

/// What two hands hold: the writer and the test, which makes room.
#[derive(Clone)]
struct Shared(Rc<RefCell<Disk>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Shared {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().cut_to(length)
    }
}

#[test]
fn a_full_disk_costs_records_that_are_counted_and_leaves_whole_frames() {
    for room in [40, 100, 200, 1_000, 3_000, 6_000, 60_000] {
        let disk = Shared(Rc::new(RefCell::new(Disk { bytes: Vec::new(), room })));
        let mut writer = Writer::new(disk.clone(), Header::default()).unwrap();
        let write = |writer: &mut Writer<Shared>| {
            for i in 0..20_000 {
                let name = writer.string(format!("kernel {}", i % 2000).as_bytes());
                writer.kernel(&kernel(i, name));
            }
            writer.flush();
        };
        write(&mut writer);
        assert_eq!(writer.take_error().unwrap().kind(), io::ErrorKind::StorageFull, "room {room}");
        assert!(writer.take_error().is_none());
        assert!(read_all(&disk.0.borrow().bytes).faults.is_empty(), "room {room}");
        // Room again: what comes now is written, and what was lost is counted.
        disk.0.borrow_mut().room = usize::MAX / 2;
        write(&mut writer);
        writer.finish(&End::default()).unwrap();
        let bytes = &disk.0.borrow().bytes;
        let (mut recordings, faults) = read(bytes);
        assert!(faults.is_empty() && recordings[0].faults.is_empty() && recordings[0].has_end());
        let kernels = recordings[0].records::<Kernel>();
        let lost: u64 = recordings[0].records::<Dropped>().iter().map(|dropped| dropped.count).sum();
        assert!(lost > 0 && kernels.len() as u64 + lost == 40_000, "room {room}: {} kernels, {lost} lost", kernels.len());
        // Every name of what was written can be read: none was lost with the pages.
        for (i, kernel) in kernels.iter().enumerate() {
            assert!(recordings[0].strings.get(kernel.name).is_some(), "room {room}: kernel {i} has no name");
        }
    }
}

#[test]
fn a_file_is_not_overwritten_and_memory_for_texts_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.lprec");
    let mut writer = Writer::create(&path, Header::default()).unwrap();
    assert_eq!(Writer::create(&path, Header::default()).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    // More texts than are remembered, one of them again and again: it gets a new number when it was forgotten, and reads the same.
    for i in 0..300_000 {
        let name = writer.string(format!("step {i}").as_bytes());
        writer.nvtx(&Nvtx { time: i, kind: Nvtx::MARK, name, ..Nvtx::default() });
    }
    let long = writer.string(&vec![b'x'; 100_000]);
    writer.finish(&End::default()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let (mut recordings, _) = read(&bytes);
    let marks = recordings[0].records::<Nvtx>();
    assert_eq!(marks.len(), 300_000);
    assert!(marks.iter().all(|mark| recordings[0].strings.text(mark.name).unwrap() == format!("step {}", mark.time)));
    assert_eq!(recordings[0].strings.get(long).unwrap().len(), 65_536);
}

/// The sample of version 1 reads as what it was written from. `LONGPOLE_WRITE_SAMPLES=1` writes the sample of the present version where none
/// is; those of earlier versions are never written again.
#[test]
fn samples_of_all_versions_are_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/version1.lprec");
    if std::env::var_os("LONGPOLE_WRITE_SAMPLES").is_some() && !path.exists() {
        std::fs::write(&path, sample()).unwrap();
    }
    let found = read_all(&std::fs::read(&path).expect("a sample of version 1"));
    assert_eq!(found, read_all(&sample()));
    let (header, records, texts) = &found.recordings[0];
    assert_eq!((header.pid, records.len(), texts.len()), (4711, 819, 9));
}

/// A kernel in a page takes a few bytes.
#[test]
fn pages_are_small() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Header::default()).unwrap();
    for i in 0..100_000 {
        writer.kernel(&kernel(i * 31 % 1_000_003, StringId(1 + (i % 40) as u32)));
    }
    writer.finish(&End::default()).unwrap();
    let each = bytes.len() / 100_000;
    assert!(each < 24, "{each} bytes a kernel");
}

/// Longer than what is looked at at a time: damage that is longer too, a recording of a version to come, a torn frame at the end.
#[test]
fn long_files_are_read_as_they_are_from_memory() {
    let sample = sample();
    let mut long = sample.clone();
    long.extend(b"LPxx".iter().cycle().take(10 << 20));
    long.extend_from_slice(&sample);
    let mut newer = sample[..32].to_vec();
    newer[8] = 9;
    let crc = !newer[..28].iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    newer[28..].copy_from_slice(&crc.to_le_bytes());
    long.extend_from_slice(&newer);
    long.extend(std::iter::repeat_n(b'P', 9 << 20));
    let behind = long.len();
    for _ in 0..40 {
        long.extend_from_slice(&sample);
    }
    long.truncate(long.len() - 9);
    let found = read_all(&long);
    assert_eq!(found.recordings.len(), 42);
    assert_eq!(found.faults, [FaultKind::Damaged, FaultKind::NewerVersion(9), FaultKind::Cut]);
    // What cannot be read ends the file.
    let file = Pieces { bytes: long, cut_at: AtomicU64::new((behind + 9 * sample.len() + sample.len() / 2) as u64) };
    let cut = read_file(&file, &mut |_| {});
    assert_eq!(cut.error.map(|error| error.to_string()).as_deref(), Some("the disk is broken"));
    assert!((2..42).contains(&cut.recordings.len()), "{}", cut.recordings.len());
}

/// A page that cannot be read any more when it is asked for, or is another by then, is damaged.
#[test]
fn pages_that_change_meanwhile_are_damaged() {
    let bytes = sample();
    let file = Pieces { bytes, cut_at: AtomicU64::new(u64::MAX) };
    let mut found = read_file(&file, &mut |_| {});
    assert_eq!(found.recordings[0].records::<Kernel>().len(), 400);
    file.cut_at.store(0, Ordering::Relaxed);
    assert!(found.recordings[0].records::<Kernel>().is_empty());
    assert!(matches!(found.recordings[0].faults[..], [Fault { kind: FaultKind::Damaged, .. }]), "{:?}", found.recordings[0].faults);
}
