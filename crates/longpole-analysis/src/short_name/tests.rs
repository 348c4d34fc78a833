use proptest::prelude::*;

use super::*;

#[test]
fn names_of_nvidias_demangler_get_the_same_short_names() {
    for (full, short) in [
        (
            "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<\
             c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase &, \
             const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
            "elementwise<MulFunctor<bf16>>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<(int)8, at::native::<unnamed>::silu_kernel(at::TensorIteratorBase &)::\
             [lambda() (instance 1)]::operator ()() const::[lambda() (instance 6)]::operator ()() const::[lambda(c10::BFloat16) \
             (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
            "elementwise<silu<bf16>>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<(int)4, void at::native::<unnamed>::pow_tensor_scalar_kernel_impl<float, \
             float>(at::TensorIteratorBase &, T2)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
            "elementwise<pow_tensor_scalar<f32>>",
        ),
        ("gemv_row_per_thread(const __nv_bfloat16 *, const __nv_bfloat16 *, float *, int, int)", "gemv_row_per_thread"),
    ] {
        assert_eq!(short_name(full), short);
    }
}

/// Names as recorded; only trailing argument lists are cut.
const RECORDED: &[(&str, &str)] = &[
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, \
         at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16>)",
        "elementwise<MulFunctor<bf16>>",
    ),
    (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(\
         at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1}>(\
         at::TensorIteratorBase&, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::\
         {lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1} const&)::{lambda(int)#1}>(int)",
        "elementwise<neg<bf16>>",
    ),
    (
        "void at::native::elementwise_kernel<128, 4, gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(...)::{lambda...}>",
        "elementwise<neg>",
    ),
    (
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, \
         at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, int)::{lambda(int)#1}>(int)",
        "elementwise<MulFunctor<f32>>",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(\
         at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "elementwise<pow_tensor_scalar<f32>>",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)",
        "elementwise<CUDAFunctor_add<bf16>>",
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, \
         float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>)",
        "reduce<MeanOps<f32>>",
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, \
         at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(int)",
        "reduce<sum_functor<f32>>",
    ),
    (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(int)",
        "CatArrayBatchedCopy<2B>",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
        "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
    ),
    (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, \
         cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<6, cute::tuple<cute::C<1>, cute::C<1>, \
         cute::C<1> > >, cute::tuple<cute::C<128>, cute::C<128>, cute::C<64> > > > >(int)",
        "cutlass_gemm_sm90_128x128x64",
    ),
    ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::Mainloop<2> > >(flash::Params)", "FlashAttnFwdSm90"),
    ("nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN", "nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN"),
    (
        "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, true>(Flash_fwd_params)",
        "flash_fwd_splitkv",
    ),
    ("triton_poi_fused__unsafe_view_mul_silu_10", "triton_poi_fused__unsafe_view_mul_silu_10"),
    ("triton_per_fused__to_copy__unsafe_view_add_embedding_mean_mul_pow_rsqrt_11", "triton_per_fused__to_copy__unsafe_view_add..._11"),
    ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f16_RING_LL"),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>(cublasLt::cublasSplitKParams<float>)",
        "splitKreduce<f32>",
    ),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16EEEvPT0_", "add_rmsnorm_quant"),
    ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassIDF16bEEEEEvT_", "Rmsnorm2dFwd"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x16x64_MI16x16x1_SN_LDSB1_AFC1", "Cijk_Alik_Bljk_BBS_BH_MT256x16x64"),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16>(cublasGemvParams)", "gemvx::kernel<bf16>"),
    (
        "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 1, false, false>(int)",
        "softmax_warp_forward<bf16>",
    ),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "rotary_embedding<bf16>"),
];

#[test]
fn recorded_names_become_readable() {
    for (full, expected) in RECORDED {
        assert_eq!(short_name(full), *expected, "{full}");
    }
}

#[test]
fn names_with_line_breaks_or_backslashes_are_kept_whole() {
    for (full, expected) in [
        ("C:\\Users\\bob\\kern\new", "C:\\Users\\bob\\kern ew"),
        ("C:\\kernels\\fast(int)", "C:\\kernels\\fast(int)"),
        ("gemm\nsecond line", "gemm second line"),
        ("trailing\n", "trailing"),
    ] {
        assert_eq!(short_name(full), expected);
    }
}

#[test]
fn damaged_names_still_have_a_name() {
    for name in
        ["", " ", "\n", "<", ">>>", "(((", "{lambda()#1}", "::", "a<b(c", "void ", "_Z", "_ZN", "_ZN99999999999999999999x", "é<ü", "_Z3é"]
    {
        let short = short_name(name);
        assert!(!short.is_empty() && !short.contains('\n'), "{name:?} became {short:?}");
    }
}

#[test]
fn a_hash_tells_names_apart_and_stays_within_the_limit() {
    let long = "x".repeat(MAX_CHARS);
    let (a, b) = (with_hash(&long, "first", 4), with_hash(&long, "second", 4));
    assert_ne!(a, b);
    assert_eq!(a.chars().count(), MAX_CHARS);
    assert_eq!(with_hash("reduce", "first", 4), with_hash("reduce", "first", 4));
    assert!(with_hash("reduce", "first", 4).starts_with("reduce#"));
}

proptest! {
    #[test]
    fn any_text_has_a_bounded_name(name in "(void |at::|<|>|\\(|\\)|\\{lambda\\(|::|, |->|_Z[N0-9]*|kernel|é|[a-zA-Z0-9_]{1,9}|\\PC){0,30}") {
        let short = short_name(&name);
        prop_assert!(!short.is_empty());
        prop_assert!(short.chars().count() <= MAX_CHARS);
        prop_assert!(with_hash(&short, &name, 8).chars().count() <= MAX_CHARS);
    }
}
