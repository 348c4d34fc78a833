//! The kernels a decoder step launches in eager mode, under the names CUPTI reports for them.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Copy,
    ToFloat,
    Pow,
    Mean,
    AddScalar,
    Rsqrt,
    Mul,
    Add,
    Neg,
    Cat,
    Silu,
    Gemv,
    Gemm,
    SplitK,
    Flash,
    FlashCombine,
    Embedding,
    ArgMax,
}

pub(crate) const KERNELS: [Kernel; 18] = [
    Kernel::Copy,
    Kernel::ToFloat,
    Kernel::Pow,
    Kernel::Mean,
    Kernel::AddScalar,
    Kernel::Rsqrt,
    Kernel::Mul,
    Kernel::Add,
    Kernel::Neg,
    Kernel::Cat,
    Kernel::Silu,
    Kernel::Gemv,
    Kernel::Gemm,
    Kernel::SplitK,
    Kernel::Flash,
    Kernel::FlashCombine,
    Kernel::Embedding,
    Kernel::ArgMax,
];

fn vectorized(functor: &str, arrays: u32) -> String {
    format!(
        "void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, {arrays}ul> >(int, at::native::{functor}, std::array<char*, {arrays}ul>)"
    )
}

/// `gpu_kernel_impl_nocast` instances repeat their functor four times, which makes the longest names of a real trace.
fn nocast(functor: &str, reference: &str) -> String {
    let lambda =
        format!("at::native::gpu_kernel_impl_nocast<{functor} >(at::TensorIteratorBase&, {functor} {reference})::{{lambda(int)#1}}");
    format!("void at::native::elementwise_kernel<128, 4, {lambda}>(int, {lambda})")
}

fn lambda_chain(function: &str, numbers: &[u32], argument: &str) -> String {
    let inner: String = numbers.iter().map(|number| lambda(*number)).collect();
    format!("{function}(at::TensorIteratorBase&){inner}::{{lambda({argument})#1}}")
}

fn lambda(number: u32) -> String {
    format!("::{{lambda()#{number}}}::operator()() const")
}

impl Kernel {
    pub(crate) fn name(self) -> String {
        const BF16: &str = "__nv_bfloat16";
        const FLASH: &str = "pytorch_flash::Flash_fwd_kernel_traits<64, 64, 256, 4, false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 64, 256, 4, cutlass::bfloat16_t> >";
        match self {
            Self::Copy => vectorized(&lambda_chain("bfloat16_copy_kernel_cuda", &[], "float"), 2),
            Self::ToFloat => {
                let functor = lambda_chain("direct_copy_kernel_cuda", &[3, 7], "float");
                let tail = "TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>";
                format!(
                    "void at::native::unrolled_elementwise_kernel<at::native::{functor}, std::array<char*, 2ul>, 4, {tail} >(int, at::native::{functor}, std::array<char*, 2ul>, {tail})"
                )
            }
            Self::Pow => vectorized(&lambda_chain("(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>", &[], "float"), 2),
            Self::Mean => reduce("MeanOps<float, float, float, float>", "float"),
            Self::AddScalar => vectorized("CUDAFunctorOnSelf_add<float>", 2),
            Self::Rsqrt => vectorized(&lambda_chain("rsqrt_kernel_cuda", &[2, 2], "float"), 2),
            Self::Mul => nocast(
                "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >",
                "const&",
            ),
            Self::Add => vectorized("CUDAFunctor_add<c10::BFloat16>", 3),
            Self::Neg => nocast(&format!("at::native::{}", lambda_chain("neg_kernel_cuda", &[2, 9], "c10::BFloat16")), "const&"),
            Self::Cat => {
                let opaque = "at::native::(anonymous namespace)::OpaqueType<2u>";
                format!(
                    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<{opaque}, unsigned int, 4, 64, 64, 16>({opaque}*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<{opaque}, unsigned int, 64, 64>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)"
                )
            }
            Self::Silu => vectorized(&lambda_chain("(anonymous namespace)::silu_kernel", &[2, 6], "c10::BFloat16"), 2),
            Self::Gemv => {
                let tensor = |t: &str| format!("cublasGemvTensorStridedBatched<{t}>");
                let input = tensor(&format!("{BF16} const"));
                let params = format!("cublasGemvParamsEx<int, {input}, {input}, {}, float>", tensor(BF16));
                format!(
                    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, {BF16}, {BF16}, {BF16}, float, false, true, true, false, 7, false, {params} >({params})"
                )
            }
            Self::Gemm => "nvjet_tst_128x64_64x8_2x1_v_bz_bias_TNT".to_owned(),
            Self::SplitK => format!(
                "void cublasLt::splitKreduce_kernel<32, 16, int, float, {BF16}, float, {BF16}, true, true, false>(cublasLt::cublasSplitKParams<float>, float const*, {BF16} const*, {BF16}*, float const*, float const*, {BF16} const*, float const*, {BF16}*, void*, long, float*, int*)"
            ),
            Self::Flash => format!(
                "void pytorch_flash::flash_fwd_splitkv_kernel<{FLASH}, false, false, false, false, true, false, true, false>(pytorch_flash::Flash_fwd_params)"
            ),
            Self::FlashCombine => {
                format!("void pytorch_flash::flash_fwd_splitkv_combine_kernel<{FLASH}, 8, 4, true>(pytorch_flash::Flash_fwd_params)")
            }
            Self::Embedding => "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)".to_owned(),
            Self::ArgMax => reduce("ArgMaxOps<float>", "long"),
        }
    }

    pub(crate) fn registers(self) -> i64 {
        16 + 8 * (self as i64 % 20)
    }

    /// cuBLAS's newer matrix kernels are launched through the driver API.
    pub(crate) fn launched_by_driver(self) -> bool {
        self == Self::Gemm
    }
}

fn reduce(ops: &str, output: &str) -> String {
    let op = format!("at::native::ReduceOp<float, at::native::{ops}, unsigned int, {output}, 4, 4>");
    format!("void at::native::reduce_kernel<512, 1, {op} >({op})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_in_table_order() {
        let names: std::collections::BTreeSet<String> = KERNELS.iter().map(|kernel| kernel.name()).collect();
        assert_eq!(names.len(), KERNELS.len());
        assert!(KERNELS.iter().enumerate().all(|(i, kernel)| *kernel as usize == i));
        assert!(names.iter().all(|name| !name.contains(['"', '\\'])));
    }
}
