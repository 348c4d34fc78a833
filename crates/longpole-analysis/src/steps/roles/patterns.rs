//! Everything that is no linear layer: by the name of an operator, or by a row of small operators that together make one thing.
//!
//! The rows of small operators are those that frameworks write norms and rotary embeddings with. A row is named only where the whole of
//! it is there; shapes, where they were recorded, must agree.

use super::evidence::Place;
use super::linear::is_backward;
use super::shapes::Argument;
use crate::families::Family;
use crate::steps::types::RoleSource;

/// A role that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) role: String,
    pub(super) from: RoleSource,
    /// Places of one call have one number; a role that several calls of a part have is numbered. `None` for names that are whole.
    pub(super) call: Option<u32>,
}

/// Widths that tell what small operators work on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widths {
    pub(super) hidden: Option<u64>,
    /// Of all heads' queries, and of all heads' keys.
    pub(super) query: Option<u64>,
    pub(super) key: Option<u64>,
}

/// The places of one part, and their roles so far.
pub(super) struct PartPlaces<'p, 't> {
    pub(super) places: &'p [Place<'t>],
    pub(super) named: Vec<Option<Named>>,
    /// Layers repeat: what follows the last place is the first.
    pub(super) is_circle: bool,
    labels: Vec<&'t str>,
    calls: u32,
}

/// What a word in an operator's name (with its namespace, in lower case) says. The first that fits counts.
const BY_OPERATOR: &[(&[&str], &str)] = &[
    (&["rotary", "::rope", "_rope"], "rope"),
    (&["reshape_and_cache", "concat_and_cache", "kv_cache", "store_cache"], "kv_cache"),
    (&["fused_add_rms_norm", "fused_add_rmsnorm", "add_rms_norm"], "add_rmsnorm"),
    (&["rms_norm", "rmsnorm"], "rmsnorm"),
    (&["layer_norm", "layernorm"], "layernorm"),
    (&["group_norm"], "groupnorm"),
    (&["batch_norm"], "batchnorm"),
    (&["topk_softmax", "grouped_topk", "fused_topk", "moe_align"], "moe_routing"),
    (&["scaled_dot_product", "attention", "flash_attn", "::mha_", "fmha", "paged_attn", "sdpa"], "attention"),
    (&["fused_experts", "fused_moe", "moe_forward"], "experts"),
    (&["embedding"], "embedding"),
    (&["silu", "gelu", "aten::relu", "swiglu", "hardswish", "aten::mish", "leaky_relu"], "activation"),
    (&["all_reduce", "allreduce"], "all_reduce"),
    (&["reduce_scatter"], "reduce_scatter"),
    (&["all_gather", "allgather"], "all_gather"),
    (&["all_to_all", "alltoall"], "all_to_all"),
];
/// Longer names of operators are not looked at.
const LONGEST_NAME: usize = 256;
/// What chooses the next token, after the layers.
const SAMPLING: &[&str] = &["argmax", "multinomial", "topk", "softmax", "sampling", "aten::sort", "exponential"];

/// The bare name of the innermost operator: `aten::add_` is `add`.
fn label<'t>(place: &Place<'t>) -> &'t str {
    match place.ops.first() {
        Some(op) if !is_backward(&place.ops) => {
            let name = op.name.strip_prefix("aten::").unwrap_or("");
            let name = name.strip_suffix('_').unwrap_or(name);
            if matches!(name, "_to_copy" | "clone" | "contiguous" | "to") { "copy" } else { name }
        }
        _ => "",
    }
}

/// Sizes of the tensors among the arguments of the innermost operator.
fn tensors<'p>(place: &'p Place<'_>) -> Vec<&'p [u64]> {
    place.ops.first().map_or_else(Vec::new, |op| op.arguments.iter().filter_map(Argument::sizes).collect())
}

