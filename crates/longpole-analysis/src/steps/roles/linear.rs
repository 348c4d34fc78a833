//! Linear layers: what a matrix product is for, from the shapes of its weight.
//!
//! A product maps rows of width `k` to rows of width `n`. The *hidden size* H is the width that most products of the layers have on one
//! side. What maps from H is an in-projection, what maps to H an out-projection. The layers are a circle, as their boundary may be
//! anywhere: after the attention comes the output projection, then the feed-forward part, which ends with an out-projection, then the
//! in-projections of the next attention. In the epilogue the product from H to the widest is the head.

use super::evidence::{Op, Place};
use super::shapes::Argument;
use crate::families::Family;
use crate::steps::types::RoleSource;

/// A matrix product of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Product {
    /// Width of the input rows, and of the output rows.
    pub(super) k: u64,
    pub(super) n: u64,
    /// Matrices in the weight, for a weight of three dimensions.
    pub(super) batch: Option<u64>,
}

/// All calls of one operator with a product, in one part.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) product: Product,
    /// First and one past the last of its places in the list of the part.
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) role: Option<(&'static str, RoleSource)>,
}

/// A router has at most this share of the hidden size as experts.
const EXPERTS_OF_HIDDEN: u64 = 4;
const ROUTER: &str = "router";

/// The product of the innermost operator that has one.
pub(super) fn product(place: &Place<'_>) -> Option<Product> {
    if is_backward(&place.ops) {
        return None;
    }
    place.ops.iter().find_map(|op| of_op(op, place.family == Family::Gemm))
}

