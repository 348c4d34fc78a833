// out = x / sqrt(mean(x * x) + epsilon) * weight, a block a row, 16 bytes a load. x is the hidden state, which has 32
// bits. A thread keeps its part of the row in registers, so columns are at
// most 8 * CHUNKS for each thread of a block.
#include "common.cuh"

#define CHUNKS 4

__device__ __forceinline__ void finish(float (*value)[8], float squares, const uint4* weight, uint4* out, unsigned int chunks, float epsilon,
                                       float* sums) {
    const float scale = rsqrtf(block_sum(squares, sums) / (float)(chunks * 8) + epsilon);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const unsigned int at = threadIdx.x + c * blockDim.x;
        if (at < chunks) {
            float factor[8];
            unpacked(weight[at], factor);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                value[c][i] *= scale * factor[i];
            }
            out[(unsigned long long)blockIdx.x * chunks + at] = packed8(value[c]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024) rms_norm(const float* __restrict__ x, const uint4* __restrict__ weight, uint4* __restrict__ out,
                                                           unsigned int columns, float epsilon) {
    __shared__ float sums[32];
    const unsigned int chunks = columns / 8;
    float value[CHUNKS][8];
    float squares = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const unsigned int at = threadIdx.x + c * blockDim.x;
        if (at < chunks) {
            load8(x + ((unsigned long long)blockIdx.x * chunks + at) * 8, value[c]);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                squares = fmaf(value[c][i], value[c][i], squares);
            }
        }
    }
    finish(value, squares, weight, out, chunks, epsilon, sums);
}

// The same of residual + delta, 32 bits both, which is kept as the new residual. `kept` may be `residual`.
extern "C" __global__ void __launch_bounds__(1024) add_rms_norm(const float* residual, const float* __restrict__ delta,
                                                               const uint4* __restrict__ weight, float* kept, uint4* __restrict__ out,
                                                               unsigned int columns, float epsilon) {
    __shared__ float sums[32];
    const unsigned int chunks = columns / 8;
    float value[CHUNKS][8];
    float squares = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const unsigned int at = threadIdx.x + c * blockDim.x;
        if (at < chunks) {
            const unsigned long long place = (unsigned long long)blockIdx.x * chunks + at;
            float more[8];
            load8(residual + place * 8, value[c]);
            load8(delta + place * 8, more);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                value[c][i] += more[i];
            }
            store8(kept + place * 8, value[c]);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                squares = fmaf(value[c][i], value[c][i], squares);
            }
        }
    }
    finish(value, squares, weight, out, chunks, epsilon, sums);
}
