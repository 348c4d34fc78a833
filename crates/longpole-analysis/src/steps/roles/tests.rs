//! Roles of made-up models whose structure is known.

use super::*;
use crate::sample::Sample;
use crate::scope::Scope;
use crate::steps::types::StepNote;
use crate::steps::{StepOptions, step_table};
use longpole_trace::{Ns, PythonFrame, Tid, Trace};

/// An operator: name, shapes (none if empty), its kernels, and the path of its module (none if empty, `*` for the layer's number).
type Item = (&'static str, &'static str, &'static [&'static str], &'static str);

const LAYERS: usize = 12;
const EMBEDDING: &[Item] = &[("aten::embedding", "[[32000, 512], [4]]", &["gather"], ""), ("aten::arange", "[]", &["arange_kernel"], "")];
const HEAD: &[Item] =
    &[("aten::mm", "[[4, 512], [512, 32000]]", &["head_gemm"], ""), ("aten::argmax", "[[4, 32000], [], []]", &["argmax_kernel"], "")];
/// Fused in-projections; the output projection is square.
const FUSED: &[Item] = &[
    ("aten::mm", "[[4, 512], [512, 768]]", &["gemm_a"], ""),
    ("aten::scaled_dot_product_attention", "[[1, 8, 4, 64], [1, 2, 4, 64], [1, 2, 4, 64]]", &["flash_fwd", "flash_combine"], ""),
    ("aten::mm", "[[4, 512], [512, 512]]", &["gemm_b", "splitKreduce_kernel"], ""),
    ("aten::add", "[[4, 512], [4, 512], []]", &["add_kernel"], ""),
    ("aten::rms_norm", "[[4, 512], [], [512], []]", &["rms_norm_kernel"], ""),
    ("aten::mm", "[[4, 512], [512, 2752]]", &["gemm_c"], ""),
    ("aten::silu", "[[4, 1376]]", &["silu_kernel"], ""),
    ("aten::addmm", "[[512], [4, 1376], [1376, 512]]", &["gemm_d"], ""),
    ("aten::add", "[[4, 512], [4, 512], []]", &["add_kernel"], ""),
];

/// Steps within ranges of a name, added to a sample from a time on; gives the time after.
fn add_steps(sample: &mut Sample, name: &str, steps: usize, parts: [&[Item]; 3], mut at: i64) -> i64 {
    let [before, layer, after] = parts;
    let mut items: Vec<(usize, Item)> = before.iter().map(|&item| (0, item)).collect();
    items.extend((0..LAYERS).flat_map(|number| layer.iter().map(move |&item| (number, item))));
    items.extend(after.iter().map(|&item| (0, item)));
    for _ in 0..steps {
        sample.range(name, at, items.len() as i64 * 100 + 50);
        for &(number, (op, shapes, kernels, path)) in &items {
            if !path.is_empty() {
                sample.range(&path.replace('*', &number.to_string()), at + 2, 96);
            }
            if !op.is_empty() {
                sample.op_with_shapes(op, at + 4, 90, (!shapes.is_empty()).then_some((shapes, "[]")));
            }
            for (nth, kernel) in kernels.iter().enumerate() {
                let at = at + 10 + nth as i64 * 20;
                sample.launch("cudaLaunchKernel", at, 4).kernel(kernel, at + 5, 7 + nth as i64);
            }
            at += 100;
        }
        at += 100;
    }
    at
}

fn trace(parts: [&[Item]; 3]) -> Trace {
    let mut sample = Sample::new();
    add_steps(&mut sample, "decode", 3, parts, 0);
    sample.finish()
}

fn table(trace: &Trace) -> StepTable {
    let table = step_table(&TraceIndex::new(trace), &Scope::whole(), &StepOptions::default());
    for group in &table.groups {
        assert_eq!(group.rows.iter().map(|row| row.total_ns).sum::<Ns>(), group.total_busy_ns);
        assert!(group.rows.iter().all(|row| !row.role.is_empty()));
    }
    table
}

type Roles = Vec<(String, RoleSource)>;

