//! `nvdisasm` is run where it is installed; here it is played by a script.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::command;

/// Runs the summary of one kernel with a program of that name on the PATH.
fn with_script(script: &str, args: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("nvdisasm");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    run(directory.path(), args)
}

fn run(directory: &Path, args: &[&str]) -> String {
    let args = [&["ncu", "corpus/ncu/gemv_before.ncu-repz", "--id", "0"], args].concat();
    let output = command(&args).env("PATH", directory).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{args:?}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// What the tool prints for the code of one function: here two instructions of many, with its arguments in the second.
const TWO: &str = r#"test -s "$3" || exit 9
echo '        /*0370*/                   IMAD.U32 R16, R12, 0x10000, RZ ;'
echo "        /*02a0*/                   LDG.$1.$2 R12, [R2.64] ;""#;

#[test]
fn its_text_stands_in_place_of_mnemonics() {
    let page = with_script(TWO, &[]);
    let hottest = page.lines().find(|line| line.starts_with("0x0370")).expect("the hottest instruction");
    assert!(hottest.contains("IMAD.U32"), "{hottest}");
    assert!(!page.contains("no nvdisasm"), "{page}");
    // The architecture is the kernel's own, and one function alone is asked for.
    let json = with_script(TWO, &["--json", "--limit", "1"]);
    assert!(json.contains("\"sass\": \"LDG.-b.SM90a R12, [R2.64]\""), "{json}");
}

#[test]
fn its_failure_is_a_note() {
    for (script, part) in [
        ("exit 3", "nvdisasm was not of use: it ended with exit status: 3"),
        ("echo nothing of use", "nvdisasm was not of use: it printed no instructions"),
        ("kill -9 $$", "nvdisasm was not of use: it ended with signal: 9"),
    ] {
        let page = with_script(script, &["--limit", "1"]);
        assert!(page.replace("\n      ", " ").contains(part), "{script}: {page}");
        assert!(page.contains("IMAD "), "mnemonics are decoded without it: {page}");
    }
}

#[test]
fn it_is_not_run_when_it_is_not_wanted() {
    let marker = tempfile::tempdir().expect("a temporary directory");
    let file = marker.path().join("was_run");
    let script = format!("echo run > '{}'; exit 1", file.display());
    for args in [&["--no-nvdisasm"][..], &["--table"], &["--metrics", "dram"], &["--report-only"]] {
        with_script(&script, args);
        assert!(!file.exists(), "{args:?}");
    }
    with_script(&script, &["--source"]);
    assert!(file.exists(), "the script is what would have been run");
}
