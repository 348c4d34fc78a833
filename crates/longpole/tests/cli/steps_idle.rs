//! What has to hold of steps, idle time, rooflines and ranks, whatever the numbers are, and what the recorded traces are known to be.

use std::fs;

use serde_json::Value;

use crate::harness::{CORPUS, command, print, root, run, trace};
use crate::schema::validate;

fn json(args: &[&str]) -> Value {
    validate(&print(&[args, &["--json"]].concat()))
}

fn sum(rows: &Value, key: &str) -> i64 {
    rows.as_array().expect("a list").iter().filter_map(|row| row[key].as_i64()).sum()
}

/// Steps, layers, and kernels of a layer, of each group.
fn structure(document: &Value) -> Vec<(i64, i64, i64)> {
    let number = |value: &Value| value.as_i64().expect("a number");
    let groups = document["groups"].as_array().expect("a list").iter();
    groups
        .map(|group| (number(&group["count"]), number(&group["layers"]), group["layer_kinds"][0]["kernels"].as_i64().unwrap_or(0)))
        .collect()
}

#[test]
fn rows_of_steps_add_up_on_every_trace() {
    for name in CORPUS {
        for args in [&["steps", &trace(name)][..], &["steps", &trace(name), "--ignore-ranges"]] {
            let document = json(args);
            for group in document["groups"].as_array().expect("a list") {
                assert_eq!(
                    sum(&group["rows"], "total_ns"),
                    group["total_busy_ns"].as_i64().expect("a number"),
                    "{args:?} {}",
                    group["name"]
                );
                assert_eq!(sum(&group["steps"], "busy_ns"), group["total_busy_ns"].as_i64().expect("a number"), "{args:?}");
                let layers: i64 = sum(&group["layer_kinds"], "count");
                assert_eq!(Some(layers), group["layers"].as_i64(), "{args:?}");
            }
        }
    }
}

#[test]
fn steps_of_the_recorded_runs_are_found_without_markers() {
    let without = |name: &str| structure(&json(&["steps", &trace(name), "--ignore-ranges"]));
    assert_eq!(without("qwen3_eager"), [(1, 28, 57), (4, 28, 58)]);
    assert_eq!(without("qwen3_item"), [(1, 28, 57), (6, 28, 58)]);
    assert!(without("qwen3_graph").contains(&(12, 28, 66)), "{:?}", without("qwen3_graph"));
}

#[test]
fn a_filter_takes_markers_and_the_method_is_named() {
    let decode = json(&["steps", &trace("qwen3_eager"), "--filter", "decode_step"]);
    let groups = decode["groups"].as_array().expect("a list");
    assert_eq!((groups.len(), groups[0]["found_by"].as_str()), (1, Some("marker")));
    let ignored = json(&["steps", &trace("qwen3_eager"), "--ignore-ranges"]);
    assert_eq!(ignored["groups"][0]["found_by"], "kernel_sequence");
    let nothing = print(&["steps", &trace("qwen3_eager"), "--filter", "no such marker"]);
    assert!(nothing.contains("no steps found"), "{nothing}");
}

#[test]
fn rows_are_sorted_and_cut_as_asked() {
    let document = json(&["steps", &trace("qwen3_eager"), "--sort", "time", "--limit", "4"]);
    for group in document["groups"].as_array().expect("a list") {
        let times: Vec<i64> = group["rows"].as_array().expect("a list").iter().filter_map(|row| row["total_ns"].as_i64()).collect();
        assert!(times.len() == 4 && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    }
    assert_eq!(run(&["steps", &trace("bad"), "--sort", "speed"]).code, Some(2));
    assert_eq!(run(&["idle", &trace("bad"), "--sort", "speed"]).code, Some(2));
}

#[test]
fn a_graph_replay_borrows_the_roles_of_an_eager_step() {
    let (eager, graph) = (trace("qwen3_eager"), trace("qwen3_graph"));
    let document = json(&["steps", &graph, "--roles-from", &eager]);
    let groups = document["groups"].as_array().expect("a list");
    let group = groups.iter().find(|group| group["count"] == 12).expect("twelve replays");
    let rows = group["rows"].as_array().expect("a list");
    for role in ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"] {
        assert!(rows.iter().any(|row| row["role"] == role && row["role_from"] == "borrowed"), "{role}");
    }
    assert!(group["notes"].as_array().expect("a list").iter().any(|note| note["code"] == "roles_borrowed"), "{}", group["notes"]);
    let missing = run(&["steps", &graph, "--roles-from", "no such file"]);
    assert_eq!(missing.code, Some(3));
    assert!(missing.stderr.contains("no such file"), "{}", missing.stderr);
}

