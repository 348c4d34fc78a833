//! Attention over sequences packed one after the other, as serving engines call it.
//!
//! B sequences of `q_i` queries and `k_i` keys; recorded are their number, the sum T of the queries, and the largest `q` and `k`. FLOPs are
//! `2 H pairs (E + Ev)` as for one sequence, with the pairs of query and key summed over the sequences:
//!
//! - causal, each query's own key among the keys (`k_i >= q_i`): `sum of (q_i k_i - q_i (q_i - 1) / 2)`. The least is at `k_i = q_i` and equal
//!   lengths, `(T^2 / B + T) / 2`; the most at `k_i = k`, `T k - (T^2 / B - T) / 2`. Where keys are packed too, K of them, only K - T are
//!   beyond the queries' own, so it is at most `(q T + T) / 2 + q (K - T)`.
//! - not causal: `sum of q_i k_i`, known when all have the same number of queries (T = B q): `q K`.
//!
//! So a batch of whole prompts of one length is known exactly. Bounds more than a factor of two apart are no knowledge: such a call, as
//! most decode steps are, is `data_dependent`. So is one with a sliding window shorter than the longest sequence. Bytes: Q read, the output
//! written, packed K and V read once; of K and V in pages at least the T new keys, at most B k or all pages there are.

use super::super::dtype::Dtype;
use super::super::shapes::{Argument, Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, attention, moved};

/// Where the parts of a call stand in the signature. Queries, keys and values are the first three.
#[derive(Clone, Copy)]
pub(super) struct Signature {
    /// Cumulated lengths of the queries, one more than there are sequences.
    lengths: usize,
    longest: [usize; 2],
    causal: usize,
    /// How many keys to the left and to the right are seen; below zero all.
    window: [usize; 2],
    /// The table or list of pages; when given, keys and values are in pages.
    pages: Option<usize>,
}

pub(super) const TORCH: Signature = Signature { lengths: 3, longest: [5, 6], causal: 8, window: [11, 12], pages: None };
const FLASH: Signature = Signature { lengths: 3, longest: [5, 6], causal: 9, window: [10, 11], pages: Some(15) };
const FLASH_OF_VLLM: Signature = Signature { lengths: 4, longest: [10, 11], causal: 15, window: [16, 17], pages: Some(8) };
const FLASH_3: Signature = Signature { lengths: 7, longest: [12, 13], causal: 24, window: [25, 26], pages: Some(14) };
const AITER: Signature = Signature { lengths: 3, longest: [5, 6], causal: 12, window: [13, 14], pages: None };
const AITER_PAGES: Signature = Signature { lengths: 3, longest: [6, 7], causal: 12, window: [13, 14], pages: Some(5) };

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Attention, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["flash_attn::_flash_attn_varlen_forward", "flashattn::_flash_attn_varlen_forward"], |inputs| packed(inputs, FLASH)),
    entry(&["_vllm_fa2_C::varlen_fwd"], |inputs| packed(inputs, FLASH_OF_VLLM)),
    entry(&["sgl_kernel::fwd", "_vllm_fa3_C::fwd"], flash_3),
    entry(&["aiter::mha_varlen_fwd", "aiter::fmha_v3_varlen_fwd"], |inputs| {
        // A table of pages is an argument of newer versions.
        if is_given(inputs, 19) { Err(UnknownWork::DataDependent) } else { packed(inputs, AITER) }
    }),
    entry(&["aiter::mha_batch_prefill"], |inputs| packed(inputs, AITER_PAGES)),
    // These take the lengths from outside their arguments, or as numbers in a tensor alone.
    entry(
        &[
            "vllm::unified_attention",
            "vllm::unified_attention_with_output",
            "vllm::unified_mla_attention",
            "vllm::unified_mla_attention_with_output",
            "sglang::unified_attention_with_output",
            "_C::paged_attention_v1",
            "_C::paged_attention_v2",
            "_rocm_C::paged_attention",
            "sgl_kernel::cutlass_mla_decode",
            "_C::sm100_cutlass_mla_decode",
        ],
        |_| Err(UnknownWork::DataDependent),
    ),
];

fn is_given(inputs: &Inputs, at: usize) -> bool {
    !matches!(inputs.arguments.get(at), None | Some(Argument::Plain))
}

/// FlashAttention 3 takes packed queries (with cumulated lengths) or a batch of one length, keys of its own or in pages, and new keys to
/// append.
fn flash_3(inputs: &Inputs) -> Outcome {
    const NEW_KEYS: usize = 3;
    const SECOND_QUERY: usize = 5;
    const LENGTHS_USED: [usize; 2] = [10, 11];
    // Queries in two parts (latent attention) do other products.
    if is_given(inputs, SECOND_QUERY) {
        return Err(UnknownWork::NoFormula);
    }
    if is_given(inputs, NEW_KEYS) || is_given(inputs, LENGTHS_USED[0]) {
        return Err(UnknownWork::DataDependent);
    }
    if is_given(inputs, FLASH_3.lengths) {
        return packed(inputs, FLASH_3);
    }
    if is_given(inputs, LENGTHS_USED[1]) || FLASH_3.pages.is_some_and(|at| is_given(inputs, at)) {
        return Err(UnknownWork::DataDependent);
    }
    attention::dense(inputs, FLASH_3.causal)
}

