//! Two recorded traces compared.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::{CORPUS, print, root, run, trace};
use crate::schema::validate;

fn diff(before: &str, after: &str, more: &[&str]) -> Value {
    let (before, after) = (trace(before), trace(after));
    validate(&print(&[&["diff", &before, &after, "--json"], more].concat()))
}

fn list<'v>(document: &'v Value, key: &str) -> &'v Vec<Value> {
    document[key].as_array().expect("a list")
}

#[test]
fn a_trace_is_the_same_as_itself() {
    for name in CORPUS {
        for more in [&[][..], &["--ignore-ranges"]] {
            let document = diff(name, name, more);
            assert!(list(&document, "settings").is_empty(), "{name}");
            for row in list(&document, "rows") {
                assert_eq!((row["verdict"].as_str(), row["delta_ns"].as_i64()), (Some("SAME"), Some(0)), "{name}: {row}");
            }
            for change in list(&document, "suspects") {
                assert_eq!(change["before"], change["after"], "{name}");
            }
            assert!(list(&document, "only_before").is_empty() && list(&document, "only_after").is_empty(), "{name}");
        }
    }
}

#[test]
fn replaying_a_graph_frees_the_device_from_its_host() {
    let document = diff("qwen3_eager", "qwen3_graph", &[]);
    let pair = &list(&document, "pairs")[0];
    assert_eq!((pair["before"].as_str(), pair["after"].as_str()), (Some("decode_step"), Some("replay_step")));
    assert_eq!((pair["matched_by"].as_str(), pair["verdict"].as_str()), (Some("layers"), Some("FASTER")));
    assert!(pair["host_wait_fraction_before"].as_f64().expect("a share") > 0.5);
    assert!(pair["host_wait_fraction_after"].as_f64().expect("a share") < 0.01);
    let suspects: BTreeMap<&str, &Value> =
        list(&document, "suspects").iter().map(|change| (change["code"].as_str().expect("a code"), change)).collect();
    assert!(suspects["host_bound"]["before"].is_object() && suspects["host_bound"]["after"].is_null());
    let presence = |label: &str| {
        list(&document, "rows")
            .iter()
            .find(|row| row["kind"] == "kernel" && row["label"] == label)
            .map(|row| row["presence"].as_str().expect("a word").to_owned())
    };
    assert_eq!(presence("CatArrayBatchedCopy_vectorized<2B>").as_deref(), Some("gone"));
    assert_eq!(presence("elementwise<direct_copy<bf16>>").as_deref(), Some("new"));
    assert_eq!(list(&document, "only_before").iter().map(|name| name.as_str().expect("a name")).collect::<Vec<_>>(), ["prefill"]);
    // The graph's kernels borrow the names that the eager run knows.
    let roles: Vec<&str> =
        list(&document, "rows").iter().filter(|row| row["kind"] == "role").filter_map(|row| row["key"].as_str()).collect();
    assert!(["q_proj", "o_proj", "down_proj", "attention"].iter().all(|role| roles.contains(role)), "{roles:?}");
}

#[test]
fn every_kind_of_row_adds_up_to_the_busy_time_of_a_step() {
    // A group of one step has no medians in between: the sums are exact.
    let document = diff("qwen3_eager", "qwen3_item", &[]);
    let number = list(&document, "pairs").iter().position(|pair| pair["before"] == "prefill").expect("prefill is paired");
    let rows: Vec<&Value> = list(&document, "rows").iter().filter(|row| row["pair"] == number).collect();
    let of = |kind: &str, key: &str| -> i64 { rows.iter().filter(|row| row["kind"] == kind).filter_map(|row| row[key].as_i64()).sum() };
    for key in ["before_ns", "after_ns"] {
        let busy = rows.iter().find(|row| row["kind"] == "step" && row["key"] == "busy").expect("busy")[key].as_i64().expect("a time");
        for kind in ["kernel", "family", "operator"] {
            assert_eq!(of(kind, key), busy, "{kind} {key}");
        }
    }
    // One step on each side decides nothing.
    assert!(rows.iter().all(|row| matches!(row["verdict"].as_str(), None | Some("AMBIGUOUS" | "SAME"))));
}

#[test]
fn one_part_of_the_model_has_one_name_in_both() {
    // Shapes were recorded in one of the two alone, so one of them says `rmsnorm #2` for `q_norm`.
    let document = diff("qwen3_eager", "qwen3_item", &[]);
    let roles: Vec<&Value> = list(&document, "rows").iter().filter(|row| row["kind"] == "role").collect();
    let q_norm = roles.iter().find(|row| row["key"] == "q_norm" && row["pair"] == 0).expect("q_norm");
    assert_eq!((q_norm["presence"].as_str(), q_norm["verdict"].as_str()), (Some("both"), Some("SAME")), "{q_norm}");
    assert!(roles.iter().filter(|row| row["pair"] == 0).all(|row| row["presence"] == "both"), "{roles:?}");
}

