//! Scaled dot-product attention.
//!
//! For a batch of B, H query heads, Hkv key/value heads, Lq queries, Lk keys, E features of queries and keys and Ev of values: two
//! products, `Q K^T` and `P V`, over the pairs of query and key that see each other: `2 B H pairs (E + Ev)` FLOPs. All pairs are `Lq Lk`.
//! Causal with Lq = Lk = L: `L (L + 1) / 2`, about half. With Lq < Lk the first query sees either one key (top left) or all but the last
//! Lq - 1 (bottom right); kernels differ, so the former is the least and the latter the most. Bytes: Q, K, V and a mask read once, the
//! output written once: `K` and `V` at their own number of heads, however many query heads share them. The scores never leave the chip.
//! Softmax is left out: it runs on the other units, beside the products.

use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

/// Where the parts of a call stand in the signature.
#[derive(Clone, Copy)]
struct Signature {
    query: usize,
    mask: Option<usize>,
    causal: usize,
    /// Cumulated lengths of sequences of different lengths, packed one after the other: then the sizes do not say the lengths.
    lengths: Option<usize>,
    /// Heads stand before positions (`[B, H, L, E]`), else after them.
    heads_first: bool,
    /// Products of matrices over the pairs: 2 forward, 5 backward (the scores again, and four gradients).
    products: u128,
}

const fn forward(mask: Option<usize>, causal: usize, lengths: Option<usize>, heads_first: bool) -> Signature {
    Signature { query: 0, mask, causal, lengths, heads_first, products: 2 }
}

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Attention, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["scaled_dot_product_attention", "_scaled_dot_product_attention_math"], |inputs| {
        attention(inputs, forward(Some(3), 5, None, true))
    }),
    entry(&["_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu"], |inputs| {
        attention(inputs, forward(None, 4, None, true))
    }),
    entry(&["_scaled_dot_product_efficient_attention"], |inputs| attention(inputs, forward(Some(3), 6, None, true))),
    entry(&["_scaled_dot_product_cudnn_attention"], |inputs| attention(inputs, forward(Some(3), 6, None, true))),
    entry(&["_scaled_dot_product_fused_attention_overrideable"], |inputs| attention(inputs, forward(Some(3), 5, None, true))),
    entry(&["_cudnn_attention_forward"], |inputs| attention(inputs, forward(Some(3), 10, Some(4), true))),
    entry(&["_flash_attention_forward"], |inputs| {
        if matches!(inputs.optional_tensor(3), Ok(None)) { dense(inputs, 8) } else { super::packed::packed(inputs, super::packed::TORCH) }
    }),
    entry(&["_efficient_attention_forward"], |inputs| attention(inputs, forward(Some(3), 9, Some(4), false))),
    entry(&["flash_attn::_flash_attn_forward", "flashattn::_flash_attn_forward", "aiter::fmha_v3_fwd"], |inputs| dense(inputs, 5)),
    // Lengths may follow in newer versions.
    entry(&["aiter::mha_fwd"], |inputs| attention(inputs, forward(None, 5, Some(11), false))),
    entry(&["_flash_attention_backward"], |inputs| {
        attention(inputs, Signature { query: 1, mask: None, causal: 11, lengths: Some(6), heads_first: false, products: 5 })
    }),
];

/// Whether only earlier keys are seen. Memory-efficient attention gives a number: 0 no mask, 1 causal from the top left, 2 from the
/// bottom right.
fn causal(inputs: &Inputs, at: usize) -> Option<bool> {
    inputs.flag(at).or_else(|| inputs.number(at).map(|kind| kind > 0))
}

/// Pairs of query and key, counted from the top left and from the bottom right.
fn causal_pairs(queries: u64, keys: u64) -> (u128, u128) {
    let (q, k) = (u128::from(queries), u128::from(keys));
    let triangle = |n: u128| n * (n + 1) / 2;
    // Rows beyond the last key see all of them.
    let top_left = triangle(q.min(k)) + q.saturating_sub(k) * k;
    // Rows that would end before the first key see none.
    let bottom_right = triangle(k) - triangle(k.saturating_sub(q));
    (top_left.min(bottom_right), top_left.max(bottom_right))
}

fn sizes(tensor: &Tensor, heads_first: bool) -> Result<(u128, u64, u64, u64), UnknownWork> {
    let [batch @ .., a, b, features] = tensor.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    let (heads, length) = if heads_first { (*a, *b) } else { (*b, *a) };
    Ok((product(batch)?, heads, length, *features))
}

/// A batch of one length, positions before heads, without a mask.
pub(super) fn dense(inputs: &Inputs, causal: usize) -> Outcome {
    attention(inputs, forward(None, causal, None, false))
}

fn attention(inputs: &Inputs, signature: Signature) -> Outcome {
    let (query, key, value) = (inputs.tensor(signature.query)?, inputs.tensor(signature.query + 1)?, inputs.tensor(signature.query + 2)?);
    if signature.lengths.is_some_and(|at| !matches!(inputs.optional_tensor(at), Ok(None))) {
        return Err(UnknownWork::DataDependent);
    }
    let (batch, heads, queries, features) = sizes(query, signature.heads_first)?;
    let (key_batch, key_heads, keys, key_features) = sizes(key, signature.heads_first)?;
    let (_, _, _, value_features) = sizes(value, signature.heads_first)?;
    let grouped = key_heads > 0 && heads % key_heads == 0;
    if key_batch != batch || key_features != features || !(grouped || heads == 0) {
        return Err(UnknownWork::UnreadableShapes);
    }
    let all = u128::from(queries) * u128::from(keys);
    let (least, most) = match causal(inputs, signature.causal) {
        Some(false) => (all, all),
        Some(true) => causal_pairs(queries, keys),
        None => (causal_pairs(queries, keys).0, all),
    };
    let width = u128::from(features) + u128::from(value_features);
    // Forward: one product over E, one over Ev; backward: five over one or the other, here at their mean.
    let flops = |pairs: u128| {
        let heads = batch.checked_mul(u128::from(heads)).ok_or(UnknownWork::TooLarge)?;
        let each = pairs.checked_mul(width).and_then(|each| each.checked_mul(signature.products)).ok_or(UnknownWork::TooLarge)?;
        each.checked_mul(heads).ok_or(UnknownWork::TooLarge)
    };
    let out = product(&[heads, queries, value_features, query.dtype.bytes()])?.checked_mul(batch).ok_or(UnknownWork::TooLarge)?;
    let tally = Tally::new(query.dtype, Engine::Tensor).flops(flops(least)?).flops_at_most(flops(most)?);
    let mut tally = moved(tally, [query, key, value])?;
    if let Some(mask) = signature.mask {
        tally = moved(tally, inputs.optional_tensor(mask)?)?;
    }
    if signature.products > 2 {
        // The output and its gradient are read, the gradients of all three inputs written.
        tally = tally.bytes(out).bytes(out);
        for input in [query, key, value] {
            tally = tally.written(input.stored_bytes()?);
        }
    } else {
        tally = tally.written(out);
    }
    tally.finish()
}
