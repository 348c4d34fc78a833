//! Damaged and hostile reports: nothing panics, what is whole is kept, what is not is counted.

use longpole_ncu::{ProfiledResult, Report, TroubleCode};

use crate::encode::{self, Block, block, count, file, instance, kernel, message, metric, put_sized, start};
use crate::eras::all_of;
use crate::files;

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn has(report: &Report, code: TroubleCode) -> bool {
    report.troubles().iter().any(|trouble| trouble.code == code)
}

/// Everything that can be asked of a report.
fn ask_everything(report: &Report) -> Vec<ProfiledResult> {
    let results = all_of(report);
    for result in &results {
        report.source_of(result);
    }
    results
}

/// The reports that damage is done to, with how many cuts and edits the time allows.
fn reports() -> Vec<(String, Vec<u8>, usize, usize)> {
    let load = |name: &str| std::fs::read(files::root().join("corpus/ncu").join(name)).unwrap();
    let mut reports = vec![
        ("kern_basic".to_owned(), load("kern_basic.ncu-rep"), 200, 500),
        ("gemv_before".to_owned(), zstd::decode_all(&load("gemv_before.ncu-repz")[..]).unwrap(), 30, 60),
    ];
    if let Some(folder) = files::shared() {
        for name in ["graph", "range", "two_processes", "mojo_profile", "speedyscan_profile"] {
            reports.push((name.to_owned(), std::fs::read(folder.join(format!("{name}.ncu-rep"))).unwrap(), 50, 100));
        }
    }
    reports
}

#[test]
fn a_cut_report_keeps_the_results_before_the_cut() {
    for (name, bytes, cuts, _) in reports() {
        let shown = |result: &ProfiledResult| format!("{result:?}");
        let whole: Vec<String> = all_of(&Report::read(&bytes[..], &name).unwrap()).iter().map(shown).collect();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let (mut kept, mut unnamed) = (0, 0);
        let cuts = (0..cuts).map(|_| random.below(bytes.len())).chain([3, 4, 5, 9, bytes.len() - 1]);
        for cut in cuts {
            let Ok(report) = Report::read(&bytes[..cut], &name) else {
                assert!(cut < 4, "nothing of {cut} bytes of {name} was read");
                continue;
            };
            let results = ask_everything(&report);
            assert!(has(&report, TroubleCode::CutReport), "{name} cut at {cut}: {:?}", report.troubles());
            for (result, whole) in results.iter().zip(&whole) {
                kept += 1;
                // Names that stand behind the cut are missing, which is counted.
                if has(&report, TroubleCode::UnnamedMetric) {
                    unnamed += 1;
                } else {
                    assert!(shown(result) == *whole, "{name} cut at {cut}: result {} differs", result.id);
                }
            }
        }
        println!("{name}: {kept} results before cuts compared, {unnamed} of them without all names");
        assert!(whole.len() == 1 || kept > unnamed, "{name}: {kept} {unnamed}");
    }
}

#[test]
fn edited_bytes_never_panic() {
    for (name, bytes, _, edits) in reports() {
        let mut random = Random(0xd1b5_4a32_d192_ed03);
        let mut troubled = 0;
        for edit in 0..edits {
            let mut edited = bytes.clone();
            // Half of the edits hit the start, where there are more headers than data.
            let limit = if edit % 2 == 0 { bytes.len() } else { bytes.len().min(20_000) };
            for _ in 0..=random.below(4) {
                let at = random.below(limit);
                edited[at] = random.below(256) as u8;
            }
            if let Ok(report) = Report::read(&edited[..], &name) {
                ask_everything(&report);
                troubled += usize::from(!report.troubles().is_empty());
            }
        }
        println!("{name}: {troubled} of {edits} edits were noticed");
        assert!(troubled > edits / 20, "{name}: {troubled}");
    }
}

