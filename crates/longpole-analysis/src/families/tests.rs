use super::*;

/// Real names, and short forms of real names that keep the traps.
const EXAMPLES: &[(Family, &[&str])] = &[
    (
        Family::Gemm,
        &[
            "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT",
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(cublasLt::cublasSplitKParams<float>)",
            "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const> > >(int)",
            "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float> >(float const*)",
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2>(int)",
            "void internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16>(int)",
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN",
            "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34GridwiseGemmMultiD_xdl_cshuffle_v3I",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
            "volta_scudnn_128x64_relu_xregs_large_nn_v1",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
            "fused_moe_kernel",
            "triton_tem_fused_mm_0",
            "triton_mm",
            "void winogradForwardOutput4x4<float, float>(int)",
            "void marlin::Marlin<__nv_bfloat16, 4, 256>(int4 const*)",
            "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32",
            "void epilogue::impl::globalKernel<float, float, float, true, true>(int, cublasLtEpilogue_t)",
        ],
    ),
    (
        Family::Attention,
        &[
            "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_35_16x128x128_1x4x1_cga1x1x1_kernel0_0",
            "void cudnn::fusion::lean_reduction_kernel<false, false, false>(void*, float*)",
            "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(Flash_fwd_params)",
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128> >(int)",
            "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >(int)",
            "fmha_cutlassF_bf16_aligned_64x128_rf_sm80",
            "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelI",
            "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2, 4, 8>(int)",
            "void flashinfer::PersistentVariableLengthMergeStatesKernel<8>(int)",
            "void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>(float*)",
            "kernel_unified_attention_3d",
            "reduce_segments",
            "flash_fwd_mla_combine_kernel",
            "attn_fwd",
            "_fwd_grouped_kernel_stage1",
            "triton_tem_fused_flex_attention_0",
        ],
    ),
    (
        Family::Norm,
        &[
            "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
            "void vllm::rms_norm_static_fp8_quant_kernel<c10::BFloat16>(int)",
            "void flashinfer::norm::FusedAddRMSNormKernel<8, __nv_bfloat16>(int)",
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16EEEvPT0_",
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
            "void at::native::batch_norm_collect_statistics_kernel<at::native::Var, c10::BFloat16>(int)",
            "void at::native::(anonymous namespace)::unrolled_elementwise_kernel_for_multi_outputs<3, at::native::(anonymous namespace)::batch_norm_update_stats_and_invert(int)>",
            "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnnTensorStruct)",
            "triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0",
            "triton_per_fused_native_layer_norm_0",
        ],
    ),
    (
        Family::Elementwise,
        &[
            "void at::native::vectorized_elementwise_kernel<4, at::native::softmax_backward_something(int)::{lambda(float)#1}>(int)",
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::Half> > >(int)",
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::reduce_like_functor<float> > >(int)",
            "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>, 4, LoadWithCast<2>, StoreWithCast<1> >(int)",
            "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(c10::Scalar const&)>(int)",
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float> >(int)",
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(int)",
            "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(int)",
            "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
            "triton_poi_fused__softmax_add_0",
            "triton_poi_fused_all_reduce_mul_3",
            "SubTensorOpWithCastTensor1d",
        ],
    ),
    (
        Family::CopyCast,
        &[
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}> >(int)",
            "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>(int)",
            "void at::native::vectorized_elementwise_kernel<8, at::native::float16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>(int)",
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(int)::{lambda(float)#1}, LoadWithCast<1>, StoreWithCast<1> >(int)",
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<OpaqueType<2u>, unsigned int, 3>(char*)",
            "batched_transpose_32x32_half",
            "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)",
            "void vllm::scaled_fp8_quant_kernel<c10::BFloat16>(int)",
            "per_token_group_quant_8bit_kernel",
        ],
    ),
    (
        Family::GatherScatter,
        &[
            "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>(int)",
            "void at::native::index_elementwise_kernel<128, 4, at::native::index_copy_kernel_impl<at::native::OpaqueType<2> > >(long)",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
            "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
            "void split_embedding_codegen_forward_unweighted_kernel<float, float>(fbgemm_gpu::FixedDivisor)",
            "void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)",
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(int)",
            "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>(int)",
            "create_flashinfer_kv_indices_triton",
            "void vllm::moe::moe_align_block_size_kernel<int>(int)",
        ],
    ),
    (
        Family::Reduction,
        &[
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float> > >(int)",
            "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*, int*>(int)",
            "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int)",
            "triton_per_fused_add_arange_cat_cumsum_ne_slice_sub_unsqueeze_5",
            "_sum_bitmatrix_rows",
        ],
    ),
    (
        Family::SoftmaxSampling,
        &[
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(int)",
            "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float>(int)",
            "void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, true>(float*)",
            "void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>(int)",
            "void at::native::bitonicSortKVInPlace<2, -1, 16, 16, c10::BFloat16, long>(int)",
            "void flashinfer::sampling::TopPSamplingFromProbKernel<1024>(float*)",
            "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(int)",
            "triton_red_fused__softmax_0",
            "triton_red_fused_argmax_0",
            "_topk_forward",
        ],
    ),
    (
        Family::Communication,
        &[
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)",
            "void one_shot_all_reduce_kernel<2>(int)",
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<RMSNorm>(int)",
        ],
    ),
    (Family::Other, &["Kernel", "my_kernel", ""]),
];

#[test]
fn recorded_names_have_their_family() {
    for (family, names) in EXAMPLES {
        for name in *names {
            assert_eq!(Family::of(ActivityKind::Kernel, name), *family, "{name}");
        }
    }
}

#[test]
fn copies_and_fills_are_told_by_kind_not_by_name() {
    assert_eq!(Family::of(ActivityKind::Memcpy, "ncclKernel"), Family::Memcpy);
    assert_eq!(Family::of(ActivityKind::Memset, "Memset (Device)"), Family::Memset);
}

#[test]
fn every_family_but_three_has_a_rule() {
    for family in Family::ALL {
        let ruled = RULES.iter().any(|rule| rule.family == *family);
        assert_eq!(ruled, !matches!(family, Family::Memcpy | Family::Memset | Family::Other), "{}", family.name());
    }
}