/// Least and most pairs of query and key.
struct Shape {
    sequences: u128,
    queries: u128,
    longest_query: u128,
    longest_key: u128,
    /// Keys, where they are packed too.
    keys: Option<u128>,
}

impl Shape {
    fn causal(&self) -> (u128, u128) {
        let Self { sequences, queries, longest_query, longest_key, keys } = *self;
        let squares = queries * queries / sequences;
        let least = squares.midpoint(queries);
        let by_longest = (queries * longest_key).saturating_sub(squares.saturating_sub(queries) / 2);
        let by_count = keys.map(|keys| (longest_query * queries).midpoint(queries) + longest_query * keys.saturating_sub(queries));
        (least, by_count.map_or(by_longest, |most| most.min(by_longest)).max(least))
    }

    fn all(&self) -> Option<u128> {
        let same_length = self.queries == self.sequences * self.longest_query;
        self.keys.filter(|_| same_length).map(|keys| keys * self.longest_query)
    }
}

/// Numbers that leave room for the products above.
fn small(number: u64) -> Result<u128, UnknownWork> {
    if number < 1 << 40 { Ok(u128::from(number)) } else { Err(UnknownWork::TooLarge) }
}

fn longest(inputs: &Inputs, at: usize) -> Result<u128, UnknownWork> {
    let number = inputs.number(at).ok_or(UnknownWork::MissingArgument)?;
    small(u64::try_from(number).map_err(|_| UnknownWork::UnreadableShapes)?)
}

pub(super) fn packed(inputs: &Inputs, signature: Signature) -> Outcome {
    let (query, key, value) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let in_pages = signature.pages.is_some_and(|at| is_given(inputs, at));
    let &[queries, heads, features] = query.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    // In pages of one key there is one dimension as well, else two.
    let ([slots @ .., key_heads, key_features], 3 | 4) = (key.dims.as_slice(), key.dims.len()) else {
        return Err(UnknownWork::UnreadableShapes);
    };
    let value_features = value.dim(-1)?;
    let fits = *key_heads > 0 && heads % *key_heads == 0 && *key_features == features && (in_pages || slots.len() == 1);
    let &[ends] = inputs.tensor(signature.lengths)?.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    if !fits || ends < 2 {
        return Err(UnknownWork::UnreadableShapes);
    }
    let available = product(slots)?;
    let shape = Shape {
        sequences: small(ends - 1)?,
        queries: small(queries)?,
        longest_query: longest(inputs, signature.longest[0])?,
        longest_key: longest(inputs, signature.longest[1])?,
        keys: if in_pages { None } else { Some(small(u64::try_from(available).map_err(|_| UnknownWork::TooLarge)?)?) },
    };
    let causal = inputs.flag(signature.causal).ok_or(UnknownWork::MissingArgument)?;
    let [left, right] = signature.window.map(|at| inputs.number(at).and_then(|keys| u128::try_from(keys).ok()));
    if left.is_some_and(|left| left + 1 < shape.longest_key) || (right.is_some() && !causal) {
        return Err(UnknownWork::DataDependent);
    }
    let (least, most) = if causal { shape.causal() } else { shape.all().map(|all| (all, all)).ok_or(UnknownWork::DataDependent)? };
    if most > least.saturating_mul(2) {
        return Err(UnknownWork::DataDependent);
    }
    let each = product(&[2, heads, features.saturating_add(value_features)])?;
    let flops = |pairs: u128| pairs.checked_mul(each).ok_or(UnknownWork::TooLarge);
    let tally = moved(Tally::new(query.dtype, Engine::Tensor).flops(flops(least)?).flops_at_most(flops(most)?), [query])?;
    let out = product(&[queries, heads, value_features])?;
    // Of 8-bit queries the output is as wide or twice as wide.
    let out = |times: u64| out.saturating_mul(u128::from(times * query.dtype.bytes()));
    let tally = tally.written_between(out(1), out(if query.dtype == Dtype::F8 { 2 } else { 1 }));
    if in_pages { in_pages_bytes(tally, &shape, key, value, available)? } else { moved(tally, [key, value])? }.finish()
}

fn in_pages_bytes(tally: Tally, shape: &Shape, key: &Tensor, value: &Tensor, available: u128) -> Result<Tally, UnknownWork> {
    let of_one = |tensor: &Tensor| product(&[key.dim(-2)?, tensor.dim(-1)?, tensor.dtype.bytes()]);
    let each = of_one(key)?.saturating_add(of_one(value)?);
    let most = available.min(shape.sequences * shape.longest_key);
    Ok(tally.bytes_between(shape.queries.min(most).saturating_mul(each), most.saturating_mul(each)))
}