/// Whether operators belong to a backward pass, where weights cannot be told from activations.
pub(super) fn is_backward(ops: &[Op<'_>]) -> bool {
    ops.iter().any(|op| op.name.contains("Backward") || op.name.starts_with("autograd::") || op.name.ends_with("_backward"))
}

fn of_op(op: &Op<'_>, is_gemm: bool) -> Option<Product> {
    let name = op.name.rsplit("::").next().unwrap_or(op.name);
    let sizes = |at: usize| op.arguments.get(at).and_then(Argument::sizes);
    match name {
        "mm" | "bmm" | "_int_mm" | "_scaled_mm" => product_of(sizes(0)?, sizes(1)?, false),
        "addmm" | "baddbmm" | "_addmm_activation" => product_of(sizes(1)?, sizes(2)?, false),
        "linear" => product_of(sizes(0)?, sizes(1)?, true),
        "mv" => matrix_vector(sizes(0)?, sizes(1)?),
        "addmv" => matrix_vector(sizes(1)?, sizes(2)?),
        // Composites are left to the operators inside; what is not known is taken by its shapes if the kernel is a product.
        "matmul" | "einsum" => None,
        _ => is_gemm.then(|| any_product(&op.arguments)).flatten(),
    }
}

/// `a` times `b`, of which `b` is the weight: `k x n`, or `n x k` where it is used transposed.
fn product_of(a: &[u64], b: &[u64], is_transposed: bool) -> Option<Product> {
    let &k = a.last()?;
    let (batch, rows, columns) = match *b {
        [rows, columns] => (None, rows, columns),
        [batch, rows, columns] => (Some(batch), rows, columns),
        _ => return None,
    };
    let n = match (rows == k, columns == k) {
        (_, true) if is_transposed => rows,
        (true, _) if !is_transposed => columns,
        _ => return None,
    };
    // With a single column it is an outer product, no layer.
    (k > 1 && n > 0 && a.len() >= 2).then_some(Product { k, n, batch })
}

fn matrix_vector(matrix: &[u64], vector: &[u64]) -> Option<Product> {
    match (matrix, vector) {
        (&[n, k], &[width]) if width == k && k > 1 && n > 0 => Some(Product { k, n, batch: None }),
        _ => None,
    }
}

/// The product of an operator that is not known: two neighbouring arguments that fit. One whose result is an argument too comes first.
fn any_product(arguments: &[Argument]) -> Option<Product> {
    let tensors: Vec<&[u64]> = arguments.iter().filter_map(Argument::sizes).filter(|sizes| sizes.len() >= 2).collect();
    let fits = tensors.windows(2).enumerate().filter_map(|(at, pair)| {
        let product = product_of(pair[0], pair[1], false).or_else(|| product_of(pair[0], pair[1], true))?;
        let is_result = |sizes: &&[u64]| {
            sizes.last() == Some(&product.n) && sizes.len() == pair[0].len() && sizes[..sizes.len() - 1] == pair[0][..pair[0].len() - 1]
        };
        let others = tensors.iter().enumerate().filter(|&(other, _)| other != at && other != at + 1);
        Some((product, others.map(|(_, sizes)| sizes).any(is_result)))
    });
    let fits: Vec<(Product, bool)> = fits.collect();
    fits.iter().find(|(_, has_result)| *has_result).or(fits.first()).map(|&(product, _)| product)
}

/// The products of an operator that runs a whole layer of experts, whose weights are `[experts, (2 x) width, hidden]` and
/// `[experts, hidden, width]`.
pub(super) fn experts(place: &Place<'_>) -> Option<[Product; 2]> {
    if is_backward(&place.ops) {
        return None;
    }
    place.ops.iter().find_map(|op| {
        let mut stacks = op.arguments.iter().filter_map(Argument::sizes).filter(|sizes| sizes.len() == 3);
        let (&[experts, wide, hidden], &[second, back, width]) = (stacks.next()?, stacks.next()?) else { return None };
        let fits = experts == second && experts > 1 && hidden == back && width > 0 && (wide == width || Some(wide) == width.checked_mul(2));
        let batch = Some(experts);
        fits.then_some([Product { k: hidden, n: wide, batch }, Product { k: width, n: hidden, batch }])
    })
}

/// The width that most products have on one side, every layer counted; of equals the one the head begins with, then the least.
pub(super) fn hidden(layers: &[(u32, &[Call])], head: &[Call]) -> Option<u64> {
    let mut counts: hashbrown::HashMap<u64, u64, foldhash::fast::FixedState> = hashbrown::HashMap::default();
    for (count, calls) in layers {
        for Product { k, n, .. } in calls.iter().map(|call| call.product) {
            *counts.entry(k).or_default() += u64::from(*count);
            if n != k {
                *counts.entry(n).or_default() += u64::from(*count);
            }
        }
    }
    let begins_head = |width: u64| head.iter().any(|call| call.product.k == width);
    counts.into_iter().max_by_key(|&(width, count)| (count, begins_head(width), std::cmp::Reverse(width))).map(|(width, _)| width)
}

/// Names the products of one kind of layer, given where its attention kernels begin.
pub(super) fn name_layer(calls: &mut [Call], attention: &[usize], hidden: u64) {
    if calls.is_empty() {
        return;
    }
    let mut cuts: Vec<usize> = attention.iter().map(|&place| calls.partition_point(|call| call.first < place) % calls.len()).collect();
    cuts.sort_unstable();
    cuts.dedup();
    if cuts.is_empty() {
        let all: Vec<usize> = (0..calls.len()).collect();
        return without_attention(calls, &all, hidden);
    }
    for (number, &from) in cuts.iter().enumerate() {
        let to = cuts.get(number + 1).copied().unwrap_or(cuts[0] + calls.len());
        let segment: Vec<usize> = (from..to).map(|at| at % calls.len()).collect();
        after_attention(calls, &segment, hidden);
    }
}

/// From one attention to the next: output projection, feed-forward, in-projections of the next attention.
fn after_attention(calls: &mut [Call], segment: &[usize], hidden: u64) {
    let product = |calls: &[Call], at: usize| calls[at].product;
    let Some((&output, rest)) = segment.split_first() else { return };
    if product(calls, output).n != hidden || product(calls, output).batch.is_some() {
        return without_attention(calls, segment, hidden);
    }
    let width = product(calls, output).k;
    calls[output].role = Some(("o_proj", RoleSource::Operator));
    let is_down = |&at: &usize| product(calls, at).n == hidden && product(calls, at).k != hidden;
    let end = rest.iter().rposition(is_down).map_or(0, |down| down + 1);
    let (feed_forward, after) = rest.split_at(end);
    name_feed_forward(calls, feed_forward, hidden);
    // The gate of a shared expert maps to a single number.
    let mut inputs: Vec<usize> = after.iter().copied().filter(|&at| product(calls, at).n > 1).collect();
    if inputs.len() < after.len() && feed_forward.iter().any(|&at| calls[at].role.is_some_and(|(role, _)| role == ROUTER)) {
        let single = after.iter().filter(|at| !inputs.contains(at));
        single.for_each(|&at| calls[at].role = Some(("shared_expert_gate", RoleSource::Operator)));
    }
    // A router whose experts are no products that could be recognised.
    let n = |at: usize| inputs.get(at).map_or(0, |&at| product(calls, at).n);
    let begins_with_router = n(0) <= hidden / EXPERTS_OF_HIDDEN && (inputs.len() == 2 && n(1) > width || inputs.len() == 4);
    if feed_forward.is_empty() && begins_with_router {
        calls[inputs.remove(0)].role = Some((ROUTER, RoleSource::Inferred));
    }
    name_inputs(calls, &inputs, width, hidden);
}

/// In-projections of an attention whose output projection takes rows of `width`.
fn name_inputs(calls: &mut [Call], inputs: &[usize], width: u64, hidden: u64) {
    let n: Vec<u64> = inputs.iter().map(|&at| calls[at].product.n).collect();
    if inputs.iter().any(|&at| calls[at].product.k != hidden || calls[at].product.batch.is_some()) {
        return;
    }
    let mut set = |at: usize, role, source| calls[inputs[at]].role = Some((role, source));
    match n[..] {
        [all] if all > width => set(0, "qkv_proj", RoleSource::Operator),
        [query, both] => {
            let source = if query == width && both != width { RoleSource::Operator } else { RoleSource::Inferred };
            set(0, "q_proj", source);
            set(1, "kv_proj", source);
        }
        [a, b, c] => {
            // The query is the one that differs; key and value have one shape, and the key comes first.
            let query = match (a == b, a == c) {
                (true, false) => 2,
                (false, true) => 1,
                _ => 0,
            };
            let source = if b == c && a != b || query > 0 { RoleSource::Operator } else { RoleSource::Inferred };
            set(query, "q_proj", source);
            for (at, role) in (0..3).filter(|&at| at != query).zip(["k_proj", "v_proj"]) {
                set(at, role, RoleSource::Inferred);
            }
        }
        _ => {}
    }
}

/// Products of a feed-forward part, the last of which maps back to the hidden size.
fn name_feed_forward(calls: &mut [Call], part: &[usize], hidden: u64) {
    let product: Vec<Product> = part.iter().map(|&at| calls[at].product).collect();
    let widths: Vec<u64> = product.iter().filter(|product| product.n == hidden).map(|product| product.k).collect();
    let is_router = |at: usize| {
        let Product { k, n, batch } = product[at];
        let makes_width = widths.iter().any(|&width| n == width || n == width.saturating_mul(2));
        batch.is_none() && k == hidden && n > 1 && n <= hidden / EXPERTS_OF_HIDDEN && !makes_width
    };
    let router = (0..part.len()).find(|&at| is_router(at));
    let stacked = product.iter().any(|product| product.batch.is_some_and(|batch| batch > 1));
    if let Some(router) = router {
        calls[part[router]].role = Some((ROUTER, RoleSource::Operator));
    }
    let mut begin = 0;
    for end in 0..part.len() {
        if Some(end) == router {
            if begin == end {
                begin = end + 1;
            }
            continue;
        }
        if product[end].n != hidden || product[end].k == hidden {
            continue;
        }
        let inputs: Vec<usize> = (begin..end).filter(|&at| Some(at) != router && product[at].n > 1).collect();
        begin = end + 1;
        let is_stack = product[end].batch.is_some_and(|batch| batch > 1);
        let kind = match (router.is_some(), stacked, is_stack) {
            (_, true, true) | (true, false, false) => Experts::Routed,
            (_, true, false) => Experts::Shared,
            _ => Experts::None,
        };
        let width = product[end].k;
        let n: Vec<u64> = inputs.iter().map(|&at| product[at].n).collect();
        if inputs.iter().any(|&at| product[at].k != hidden) {
            continue;
        }
        // Which of several products beside a router are experts is not in their shapes.
        let sure = if kind == Experts::Routed && !stacked { RoleSource::Inferred } else { RoleSource::Operator };
        let mut set = |at: usize, role: [&'static str; 3], source| calls[part[at]].role = Some((role[kind as usize], source));
        match n[..] {
            [a, b] if a == width && b == width => {
                set(inputs[0], GATE, RoleSource::Inferred);
                set(inputs[1], UP, RoleSource::Inferred);
            }
            [both] if Some(both) == width.checked_mul(2) => set(inputs[0], GATE_UP, sure),
            [up] if up == width => set(inputs[0], UP, sure),
            _ => continue,
        }
        set(end, DOWN, sure);
    }
}

/// Whether a feed-forward part is one of experts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Experts {
    None,
    Routed,
    Shared,
}

/// Roles by [`Experts`].
const GATE: [&str; 3] = ["gate_proj", "experts.gate_proj", "shared_expert.gate_proj"];
const UP: [&str; 3] = ["up_proj", "experts.up_proj", "shared_expert.up_proj"];
const GATE_UP: [&str; 3] = ["gate_up_proj", "experts.gate_up_proj", "shared_expert.gate_up_proj"];
const DOWN: [&str; 3] = ["down_proj", "experts.down_proj", "shared_expert.down_proj"];

/// Products of layers in which no attention was seen: only what shapes alone tell.
fn without_attention(calls: &mut [Call], order: &[usize], hidden: u64) {
    let ends: Vec<usize> = (0..order.len())
        .filter(|&at| {
            let Product { k, n, .. } = calls[order[at]].product;
            n == hidden && k != hidden
        })
        .collect();
    for (number, &end) in ends.iter().enumerate() {
        let before = if number > 0 { ends[number - 1] } else { ends[ends.len() - 1] };
        let count = (end + order.len() - before - 1) % order.len();
        let inputs: Vec<usize> = (0..count).map(|offset| order[(before + 1 + offset) % order.len()]).collect();
        let width = calls[order[end]].product.k;
        let n: Vec<u64> = inputs.iter().map(|&at| calls[at].product.n).collect();
        if inputs.iter().any(|&at| calls[at].product.k != hidden) {
            continue;
        }
        match n[..] {
            [gate, up] if gate == width && up == width => {
                let all = [inputs[0], inputs[1], order[end]];
                for (at, role) in all.into_iter().zip([GATE[0], UP[0], DOWN[0]]) {
                    let source = if role == DOWN[0] { RoleSource::Operator } else { RoleSource::Inferred };
                    calls[at].role = Some((role, source));
                }
            }
            [query, key, value] if query == width && key == value && key != query => {
                name_inputs(calls, &inputs, width, hidden);
                calls[order[end]].role = Some(("o_proj", RoleSource::Operator));
            }
            _ => {}
        }
    }
}

/// Names the head: the widest product from the hidden size in the epilogue, if it is wider than that.
pub(super) fn name_head(calls: &mut [Call], hidden: u64) {
    let from_hidden = calls.iter_mut().filter(|call| call.product.k == hidden && call.product.batch.is_none() && call.product.n > hidden);
    if let Some(head) = from_hidden.max_by_key(|call| call.product.n) {
        head.role = Some(("lm_head", RoleSource::Operator));
    }
}
