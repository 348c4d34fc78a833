//! Convolutions.
//!
//! Every output element is a dot product over `Cin / groups` channels and the kernel's window: `2 |out| (Cin / groups) prod(kernel)`
//! FLOPs, the definition's count: Winograd and FFT do fewer, so such a kernel can go below the compute floor. The weight is `[Cout, Cin /
//! groups, kernel..]`. The output's size is `floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1` in each direction.
//! Transposed convolutions scatter each input element: `2 |in| (Cout / groups) prod(kernel)`, weight `[Cin, Cout / groups, kernel..]`,
//! output `(in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1`. Backward, each of the gradients wanted of input and
//! weight costs as much as the forward pass. Bytes: input, weight and bias read once, output written once.

use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

/// Where the arguments stand.
#[derive(Clone, Copy)]
struct Signature {
    bias: Option<usize>,
    stride: usize,
    padding: usize,
    dilation: usize,
    transposed: Transposed,
}

#[derive(Clone, Copy)]
enum Transposed {
    No,
    /// The argument that says so, and the padding of the output.
    Argument(usize, usize),
    /// Always; the padding of the output.
    Always(usize),
}

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Convolution, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["conv1d", "conv2d", "conv3d", "cudnn_convolution_relu", "miopen_convolution_relu"], |inputs| {
        convolution(inputs, Signature { bias: Some(2), stride: 3, padding: 4, dilation: 5, transposed: Transposed::No })
    }),
    entry(&["convolution", "_convolution", "convolution_overrideable"], |inputs| {
        let transposed = Transposed::Argument(6, 7);
        convolution(inputs, Signature { bias: Some(2), stride: 3, padding: 4, dilation: 5, transposed })
    }),
    entry(&["cudnn_convolution"], |inputs| {
        convolution(inputs, Signature { bias: None, stride: 3, padding: 2, dilation: 4, transposed: Transposed::No })
    }),
    entry(&["miopen_convolution", "miopen_depthwise_convolution"], |inputs| {
        convolution(inputs, Signature { bias: Some(2), stride: 4, padding: 3, dilation: 5, transposed: Transposed::No })
    }),
    entry(&["_conv_depthwise2d", "conv_depthwise3d"], |inputs| {
        convolution(inputs, Signature { bias: Some(3), stride: 4, padding: 5, dilation: 6, transposed: Transposed::No })
    }),
    entry(&["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"], |inputs| {
        convolution(inputs, Signature { bias: Some(2), stride: 3, padding: 4, dilation: 7, transposed: Transposed::Always(5) })
    }),
    entry(&["cudnn_convolution_transpose"], |inputs| {
        convolution(inputs, Signature { bias: None, stride: 4, padding: 2, dilation: 5, transposed: Transposed::Always(3) })
    }),
    entry(&["convolution_backward"], backward),
    entry(&["cudnn_convolution_backward_input"], |inputs| backward_input(inputs.tensor(1)?, inputs.tensor(2)?)),
    entry(&["cudnn_convolution_backward_weight"], |_| Err(UnknownWork::MissingArgument)),
];

/// A number for each direction; one number stands for all.
fn directions(inputs: &Inputs, at: usize, count: usize) -> Result<Vec<u64>, UnknownWork> {
    let numbers = inputs.numbers(at).ok_or(UnknownWork::MissingArgument)?;
    let numbers = if numbers.len() == 1 { numbers.repeat(count) } else { numbers };
    if numbers.len() != count {
        return Err(UnknownWork::UnreadableShapes);
    }
    numbers.into_iter().map(|number| u64::try_from(number).map_err(|_| UnknownWork::UnreadableShapes)).collect()
}

/// Padding, which may be given as a word.
fn padding(inputs: &Inputs, at: usize, count: usize) -> Result<Option<Vec<u64>>, UnknownWork> {
    match inputs.value(at) {
        Some("same") => Ok(None),
        Some("valid") => Ok(Some(vec![0; count])),
        _ => directions(inputs, at, count).map(Some),
    }
}