/// Roles of the layers' rows, in order, and those of the others.
fn roles(table: &StepTable) -> (Roles, Roles) {
    let group = table.groups.first().unwrap();
    assert!(group.layers.is_some(), "the layers are found");
    let rows = group.rows.iter().map(|row| (row.part, (row.role.clone(), row.role_from)));
    let (layers, others): (Vec<_>, Vec<_>) = rows.partition(|(part, _)| matches!(part, Part::Layer(_)));
    (layers.into_iter().map(|(_, role)| role).collect(), others.into_iter().map(|(_, role)| role).collect())
}

fn names(roles: &[(String, RoleSource)]) -> Vec<&str> {
    roles.iter().map(|(role, _)| role.as_str()).collect()
}

fn source(roles: &[(String, RoleSource)], wanted: &str) -> RoleSource {
    roles.iter().find(|(role, _)| role == wanted).unwrap().1
}

#[test]
fn fused_projections_are_told_by_their_widths() {
    let (layer, others) = roles(&table(&trace([EMBEDDING, FUSED, HEAD])));
    let want = [
        "qkv_proj",
        "attention",
        "attention",
        "o_proj",
        "o_proj",
        "residual_add #1",
        "rmsnorm",
        "gate_up_proj",
        "activation",
        "down_proj",
        "residual_add #2",
    ];
    assert_eq!(names(&layer), want);
    assert!(layer.iter().all(|(_, from)| *from == RoleSource::Operator));
    assert_eq!(names(&others), ["embedding", "arange_kernel", "lm_head", "sampling"]);
    assert_eq!(source(&others, "arange_kernel"), RoleSource::Kernel);
}

#[test]
fn the_boundary_of_layers_may_be_anywhere() {
    let mut rotated: Vec<Item> = FUSED[5..].to_vec();
    rotated.extend_from_slice(&FUSED[..5]);
    let (layer, _) = roles(&table(&trace([EMBEDDING, &rotated, HEAD])));
    let mut found: Vec<&str> = names(&layer).into_iter().filter(|role| role.ends_with("_proj")).collect();
    found.sort_unstable();
    assert_eq!(found, ["down_proj", "gate_up_proj", "o_proj", "o_proj", "qkv_proj"]);
}

#[test]
fn equal_shapes_are_told_apart_by_order_and_marked() {
    let square: Item = ("aten::mm", "[[4, 512], [512, 512]]", &["gemm_b"], "");
    let layer: &[Item] = &[
        ("aten::layer_norm", "[[4, 512], [], [512], []]", &["layer_norm_kernel"], ""),
        square,
        square,
        square,
        FUSED[1],
        square,
        ("aten::native_layer_norm", "[[4, 512], [], [512], []]", &["layer_norm_kernel"], ""),
        ("aten::linear", "[[1, 4, 512], [2048, 512], [2048]]", &["gemm_c"], ""),
        ("aten::gelu", "[[4, 2048]]", &["gelu_kernel"], ""),
        ("aten::linear", "[[1, 4, 2048], [512, 2048], [512]]", &["gemm_d"], ""),
    ];
    let (layer, _) = roles(&table(&trace([EMBEDDING, layer, HEAD])));
    let want = [
        "layernorm #1",
        "q_proj",
        "k_proj",
        "v_proj",
        "attention",
        "attention",
        "o_proj",
        "layernorm #2",
        "up_proj",
        "activation",
        "down_proj",
    ];
    assert_eq!(names(&layer), want);
    for (role, from) in [("q_proj", RoleSource::Inferred), ("v_proj", RoleSource::Inferred), ("o_proj", RoleSource::Operator)] {
        assert_eq!(source(&layer, role), from, "{role}");
    }
}

#[test]
fn experts_have_a_router_and_a_shared_one_a_gate() {
    let mut layer: Vec<Item> = FUSED[..5].to_vec();
    layer.extend_from_slice(&[
        ("aten::mm", "[[4, 512], [512, 64]]", &["gemm_router"], ""),
        ("vllm::topk_softmax", "[[4, 8], [4, 64]]", &["topk_kernel"], ""),
        (
            "vllm::fused_experts",
            "[[4, 512], [64, 256, 512], [64, 512, 128]]",
            &["fused_moe_kernel", "act_and_mul_kernel", "fused_moe_kernel"],
            "",
        ),
        ("aten::mm", "[[4, 512], [512, 192]]", &["gemm_s1"], ""),
        ("aten::mm", "[[4, 96], [96, 512]]", &["gemm_s2"], ""),
        ("aten::mm", "[[4, 512], [512, 1]]", &["gemv_gate"], ""),
    ]);
    let (layer, _) = roles(&table(&trace([EMBEDDING, &layer, HEAD])));
    let want = [
        "router",
        "moe_routing",
        "experts.gate_up_proj",
        "experts",
        "experts.down_proj",
        "shared_expert.gate_up_proj",
        "shared_expert.down_proj",
        "shared_expert_gate",
    ];
    assert_eq!(names(&layer)[7..], want);
    assert_eq!(names(&layer)[0], "qkv_proj");
}

