//! What is written where, and what is refused.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::{export, json, sum};
use crate::harness::{command, print, root, run, run_with, trace};
use crate::redaction::{TOKEN, USER, planted};

pub(super) fn csv(text: &str) -> Vec<Vec<String>> {
    // Cells hold quotes and commas, but no line breaks: those are written out.
    let cells = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    text.lines().map(cells).collect()
}

fn column(rows: &[Vec<String>], name: &str) -> Vec<String> {
    let at = rows[0].iter().position(|column| column == name).unwrap_or_else(|| panic!("a column {name}: {:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].clone()).collect()
}

#[test]
fn a_folder_of_tables_has_the_rows_and_the_answers() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("tables");
    let path = trace("qwen3_eager");
    let made = export(&path, &folder, &["--to", "csv", "--step", "3"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("15 tables, "), "{}", made.stderr);
    let table = |name: &str| csv(&fs::read_to_string(folder.join(format!("{name}.csv"))).unwrap());
    for name in ["ops", "families", "memory"] {
        assert_eq!(fs::read_to_string(folder.join(format!("{name}.csv"))).unwrap(), print(&[name, &path, "--step", "3", "--csv", "-q"]));
    }
    let (activities, calls, ops) = (table("activities"), table("calls"), table("host_ops"));
    let kernels = json(&["kernels", &path, "--step", "3"]);
    let time: i64 = column(&activities, "dur_ns").iter().map(|cell| cell.parse::<i64>().unwrap()).sum();
    assert_eq!(time, sum(&kernels["kernels"], "cuda_ns"));
    // Rows join: the call of every activity is in the table of calls, and its operator in that of operators.
    for (link, rows) in [("call", &calls), ("op", &ops)] {
        let known = column(rows, "row");
        let linked: Vec<_> = column(&activities, link).into_iter().filter(|cell| !cell.is_empty()).collect();
        assert!(linked.len() > 100 && linked.iter().all(|row| known.contains(row)), "{link}");
    }
    let one = print(&["export", &path, "--table", "calls", "--step", "3", "-q"]);
    assert_eq!(csv(&one), calls);
}

/// Names and bytes of all files of a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

#[cfg(unix)]
#[test]
fn tables_of_two_runs_never_stand_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("tables");
    let made = export(&trace("bad"), &folder, &["--to", "csv"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let before = contents(&folder);
    assert_eq!(before.len(), 15);
    // Operators fit in files of 16 KiB, the rows of this trace do not; the signal that would end the program is ignored, so that it sees an
    // error of writing, as of a full disk.
    let program = env!("CARGO_BIN_EXE_longpole");
    let fails = |folder: &Path| {
        let script =
            format!("trap '' XFSZ; ulimit -f 16; exec '{program}' export {} --to csv -o '{}'", trace("qwen3_eager"), folder.display());
        std::process::Command::new("/bin/sh").args(["-c", &script]).current_dir(root()).output().unwrap()
    };
    let failed = fails(&folder);
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(failed.status.code() == Some(2) && said.contains("cannot write the output") && said.contains("tables: "), "{said}");
    assert!(contents(&folder) == before, "the tables of the first run are whole");
    let new = directory.path().join("new");
    assert_eq!((fails(&new).status.code(), new.exists()), (Some(2), false));
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_the_old_tables() {
    use std::os::unix::process::ExitStatusExt as _;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("tables");
    assert_eq!(export(&trace("bad"), &folder, &["--to", "csv"]).code, Some(0));
    let before = contents(&folder);
    // On a busy machine the signal may come too late.
    let was_ended = (0..20).any(|_| {
        let names = || fs::read_dir(&folder).unwrap().count();
        let args = ["export", &trace("qwen3_eager"), "--to", "csv", "-o", folder.to_str().unwrap()];
        let mut child = command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
        while names() == before.len() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        // The hidden folder is there some moments before it is guarded.
        std::thread::sleep(std::time::Duration::from_millis(10));
        let kill = format!("kill -TERM {}", child.id());
        assert!(std::process::Command::new("/bin/sh").args(["-c", &kill]).status().unwrap().success());
        let status = child.wait().unwrap();
        if status.success() {
            // The tables of this run are there, all of them.
            assert_eq!(names(), before.len());
            assert_eq!(export(&trace("bad"), &folder, &["--to", "csv"]).code, Some(0));
            return false;
        }
        assert_eq!(status.signal(), Some(15), "it ends as it would without a guard");
        assert!(contents(&folder) == before);
        true
    });
    assert!(was_ended);
}

#[test]
fn a_name_that_ends_in_gz_is_compressed() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.pftrace", "a.speedscope.json", "a.folded", "a.chrome.json"] {
        let (plain, packed) = (directory.path().join(name), directory.path().join(format!("{name}.gz")));
        let path = trace("bad");
        let made = [export(&path, &plain, &[]), export(&path, &packed, &[])];
        assert!(made.iter().all(|made| made.code == Some(0)), "{name}");
        assert!(made[1].stderr.contains(" unpacked; the whole trace, redacted"), "{}", made[1].stderr);
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(fs::File::open(&packed).unwrap()).read_to_end(&mut bytes).unwrap();
        assert!(bytes == fs::read(&plain).unwrap() && !bytes.is_empty(), "{name}");
        assert_eq!(export(&path, &plain, &["--quiet"]).stderr, "", "{name}");
    }
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 8, "nothing is left behind: {left:?}");
}

#[test]
fn threads_do_not_change_a_file() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.pftrace", "a.speedscope.json"] {
        let output = directory.path().join(name);
        let made = ["1", "4"].map(|threads| {
            assert_eq!(export(&trace("qwen3_graph"), &output, &["--threads", threads]).code, Some(0));
            fs::read(&output).unwrap()
        });
        assert!(made[0] == made[1], "{name}");
    }
}

