//! Matrix products.
//!
//! `C[m, n] = A[m, k] B[k, n]`: `2 m n k` FLOPs; `m k + k n` elements read, `m n` written. A bias or a matrix added on top is read once;
//! its additions are left out, as they are below a thousandth of the rest for any k that matters. A batch multiplies all of it, but
//! operands that are broadcast over the batch are read once.

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, Work, product};
use super::{Formula, Outcome, WorkFamily, moved};

pub(super) const TABLE: &[Formula] = &[
    Formula {
        names: &["mm", "bmm", "mv", "dot", "_int_mm", "ger"],
        family: WorkFamily::Matmul,
        work: |inputs| batched(inputs, 0, 1, None),
    },
    Formula {
        names: &["addmm", "baddbmm", "addmv", "_addmm_activation"],
        family: WorkFamily::Matmul,
        work: |inputs| batched(inputs, 1, 2, Some(0)),
    },
    Formula { names: &["matmul"], family: WorkFamily::Matmul, work: |inputs| batched(inputs, 0, 1, None) },
    Formula { names: &["linear", "vllm::rocm_unquantized_gemm"], family: WorkFamily::Matmul, work: linear },
    Formula { names: &["_scaled_mm"], family: WorkFamily::Matmul, work: scaled },
];

/// The work of one matrix product `[m, k] x [k, n]` of a type: `2 m n k` FLOPs, `(m k + k n + m n)` elements moved.
///
/// For kernels that no operator launched (replayed from a graph) whose sizes are known otherwise.
///
/// # Errors
/// When the numbers are too large to be true.
pub fn gemm_work(m: u64, n: u64, k: u64, dtype: Dtype) -> Result<Work, UnknownWork> {
    let elements = product(&[m, k])?.saturating_add(product(&[k, n])?).saturating_add(product(&[m, n])?);
    let bytes = elements.saturating_mul(u128::from(dtype.bytes()));
    Tally::new(dtype, Engine::Tensor).flops(product(&[2, m, n, k])?).bytes(bytes).finish()
}

/// Sizes of a product of two operands, each a vector, a matrix or a batch of matrices, by torch's rules of `matmul`.
struct Sizes {
    batch: Vec<u64>,
    m: u64,
    n: u64,
    k: u64,
}

fn sizes(left: &Tensor, right: &Tensor) -> Result<Sizes, UnknownWork> {
    let (left, right) = (left.dims.as_slice(), right.dims.as_slice());
    let (batch_left, m, k) = match left {
        [] => return Err(UnknownWork::UnreadableShapes),
        [k] => (&left[..0], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
    };
    let (batch_right, k_right, n) = match right {
        [] => return Err(UnknownWork::UnreadableShapes),
        [k] => (&right[..0], *k, 1),
        [batch @ .., k, n] => (batch, *k, *n),
    };
    if k != k_right {
        return Err(UnknownWork::UnreadableShapes);
    }
    Ok(Sizes { batch: super::elementwise::broadcast(batch_left, batch_right)?, m, n, k })
}

fn batched(inputs: &Inputs, left: usize, right: usize, added: Option<usize>) -> Outcome {
    let (left, right) = (inputs.tensor(left)?, inputs.tensor(right)?);
    let Sizes { batch, m, n, k } = sizes(left, right)?;
    let batch = product(&batch)?;
    let times_batch = |factors: &[u64]| product(factors)?.checked_mul(batch).ok_or(UnknownWork::TooLarge);
    // An 8-bit integer product gives 32-bit sums.
    let out = if left.dtype == Dtype::I8 { Dtype::I32 } else { left.dtype };
    let mut tally = moved(Tally::new(left.dtype, Engine::Tensor), [left, right])?.flops(times_batch(&[2, m, n, k])?);
    if let Some(added) = added {
        tally = moved(tally, [inputs.tensor(added)?])?;
    }
    tally.written(times_batch(&[m, n, out.bytes()])?).finish()
}

/// `y[.., n] = x[.., k] W[n, k]^T + b[n]`.
fn linear(inputs: &Inputs) -> Outcome {
    let (x, weight) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (k, n) = (weight.dim(-1)?, if weight.dims.len() == 1 { 1 } else { weight.dim(0)? });
    if x.dim(-1)? != k {
        return Err(UnknownWork::UnreadableShapes);
    }
    let rows = product(&x.dims[..x.dims.len() - 1])?;
    let outputs = rows.checked_mul(u128::from(n)).ok_or(UnknownWork::TooLarge)?;
    let flops = outputs.checked_mul(2 * u128::from(k)).ok_or(UnknownWork::TooLarge)?;
    let tally = moved(Tally::new(x.dtype, Engine::Tensor).flops(flops), [x, weight])?;
    moved(tally, inputs.optional_tensor(2)?)?.written(outputs.saturating_mul(u128::from(x.dtype.bytes()))).finish()
}

/// `_scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype)`: fp8 (or packed fp4) operands, scales read once. The output's type
/// is the named one, else bf16 at least one byte an element.
fn scaled(inputs: &Inputs) -> Outcome {
    let (left, right) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let Sizes { m, n, k, .. } = sizes(left, right)?;
    // A packed element holds two numbers.
    let k = if left.dtype == Dtype::F4x2 { k.checked_mul(2).ok_or(UnknownWork::TooLarge)? } else { k };
    let mut tally = moved(Tally::new(left.dtype, Engine::Tensor).flops(product(&[2, m, n, k])?), [left, right])?;
    for at in 2..5 {
        tally = moved(tally, inputs.optional_tensor(at)?)?;
    }
    let outputs = product(&[m, n])?;
    match inputs.number(6).and_then(Dtype::from_scalar_type) {
        Some(out) => tally.written(outputs.saturating_mul(u128::from(out.bytes()))).finish(),
        None => tally.written_between(outputs, outputs.saturating_mul(4)).finish(),
    }
}
