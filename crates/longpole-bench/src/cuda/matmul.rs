//! Matrix products by cuBLASLt.

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::cublaslt::{result, sys};

use crate::measure::Error;

use super::kernel::missing;
use super::{Buffer, Cuda};

/// Bytes of scratch memory that an algorithm may use: what cuBLAS's own documentation advises for Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;

/// `CUBLAS_OP_T` of `cublasOperation_t`, which the bindings of cuBLASLt do not carry (cuBLAS documentation, 2.2.4).
const TRANSPOSED: i32 = 1;

/// The types of the numbers of a product, and by which units it is computed. Sums are in 32 bits always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// bfloat16.
    Bf16,
    /// IEEE half precision.
    F16,
    /// 32-bit numbers, rounded to TF32 before they are multiplied.
    Tf32,
}

impl Number {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::Tf32 => "tf32",
        }
    }

    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 => 2,
            Self::Tf32 => 4,
        }
    }

    fn types(self) -> (sys::cudaDataType, sys::cublasComputeType_t) {
        match self {
            Self::Bf16 => (sys::cudaDataType::CUDA_R_16BF, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F),
            Self::F16 => (sys::cudaDataType::CUDA_R_16F, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F),
            Self::Tf32 => (sys::cudaDataType::CUDA_R_32F, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32),
        }
    }
}

/// A product `out[m][n] = sum over k of a[m][k] * b[n][k]`, all row after row: a linear layer, whose weights are `b`.
pub struct Matmul {
    handle: sys::cublasLtHandle_t,
    desc: sys::cublasLtMatmulDesc_t,
    /// Of the weights, the inputs and the outputs, as cuBLAS sees them: column after column, so everything is transposed.
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
    workspace: Rc<Buffer>,
    /// Bytes of a, b and out.
    bytes: [usize; 3],
}

fn said(call: &'static str) -> impl Fn(result::CublasError) -> Error {
    move |error| Error::call(call, format!("{:?}", error.0))
}

/// Handles made so far, destroyed if making the others fails.
#[derive(Default)]
struct Parts {
    handle: Option<sys::cublasLtHandle_t>,
    desc: Option<sys::cublasLtMatmulDesc_t>,
    layouts: Vec<sys::cublasLtMatrixLayout_t>,
    preference: Option<sys::cublasLtMatmulPreference_t>,
}

impl Drop for Parts {
    fn drop(&mut self) {
        // SAFETY: every handle was made once and is destroyed here only; nothing is done about a failure.
        unsafe {
            if let Some(preference) = self.preference {
                let _ = result::destroy_matmul_pref(preference);
            }
            for layout in self.layouts.drain(..) {
                let _ = result::destroy_matrix_layout(layout);
            }
            if let Some(desc) = self.desc {
                let _ = result::destroy_matmul_desc(desc);
            }
            if let Some(handle) = self.handle {
                let _ = result::destroy_handle(handle);
            }
        }
    }
}

impl Matmul {
    /// Prepares a product; cuBLASLt's first choice of algorithm is taken.
    pub fn new(driver: &Cuda, number: Number, m: u32, n: u32, k: u32) -> Result<Self, Error> {
        Self::sharing(number, false, [m, n, k], &Self::workspace(driver)?)
    }

    /// Scratch memory, which products that run one after the other can share.
    pub fn workspace(driver: &Cuda) -> Result<Rc<Buffer>, Error> {
        Ok(Rc::new(driver.allocate(WORKSPACE_BYTES)?))
    }

