//! What serving engines do besides products and attention: rotary embedding, stores into the cache of keys and values, experts.
//!
//! Rotary embedding turns pairs of features by an angle that depends on the position, in place: of each pair `(x, y)`, `x cos - y sin` and
//! `x sin + y cos`, 6 FLOPs, 3 for each feature turned. Bytes: the turned part of queries and keys read and written, the positions read, and
//! of the table of sines and cosines at least one row, at most one for each position.
//!
//! A store reads the rows of the new keys and values and their slots, and writes as many rows in the type of the cache. Slots that say
//! "none" (padding) are taken for slots.
//!
//! Experts: each of T tokens goes to k experts, whose two products (in: H features to the width of the first weight; out: back to H) are
//! `2 T k (W1 + W2)` FLOPs, `W` being the elements of one expert's weight. Bytes: tokens read, the result written, the choice read, and the
//! weights of at least k experts, at most T k or all there are. What is between the two products need not move.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

pub(super) const TABLE: &[Formula] = &[
    Formula { names: &["_C::rotary_embedding", "sgl_kernel::rotary_embedding"], family: WorkFamily::Elementwise, work: rotary },
    Formula {
        names: &[
            "_C_cache_ops::reshape_and_cache",
            "_C_cache_ops::reshape_and_cache_flash",
            "aiter::reshape_and_cache",
            "aiter::reshape_and_cache_flash",
            "sglang::store_cache",
        ],
        family: WorkFamily::Indexing,
        // `(key, value, key_cache, value_cache, slots, ..)`.
        work: |inputs| {
            let slots = inputs.tensor(4)?;
            store(slots, &[(inputs.tensor(0)?, inputs.tensor(2)?.dtype), (inputs.tensor(1)?, inputs.tensor(3)?.dtype)])
        },
    },
    Formula {
        names: &["_C_cache_ops::concat_and_cache_mla", "aiter::concat_and_cache_mla"],
        family: WorkFamily::Indexing,
        work: store_latent,
    },
    Formula { names: &["_moe_C::topk_softmax"], family: WorkFamily::Softmax, work: |inputs| top_experts(inputs, 3) },
    Formula { names: &["sgl_kernel::topk_softmax"], family: WorkFamily::Softmax, work: |inputs| top_experts(inputs, 2) },
    // `moe_sum(input[T, k, H], output[T, H])`.
    Formula {
        names: &["_moe_C::moe_sum"],
        family: WorkFamily::Reduction,
        work: |inputs| {
            let (input, output) = (inputs.tensor(0)?, inputs.tensor(1)?);
            moved(Tally::new(input.dtype, Engine::Vector).flops(input.elements()?), [input, output])?.finish()
        },
    },
    Formula { names: &["vllm::inplace_fused_experts", "vllm::outplace_fused_experts"], family: WorkFamily::Matmul, work: experts },
];

/// `rotary_embedding(positions, query, key, head_size, table[positions there are, features turned], ..)`; the key may be absent.
fn rotary(inputs: &Inputs) -> Outcome {
    let (positions, query, table) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(4)?);
    let &[rows, turned] = table.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    let head = inputs.number(3).and_then(|size| u64::try_from(size).ok()).ok_or(UnknownWork::MissingArgument)?;
    if head == 0 || turned > head {
        return Err(UnknownWork::UnreadableShapes);
    }
    let count = positions.elements()?;
    let mut tally = moved(Tally::new(query.dtype, Engine::Vector), [positions])?;
    for tensor in [Some(query), inputs.optional_tensor(2)?].into_iter().flatten() {
        let features = tensor.elements()? / u128::from(head) * u128::from(turned);
        let bytes = features.saturating_mul(u128::from(tensor.dtype.bytes()));
        tally = tally.flops(features.saturating_mul(3)).bytes(bytes).written(bytes);
    }
    let row = product(&[turned, table.dtype.bytes()])?;
    tally.bytes_between(count.min(1) * row, count.min(u128::from(rows)).saturating_mul(row)).finish()
}

