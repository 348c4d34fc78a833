//! Reports of other versions of ncu, and those of the repository itself: read without any trouble.

use longpole_ncu::{EntryKind, ProfiledResult, Report};

use crate::files;

/// Everything of every result.
pub(crate) fn all_of(report: &Report) -> Vec<ProfiledResult> {
    report.decode_all(&report.select().values(|_| true).instances(|_| true).rules().sections().nvtx())
}

/// What any kernel of any version has.
fn check(report: &Report, version: &str, kernels: usize) {
    let results = all_of(report);
    assert!(report.troubles().is_empty(), "{}: {:?}", report.path(), report.troubles());
    assert_eq!(results.len(), kernels, "{}", report.path());
    assert!(report.session().ncu_version().is_some_and(|found| found.starts_with(version)), "{:?}", report.session().versions);
    for result in &results {
        assert_eq!(result.kind, EntryKind::Kernel);
        assert!(result.grid.is_some() && result.block.is_some() && result.process.is_some() && !result.name.is_empty(), "{result:?}");
        assert!(result.metrics.number("gpu__time_duration.sum").is_some_and(|duration| duration > 500.0), "{}", result.name);
        assert!(result.rules.iter().any(|rule| !rule.messages.is_empty()), "no rule of {} fired", result.name);
        assert!(result.sections.iter().any(|section| section.id == "SpeedOfLight"), "{}", result.name);
        let source = report.source_of(result).unwrap_or_else(|| panic!("{} has no source data", result.name));
        assert!(source.cubin.is_some_and(|cubin| cubin.starts_with(b"\x7fELF")), "{}", result.name);
    }
}

#[test]
fn the_reports_of_the_repository_are_whole() {
    for (file, format, kernels) in
        [("kern_basic.ncu-rep", "ncu-rep", 6), ("gemv_before.ncu-repz", "ncu-repz", 3), ("gemv_after.ncu-repz", "ncu-repz", 3)]
    {
        let report = Report::open(&files::root().join("corpus/ncu").join(file)).unwrap();
        assert_eq!(report.format(), format);
        check(&report, "2025.3.1", kernels);
    }
}

#[test]
fn facts_about_the_recording_are_those_of_the_session_page() {
    let report = Report::open(&files::root().join("corpus/ncu/gemv_before.ncu-repz")).unwrap();
    let session = report.session();
    assert_eq!(session.created, Some(1_795_964_969));
    assert_eq!((session.os.as_deref(), session.processor.as_deref()), (Some("Linux"), Some("Intel(R) Xeon(R) Processor")));
    assert_eq!((session.ncu_version(), session.version("CUDA Version")), (Some("2025.3.1.0"), Some("13.0")));
    let expected = [("clock-control", "none"), ("set", "full")].map(|(option, value)| (option, value.to_owned()));
    assert_eq!(session.settings, expected);
    let [device] = &session.devices[..] else { panic!("{:?}", session.devices) };
    assert_eq!((device.id, device.name.as_str()), (0, "NVIDIA H200"));
    assert_eq!((device.number("multiprocessor_count"), device.number("total_memory")), (Some(132), Some(150_109_880_320)));
    let [process] = report.processes() else { panic!("{:?}", report.processes()) };
    assert_eq!((process.id, process.name.rsplit('/').next()), (609, Some("kern")));
}

#[test]
fn the_reports_of_the_repository_have_no_texts_but_ours() {
    for file in ["gemv_before.ncu-repz", "gemv_after.ncu-repz"] {
        let report = Report::open(&files::root().join("corpus/ncu").join(file)).unwrap();
        for result in all_of(&report) {
            let files = report.source_of(&result).unwrap().files;
            assert_eq!(files.len(), 3);
            for file in files {
                assert_eq!(file.text.is_some(), file.path.ends_with("kern.cu"), "{}", file.path);
            }
        }
    }
}

#[test]
fn reports_of_older_versions_are_whole() {
    let Some(folder) = files::shared() else { return };
    for (name, version, kernels) in [("speedyscan_profile", "2020.3", 1), ("mojo_profile", "2022.4", 4)] {
        check(&Report::open(&folder.join(format!("{name}.ncu-rep"))).unwrap(), version, kernels);
    }
}
