//! Elementwise arithmetic, with torch's broadcasting.
//!
//! The output has, in each dimension from the last, the larger of the operands' sizes, of which one may be 1. One FLOP an output element
//! for a unary or binary operator, whatever it computes; two for a ternary one and for activations with a gate. Bytes: each operand read
//! once at its own size, the output written once; the output's type is the operands' common type, one byte for comparisons, and fp32 for
//! functions of integers that give fractions. In place (`add_`), the output is the first operand.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Elementwise, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(
        &[
            "neg",
            "abs",
            "relu",
            "relu6",
            "sign",
            "floor",
            "ceil",
            "round",
            "trunc",
            "square",
            "bitwise_not",
            "clamp",
            "clamp_min",
            "clamp_max",
            "hardtanh",
            "leaky_relu",
            "elu",
            "threshold",
            "nan_to_num",
            "positive",
        ],
        |inputs| pointwise(inputs, 1, Out::Common),
    ),
    entry(
        &[
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sigmoid",
            "silu",
            "gelu",
            "erf",
            "hardswish",
            "hardsigmoid",
            "mish",
            "softplus",
            "log_sigmoid_forward",
        ],
        |inputs| pointwise(inputs, 1, Out::Fraction),
    ),
    entry(&["logical_not", "isnan", "isinf", "isfinite", "signbit"], |inputs| pointwise(inputs, 1, Out::Truth)),
    entry(
        &[
            "add",
            "sub",
            "rsub",
            "mul",
            "pow",
            "maximum",
            "minimum",
            "fmod",
            "remainder",
            "floor_divide",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "__and__",
            "__or__",
            "masked_fill",
            "threshold_backward",
            "dropout_add",
        ],
        |inputs| pointwise(inputs, 2, Out::Common),
    ),
    entry(
        &[
            "div",
            "true_divide",
            "atan2",
            "hypot",
            "silu_backward",
            "gelu_backward",
            "sigmoid_backward",
            "tanh_backward",
            "hardtanh_backward",
            "mse_loss_none",
        ],
        |inputs| pointwise(inputs, 2, Out::Fraction),
    ),
    entry(&["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"], |inputs| pointwise(inputs, 2, Out::Truth)),
    entry(&["where"], |inputs| pointwise(inputs, 3, Out::Common)),
    entry(&["addcmul", "addcdiv", "lerp"], |inputs| pointwise(inputs, 3, Out::Common)),
    // `silu_and_mul(out, gate_and_up)`.
    entry(
        &[
            "_C::silu_and_mul",
            "_C::mul_and_silu",
            "_C::gelu_and_mul",
            "_C::gelu_tanh_and_mul",
            "_C::fatrelu_and_mul",
            "_C::swigluoai_and_mul",
            "sgl_kernel::silu_and_mul",
            "sgl_kernel::gelu_and_mul",
            "sgl_kernel::gelu_tanh_and_mul",
            "flashinfer::silu_and_mul",
            "flashinfer::gelu_and_mul",
            "flashinfer::gelu_tanh_and_mul",
            "aiter::silu_and_mul",
            "aiter::gelu_and_mul",
            "aiter::gelu_tanh_and_mul",
        ],
        |inputs| into_given(inputs, 2),
    ),
    entry(&["_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick"], |inputs| into_given(inputs, 1)),
    // `native_dropout(input, p, train)` also writes which elements stayed.
    entry(&["native_dropout"], |inputs| {
        let input = inputs.tensor(0)?;
        let elements = input.elements()?;
        let tally = moved(Tally::new(input.dtype, Engine::Vector).flops(elements.saturating_mul(2)), [input])?;
        tally.written(elements.saturating_mul(u128::from(input.dtype.bytes() + Dtype::Bool.bytes()))).finish()
    }),
    entry(&["mse_loss"], squared_error),
    entry(&["mse_loss_backward"], |inputs| pointwise(inputs, 3, Out::Common)),
    entry(
        &[
            "_foreach_add",
            "_foreach_sub",
            "_foreach_mul",
            "_foreach_div",
            "_foreach_sqrt",
            "_foreach_neg",
            "_foreach_addcmul",
            "_foreach_addcdiv",
            "_foreach_lerp",
            "_foreach_zero",
        ],
        foreach,
    ),
];

/// What type comes out.
#[derive(Clone, Copy)]
enum Out {
    /// The operands' common type.
    Common,
    /// The same, but fp32 for integers.
    Fraction,
    /// A truth value.
    Truth,
}

