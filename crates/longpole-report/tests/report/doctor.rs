//! The doctor's pages of machines written down as text: what each is told, as text, Markdown and JSON.

use insta::assert_snapshot;
use longpole_doctor::{Captured, Diagnosis, examine};
use longpole_report::{doctor_markdown, doctor_text, redact_diagnosis, wire};

use crate::{is_inert, json, json_text, plain};

/// The machines by name; all of them, so that none is forgotten.
fn machines() -> Vec<(String, Diagnosis)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../longpole-doctor/tests/machines");
    let files = std::fs::read_dir(folder).expect("the machines of the doctor").map(|entry| entry.expect("an entry").path());
    let mut machines: Vec<(String, Diagnosis)> = files
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a machine is text");
            let machine = Captured::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut diagnosis = examine(&machine);
            redact_diagnosis(&mut diagnosis);
            (path.file_stem().expect("a name").to_string_lossy().into_owned(), diagnosis)
        })
        .collect();
    machines.sort_by(|a, b| a.0.cmp(&b.0));
    machines
}

#[test]
fn every_machine_is_told_what_to_do() {
    let machines = machines();
    assert!(machines.len() >= 12, "{}", machines.len());
    for (name, diagnosis) in machines {
        let page = doctor_text(&diagnosis, &plain(110));
        assert!(is_inert(&page), "{name}: {page:?}");
        assert!(!page.contains("/home/user"), "{name}: the home folder is ~: {page}");
        assert_snapshot!(format!("doctor_{name}"), page);
        let document = json(&wire::doctor(&diagnosis));
        let oks: Vec<_> = document["checks"].as_array().expect("a list").iter().map(|check| check["ok"].as_bool()).collect();
        assert_eq!(oks, diagnosis.checks.iter().map(|check| check.status.ok()).collect::<Vec<_>>(), "{name}");
        assert_snapshot!(format!("doctor_{name}_json"), json_text(&wire::doctor(&diagnosis)));
        let markdown = doctor_markdown(&diagnosis);
        assert!(is_inert(&markdown) && !markdown.contains("<img") && !markdown.contains("/home/user"), "{name}: {markdown}");
        if ["ubuntu_admin_only", "hostile"].contains(&name.as_str()) {
            assert_snapshot!(format!("doctor_{name}_markdown"), markdown);
        }
    }
}

#[test]
fn commands_are_never_broken() {
    for (name, diagnosis) in machines() {
        let page = doctor_text(&diagnosis, &plain(40));
        let markdown = doctor_markdown(&diagnosis);
        for command in diagnosis.checks.iter().filter_map(|check| check.fix.as_ref()).flat_map(|fix| &fix.commands) {
            let command = longpole_report::printable(command);
            assert!(page.lines().any(|line| line.trim() == command), "{name}: {command}: {page}");
            assert!(markdown.lines().any(|line| line == command), "{name}: {command}: {markdown}");
        }
    }
}

#[test]
fn who_and_where_is_taken_out() {
    let bin = format!("{}/zaphod/bin", "/home");
    let text = format!(
        "@env PATH={bin}\n@env HOME=/home/user\n@program {bin}/ncu\n@run ncu --version\nsee zaphod@heart-of-gold.example, password=hunter2hunter2\n@exit 1\n"
    );
    let mut diagnosis = examine(&Captured::parse(&text).expect("a machine"));
    redact_diagnosis(&mut diagnosis);
    for out in [doctor_text(&diagnosis, &plain(100)), doctor_markdown(&diagnosis), json_text(&wire::doctor(&diagnosis))] {
        assert!(!out.contains("zaphod") && !out.contains("hunter2") && !out.contains("heart-of-gold"), "{out}");
        assert!(out.contains("ncu"), "{out}");
    }
}