#[test]
fn absurd_sizes_and_counts_end_a_report_and_are_counted() {
    let good = || {
        let mut bytes = start(7);
        let (header, payload) =
            block(&Block { names: vec!["a"], kernels: vec![kernel("good", &[metric(0, count(1))])], ..Block::default() });
        put_sized(&header.0, &mut bytes);
        bytes.extend(payload);
        bytes
    };
    let with_header = |header: encode::Message, payload: &[u8]| {
        let mut bytes = good();
        put_sized(&header.0, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    };
    let with_bytes = |more: &[u8]| [good(), more.to_vec()].concat();
    let huge = u64::from(u32::MAX);
    let cases = [
        ("a header of 4 GiB", with_bytes(&[0xff; 40]), TroubleCode::DamagedBlock),
        ("a header longer than the file", with_bytes(&[200, 0, 0, 0, 1, 2, 3]), TroubleCode::CutReport),
        ("a tail of zeros", with_bytes(&[0; 4_000]), TroubleCode::DamagedBlock),
        ("a header that is no message", with_bytes(&[3, 0, 0, 0, 0xff, 0xff, 0xff]), TroubleCode::DamagedBlock),
        ("a payload of 4 GiB", with_header(message().varint(2, 1).varint(5, huge), &[0; 64]), TroubleCode::CutReport),
        ("four billion results", with_header(message().varint(2, huge).varint(5, 8), &[0; 8]), TroubleCode::DamagedBlock),
        ("four billion sources", with_header(message().varint(1, huge).varint(5, 8), &[0; 8]), TroubleCode::DamagedBlock),
        ("a result of 4 GiB", with_header(message().varint(2, 1).varint(5, 8), &[0xff; 8]), TroubleCode::DamagedBlock),
        ("a result that ends inside its size", with_header(message().varint(2, 1).varint(5, 2), &[0; 2]), TroubleCode::DamagedBlock),
        (
            "a result that is no message",
            with_header(message().varint(2, 1).varint(5, 7), &[3, 0, 0, 0, 0xff, 0xff, 0xff]),
            TroubleCode::DamagedResult,
        ),
        (
            "source data without a reference",
            with_header(message().varint(1, 1).varint(5, 6), &[2, 0, 0, 0, 0x20, 1]),
            TroubleCode::DamagedBlock,
        ),
        ("facts that are no message", with_header(message().bytes(3, &[0xff; 3]), &[]), TroubleCode::DamagedBlock),
    ];
    for (what, bytes, code) in cases {
        let report = Report::read(&bytes[..], what).unwrap();
        let results = ask_everything(&report);
        assert_eq!(results[0].name, "good()", "{what}");
        assert_eq!(results[0].metrics.count("a"), Some(1), "{what}");
        assert!(has(&report, code), "{what}: {:?}", report.troubles());
    }
}

#[test]
fn a_damaged_block_does_not_hide_the_next() {
    let mut bytes = start(7);
    // The first block says that its result is longer than it is.
    put_sized(&message().varint(2, 1).varint(5, 8).0, &mut bytes);
    bytes.extend([0xff, 0, 0, 0, 1, 2, 3, 4]);
    let (header, payload) = block(&Block { kernels: vec![kernel("next", &[])], ..Block::default() });
    put_sized(&header.0, &mut bytes);
    bytes.extend(payload);
    let report = Report::read(&bytes[..], "damaged").unwrap();
    let results = ask_everything(&report);
    assert_eq!(results.iter().map(|result| result.name.as_str()).collect::<Vec<_>>(), ["next()"]);
    assert!(has(&report, TroubleCode::DamagedBlock));
}

#[test]
fn damaged_parts_of_a_result_leave_the_others() {
    let lies = |number: u32| message().bytes(number, &[0x0a, 200, 1, b'x']);
    for number in [10, 11, 13, 15, 17, 19, 21, 25] {
        let mut result = kernel("k", &[metric(0, count(1))]);
        result.0.extend(lies(number).0);
        let report = Report::read(&file(&[Block { names: vec!["a"], kernels: vec![result], ..Block::default() }])[..], "made").unwrap();
        let results = ask_everything(&report);
        assert_eq!((results[0].name.as_str(), results[0].metrics.count("a")), ("k()", Some(1)), "field {number}");
        assert!(has(&report, TroubleCode::DamagedResult), "field {number}: {:?}", report.troubles());
    }
}

#[test]
fn a_flood_of_tiny_parts_is_bounded() {
    // Two bytes a part on the wire, some fifty in memory.
    let repeated = |number: u32, count: usize| message().bytes(number, &[]).0.repeat(count);
    let flood = (1 << 23) + 100;
    let of_instances = encode::Message([message().varint(1, 0).0, repeated(3, flood)].concat());
    let of_metrics = {
        let mut result = kernel("k", &[]);
        result.0.extend(message().bytes(13, &[8, 0]).0.repeat(flood));
        result
    };
    for result in [kernel("k", &[of_instances]), of_metrics] {
        let report = Report::read(&file(&[Block { names: vec!["a"], kernels: vec![result], ..Block::default() }])[..], "flood").unwrap();
        let results = ask_everything(&report);
        assert_eq!(results.len(), 1);
        assert!(has(&report, TroubleCode::DamagedResult));
    }
    for (number, at_most) in [(17, 1 << 20), (19, 1 << 20)] {
        let mut result = kernel("k", &[]);
        result.0.extend(repeated(number, flood));
        let report = Report::read(&file(&[Block { kernels: vec![result], ..Block::default() }])[..], "flood").unwrap();
        let [result] = &ask_everything(&report)[..] else { panic!("not one result") };
        assert!(result.sections.len() + result.rules.len() <= at_most, "field {number}");
        assert!(has(&report, TroubleCode::DamagedResult), "field {number}");
    }
    let devices = encode::Message(message().bytes(6, &[]).0.repeat(5 << 20));
    let blocks = vec![Block { session: Some(devices), ..Block::default() }; 3];
    let report = Report::read(&file(&blocks)[..], "flood").unwrap();
    assert!(report.session().devices.len() <= 4 << 20 && has(&report, TroubleCode::DamagedBlock), "{}", report.session().devices.len());
}

#[test]
fn many_domains_and_ranges_take_no_time() {
    let domains = (0..200_000).map(|id| message().message(1, message().varint(1, id).text(2, "d")).0);
    let started = (0..200_000).map(|id| message().message(3, message().varint(1, id).message(3, message().text(2, "r"))).0);
    let state: Vec<u8> = domains.chain(started).flatten().collect();
    let report =
        Report::read(&file(&[Block { kernels: vec![kernel("k", &[]).bytes(21, &state)], ..Block::default() }])[..], "many").unwrap();
    let before = std::time::Instant::now();
    let [result] = &ask_everything(&report)[..] else { panic!("not one result") };
    assert_eq!(result.nvtx.len(), 200_000);
    // Searching the domains one by one takes minutes.
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

#[test]
fn a_metric_cut_inside_an_instance_is_left_out() {
    // An instance list cut inside its last instance leaves the metric out, and the one behind it in.
    let mut cut = message().varint(1, 0).message(3, instance(count(1), count(2)));
    cut.0.extend([0x1a, 9, 0x0a]);
    let kernels = vec![kernel("k", &[cut, metric(1, count(5))])];
    let report = Report::read(&file(&[Block { names: vec!["a", "b"], kernels, ..Block::default() }])[..], "made").unwrap();
    let [result] = &ask_everything(&report)[..] else { panic!("not one result") };
    assert_eq!((result.metrics.get("a"), result.metrics.count("b")), (None, Some(5)));
    assert!(has(&report, TroubleCode::DamagedResult));
}
