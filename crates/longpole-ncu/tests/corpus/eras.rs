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