/// The sizes that two operands are broadcast to.
pub(super) fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, UnknownWork> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = long.to_vec();
    for (size, &other) in out.iter_mut().rev().zip(short.iter().rev()) {
        *size = match (*size, other) {
            (one, other) if one == other => one,
            (1, other) => other,
            (size, 1) => size,
            _ => return Err(UnknownWork::UnreadableShapes),
        };
    }
    Ok(out)
}

/// The operands' common type: tensors without dimensions count only by their category.
fn common(operands: &[&Tensor]) -> Option<Dtype> {
    let of = |with_dims: bool| operands.iter().filter(move |tensor| tensor.dims.is_empty() != with_dims).map(|tensor| tensor.dtype);
    match (of(true).reduce(Dtype::promoted), of(false).reduce(Dtype::promoted)) {
        (Some(tensors), Some(scalars)) => Some(tensors.promoted_by_scalar(scalars)),
        (tensors, scalars) => tensors.or(scalars),
    }
}

fn pointwise(inputs: &Inputs, operands: usize, out: Out) -> Outcome {
    let first = inputs.tensor(0)?;
    let mut list = vec![first];
    let mut scalar_is_fraction = false;
    for at in 1..operands {
        match inputs.optional_tensor(at)? {
            Some(tensor) => list.push(tensor),
            None => scalar_is_fraction |= inputs.value(at).is_some_and(|value| value.contains(['.', 'e', 'n'])),
        }
    }
    let sizes = list.iter().try_fold(Vec::new(), |all, tensor| broadcast(&all, &tensor.dims))?;
    let elements = product(&sizes)?;
    // A choice between two has the condition first, which does not take part in the type.
    let values = if operands == 3 && first.dtype == Dtype::Bool && list.len() > 1 { &list[1..] } else { &list[..] };
    let common = common(values).ok_or(UnknownWork::UnreadableShapes)?;
    let dtype = match out {
        Out::Truth => Dtype::Bool,
        Out::Fraction if !common.is_floating() => Dtype::F32,
        Out::Common if scalar_is_fraction && !common.is_floating() => Dtype::F32,
        Out::Fraction | Out::Common => common,
    };
    let tally = Tally::new(common, Engine::Vector).flops(elements.saturating_mul(if operands == 3 { 2 } else { 1 }));
    moved(tally, list)?.written(elements.saturating_mul(u128::from(dtype.bytes()))).finish()
}

/// `f(out, input)`.
fn into_given(inputs: &Inputs, flops: u128) -> Outcome {
    let out = inputs.tensor(0)?;
    let tally = moved(Tally::new(out.dtype, Engine::Vector).flops(out.elements()?.saturating_mul(flops)), [inputs.tensor(1)?])?;
    tally.written(out.stored_bytes()?).finish()
}

/// `mse_loss(a, b, reduction)`: difference, square and sum; one number comes out, or as many as went in when there is no reduction (0).
fn squared_error(inputs: &Inputs) -> Outcome {
    let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let elements = product(&broadcast(&a.dims, &b.dims)?)?;
    let dtype = common(&[a, b]).ok_or(UnknownWork::UnreadableShapes)?;
    let (least, most) = match inputs.number(2) {
        Some(0) => (elements, elements),
        Some(_) => (1, 1),
        None => (elements.min(1), elements),
    };
    let bytes = |outputs: u128| outputs.saturating_mul(u128::from(dtype.bytes()));
    let tally = moved(Tally::new(dtype, Engine::Vector).flops(elements.saturating_mul(3)), [a, b])?;
    tally.written_between(bytes(least), bytes(most)).finish()
}

/// The same operator on each tensor of a list, in place: the first list is read and written, the others are read.
fn foreach(inputs: &Inputs) -> Outcome {
    let first = inputs.list(0)?;
    let dtype = first.first().ok_or(UnknownWork::UnreadableShapes)?.dtype;
    let mut tally = moved(Tally::new(dtype, Engine::Vector), &first)?;
    for tensor in &first {
        let elements = tensor.elements()?;
        tally = tally.flops(elements).written(elements.saturating_mul(u128::from(dtype.bytes())));
    }
    for at in 1..3 {
        if let Ok(others) = inputs.list(at) {
            tally = moved(tally, &others)?;
        }
    }
    tally.finish()
}