    /// The same with scratch memory that others use too, and with outputs of 32 bits if they are to be `wide`.
    pub fn sharing(number: Number, wide: bool, [m, n, k]: [u32; 3], workspace: &Rc<Buffer>) -> Result<Self, Error> {
        // SAFETY: it opens a library whose constructors are those of cuBLASLt.
        if !unsafe { sys::is_culib_present() } {
            return Err(missing("cuBLASLt, CUDA's library of matrix products,", "libcublasLt.so"));
        }
        let (data, compute) = number.types();
        let mut parts = Parts::default();
        let handle = *parts.handle.insert(result::create_handle().map_err(said("cublasLtCreate"))?);
        let made = result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F).map_err(said("cublasLtMatmulDescCreate"))?;
        let desc = *parts.desc.insert(made);
        let transposed = TRANSPOSED;
        let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
        let (value, bytes) = (std::ptr::from_ref(&transposed).cast(), size_of_val(&transposed));
        // SAFETY: descriptor and value are valid, and the value is copied.
        unsafe { result::set_matmul_desc_attribute(desc, attribute, value, bytes) }.map_err(said("cublasLtMatmulDescSetAttribute"))?;
        let out = if wide { sys::cudaDataType::CUDA_R_32F } else { data };
        for (rows, columns, data) in [(k, n, data), (k, m, data), (n, m, out)] {
            let layout = result::create_matrix_layout(data, u64::from(rows), u64::from(columns), i64::from(rows));
            parts.layouts.push(layout.map_err(said("cublasLtMatrixLayoutCreate"))?);
        }
        let [weights, inputs, outputs] = [parts.layouts[0], parts.layouts[1], parts.layouts[2]];
        let preference = *parts.preference.insert(result::create_matmul_pref().map_err(said("cublasLtMatmulPreferenceCreate"))?);
        let attribute = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let room = workspace.bytes();
        let (value, bytes) = (std::ptr::from_ref(&room).cast(), size_of_val(&room));
        // SAFETY: as above.
        unsafe { result::set_matmul_pref_attribute(preference, attribute, value, bytes) }
            .map_err(said("cublasLtMatmulPreferenceSetAttribute"))?;
        // SAFETY: all handles are valid.
        let found = unsafe { result::get_matmul_algo_heuristic(handle, desc, weights, inputs, outputs, outputs, preference) };
        let algorithm = found.map_err(said("cublasLtMatmulAlgoGetHeuristic"))?.algo;
        let workspace = workspace.clone();
        let out_bytes = if wide { 4 } else { number.bytes() };
        let sizes = [(m, k, number.bytes()), (n, k, number.bytes()), (m, n, out_bytes)];
        let sizes = sizes.map(|(rows, columns, bytes)| rows as usize * columns as usize * bytes);
        // The handles change owner; what is left in `parts` is destroyed.
        parts.handle = None;
        parts.desc = None;
        parts.layouts.clear();
        Ok(Self { handle, desc, layouts: [weights, inputs, outputs], algorithm, workspace, bytes: sizes })
    }

    /// Enqueues the product.
    pub fn launch(&self, driver: &mut Cuda, a: &Buffer, b: &Buffer, out: &Buffer) -> Result<(), Error> {
        if [a.bytes(), b.bytes(), out.bytes()] != self.bytes {
            return Err(Error::Setup(format!("a product of buffers of {:?} bytes was prepared for others", self.bytes)));
        }
        // SAFETY: the buffers are as long as the product says.
        unsafe { self.launch_at(driver, a.address(), b.address(), out.address()) }
    }

    /// Enqueues the product of what lies at addresses.
    ///
    /// # Safety
    ///
    /// The inputs, the weights and the outputs must be as long as the product was prepared for, and live until it is done.
    pub unsafe fn launch_at(&self, driver: &mut Cuda, a: u64, b: u64, out: u64) -> Result<(), Error> {
        let (one, zero) = (1.0f32, 0.0f32);
        let pointer = |address: u64| address as *mut c_void;
        let [weights, inputs, outputs] = self.layouts;
        driver.launched += 1;
        // SAFETY: all handles are valid, the rest is the caller's, and the factors are read before the call returns.
        unsafe {
            result::matmul(
                self.handle,
                self.desc,
                std::ptr::from_ref(&one).cast(),
                std::ptr::from_ref(&zero).cast(),
                pointer(b),
                weights,
                pointer(a),
                inputs,
                pointer(out),
                outputs,
                pointer(out),
                outputs,
                &raw const self.algorithm,
                pointer(self.workspace.address()),
                self.workspace.bytes(),
                driver.stream.cast(),
            )
        }
        .map_err(said("cublasLtMatmul"))
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        drop(Parts { handle: Some(self.handle), desc: Some(self.desc), layouts: self.layouts.to_vec(), preference: None });
    }
}

/// Numbers as bfloat16 in the bytes of this machine, rounded to the nearest, ties to even; NaN stays NaN.
pub fn bf16_bytes(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let round = |value: f32| {
        let bits = value.to_bits();
        let kept = if value.is_nan() { bits | 0x0040_0000 } else { bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) };
        ((kept >> 16) as u16).to_ne_bytes()
    };
    values.into_iter().flat_map(round).collect()
}

/// Numbers of bfloat16 in the bytes of this machine, exactly.
pub fn f32_of_bf16(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(2).map(|pair| f32::from_bits(u32::from(u16::from_ne_bytes([pair[0], pair[1]])) << 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_rounded_to_the_nearest() {
        let there_and_back = |value: f32| f32_of_bf16(&bf16_bytes([value]))[0];
        for exact in [0.0, -0.0, 1.0, -2.5, 0.007_812_5, f32::INFINITY] {
            assert_eq!(there_and_back(exact).to_bits(), exact.to_bits());
        }
        assert!(there_and_back(f32::NAN).is_nan());
        // Eight bits of mantissa: halfway between 1 and 1 + 2^-7 goes to the even one.
        assert_eq!(there_and_back(1.0 + 0.003_906_25).to_bits(), 1.0f32.to_bits());
        assert_eq!(there_and_back(1.0 + 3.0 * 0.003_906_25).to_bits(), (1.0f32 + 4.0 * 0.003_906_25).to_bits());
        assert!(there_and_back(f32::MAX).is_infinite());
        // The pattern of poisoned outputs.
        assert!(f32_of_bf16(&[0xFF, 0xFF])[0].is_nan());
    }
}
