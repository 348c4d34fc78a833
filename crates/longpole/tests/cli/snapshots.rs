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