fn list<'p>(place: &'p Place<'_>) -> Option<&'p [Vec<u64>]> {
    place.ops.first()?.arguments.iter().find_map(|argument| if let Argument::List(tensors) = argument { Some(&tensors[..]) } else { None })
}

fn has_shapes(place: &Place<'_>) -> bool {
    place.ops.first().is_some_and(|op| !op.arguments.is_empty())
}

impl<'p, 't> PartPlaces<'p, 't> {
    pub(super) fn new(places: &'p [Place<'t>], is_circle: bool) -> Self {
        let labels = places.iter().map(label).collect();
        Self { places, named: vec![None; places.len()], is_circle, labels, calls: 0 }
    }

    /// The place that many after another, around the circle.
    fn place(&self, from: usize, offset: usize) -> Option<usize> {
        let (at, count) = (from + offset, self.places.len());
        if at < count { Some(at) } else { Some(at.checked_sub(count)?).filter(|&at| self.is_circle && at < count && offset < count) }
    }

    fn before(&self, at: usize) -> Option<usize> {
        at.checked_sub(1).or_else(|| self.places.len().checked_sub(1).filter(|&last| self.is_circle && last > 0))
    }

    /// The label of a place that has no role yet.
    fn free_label(&self, at: Option<usize>) -> &'t str {
        at.filter(|&at| self.named[at].is_none()).map_or("", |at| self.labels[at])
    }

    pub(super) fn new_call(&mut self) -> u32 {
        self.calls += 1;
        self.calls
    }

    pub(super) fn set(&mut self, at: usize, role: &str, from: RoleSource, call: Option<u32>) {
        self.named[at] = Some(Named { role: role.to_owned(), from, call });
    }

    fn set_all(&mut self, all: &[usize], role: &str, from: RoleSource) {
        let call = self.new_call();
        for &at in all {
            self.set(at, role, from, Some(call));
        }
    }

    /// Where runs of attention kernels begin.
    pub(super) fn attention(&self) -> Vec<usize> {
        let is_attention: Vec<bool> = (self.places.iter().zip(&self.named))
            .map(|(place, named)| {
                named.as_ref().is_some_and(|named| named.role == "attention")
                    || place.family == Family::Attention
                    || operator_role(place, false).is_some_and(|(_, role)| role == "attention")
            })
            .collect();
        (0..is_attention.len()).filter(|&at| is_attention[at] && (at == 0 || !is_attention[at - 1])).collect()
    }

    /// Attention that is written as two batched products around a softmax, with what lies between them.
    pub(super) fn composed_attention(&mut self) {
        const WIDEST: usize = 24;
        let is_product = |label: &str| matches!(label, "bmm" | "baddbmm");
        for softmax in 0..self.places.len() {
            if !matches!(self.labels[softmax], "_softmax" | "softmax" | "_safe_softmax") || self.named[softmax].is_some() {
                continue;
            }
            let mut first = Some(softmax);
            for _ in 0..WIDEST {
                first = first.and_then(|at| self.before(at));
                if is_product(self.free_label(first)) {
                    break;
                }
            }
            let Some(first) = first.filter(|&at| is_product(self.free_label(Some(at)))) else { continue };
            let mut between = vec![first];
            for offset in 1..2 * WIDEST {
                let Some(at) = self.place(first, offset).filter(|&at| self.named[at].is_none()) else { break };
                between.push(at);
                if is_product(self.labels[at]) {
                    if between.contains(&softmax) {
                        self.set_all(&between, "attention", RoleSource::Operator);
                    }
                    break;
                }
            }
        }
    }

    /// Roles by operator names alone.
    pub(super) fn by_operator(&mut self, is_epilogue: bool) {
        let mut before: Option<(usize, &'static str, &'t str, bool)> = None;
        for at in 0..self.places.len() {
            if self.named[at].is_some() {
                continue;
            }
            let place = &self.places[at];
            let Some((depth, role)) = operator_role(place, is_epilogue) else { continue };
            let op = place.ops[depth].name;
            // Kernels of one operator follow each other; where it is the innermost, its calls are told apart.
            let goes_on = before.is_some_and(|(last, role_before, op_before, was_inner)| {
                last + 1 == at && role == role_before && op == op_before && (place.is_joined || depth > 0 || was_inner)
            });
            let call = if goes_on { self.calls } else { self.new_call() };
            self.set(at, role, RoleSource::Operator, Some(call));
            before = Some((at, role, op, depth > 0));
        }
    }

    /// Root-mean-square norms: square, mean, add, reciprocal root, product, perhaps a cast, perhaps the product with the weight.
    pub(super) fn norms(&mut self, widths: &Widths) {
        let mut of_heads = 0;
        for at in 0..self.places.len() {
            let squares = match self.free_label(Some(at)) {
                "pow" | "square" => true,
                "mul" => matches!(tensors(&self.places[at])[..], [a, b] if a == b),
                _ => false,
            };
            let rest = ["mean", "add", "rsqrt", "mul"];
            let next = |offset: usize| self.place(at, offset);
            if !squares || !(1..=4).all(|offset| self.free_label(next(offset)) == rest[offset - 1]) {
                continue;
            }
            let mut all: Vec<usize> = (0..=4).filter_map(next).collect();
            let sizes: Option<Vec<u64>> = tensors(&self.places[at]).first().map(|sizes| sizes.to_vec());
            let fits = |at: usize| {
                let found = tensors(&self.places[at]);
                found.is_empty() && !has_shapes(&self.places[at]) || sizes.as_deref().is_some_and(|sizes| found.contains(&sizes))
            };
            for wanted in ["copy", "mul"] {
                if let Some(at) = self.place(at, all.len()).filter(|&at| self.free_label(Some(at)) == wanted && fits(at)) {
                    all.push(at);
                }
            }
            if let Some(cast) = self.before(at).filter(|&cast| self.free_label(Some(cast)) == "copy" && fits(cast) && !all.contains(&cast))
            {
                all.push(cast);
            }
            let (role, from) = norm_role(sizes.as_deref(), widths, &mut of_heads);
            self.set_all(&all, role, from);
        }
    }

    /// Rotary embeddings: a half turned (negate and join) between products with cosine and sine, and their tables.
    pub(super) fn rope(&mut self) {
        for at in 0..self.places.len() {
            let label = |offset: usize| self.free_label(self.place(at, offset));
            let mut all = Vec::new();
            if label(0) == "neg" && label(1) == "cat" && label(2) == "mul" && label(3) == "add" {
                let halves = self.place(at, 1).and_then(|at| list(&self.places[at]));
                if halves.is_some_and(|halves| halves.len() != 2 || halves[0] != halves[1]) {
                    continue;
                }
                all.extend(self.before(at).filter(|&before| self.free_label(Some(before)) == "mul"));
                all.extend((0..4).filter_map(|offset| self.place(at, offset)));
            } else if (0..6).map(label).eq(["mul", "mul", "sub", "mul", "mul", "add"]) && matches!(label(6), "cat" | "stack") {
                all.extend((0..7).filter_map(|offset| self.place(at, offset)));
            } else if label(0) == "cos" {
                // Cosine and sine of the same angles, with scaling between.
                let Some(sine) = (1..4).find(|&offset| label(offset) == "sin") else { continue };
                if (1..sine).any(|offset| !matches!(label(offset), "mul" | "copy")) {
                    continue;
                }
                // The angles: positions times frequencies, joined for both halves.
                let joined = self.before(at).filter(|&before| self.free_label(Some(before)) == "cat");
                let angles = joined.and_then(|at| self.before(at)).filter(|&before| self.free_label(Some(before)) == "bmm");
                if let (Some(joined), Some(angles)) = (joined, angles) {
                    all.extend([angles, joined]);
                }
                all.extend((0..=sine).filter_map(|offset| self.place(at, offset)));
                let sizes = tensors(&self.places[at]).first().map(|sizes| sizes.to_vec());
                for offset in sine + 1..sine + 4 {
                    let Some(next) = self.place(at, offset).filter(|&next| matches!(self.free_label(Some(next)), "mul" | "copy")) else {
                        break;
                    };
                    if sizes.as_deref() != tensors(&self.places[next]).first().copied() {
                        break;
                    }
                    all.push(next);
                }
            } else {
                continue;
            }
            self.set_all(&all, "rope", RoleSource::Operator);
        }
    }

    /// Single operators that their shapes explain.
    pub(super) fn by_shape(&mut self, hidden: Option<u64>, inner: &[u64]) {
        for at in 0..self.places.len() {
            let (label, place) = (self.free_label(Some(at)), &self.places[at]);
            let found = tensors(place);
            let pair_of =
                |wanted: &dyn Fn(u64) -> bool| matches!(found[..], [a, b] if a == b && a.last().is_some_and(|&last| wanted(last)));
            let role = match label {
                "add" if pair_of(&|last| Some(last) == hidden) => "residual_add",
                "mul" if pair_of(&|last| inner.contains(&last)) => "gate_mul",
                "cat" if self.is_circle && list(place).is_some_and(is_grown_cache) => "kv_cache",
                _ => continue,
            };
            self.set_all(&[at], role, RoleSource::Operator);
        }
    }
}