#[test]
fn causes_add_up_to_idle_time_on_every_trace() {
    for name in CORPUS {
        let document = json(&["idle", &trace(name)]);
        let Some(idle) = document["idle_ns"].as_i64() else {
            assert_eq!(name, "cpuonly");
            continue;
        };
        for part in ["causes", "by_frame", "devices"] {
            assert_eq!(sum(&document[part], "idle_ns"), idle, "{name} {part}");
        }
        for device in document["devices"].as_array().expect("a list") {
            assert_eq!(Some(sum(&device["causes"], "idle_ns")), device["idle_ns"].as_i64(), "{name}");
        }
    }
}

#[test]
fn new_commands_are_the_same_at_any_number_of_threads() {
    for name in ["qwen3_item", "nccl_rank1"] {
        for command in ["steps", "idle", "roofline", "ranks"] {
            let path = trace(name);
            let with = |threads| print(&[command, &path, "--json", "--threads", threads]);
            assert!(with("1") == with("4"), "{name} {command}");
        }
    }
}

#[test]
fn every_line_fits_the_terminal() {
    for columns in ["80", "100", "140"] {
        let width: usize = columns.parse().expect("a number");
        for (name, commands) in [("qwen3_eager", &["steps", "idle", "roofline"][..]), ("nccl_rank0", &["ranks", "idle", "steps"])] {
            for name_of in commands {
                let out = command(&[name_of, &trace(name), "--quiet"]).env("COLUMNS", columns).output().expect("the program starts");
                let text = String::from_utf8(out.stdout).expect("UTF-8");
                // The header holds the path, which is never cut.
                for line in text.lines().filter(|line| !line.starts_with("source")) {
                    assert!(line.chars().count() <= width, "{name_of} at {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn measured_peaks_are_read_and_their_mistakes_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let good = write("good.json", r#"{"memory_bytes_per_s": 4.0e12, "flops_per_s": {"bf16": 7.0e14}}"#);
    let document = json(&["roofline", &trace("qwen3_eager"), "--peaks", &good]);
    assert_eq!(document["peaks"]["memory_bytes_per_s"], 4_000_000_000_000_u64);
    assert_eq!(document["peaks"]["flops_per_s"]["bf16"], 700_000_000_000_000_u64);
    for (name, text, said) in [
        ("no.json", "{", "EOF"),
        ("key.json", r#"{"speed": 1}"#, "unknown key `speed`"),
        ("type.json", r#"{"flops_per_s": {"bf15": 1}}"#, "unknown type `bf15`"),
    ] {
        let failed = run(&["roofline", &trace("bad"), "--peaks", &write(name, text)]);
        assert_eq!(failed.code, Some(3), "{name}");
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
    }
    assert_eq!(run(&["roofline", &trace("bad"), "--peaks", "no such file"]).code, Some(3));
}

#[test]
fn ranks_are_read_from_a_directory_or_as_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["nccl_rank0", "nccl_rank1"] {
        fs::copy(root().join(trace(name)), directory.path().join(format!("{name}.json.gz"))).expect("copied");
    }
    let mut as_directory = json(&["ranks", directory.path().to_str().expect("UTF-8")]);
    let mut as_files = json(&["ranks", &trace("nccl_rank0"), &trace("nccl_rank1")]);
    for document in [&mut as_directory, &mut as_files] {
        document["source"]["path"] = Value::Null;
    }
    assert_eq!(as_directory, as_files);
    assert_eq!(as_files["ranks"].as_array().map(Vec::len), Some(2));
    assert_eq!(as_files["includes_waiting"], false);
    let start = &as_files["start_ups"][0];
    assert!(start["skew_ns"].as_i64().is_some_and(|skew| skew > 500_000_000), "{start}");
    assert_eq!(as_files["stragglers"][0]["rank"], 1);
    assert_eq!(json(&["ranks", &trace("nccl_rank0")])["includes_waiting"], true);
    assert_eq!(run(&["ranks", &trace("nccl_rank0"), "no such file"]).code, Some(3));
}
