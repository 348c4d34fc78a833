//! `longpole doctor` on this machine, whatever it is, and on machines written down.

use std::fs;

use crate::harness::{command, print, run};
use crate::schema::validate;

fn machine(name: &str) -> String {
    format!("crates/longpole-doctor/tests/machines/{name}.machine")
}

#[test]
fn this_machine_is_judged_whatever_it_is() {
    let document = validate(&print(&["doctor", "--json"]));
    assert_eq!(document["works"][0]["works"], "yes", "traces and reports can be read anywhere");
    let checks = document["checks"].as_array().expect("a list").len();
    let captured = validate(&print(&["doctor", "--json", "--captured", &machine("no_gpu")]));
    assert_eq!(captured["checks"].as_array().map(Vec::len), Some(checks), "every check answers on every machine");
    let page = print(&["doctor"]);
    assert!(page.contains("What works here") && page.contains("Checks"), "{page}");
    assert!(print(&["doctor", "--markdown"]).contains("| result | check | found |"));
}

#[test]
fn neither_user_nor_host_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path().join("zaphod");
    fs::create_dir_all(home.join("work")).expect("made");
    for format in ["--json", "--markdown", "--color=never"] {
        let output = command(&["doctor", format])
            .current_dir(home.join("work"))
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env("USER", "zaphod")
            .env("HOSTNAME", "gpu-node-17")
            .output()
            .expect("the program starts");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!said.contains("zaphod") && !said.contains("gpu-node-17"), "{said}");
        assert!(said.contains("work"), "{said}");
    }
}

#[test]
fn a_failed_check_is_an_exit_code_when_asked_for() {
    for (name, code) in [("counters_free", 0), ("ubuntu_admin_only", 1)] {
        let strict = run(&["doctor", "--strict", "--captured", &machine(name)]);
        assert_eq!(strict.code, Some(code), "{}", strict.stderr);
        assert!(strict.stdout.contains("What works here"), "it prints before it fails");
        assert_eq!(
            strict.stderr.contains("3 of the checks failed and --strict was given: counters, ncu, nsys"),
            code == 1,
            "{}",
            strict.stderr
        );
        assert_eq!(run(&["doctor", "--captured", &machine(name)]).code, Some(0));
    }
}

#[test]
fn what_is_no_machine_is_refused() {
    for (args, code, part) in [
        (&["doctor", "--captured", "no_such_file"][..], 3, "cannot read `no_such_file`"),
        (&["doctor", "--captured", "Cargo.toml"], 3, "`Cargo.toml` is no captured machine: line 1: text belongs to"),
        (&["doctor", "--captured", "docs"], 3, "cannot read `docs`"),
        (&["doctor", "--csv"], 2, "use --json"),
    ] {
        let refused = run(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""), "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{args:?}: {}", refused.stderr);
    }
}

#[cfg(unix)]
#[test]
fn programs_on_the_path_are_asked_and_cannot_act_on_the_reader() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a temporary directory");
    for (name, script) in [
        (
            "nvidia-smi",
            "case \"$1\" in -q) echo 'Driver Version : 580.95.05'; echo 'CUDA Version : 13.0';; --query-gpu=*) printf '0, 9.0, Disabled, Enabled, P0, 1, 2, 3, 4, 0x0, 1, 2, 3, 4, 0, Odd \\033[31m GPU\\n';; esac",
        ),
        ("ncu", "printf 'Version 2025.3.1.0 \\033[2J\\377'"),
        ("nsys", "yes | head -c 100000000"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = command(&["doctor"]).env("PATH", path).output().expect("the program starts");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{page}");
    assert!(page.contains("Odd \\u{1b}[31m GPU") && !page.contains('\x1b'), "{page}");
    assert!(page.contains("2025.3.1.0") && page.contains("/nsys: y"), "{page}");
}