#[test]
fn what_is_private_stays() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in.json");
    fs::write(&input, planted()).unwrap();
    let files = |folder: &Path| {
        let mut bytes = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            fs::File::open(entry.unwrap().path()).unwrap().read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    for (format, to) in ["a.pftrace", "a.speedscope.json", "a.folded", "a.chrome.json", "csv"].into_iter().zip(0..) {
        let folder = directory.path().join(to.to_string());
        fs::create_dir(&folder).unwrap();
        let output = folder.join(format);
        assert_eq!(export(input.to_str().unwrap(), &output, &[]).code, Some(0), "{format}");
        let folder = if format == "csv" { &output } else { &folder };
        let text = files(folder);
        assert!(!text.contains(&TOKEN[3..]) && !text.contains(USER), "{format}");
        assert_eq!(export(input.to_str().unwrap(), &output, &["--no-redact"]).code, Some(0), "{format}");
        assert!(files(folder).contains(TOKEN), "{format}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("in.json");
    fs::copy(root().join("corpus/other/onnx_cuda.json"), &file).unwrap();
    let (file, folder) = (file.to_str().unwrap(), directory.path().to_str().unwrap());
    let before = fs::read(file).unwrap();
    let missing = format!("{folder}/no/such");
    for (args, said) in [
        (&[][..], "say which format: --to perfetto"),
        (&["-o", "x.json"], "`x.json` does not say which format"),
        (&["--to", "perfetto"], "name the file to write with -o"),
        (&["--to", "csv"], "name the folder to write with -o"),
        (&["--to", "chrome", "-o", file], "is the input, which is not overwritten"),
        (&["-o", "ops.csv"], "choose its table with --table"),
        (&["--to", "csv", "-o", file], "is a file, and several files are written"),
        (&["--to", "perfetto", "-o", folder], "is a folder; name the file to write"),
        (&["--to", "csv", "-o", &missing], "there is no folder"),
        (&["--to", "csv", "-o", "-"], "name a folder"),
        (&["--table", "nothing"], "there is no table `nothing`; --table takes ops, kernels"),
        (&["--to", "perfetto", "--table", "ops", "-o", "-"], "--table is for --to csv"),
        (&["--to", "chrome", "--weight", "host", "-o", "-"], "--weight is for"),
        (&["--to", "chrome", "--limit", "3", "-o", "-"], "--limit has no place here"),
    ] {
        let made = run(&[&["export", file], args].concat());
        assert!(made.code == Some(2) && made.stderr.contains(said), "{args:?}: {:?} {}", made.code, made.stderr);
        assert_eq!(made.stdout, "", "{args:?}");
    }
    assert!(fs::read(file).unwrap() == before);
    // A folder with the name of a table.
    let taken = directory.path().join("taken");
    fs::create_dir_all(taken.join("ops.csv")).unwrap();
    let made = run(&["export", file, "--to", "csv", "-o", taken.to_str().unwrap()]);
    assert!(made.code == Some(2) && made.stderr.contains("ops.csv` is no file, and is not replaced"), "{:?} {}", made.code, made.stderr);
    // One of the tables would have the input's name.
    let calls = directory.path().join("calls.csv");
    fs::write(&calls, &before).unwrap();
    let made = run(&["export", calls.to_str().unwrap(), "--to", "csv", "-o", folder]);
    assert!(made.code == Some(2) && made.stderr.contains("is the input and would be written over"), "{:?} {}", made.code, made.stderr);
    assert!(fs::read(calls).unwrap() == before && !directory.path().join("ops.csv").exists());
}

#[test]
fn a_trace_without_what_is_asked_for_is_said_to_have_none() {
    let cpu = trace("cpuonly");
    for weight in ["device", "idle"] {
        let made = run(&["export", &cpu, "--to", "collapsed", "--weight", weight]);
        assert!(made.code == Some(2) && made.stderr.contains("no device activity was recorded"), "{}", made.stderr);
    }
    assert_eq!(run(&["export", &cpu, "--to", "speedscope", "-o", "-"]).code, Some(0));
    for to in ["perfetto", "chrome", "speedscope", "collapsed"] {
        let made = run(&["export", &trace("bad"), "--to", to, "--time", "100s..101s", "-o", "-"]);
        assert!(made.code == Some(2) && made.stderr.contains("nothing"), "{to}: {:?} {}", made.code, made.stderr);
        let made = run_with(&["export", "-", "--to", to, "-o", "-"], br#"{"traceEvents":[]}"#);
        assert!(matches!(made.code, Some(2 | 3)) && !made.stderr.contains("panicked"), "{to}: {:?} {}", made.code, made.stderr);
    }
    let sums = run(&["export", "corpus/other/proton_scopes.hatchet", "--to", "perfetto", "-o", "-"]);
    assert!(sums.code == Some(3) && sums.stderr.contains("holds totals only"), "{:?} {}", sums.code, sums.stderr);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_it() {
    let made = run(&["export", &trace("bad"), "-o", "never.parquet"]);
    assert!(made.code == Some(2) && made.stderr.contains("--features parquet"), "{:?} {}", made.code, made.stderr);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("parquet");
    let made = export(&trace("bad"), &folder, &[]);
    assert!(made.code == Some(0) && made.stderr.contains("9 tables, "), "{:?} {}", made.code, made.stderr);
    for entry in fs::read_dir(&folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}