/// Rows of tensors `[tokens, ..]`, each into a cache of a type; only as many as there are slots.
fn store(slots: &Tensor, rows: &[(&Tensor, Dtype)]) -> Outcome {
    let count = slots.elements()?;
    let dtype = rows.first().ok_or(UnknownWork::UnreadableShapes)?.0.dtype;
    let mut tally = moved(Tally::new(dtype, Engine::Vector), [slots])?;
    for &(tensor, cache) in rows {
        let row = product(tensor.dims.get(1..).ok_or(UnknownWork::UnreadableShapes)?)?;
        let elements = count.min(u128::from(tensor.dim(0)?)).saturating_mul(row);
        let bytes = |dtype: Dtype| elements.saturating_mul(u128::from(dtype.bytes()));
        tally = tally.bytes(bytes(tensor.dtype)).written(bytes(cache));
    }
    tally.finish()
}

/// `concat_and_cache_mla(latent[T, L], rotated[T, R], cache[blocks, block, entry], slots, ..)`: both parts of a token become one entry.
fn store_latent(inputs: &Inputs) -> Outcome {
    let (latent, rotated, cache, slots) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let count = slots.elements()?;
    let mut tally = moved(Tally::new(latent.dtype, Engine::Vector), [slots])?;
    for part in [latent, rotated] {
        tally = tally.bytes(count.saturating_mul(product(&[part.dim(-1)?, part.dtype.bytes()])?));
    }
    tally.written(count.saturating_mul(product(&[cache.dim(-1)?, cache.dtype.bytes()])?)).finish()
}

/// `topk_softmax(weights, experts, .., scores[T, experts], ..)`: a softmax over the scores (5 FLOPs each), every tensor read or written once.
fn top_experts(inputs: &Inputs, scores: usize) -> Outcome {
    let read = inputs.tensor(scores)?;
    let mut tally = moved(Tally::new(read.dtype, Engine::Vector).flops(read.elements()?.saturating_mul(5)), inputs.tensors())?;
    // What stands before the scores is what comes out.
    for at in 0..scores {
        let bytes = inputs.optional_tensor(at)?.map_or(Ok(0), Tensor::stored_bytes)?;
        tally = tally.of_which_written(bytes);
    }
    tally.finish()
}

/// `fused_experts(tokens[T, H], in[E, 2 I, H], out[E, H, I], weights[T, k], experts[T, k], ..)`. A map of experts (whole numbers, one
/// dimension) says that some are on other devices: then how many tokens stay here depends on the data.
fn experts(inputs: &Inputs) -> Outcome {
    let (tokens, first, second, chosen) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(4)?);
    let (&[count, width], &[_, k]) = (tokens.dims.as_slice(), chosen.dims.as_slice()) else { return Err(UnknownWork::UnreadableShapes) };
    let (&[all, _, first_in], &[all_too, second_out, _]) = (first.dims.as_slice(), second.dims.as_slice()) else {
        return Err(UnknownWork::UnreadableShapes);
    };
    // Weights packed by quantisation have other sizes, or a type that does not say the arithmetic.
    let plain = first.dtype == second.dtype && (first.dtype == tokens.dtype || first.dtype == Dtype::F8);
    if !plain || first_in != width || second_out != width || all != all_too || chosen.dim(0)? != count {
        return Err(UnknownWork::UnreadableShapes);
    }
    let later = inputs.arguments.len().saturating_sub(5);
    if inputs.tensors().skip(5).take(later).any(|tensor| matches!(tensor.dtype, Dtype::I32 | Dtype::I64)) {
        return Err(UnknownWork::DataDependent);
    }
    let of_one = |weight: &Tensor| product(weight.dims.get(1..).unwrap_or_default());
    let each = of_one(first)?.saturating_add(of_one(second)?);
    let visits = product(&[count, k])?;
    let flops = visits.checked_mul(2).and_then(|visits| visits.checked_mul(each)).ok_or(UnknownWork::TooLarge)?;
    let weights = |experts: u128| experts.min(u128::from(all)).saturating_mul(each).saturating_mul(u128::from(first.dtype.bytes()));
    let least = if count > 0 { u128::from(k) } else { 0 };
    let tally =
        moved(Tally::new(first.dtype, Engine::Tensor).flops(flops), [tokens, inputs.tensor(3)?, chosen])?.written(tokens.stored_bytes()?);
    tally.bytes_between(weights(least), weights(visits)).finish()
}
