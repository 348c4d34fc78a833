//! Products of quantised matrices, and quantising.
//!
//! A product is `2 m n k` FLOPs whatever the operands are stored in; operands, scales, zero points and bias are read once at their own
//! size, the output is written once in its own type. Where the weights alone are packed (4-bit AWQ, GPTQ), the arithmetic is done in the
//! type of the other operand. Quantising is 2 FLOPs an element (scale and round), 3 with a gate before it; every tensor is read or written
//! once, although a scale for a whole tensor needs a pass before: that pass can find the tensor in the cache.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

const fn product_of(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Matmul, work }
}

const fn quantise(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Elementwise, work }
}

pub(super) const TABLE: &[Formula] = &[
    // `(out, a, b, ..)`, the output given.
    product_of(
        &["_C::cutlass_scaled_mm", "_C::cutlass_scaled_mm_azp", "sgl_kernel::dsv3_fused_a_gemm", "sgl_kernel::dsv3_router_gemm"],
        |inputs| into_given(inputs, 1, inputs.tensor(1)?.dtype),
    ),
    // Two 4-bit numbers in each byte of both.
    product_of(&["_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"], |inputs| into_given(inputs, 2, Dtype::F4x2)),
    // `(a, b[k, n], a_scales, b_scales, out_type, bias)`.
    product_of(&["sgl_kernel::fp8_scaled_mm", "sgl_kernel::int8_scaled_mm", "sgl_kernel::fp8_blockwise_scaled_mm"], |inputs| {
        made(inputs, false, inputs.tensor(1)?.dim(1)?, inputs.number(4))
    }),
    // `(a, b[n, k], a_scales, b_scales, bias, out_type, ..)`.
    product_of(&["aiter::gemm_a8w8", "aiter::gemm_a8w8_CK", "aiter::gemm_a8w8_bpreshuffle"], |inputs| {
        made(inputs, true, inputs.tensor(1)?.dim(0)?, inputs.number(5))
    }),
    product_of(&["aiter::gemm_a8w8_blockscale"], |inputs| made(inputs, true, inputs.tensor(1)?.dim(0)?, inputs.number(4))),
    // `(a, b[n, k], bias, out_type, scales, ..)`.
    product_of(&["aiter::gemm_a16w16"], |inputs| made(inputs, true, inputs.tensor(1)?.dim(0)?, inputs.number(3))),
    // `awq_gemm(a, packed[k, n / 8], scales[groups, n], zeros, ..)`.
    product_of(&["_C::awq_gemm"], |inputs| packed_weights(inputs, inputs.tensor(2)?.dim(1)?)),
    // `gptq_gemm(a, packed[k / numbers in 32 bits, n], zeros, scales, order, ..)`.
    product_of(&["_C::gptq_gemm", "sgl_kernel::gptq_gemm"], |inputs| packed_weights(inputs, inputs.tensor(1)?.dim(1)?)),
    // `(out, input, scale, ..)`.
    quantise(&["_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant"], |inputs| once(inputs, 2, inputs.tensor(1)?, &[0])),
    // The same, and the scale is found and written.
    quantise(&["_C::dynamic_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant", "_C::dynamic_scaled_int8_quant"], |inputs| {
        once(inputs, 2, inputs.tensor(1)?, &[0, 2])
    }),
    // `(input, out, scale, ..)`.
    quantise(
        &[
            "sgl_kernel::sgl_per_token_group_quant_fp8",
            "sgl_kernel::sgl_per_token_group_quant_int8",
            "sgl_kernel::sgl_per_tensor_quant_fp8",
            "sgl_kernel::sgl_per_token_quant_fp8",
        ],
        |inputs| once(inputs, 2, inputs.tensor(0)?, &[1, 2]),
    ),
    // `(out, gate and up, scale, ..)`: one number comes out for two.
    quantise(&["_C::silu_and_mul_quant"], |inputs| once(inputs, 3, inputs.tensor(0)?, &[0])),
    quantise(&["_C::silu_and_mul_per_block_quant"], |inputs| once(inputs, 3, inputs.tensor(0)?, &[0, 2])),
];

/// Every tensor is read or written once, those at some positions written.
fn once(inputs: &Inputs, flops: u128, counted: &Tensor, written: &[usize]) -> Outcome {
    let tally = Tally::new(counted.dtype, Engine::Vector).flops(counted.elements()?.saturating_mul(flops));
    let mut tally = moved(tally, inputs.tensors())?;
    for &at in written {
        let bytes = inputs.optional_tensor(at)?.map_or(Ok(0), Tensor::stored_bytes)?;
        tally = tally.of_which_written(bytes);
    }
    tally.finish()
}

/// `packed` numbers in each element of both operands.
fn into_given(inputs: &Inputs, packed: u64, dtype: Dtype) -> Outcome {
    let (out, left, right) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (&[m, n], &[rows, k]) = (out.dims.as_slice(), left.dims.as_slice()) else { return Err(UnknownWork::UnreadableShapes) };
    if rows != m || right.elements()? != product(&[k, n])? {
        return Err(UnknownWork::UnreadableShapes);
    }
    let tally = moved(Tally::new(dtype, Engine::Tensor).flops(product(&[2, m, n, k, packed])?), inputs.tensors())?;
    tally.of_which_written(out.stored_bytes()?).finish()
}

/// A product that makes its output, of the named type (by number), else of the type of `a`; of an 8-bit `a` then between 8 and 32 bits.
fn made(inputs: &Inputs, transposed: bool, n: u64, out_type: Option<i64>) -> Outcome {
    let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let k = left.dim(-1)?;
    if right.dims.len() != 2 || right.dim(i64::from(transposed))? != k {
        return Err(UnknownWork::UnreadableShapes);
    }
    let rows = product(left.dims.get(..left.dims.len() - 1).unwrap_or_default())?;
    let outputs = rows.checked_mul(u128::from(n)).ok_or(UnknownWork::TooLarge)?;
    let flops = outputs.checked_mul(2 * u128::from(k)).ok_or(UnknownWork::TooLarge)?;
    let tally = moved(Tally::new(left.dtype, Engine::Tensor).flops(flops), inputs.tensors())?;
    let bytes = |each: u64| outputs.saturating_mul(u128::from(each));
    match out_type.and_then(Dtype::from_scalar_type) {
        Some(out) => tally.written(bytes(out.bytes())),
        None if left.dtype.bytes() > 1 => tally.written(bytes(left.dtype.bytes())),
        None => tally.written_between(bytes(1), bytes(4)),
    }
    .finish()
}

fn packed_weights(inputs: &Inputs, n: u64) -> Outcome {
    let left = inputs.tensor(0)?;
    let &[m, k] = left.dims.as_slice() else { return Err(UnknownWork::UnreadableShapes) };
    let tally = moved(Tally::new(left.dtype, Engine::Tensor).flops(product(&[2, m, n, k])?), inputs.tensors())?;
    tally.written(product(&[m, n, left.dtype.bytes()])?).finish()
}
