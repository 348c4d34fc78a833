//! Norms.
//!
//! FLOPs an element: layer and group norm 8 (mean 1; difference, square and sum 3; scaling 2; weight and bias 2); batch norm the same
//! while training, 4 with known statistics; RMS norm 4 (square and sum 2; scaling 1; weight 1); backward twice the forward count. They
//! only matter for the arithmetic intensity: norms are memory-bound everywhere. Bytes: input and parameters read once, output written
//! once, statistics kept for a backward pass written in fp32. Backward: the gradient and the input are read once, the input's gradient
//! written once.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Norm, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["layer_norm"], |inputs| norm(inputs, 8, &[2, 3], None)),
    entry(&["native_layer_norm"], |inputs| norm(inputs, 8, &[2, 3], Some((1, 2)))),
    entry(&["rms_norm"], |inputs| norm(inputs, 4, &[2], None)),
    entry(&["_fused_rms_norm"], |inputs| norm(inputs, 4, &[2], Some((1, 1)))),
    entry(&["group_norm"], |inputs| norm(inputs, 8, &[2, 3], None)),
    entry(&["native_group_norm"], |inputs| norm(inputs, 8, &[1, 2], None)),
    entry(&["native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm", "_batch_norm_impl_index"], batch_norm),
    entry(
        &["native_layer_norm_backward", "native_batch_norm_backward", "native_group_norm_backward", "_fused_rms_norm_backward"],
        |inputs| backward(inputs.tensor(0)?, inputs.tensor(1)?),
    ),
    entry(&["cudnn_batch_norm_backward", "miopen_batch_norm_backward"], |inputs| backward(inputs.tensor(0)?, inputs.tensor(1)?)),
    // Engines' own: the output comes first where it is an argument; all tensors are read or written once.
    entry(
        &[
            "_C::rms_norm",
            "_C::rms_norm_static_fp8_quant",
            "aiter::rmsnorm",
            "sgl_kernel::rmsnorm",
            "sgl_kernel::gemma_rmsnorm",
            "flashinfer::rmsnorm",
            "flashinfer::gemma_rmsnorm",
        ],
        |inputs| written_out(inputs, 4, None, None),
    ),
    // What it writes besides is not told.
    entry(&["aiter::add_rmsnorm"], |inputs| {
        let first = inputs.tensor(0)?;
        moved(Tally::new(first.dtype, Engine::Vector).flops(first.elements()?.saturating_mul(4)), inputs.tensors())?.finish()
    }),
    // With a residual: `(out, input, residual, weight, scale, ..)`, and `(out, input, weight, scale, .., .., residual)`, which makes its
    // scale.
    entry(&["_C::fused_add_rms_norm_static_fp8_quant"], |inputs| written_out(inputs, 5, Some(2), None)),
    entry(&["_C::rms_norm_dynamic_per_token_quant", "_C::rms_norm_per_block_quant"], |inputs| written_out(inputs, 5, Some(6), Some(3))),
    // The sum goes back into both arguments.
    entry(
        &[
            "_C::fused_add_rms_norm",
            "sgl_kernel::fused_add_rmsnorm",
            "sgl_kernel::gemma_fused_add_rmsnorm",
            "flashinfer::fused_add_rmsnorm",
            "flashinfer::gemma_fused_add_rmsnorm",
        ],
        |inputs| {
            let (input, residual) = (inputs.tensor(0)?, inputs.tensor(1)?);
            let tally = Tally::new(input.dtype, Engine::Vector).flops(input.elements()?.saturating_mul(5));
            moved(tally, inputs.tensors())?.written(written(input)?).written(written(residual)?).finish()
        },
    ),
];

fn written(tensor: &Tensor) -> Result<u128, UnknownWork> {
    Ok(tensor.elements()?.saturating_mul(u128::from(tensor.dtype.bytes())))
}

/// `parameters` are the positions of weight and bias; `statistics` says where the normalised shape stands and how many fp32 numbers a row
/// keeps.
fn norm(inputs: &Inputs, flops: u128, parameters: &[usize], statistics: Option<(usize, u128)>) -> Outcome {
    let input = inputs.tensor(0)?;
    let elements = input.elements()?;
    let mut tally = moved(Tally::new(input.dtype, Engine::Vector).flops(elements.saturating_mul(flops)), [input])?.written(written(input)?);
    for &at in parameters {
        tally = moved(tally, inputs.optional_tensor(at)?)?;
    }
    if let Some((shape, numbers)) = statistics
        && let Some(shape) = inputs.numbers(shape)
    {
        let width: Vec<u64> = shape.iter().filter_map(|&size| u64::try_from(size).ok()).collect();
        let rows = elements.checked_div(product(&width)?).unwrap_or(0);
        tally = tally.written(rows.saturating_mul(numbers).saturating_mul(u128::from(Dtype::F32.bytes())));
    }
    tally.finish()
}

/// `batch_norm(input, weight, bias, running_mean, running_var, training, ..)`. Training also writes the running statistics and two fp32
/// numbers a channel; these are a few bytes a channel and are left out where it is not known.
fn batch_norm(inputs: &Inputs) -> Outcome {
    let input = inputs.tensor(0)?;
    let elements = input.elements()?;
    let training = inputs.flag(5);
    let flops = |each: u128| elements.saturating_mul(each);
    let tally = Tally::new(input.dtype, Engine::Vector).flops(flops(if training == Some(true) { 8 } else { 4 })).flops_at_most(flops(8));
    let tally = if training == Some(false) { tally.flops_at_most(flops(4)) } else { tally };
    let mut tally = moved(tally, [input])?.written(written(input)?);
    for at in 1..5 {
        tally = moved(tally, inputs.optional_tensor(at)?)?;
    }
    tally.finish()
}

fn backward(gradient: &Tensor, input: &Tensor) -> Outcome {
    let tally = Tally::new(input.dtype, Engine::Vector).flops(input.elements()?.saturating_mul(16));
    moved(tally, [gradient, input])?.written(written(input)?).finish()
}

/// Every tensor is read or written once, the residual, whose sum goes back into it, both. `scale` is the position of a scale that is
/// written. The first tensor is the output only if the second has its size; else what is written is not among the arguments.
fn written_out(inputs: &Inputs, flops: u128, residual: Option<usize>, scale: Option<usize>) -> Outcome {
    let first = inputs.tensor(0)?;
    let tally = Tally::new(first.dtype, Engine::Vector).flops(first.elements()?.saturating_mul(flops));
    let residual = residual.map(|at| inputs.optional_tensor(at)).transpose()?.flatten();
    let mut tally = moved(tally, inputs.tensors())?;
    if inputs.tensor(1).is_ok_and(|second| second.dims == first.dims) {
        tally = tally.of_which_written(first.stored_bytes()?);
        if let Some(scale) = scale.map(|at| inputs.optional_tensor(at)).transpose()?.flatten() {
            tally = tally.of_which_written(scale.stored_bytes()?);
        }
        if let Some(residual) = residual {
            tally = tally.of_which_written(residual.stored_bytes()?);
        }
    }
    moved(tally, residual)?.finish()
}