#[test]
fn composed_attention_is_one_thing() {
    let layer: &[Item] = &[
        FUSED[0],
        ("aten::bmm", "[[8, 4, 64], [8, 64, 4]]", &["gemm_scores"], ""),
        ("aten::mul", "[[8, 4, 4], []]", &["mul_kernel"], ""),
        ("aten::_softmax", "[[8, 4, 4], [], []]", &["softmax_kernel"], ""),
        ("aten::bmm", "[[8, 4, 4], [8, 4, 64]]", &["gemm_values"], ""),
        FUSED[2],
        FUSED[5],
        FUSED[7],
    ];
    let (layer, _) = roles(&table(&trace([EMBEDDING, layer, HEAD])));
    let want = ["qkv_proj", "attention", "attention", "attention", "attention", "o_proj", "o_proj", "gate_up_proj", "down_proj"];
    assert_eq!(names(&layer), want);
}

#[test]
fn without_shapes_products_keep_their_kernels_names() {
    let bare: Vec<Item> = FUSED.iter().map(|&(op, _, kernels, path)| (op, "", kernels, path)).collect();
    let (layer, _) = roles(&table(&trace([EMBEDDING, &bare, HEAD])));
    assert_eq!(names(&layer)[..4], ["gemm_a", "attention", "attention", "gemm_b"]);
    assert_eq!(source(&layer, "gemm_a"), RoleSource::Kernel);
    assert_eq!(names(&layer).iter().filter(|role| role.starts_with("add_kernel #")).count(), 2);
}

#[test]
fn without_operators_everything_keeps_its_kernels_name() {
    let bare: Vec<Item> = FUSED.iter().map(|&(_, _, kernels, path)| ("", "", kernels, path)).collect();
    let (layer, others) = roles(&table(&trace([&[("", "", &["gather"], "")], &bare, &[("", "", &["head_gemm"], "")]])));
    assert!(layer.iter().chain(&others).all(|(_, from)| *from == RoleSource::Kernel));
    assert!(names(&layer).contains(&"add_kernel #1") && names(&layer).contains(&"rms_norm_kernel"), "{layer:?}");
}

#[test]
fn backward_operators_name_nothing() {
    let mut layer: Vec<Item> = FUSED.to_vec();
    layer.iter_mut().filter(|item| item.0 == "aten::mm").for_each(|item| item.0 = "autograd::engine::evaluate_function: MmBackward0");
    let (layer, _) = roles(&table(&trace([EMBEDDING, &layer, HEAD])));
    assert_eq!(source(&layer, "gemm_a"), RoleSource::Kernel);
}

#[test]
fn paths_of_modules_come_first() {
    let paths = [
        "model.layers.*.self_attn.qkv_proj",
        "model.layers.*.self_attn.attn",
        "model.layers.*.self_attn.o_proj",
        "",
        "model.layers.*.mlp.norm",
        "model.layers.*.mlp.experts.7.w1",
        "model.layers.*.self_attn.norm",
        "model.layers.*.mlp.experts.7.w2",
        "",
    ];
    let layer: Vec<Item> = FUSED.iter().zip(paths).map(|(&(op, shapes, kernels, _), path)| (op, shapes, kernels, path)).collect();
    let mut embedding = EMBEDDING.to_vec();
    embedding[0].3 = "model.embed_tokens";
    let (layer, others) = roles(&table(&trace([&embedding, &layer, HEAD])));
    let want =
        ["qkv_proj", "attn", "attn", "o_proj", "o_proj", "residual_add #1", "mlp.norm", "w1", "self_attn.norm", "w2", "residual_add #2"];
    assert_eq!(names(&layer), want);
    assert_eq!((source(&layer, "w1"), source(&layer, "residual_add #1")), (RoleSource::Module, RoleSource::Operator));
    assert_eq!(names(&others), ["embed_tokens", "arange_kernel", "lm_head", "sampling"]);
}

