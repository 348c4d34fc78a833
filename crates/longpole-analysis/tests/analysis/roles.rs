//! Roles of the places of real steps.

use longpole_analysis::{
    Part, RoleSource, Scope, StepGroup, StepNote, StepOptions, StepTable, TraceIndex, borrow_roles, role_donors, step_table,
};
use longpole_trace::{Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;
use RoleSource::{Borrowed, Inferred, Kernel, Module, Operator};

fn find(trace: &Trace) -> StepTable {
    step_table(&TraceIndex::new(trace), &Scope::whole(), &StepOptions::default())
}

fn read(name: &str) -> Trace {
    slow_reader::read(&corpus().join(format!("{name}.json.gz")))
}

/// The roles of one part in order, each once where several places in a row have it.
fn roles(group: &StepGroup, part: Part) -> Vec<(&str, RoleSource)> {
    let rows = group.rows.iter().filter(|row| row.part == part && row.place.is_some());
    let mut roles: Vec<(&str, RoleSource)> = rows.map(|row| (row.role.as_str(), row.role_from)).collect();
    roles.dedup();
    roles
}

fn check_sums(group: &StepGroup) {
    assert_eq!(group.rows.iter().map(|row| row.total_ns).sum::<Ns>(), group.total_busy_ns, "{}", group.name);
}

#[test]
fn shapes_name_a_whole_decode_step() {
    let trace = read("qwen3_eager");
    let table = find(&trace);
    let decode = &table.groups[1];
    check_sums(decode);
    let want = [
        ("rmsnorm #1", Operator),
        ("q_proj", Operator),
        ("q_norm", Operator),
        ("k_proj", Inferred),
        ("k_norm", Operator),
        ("v_proj", Inferred),
        ("rope #1", Operator),
        ("rope #2", Operator),
        ("kv_cache #1", Operator),
        ("kv_cache #2", Operator),
        ("attention", Operator),
        ("o_proj", Operator),
        ("residual_add #1", Operator),
        ("rmsnorm #2", Operator),
        ("gate_proj", Inferred),
        ("activation", Operator),
        ("up_proj", Inferred),
        ("gate_mul", Operator),
        ("down_proj", Operator),
        ("residual_add #2", Operator),
    ];
    assert_eq!(roles(decode, Part::Layer(0)), want);
    assert_eq!(roles(&table.groups[0], Part::Layer(0)), want, "prefill");
    assert_eq!(roles(decode, Part::Epilogue), [("rmsnorm", Operator), ("lm_head", Operator), ("sampling", Operator)]);
    assert_eq!(roles(decode, Part::Prologue)[0], ("embedding", Operator));
    // Both kernels of the split product are the one layer.
    assert_eq!(decode.rows.iter().filter(|row| row.role == "down_proj").count(), 2);
}

#[test]
fn modules_name_what_their_class_tells() {
    let trace = read("qwen3_stack");
    let table = find(&trace);
    for group in &table.groups {
        check_sums(group);
        let roles = roles(group, Part::Layer(0));
        let modules: Vec<&str> = roles.iter().filter(|(_, from)| *from == Module).map(|&(role, _)| role).collect();
        let norms = ["RMSNorm #1", "Attention.RMSNorm #1", "Attention.RMSNorm #2", "RMSNorm #2", "MLP.SiLUActivation"];
        assert!(norms.iter().all(|norm| modules.contains(norm)), "{modules:?}");
        for (role, from) in [("q_proj", Operator), ("v_proj", Inferred), ("o_proj", Operator), ("down_proj", Operator)] {
            assert!(roles.contains(&(role, from)), "{roles:?}");
        }
        assert_eq!(roles.iter().filter(|(_, from)| *from == Kernel).count(), 0, "{roles:?}");
    }
}

#[test]
fn a_graph_replay_borrows_from_an_eager_run() {
    let eager = read("qwen3_eager");
    let donors = role_donors(&eager, &find(&eager));
    let graph = read("qwen3_graph");
    let mut table = find(&graph);
    let group = &mut table.groups[0];
    let rows_before: Vec<(Ns, u64)> = group.rows.iter().map(|row| (row.total_ns, row.calls)).collect();
    assert!(roles(group, Part::Layer(0)).iter().all(|(_, from)| *from == Kernel));
    let borrowed = borrow_roles(&graph, group, &donors).unwrap();
    assert_eq!(rows_before, group.rows.iter().map(|row| (row.total_ns, row.calls)).collect::<Vec<_>>());
    assert_eq!((borrowed.donor.as_str(), &borrowed.layers[..]), ("decode_step", &[(56, 66)][..]));
    let percent = |part: Ns, whole: Ns| part.get() * 1000 / whole.get();
    assert_eq!(percent(borrowed.layers_matched_ns, borrowed.layers_ns), 780);
    assert_eq!(percent(borrowed.matched_ns, borrowed.total_ns), 784);
    let roles = roles(group, Part::Layer(0));
    for role in ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "attention", "rmsnorm #2"] {
        assert!(roles.contains(&(role, Borrowed)), "{role}");
    }
    // What the replay does in another way (a cache of fixed length, its mask) keeps its kernels' names.
    assert_eq!(roles.iter().filter(|(_, from)| *from == Kernel).count(), 10);
    let products = group.rows.iter().filter(|row| row.kernel.starts_with("nvjet"));
    assert_eq!(products.filter(|row| row.role_from == Borrowed).count(), 8, "seven of a layer and the head");
    assert!(group.notes.contains(&StepNote::RolesBorrowed(borrowed)));
}