fn convolution(inputs: &Inputs, signature: Signature) -> Outcome {
    let (input, weight) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let [out_channels, in_channels, kernel @ ..] = weight.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    let rank = kernel.len();
    // An input without a batch has one dimension less.
    let (batch, spatial) = match input.dims.len().checked_sub(rank) {
        Some(2) => (input.dims[0], &input.dims[2..]),
        Some(1) => (1, &input.dims[1..]),
        _ => return Err(UnknownWork::UnreadableShapes),
    };
    if rank == 0 {
        return Err(UnknownWork::UnreadableShapes);
    }
    let (transposed, output_padding) = match signature.transposed {
        Transposed::No => (false, None),
        Transposed::Argument(at, padding) => (inputs.flag(at).ok_or(UnknownWork::MissingArgument)?, Some(padding)),
        Transposed::Always(padding) => (true, Some(padding)),
    };
    let stride = directions(inputs, signature.stride, rank)?;
    let dilation = directions(inputs, signature.dilation, rank)?;
    let padding = padding(inputs, signature.padding, rank)?;
    let output_padding = output_padding.filter(|_| transposed).map(|at| directions(inputs, at, rank)).transpose()?;
    let mut out = Vec::with_capacity(rank);
    for at in 0..rank {
        let wide = |values: &[u64]| i128::from(values[at]);
        let (size, reach) = (wide(spatial), wide(&dilation) * (wide(kernel) - 1));
        let padded = padding.as_ref().map(|padding| 2 * wide(padding));
        let length = match (transposed, padded) {
            (true, padded) => {
                (size - 1) * wide(&stride) - padded.unwrap_or(0) + reach + output_padding.as_ref().map_or(0, |padding| wide(padding)) + 1
            }
            (false, Some(padded)) => (size + padded - reach - 1).checked_div(wide(&stride)).ok_or(UnknownWork::UnreadableShapes)? + 1,
            (false, None) => size,
        };
        out.push(u64::try_from(length).map_err(|_| UnknownWork::UnreadableShapes)?);
    }
    let window = product(kernel)?;
    let channels = if transposed { input.dims[input.dims.len() - rank - 1] } else { *out_channels };
    let flops = if transposed {
        times(times(input.elements()?, 2 * u128::from(*in_channels))?, window)?
    } else {
        times(times(times(product(&out)?, u128::from(batch) * u128::from(channels))?, 2 * u128::from(*in_channels))?, window)?
    };
    let groups = if transposed { channels.checked_div(*out_channels).unwrap_or(1).max(1) } else { 1 };
    let out_channels = if transposed { in_channels.saturating_mul(groups) } else { channels };
    let out_bytes = times(product(&out)?, u128::from(batch) * u128::from(out_channels))?.saturating_mul(u128::from(input.dtype.bytes()));
    let mut tally = moved(Tally::new(input.dtype, Engine::Tensor).flops(flops), [input, weight])?.written(out_bytes);
    if let Some(bias) = signature.bias {
        tally = moved(tally, inputs.optional_tensor(bias)?)?;
    }
    tally.finish()
}

fn times(a: u128, b: u128) -> Result<u128, UnknownWork> {
    a.checked_mul(b).ok_or(UnknownWork::TooLarge)
}

/// FLOPs of one pass between an input-sized and an output-sized tensor of a convolution that is not transposed.
fn pass(out: &Tensor, weight: &Tensor) -> Result<u128, UnknownWork> {
    let [_, rest @ ..] = weight.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    times(out.elements()?, times(product(rest)?, 2)?)
}

/// `convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
/// output_mask)`.
fn backward(inputs: &Inputs) -> Outcome {
    let (gradient, input, weight) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let transposed = inputs.flag(7).ok_or(UnknownWork::MissingArgument)?;
    let mask = inputs.value(10).ok_or(UnknownWork::MissingArgument)?;
    let wanted: Vec<bool> =
        mask.trim_matches(['[', ']']).split(',').take(3).map(|flag| matches!(flag.trim(), "True" | "true" | "1")).collect();
    let [of_input, of_weight, ..] = wanted[..] else { return Err(UnknownWork::UnreadableShapes) };
    let one = if transposed { pass(input, weight)? } else { pass(gradient, weight)? };
    let mut tally = moved(Tally::new(input.dtype, Engine::Tensor), [gradient])?;
    if of_input {
        tally = moved(tally.flops(one), [weight])?.written(times(input.elements()?, u128::from(input.dtype.bytes()))?);
    }
    if of_weight {
        tally = moved(tally.flops(one), [input])?.written(times(weight.elements()?, u128::from(weight.dtype.bytes()))?);
    }
    tally.finish()
}

/// The gradient of the input alone, whose size is not recorded: only the bytes of the operands are counted.
fn backward_input(gradient: &Tensor, weight: &Tensor) -> Outcome {
    moved(Tally::new(gradient.dtype, Engine::Tensor).flops(pass(gradient, weight)?), [gradient, weight])?.finish()
}