#[test]
fn hostile_names_and_shapes_give_no_nonsense() {
    let shapes = [
        "[[4, 18446744073709551615], [18446744073709551615, 18446744073709551615]]",
        "[[0, 0], [0, 0]]",
        "[[4, 512], [512, 0]]",
        "[[[",
        "[[4, 512], [511, 768]]",
        "not a list",
        "[[], [], []]",
        "[[4, 9223372036854775808], [9223372036854775808, 2]]",
    ];
    for text in shapes {
        for op in ["aten::mm", "aten::bmm", "aten::linear", "x::y", "::", "aten::_grouped_mm", "model.layers.1.2.3", "nn.Module: _"] {
            let mut layer: Vec<Item> = FUSED.to_vec();
            layer.iter_mut().filter(|item| item.0 == "aten::mm").for_each(|item| (item.0, item.1) = (op, text));
            let (layer, _) = roles(&table(&trace([EMBEDDING, &layer, HEAD])));
            assert!(!names(&layer).contains(&"qkv_proj"), "{op} {text}");
        }
    }
}

/// A trace with a frame around each of the nine operators of a layer, by the layer's number and the operator's, and one around the layer.
fn with_frames(frame: impl Fn(usize, usize) -> String, layer_frame: impl Fn(usize) -> String) -> Trace {
    let mut sample = Sample::new();
    let process = sample.builder.process(0, 100);
    let thread = sample.builder.thread(process, Tid::Number(1));
    add_steps(&mut sample, "decode", 1, [EMBEDDING, FUSED, HEAD], 0);
    for layer in 0..LAYERS {
        let begin = (EMBEDDING.len() + layer * FUSED.len()) as i64 * 100;
        let mut push = |name: &str, start, dur| {
            let name = sample.builder.trace_mut().strings.intern(name);
            sample.builder.push_frame(PythonFrame { name, thread, start: Ns(start), dur: Ns(dur) });
        };
        push(&layer_frame(layer), begin, FUSED.len() as i64 * 100);
        for op in 0..FUSED.len() {
            push(&frame(layer, op), begin + op as i64 * 100 + 1, 98);
        }
    }
    sample.finish()
}

#[test]
fn classes_of_modules_are_numbered_within_the_layer() {
    let norms = |layer: usize, op: usize| match op {
        4 | 6 => format!("nn.Module: Norm_{}", 2 * layer + op / 2),
        3 => "model.py(7): residual".to_owned(),
        _ => "model.py(9): forward".to_owned(),
    };
    let (layer, _) = roles(&table(&with_frames(norms, |layer| format!("nn.Module: Block_{layer}"))));
    let want = [
        "qkv_proj",
        "attention",
        "attention",
        "o_proj",
        "o_proj",
        "residual_add #1",
        "Norm #1",
        "gate_up_proj",
        "Norm #2",
        "down_proj",
        "residual_add #2",
    ];
    assert_eq!(names(&layer), want);
    assert_eq!(source(&layer, "Norm #2"), RoleSource::Module);
}

#[test]
fn hostile_frames_give_short_roles() {
    let long = |layer: usize, op: usize| format!("nn.Module: {}{layer}{op}", "\u{1d4df}".repeat(1_000 + op));
    let odd = |_: usize, op: usize| ["nn.Module: ", "nn.Module: _", "x.py(: f", "): ", "\u{0}"][op % 5].to_owned();
    for trace in [with_frames(long, |_| "nn.Module: A_0".to_owned()), with_frames(odd, |_| String::new())] {
        let (layer, _) = roles(&table(&trace));
        assert!(layer.iter().all(|(role, _)| role.len() < 200), "{layer:?}");
        assert!(names(&layer).contains(&"qkv_proj"));
    }
}