/// What an operator's name alone says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpName {
    role: Option<&'static str>,
    samples: bool,
}

impl OpName {
    pub(super) fn of(name: &str) -> Self {
        if !name.contains("::") || name.len() > LONGEST_NAME {
            return Self::default();
        }
        let name = name.to_ascii_lowercase();
        let role = BY_OPERATOR.iter().find(|(words, _)| words.iter().any(|word| name.contains(word))).map(|&(_, role)| role);
        Self { role, samples: SAMPLING.iter().any(|word| name.contains(word)) }
    }
}

/// The role that the innermost telling operator gives, and its depth.
fn operator_role(place: &Place<'_>, is_epilogue: bool) -> Option<(usize, &'static str)> {
    if is_backward(&place.ops) {
        return None;
    }
    // The cache is often written by a kernel of its own inside the operator of the attention.
    let is_cache = place.family == Family::GatherScatter && place.kernel.contains("cache");
    place.ops.iter().enumerate().find_map(|(depth, op)| {
        let role = op.of_name.role.or_else(|| (is_epilogue && op.of_name.samples).then_some("sampling"))?;
        Some((depth, if is_cache && role == "attention" { "kv_cache" } else { role }))
    })
}

/// A norm over the hidden size is a norm; one over single heads is of queries or keys, told by how wide all heads are together.
fn norm_role(sizes: Option<&[u64]>, widths: &Widths, of_heads: &mut u32) -> (&'static str, RoleSource) {
    let (Some(&[.., heads, width]), Some(hidden)) = (sizes, widths.hidden) else { return ("rmsnorm", RoleSource::Operator) };
    let all = heads.checked_mul(width);
    if width >= hidden || all.is_none() {
        return ("rmsnorm", RoleSource::Operator);
    }
    *of_heads += 1;
    match (all == widths.query, all == widths.key) {
        (true, true) if *of_heads <= 2 => ([("q_norm"), ("k_norm")][*of_heads as usize - 1], RoleSource::Inferred),
        (true, false) => ("q_norm", RoleSource::Operator),
        (false, true) => ("k_norm", RoleSource::Operator),
        _ => ("rmsnorm", RoleSource::Operator),
    }
}

/// Two tensors that differ in one dimension only: what is cached, and what is new. A cache that is still empty has no sizes.
fn is_grown_cache(tensors: &[Vec<u64>]) -> bool {
    let [cached, new] = tensors else { return false };
    let differ = cached.iter().zip(new).filter(|(a, b)| a != b).count();
    new.len() >= 3 && (cached == &[0] || cached.len() == new.len() && differ == 1)
}