#[test]
fn without_shapes_a_run_borrows_the_products_only() {
    let item = read("qwen3_item");
    let mut table = find(&item);
    let decode = &mut table.groups[1];
    let from_kernels = |group: &StepGroup| roles(group, Part::Layer(0)).iter().filter(|(_, from)| *from == Kernel).count();
    assert!(roles(decode, Part::Layer(0)).contains(&("attention", Operator)));
    assert!(!decode.notes.iter().any(|note| matches!(note, StepNote::RolesBorrowed(_))), "its own prefill knows no more");
    assert!(from_kernels(decode) > 7);
    let eager = read("qwen3_eager");
    let borrowed = borrow_roles(&item, decode, &role_donors(&eager, &find(&eager))).unwrap();
    assert_eq!(borrowed.layers, [(58, 58)]);
    assert_eq!(from_kernels(decode), 0);
    let roles = roles(decode, Part::Layer(0));
    assert!(roles.contains(&("k_proj", Borrowed)) && roles.contains(&("attention", Operator)));
    check_sums(decode);
}

#[test]
fn generated_kernels_keep_their_names_between_named_products() {
    let trace = read("qwen3_compile");
    let table = find(&trace);
    let group = table.groups.iter().find(|group| group.layers.is_some()).unwrap();
    check_sums(group);
    let roles: Vec<(&str, RoleSource)> =
        group.rows.iter().filter(|row| matches!(row.part, Part::Layer(_))).map(|row| (row.role.as_str(), row.role_from)).collect();
    for role in ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "attention"] {
        assert!(roles.iter().any(|(found, _)| *found == role), "{role}: {roles:?}");
    }
    assert!(roles.iter().any(|(role, from)| role.starts_with("triton") && *from == Kernel));
    // The projections of the first layer are before the first boundary.
    let before: Vec<&str> = group.rows.iter().filter(|row| row.part == Part::Prologue).map(|row| row.role.as_str()).collect();
    assert!(["q_proj", "k_proj", "v_proj"].iter().all(|role| before.contains(role)), "{before:?}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip must be visible")]
fn classes_and_shapes_name_a_serving_step() {
    let root = std::env::var_os("LONGPOLE_SHARED")
        .map_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), std::path::PathBuf::from);
    let path = root.join("corpus/kineto/public/tl_sglang_prefilldecode.json.gz");
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return;
    }
    let trace = slow_reader::read(&path);
    let table = find(&trace);
    let roles = roles(&table.groups[0], Part::Layer(0));
    for role in ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"] {
        assert!(roles.contains(&(role, Operator)), "{roles:?}");
    }
    for role in ["Attention.RMSNorm #1", "Attention.RotaryEmbedding", "RMSNorm #2"] {
        assert!(roles.contains(&(role, Module)), "{roles:?}");
    }
    assert!(self::roles(&table.groups[0], Part::Epilogue).contains(&("lm_head", Operator)));
}