#[test]
fn a_graph_borrows_from_an_eager_step() {
    let mut sample = Sample::new();
    let at = add_steps(&mut sample, "eager", 3, [EMBEDDING, FUSED, HEAD], 0);
    let kernels = |items: &[Item]| -> Vec<&str> { items.iter().flat_map(|item| item.2.iter().copied()).collect() };
    for step in 0..4 {
        let at = at + step * 100_000;
        sample.range("replay", at, 50_000);
        let mut launch = sample.launch("cudaGraphLaunch", at + 1, 10);
        let mut start = at + 20;
        let mut layer = kernels(FUSED);
        // The replay writes its cache in another way, and has another tile for one product.
        layer.insert(1, "index_put_kernel");
        *layer.iter_mut().find(|kernel| **kernel == "gemm_c").unwrap() = "gemm_other_tile";
        let all = [kernels(EMBEDDING), layer.repeat(LAYERS), kernels(HEAD)].concat();
        for kernel in all {
            launch = launch.kernel(kernel, start, 10);
            start += 12;
        }
    }
    let trace = sample.finish();
    let table = table(&trace);
    assert_eq!(table.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["eager", "replay"]);
    let (eager, replay) = (&table.groups[0], &table.groups[1]);
    let role = |group: &StepGroup, kernel: &str| {
        let row = group.rows.iter().find(|row| trace.strings.get(row.name) == kernel).unwrap();
        (row.role.clone(), row.role_from)
    };
    assert_eq!(role(replay, "gemm_a"), ("qkv_proj".to_owned(), RoleSource::Borrowed));
    assert_eq!(role(replay, "gemm_other_tile"), ("gate_up_proj".to_owned(), RoleSource::Borrowed));
    assert_eq!(role(replay, "head_gemm"), ("lm_head".to_owned(), RoleSource::Borrowed));
    assert_eq!(role(replay, "index_put_kernel").1, RoleSource::Kernel);
    assert_eq!(role(eager, "gemm_a"), ("qkv_proj".to_owned(), RoleSource::Operator));
    let note = replay.notes.iter().find_map(|note| if let StepNote::RolesBorrowed(borrowed) = note { Some(borrowed) } else { None });
    let borrowed = note.unwrap();
    assert_eq!((borrowed.donor.as_str(), &borrowed.layers[..]), ("eager", &[(11, 12)][..]));
    assert_eq!(borrowed.layers_ns, Ns(4 * LAYERS as i64 * 12 * 10));
    assert_eq!(borrowed.layers_matched_ns, Ns(4 * LAYERS as i64 * 11 * 10));
    assert_eq!((borrowed.matched_ns, borrowed.total_ns), (Ns(4 * (LAYERS as i64 * 11 + 4) * 10), Ns(4 * (LAYERS as i64 * 12 + 4) * 10)));
    assert!(borrowed.to_string().starts_with("roles borrowed from `eager`: 11 of 12 kernels a layer matched"), "{borrowed}");
    assert!(!eager.notes.iter().any(|note| matches!(note, StepNote::RolesBorrowed(_))));
}

#[test]
fn a_graph_that_was_seen_being_captured_names_its_own_work() {
    let mut sample = Sample::new();
    let items = [EMBEDDING.to_vec(), FUSED.repeat(LAYERS), HEAD.to_vec()].concat();
    let mut nodes = Vec::new();
    sample.range("capture", 0, items.len() as i64 * 100);
    for (at, (op, shapes, kernels, _)) in (0..).step_by(100).zip(items) {
        sample.op_with_shapes(op, at + 4, 90, Some((shapes, "[]")));
        for (nth, kernel) in kernels.iter().enumerate() {
            // Nothing ran: there is the call, and the node that came of it.
            sample.launch("cudaLaunchKernel", at + 10 + nth as i64 * 20, 4);
            sample.captured(nodes.len() as u64, at + 12 + nth as i64 * 20);
            nodes.push(*kernel);
        }
    }
    for step in 0..4 {
        let at = 1_000_000 + step * 100_000;
        sample.range("replay", at, 50_000);
        let mut launch = sample.launch("cudaGraphLaunch", at + 1, 10);
        for (node, kernel) in nodes.iter().enumerate() {
            launch = launch.node(node as u64, kernel, at + 20 + node as i64 * 12, 10);
        }
    }
    let found = table(&sample.finish());
    assert_eq!(found.groups.len(), 1);
    let (layer, others) = roles(&found);
    let eager = roles(&table(&trace([EMBEDDING, FUSED, HEAD])));
    assert_eq!((layer, others), eager, "as if each replayed kernel had been launched where it was captured");
}
