//! What people and scripts read, for every recorded trace.

use insta::assert_snapshot;

use crate::harness::{CORPUS, print, trace};
use crate::schema::validate;

#[test]
fn the_page_of_every_trace_as_text() {
    for name in CORPUS {
        assert_snapshot!(format!("triage_{name}"), print(&[&trace(name)]));
    }
}

#[test]
fn the_page_of_every_trace_as_markdown() {
    for name in CORPUS {
        assert_snapshot!(format!("triage_{name}_markdown"), print(&[&trace(name), "--markdown", "--limit", "5"]));
    }
}

#[test]
fn the_page_of_every_trace_as_json() {
    for name in CORPUS {
        let json = print(&[&trace(name), "--json", "--limit", "2"]);
        validate(&json);
        assert_snapshot!(format!("triage_{name}_json"), json);
    }
}

#[test]
fn narrow_and_wide_pages() {
    for columns in ["80", "200"] {
        let out = crate::harness::command(&[&trace("qwen3_eager")]).env("COLUMNS", columns).output().expect("the program starts");
        assert_snapshot!(format!("triage_qwen3_eager_{columns}"), String::from_utf8_lossy(&out.stdout));
    }
}

#[test]
fn every_table_in_every_format() {
    for (command, name) in
        [("ops", "qwen3_eager"), ("kernels", "qwen3_compile"), ("families", "nccl_rank0"), ("ranges", "qwen3_item"), ("memory", "bad")]
    {
        assert_snapshot!(format!("{command}_text"), print(&[command, &trace(name)]));
        assert_snapshot!(format!("{command}_markdown"), print(&[command, &trace(name), "--markdown", "--limit", "5"]));
        assert_snapshot!(format!("{command}_csv"), print(&[command, &trace(name), "--csv", "--limit", "5"]));
        let json = print(&[command, &trace(name), "--json", "--limit", "3"]);
        validate(&json);
        assert_snapshot!(format!("{command}_json"), json);
    }
}

#[test]
fn operators_told_apart_scoped_sorted_and_filtered() {
    assert_snapshot!("ops_by_shape", print(&["ops", &trace("qwen3_eager"), "--by", "shape", "--limit", "8"]));
    assert_snapshot!("ops_by_stack", print(&["ops", &trace("qwen3_stack"), "--by", "stack", "2", "--limit", "5"]));
    let decode = ["ops", &trace("qwen3_eager"), "--range", "decode_step", "--sort", "self_cpu_time_total", "--limit", "5"];
    assert_snapshot!("ops_in_decode_step", print(&decode));
    assert_snapshot!("ops_filtered", print(&["ops", &trace("qwen3_eager"), "--filter", "^aten::(mm|addmm)$"]));
    assert_snapshot!("ranges_sorted", print(&["ranges", &trace("qwen3_eager"), "--sort", "gpu_idle"]));
    assert_snapshot!("kernels_full_names", print(&["kernels", &trace("bad"), "--full-names", "--limit", "3"]));
}

#[test]
fn steps_and_idle_of_every_trace() {
    for name in CORPUS {
        for command in ["steps", "idle"] {
            assert_snapshot!(format!("{command}_{name}"), print(&[command, &trace(name), "--quiet"]));
            assert_snapshot!(format!("{command}_{name}_markdown"), print(&[command, &trace(name), "--markdown", "--limit", "5"]));
            let json = print(&[command, &trace(name), "--json", "--limit", "2"]);
            validate(&json);
            assert_snapshot!(format!("{command}_{name}_json"), shortened(&json));
        }
    }
}

/// The document with long lists of numbers cut: what is in them is tested where they are made.
fn shortened(json: &str) -> String {
    fn cut(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => {
                items.truncate(3);
                items.iter_mut().for_each(cut);
            }
            serde_json::Value::Object(members) => {
                // Whether serde_json keeps the order of members depends on which crates are built along with this one.
                let mut sorted: Vec<_> = std::mem::take(members).into_iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                members.extend(sorted);
                members.values_mut().for_each(cut);
            }
            _ => {}
        }
    }
    let mut document = serde_json::from_str(json).expect("valid");
    cut(&mut document);
    serde_json::to_string_pretty(&document).expect("memory does not fail")
}

#[test]
fn steps_borrowed_without_ranges_by_kernel_and_at_other_widths() {
    let (eager, graph) = (trace("qwen3_eager"), trace("qwen3_graph"));
    assert_snapshot!("steps_roles_from", print(&["steps", &graph, "--roles-from", &eager]));
    assert_snapshot!("steps_ignore_ranges", print(&["steps", &eager, "--ignore-ranges", "--limit", "8"]));
    assert_snapshot!(
        "steps_by_kernel",
        print(&["steps", &eager, "--filter", "decode", "--by", "kernel", "--sort", "time", "--limit", "8"])
    );
    assert_snapshot!("steps_csv", print(&["steps", &eager, "--filter", "decode", "--csv", "--limit", "5"]));
    assert_snapshot!("idle_csv", print(&["idle", &eager, "--csv"]));
    for columns in ["80", "100", "140"] {
        for command in ["steps", "idle", "roofline"] {
            let out = crate::harness::command(&[command, &eager]).env("COLUMNS", columns).output().expect("the program starts");
            assert_snapshot!(format!("{command}_qwen3_eager_{columns}"), String::from_utf8_lossy(&out.stdout));
        }
    }
}

#[test]
fn rooflines() {
    for name in ["qwen3_eager", "qwen3_graph", "bad", "cpuonly"] {
        assert_snapshot!(format!("roofline_{name}"), print(&["roofline", &trace(name)]));
    }
    let eager = trace("qwen3_eager");
    assert_snapshot!("roofline_markdown", print(&["roofline", &eager, "--markdown", "--limit", "5"]));
    assert_snapshot!("roofline_csv", print(&["roofline", &eager, "--csv", "--limit", "5"]));
    let json = print(&["roofline", &eager, "--json", "--limit", "3"]);
    validate(&json);
    assert_snapshot!("roofline_json", json);
}

#[test]
fn ranks_of_two_files() {
    let (first, second) = (trace("nccl_rank0"), trace("nccl_rank1"));
    assert_snapshot!("ranks_text", print(&["ranks", &first, &second]));
    assert_snapshot!("ranks_alone", print(&["ranks", &first]));
    assert_snapshot!("ranks_markdown", print(&["ranks", &first, &second, "--markdown", "--limit", "5"]));
    assert_snapshot!("ranks_csv", print(&["ranks", &first, &second, "--csv"]));
    let json = print(&["ranks", &first, &second, "--json", "--limit", "2"]);
    validate(&json);
    assert_snapshot!("ranks_json", shortened(&json));
}