#[test]
fn a_gate_fails_when_a_step_is_slower() {
    let (eager, graph) = (trace("qwen3_eager"), trace("qwen3_graph"));
    let slower = run(&["diff", &graph, &eager, "--gate", "--quiet"]);
    assert_eq!(slower.code, Some(1));
    assert!(slower.stderr.contains("slower: decode_step"), "{}", slower.stderr);
    assert!(!slower.stdout.is_empty(), "the report is printed all the same");
    assert_eq!(run(&["diff", &eager, &graph, "--gate", "--quiet"]).code, Some(0));
    let nothing = run(&["diff", &eager, &trace("cpuonly"), "--gate", "--quiet"]);
    assert_eq!((nothing.code, nothing.stderr.contains("no steps")), (Some(1), true));
}

#[test]
fn what_else_differs_is_said_first() {
    let text = print(&["diff", &trace("qwen3_eager"), &trace("nccl_rank0")]);
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is missing in {text}"));
    assert!(place("Not the same besides times") < place("Suspects"));
}

#[test]
fn reports_of_nsight_compute_go_to_their_own_comparison() {
    let report = |name: &str| format!("{}/../../corpus/ncu/{name}", env!("CARGO_MANIFEST_DIR"));
    let (before, after) = (report("gemv_before.ncu-repz"), report("gemv_after.ncu-repz"));
    let own = print(&["ncu", &after, "--compare", &before]);
    assert_eq!(print(&["diff", &before, &after]), own);
}

#[test]
fn rows_are_cut_filtered_and_written_as_csv() {
    let (eager, item) = (trace("qwen3_eager"), trace("qwen3_item"));
    let text = print(&["diff", &eager, &item, "--limit", "2"]);
    assert!(text.contains("more; --limit 0 shows all"), "{text}");
    let csv = print(&["diff", &eager, &item, "--csv", "--filter", "^(gemm/gemv|attention)$"]);
    let kinds: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(kinds.contains(&"family") && kinds.contains(&"step") && !kinds.contains(&"kernel"), "{csv}");
    assert_eq!(run(&["diff", &eager]).code, Some(2), "two traces are needed");
}

#[test]
fn the_first_page_compares_too() {
    let (eager, graph) = (trace("qwen3_eager"), trace("qwen3_graph"));
    let page = validate(&print(&["triage", &graph, "--compare", &eager, "--json"]));
    assert_eq!(page["compare"], diff("qwen3_eager", "qwen3_graph", &[]));
    let plain: Value = validate(&print(&["triage", &graph, "--json"]));
    assert!(plain.as_object().expect("an object").iter().all(|(key, value)| page[key] == *value));
    let text = print(&["triage", &graph, "--compare", &eager]);
    assert!(text.contains("Next experiment: ") && text.contains("decode_step to replay_step · FASTER"), "{text}");
}

#[test]
fn data_missing_on_either_side_counts_under_strict() {
    let directory = tempfile::tempdir().expect("a folder");
    let half = directory.path().join("half.json");
    let mut whole = Vec::new();
    let file = std::fs::File::open(root().join(trace("qwen3_graph"))).expect("it is there");
    std::io::copy(&mut flate2::read::GzDecoder::new(file), &mut whole).expect("it inflates");
    std::fs::write(&half, &whole[..whole.len() / 2]).expect("it is written");
    let (half, graph) = (half.to_str().expect("UTF-8").to_owned(), trace("qwen3_graph"));
    assert_eq!(run(&["diff", &half, &graph, "--strict", "--quiet"]).code, Some(3));
    assert_eq!(run(&["diff", &graph, &half, "--strict", "--quiet"]).code, Some(3));
    assert_eq!(run(&["diff", &graph, &graph, "--strict", "--quiet"]).code, Some(0));
    let text = print(&["diff", &graph, &half, "--quiet"]);
    assert!(text.contains("device activity") && !text.contains(" gone"), "{text}");
    let both = run(&["diff", "-", "-"]);
    assert_eq!((both.code, both.stderr.contains("only one of BEFORE and AFTER")), (Some(2), true));
}

#[test]
fn a_donor_without_likeness_is_said() {
    let text = run(&["steps", &trace("qwen3_graph"), "--roles-from", &trace("nccl_rank0")]);
    assert!(text.stderr.contains("no role is taken from"), "{}", text.stderr);
}
