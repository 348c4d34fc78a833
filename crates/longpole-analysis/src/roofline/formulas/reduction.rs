//! Reductions, sorts, scans and pooling.
//!
//! One FLOP an input element (a sort is counted so too: its comparisons are not arithmetic). Bytes: input read once, output written once.
//! The output's size follows from the dimensions reduced, if they were recorded; else it has at least one element and at most as many as
//! the input. `argmax` and its kind write 64-bit indices; sums of truth values and integers are 64-bit.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Reduction, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["sum", "nansum", "prod"], |inputs| {
        reduce(inputs, 1, |dtype| if dtype.is_floating() { dtype.bytes() } else { Dtype::I64.bytes() })
    }),
    entry(&["mean", "amax", "amin", "aminmax", "logsumexp"], |inputs| reduce(inputs, 1, Dtype::bytes)),
    entry(&["var", "std"], |inputs| reduce(inputs, 1, Dtype::bytes)),
    entry(&["norm", "linalg_vector_norm"], |inputs| reduce(inputs, 2, Dtype::bytes)),
    entry(&["argmax", "argmin"], |inputs| reduce(inputs, 1, |_| Dtype::I64.bytes())),
    entry(&["max", "min", "mode", "median"], |inputs| {
        // Over one dimension they give the values and where they stood.
        let indices = if inputs.value(1).is_some() { Dtype::I64.bytes() } else { 0 };
        let input = inputs.tensor(0)?;
        let (least, most) = outputs(inputs, input, 1)?;
        finish(input, least, most, input.dtype.bytes() + indices)
    }),
    entry(&["any", "all"], |inputs| reduce(inputs, 1, |_| 1)),
    entry(&["cumsum", "cumprod", "logcumsumexp"], |inputs| {
        let input = inputs.tensor(0)?;
        let out = if input.dtype.is_floating() { input.dtype } else { Dtype::I64 };
        finish(input, input.elements()?, input.elements()?, out.bytes())
    }),
    entry(&["topk"], |inputs| {
        let input = inputs.tensor(0)?;
        let count = inputs.number(1).and_then(|count| u64::try_from(count).ok()).ok_or(UnknownWork::MissingArgument)?;
        let dim = inputs.number(2).unwrap_or(-1);
        let outputs = input.elements()?.checked_div(u128::from(input.dim(dim)?)).unwrap_or(0).saturating_mul(u128::from(count));
        finish(input, outputs, outputs, input.dtype.bytes() + Dtype::I64.bytes())
    }),
    entry(&["sort", "argsort", "msort"], |inputs| {
        let input = inputs.tensor(0)?;
        finish(input, input.elements()?, input.elements()?, input.dtype.bytes() + Dtype::I64.bytes())
    }),
    entry(&["_adaptive_avg_pool2d"], |inputs| {
        // `(input, [height, width])`.
        let input = inputs.tensor(0)?;
        let [outer @ .., _, _] = input.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
        let sizes = inputs.numbers(1).ok_or(UnknownWork::MissingArgument)?;
        let sizes: Option<Vec<u64>> = sizes.into_iter().map(|size| u64::try_from(size).ok()).collect();
        let outputs = product(outer)?.saturating_mul(product(&sizes.ok_or(UnknownWork::UnreadableShapes)?)?);
        finish(input, outputs, outputs, input.dtype.bytes())
    }),
    entry(&["max_pool2d_with_indices", "max_pool2d"], max_pool),
    entry(&["max_pool2d_with_indices_backward"], |inputs| {
        let (gradient, input) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let tally = moved(Tally::new(input.dtype, Engine::Vector).flops(gradient.elements()?), [gradient])?;
        let tally = moved(tally, inputs.optional_tensor(7)?)?;
        tally.written(input.elements()?.saturating_mul(u128::from(input.dtype.bytes()))).finish()
    }),
];

/// `max_pool2d(input, kernel, stride, padding, dilation, ceil_mode)`: one comparison an element of each window; values and 64-bit
/// positions come out. The last row and column may be rounded up, which is left out.
fn max_pool(inputs: &Inputs) -> Outcome {
    let input = inputs.tensor(0)?;
    let pair = |at: usize| match inputs.numbers(at).as_deref() {
        Some([one]) => Ok(Some([*one, *one])),
        Some([height, width]) => Ok(Some([*height, *width])),
        Some([]) => Ok(None),
        _ => Err(UnknownWork::MissingArgument),
    };
    let kernel = pair(1)?.ok_or(UnknownWork::MissingArgument)?;
    let (stride, padding, dilation) = (pair(2)?.unwrap_or(kernel), pair(3)?.unwrap_or([0, 0]), pair(4)?.unwrap_or([1, 1]));
    let [outer @ .., height, width] = input.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    let mut outputs = product(outer)?;
    for (at, size) in [*height, *width].into_iter().enumerate() {
        let reach = i128::from(dilation[at]) * (i128::from(kernel[at]) - 1);
        let slack = i128::from(size) + 2 * i128::from(padding[at]) - reach - 1;
        let length = slack.checked_div(i128::from(stride[at])).ok_or(UnknownWork::UnreadableShapes)? + 1;
        let length = u128::try_from(length).map_err(|_| UnknownWork::UnreadableShapes)?;
        outputs = outputs.checked_mul(length).ok_or(UnknownWork::TooLarge)?;
    }
    let window = u128::try_from(i128::from(kernel[0]) * i128::from(kernel[1])).map_err(|_| UnknownWork::UnreadableShapes)?;
    let tally = moved(Tally::new(input.dtype, Engine::Vector).flops(outputs.saturating_mul(window)), [input])?;
    tally.written(outputs.saturating_mul(u128::from(input.dtype.bytes() + Dtype::I64.bytes()))).finish()
}

/// The least and the most elements of the output of a reduction over the dimensions that an argument lists. Without that argument, and
/// over an empty list, everything is reduced.
fn outputs(inputs: &Inputs, input: &Tensor, dims_at: usize) -> Result<(u128, u128), UnknownWork> {
    let elements = input.elements()?;
    let Some(dims) = inputs.numbers(dims_at) else {
        let everything = inputs.arguments.len() <= 2 || inputs.value(0).is_some();
        return Ok((elements.min(1), if everything { elements.min(1) } else { elements }));
    };
    if dims.is_empty() {
        return Ok((1, 1));
    }
    let mut kept = input.dims.clone();
    for dim in dims {
        let rank = kept.len() as i64;
        let at = usize::try_from(if dim < 0 { dim.saturating_add(rank) } else { dim }).map_err(|_| UnknownWork::UnreadableShapes)?;
        *kept.get_mut(at).ok_or(UnknownWork::UnreadableShapes)? = 1;
    }
    let kept = product(&kept)?;
    Ok((kept, kept))
}

fn reduce(inputs: &Inputs, dims_at: usize, out_bytes: fn(Dtype) -> u64) -> Outcome {
    let input = inputs.tensor(0)?;
    let (least, most) = outputs(inputs, input, dims_at)?;
    finish(input, least, most, out_bytes(input.dtype))
}

fn finish(input: &Tensor, least: u128, most: u128, out_bytes: u64) -> Outcome {
    let tally = moved(Tally::new(input.dtype, Engine::Vector).flops(input.elements()?), [input])?;
    let bytes = |outputs: u128| outputs.saturating_mul(u128::from(out_bytes));
    tally.written_between(bytes(least), bytes(most)).finish()
}
