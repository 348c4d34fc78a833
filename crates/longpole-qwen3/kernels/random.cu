// Seeded weights: numbers evenly spread around `middle` by `half` to each side, rounded to bfloat16, which is what models are
// published in, and then as kernels here read them. Number i is the finaliser of MurmurHash3 (32 bits) of
// i + seed * 0x9E3779B1, of which the upper 24 bits count, so that the host and other frameworks can make the very same.
#include "common.cuh"

// Rounded to the nearest bfloat16, ties to even.
__device__ __forceinline__ float as_bf16(float value) {
    const unsigned int bits = __float_as_uint(value);
    return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

extern "C" __global__ void __launch_bounds__(256) random_f16(f16* __restrict__ out, unsigned long long count, unsigned int seed, float middle,
                                                             float half) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        unsigned int bits = (unsigned int)at + seed * 0x9E3779B1u;
        bits ^= bits >> 16;
        bits *= 0x85EBCA6Bu;
        bits ^= bits >> 13;
        bits *= 0xC2B2AE35u;
        bits ^= bits >> 16;
        const float even = __fsub_rn(__fmul_rn((float)(bits >> 8), 1.0f / 8388608.0f), 1.0f);
        out[at] = rounded(as_bf16(__fadd_rn(__fmul_rn(even, half), middle)));
    }
}
