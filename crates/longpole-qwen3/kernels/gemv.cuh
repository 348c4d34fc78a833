// Matrix times vector for one token, at the memory's speed. A warp takes ROWS rows at a time and 16 bytes a load, UNROLL of each row in flight;
// the next loads are issued before the sums of the last are added up, also across rows. The vector lies in shared memory, normalised on
// the way there if NORM says so: the first weights are under way while it is. (Bringing the rest of
// the rows into the second-level cache meanwhile was tried: on an H200 it made those of the 4B model 8 to 58 % slower.)
#pragma once

#include "common.cuh"

// Puts a vector of bfloat16 into `staged`.
__device__ __forceinline__ void stage(const uint4* x, unsigned int chunks, uint4* staged) {
    for (unsigned int at = threadIdx.x; at < chunks; at += blockDim.x) {
        staged[at] = x[at];
    }
    __syncthreads();
}

// Puts a hidden state, which has 32 bits, there: x / sqrt(mean(x * x) + epsilon) * weight. It is read twice, the second time from the cache.
__device__ __forceinline__ void stage_normed(const float* x, const uint4* weight, float epsilon, unsigned int chunks, uint4* staged, float* sums) {
    float squares = 0.0f;
    for (unsigned int at = threadIdx.x; at < chunks; at += blockDim.x) {
        float value[8];
        load8(x + at * 8, value);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            squares = fmaf(value[i], value[i], squares);
        }
    }
    const float scale = rsqrtf(block_sum(squares, sums) / (float)(chunks * 8) + epsilon);
    for (unsigned int at = threadIdx.x; at < chunks; at += blockDim.x) {
        float value[8], factor[8];
        load8(x + at * 8, value);
        unpacked(weight[at], factor);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] *= scale * factor[i];
        }
        staged[at] = packed8(value);
    }
    __syncthreads();
}

// `row(group, r)` is the row of the matrix that is number r of a group; `done(group, sums)` gets the sums, the same in every lane.
template <bool NORM, int ROWS, int UNROLL, typename Row, typename Done>
__device__ __forceinline__ void gemv(const uint4* __restrict__ w, const void* __restrict__ x, const uint4* __restrict__ norm, float epsilon,
                                     unsigned int groups, unsigned int columns, Row row, Done done) {
    extern __shared__ uint4 staged[];
    __shared__ float sums[32];
    const unsigned int chunks = columns / 8;
    const unsigned int steps = (chunks + 32 * UNROLL - 1) / (32 * UNROLL);
    const unsigned int lane = threadIdx.x % 32;
    const unsigned int stride = gridDim.x * (blockDim.x / 32);
    unsigned int group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    uint4 loaded[ROWS][UNROLL];
    auto load = [&](unsigned int group, unsigned int step) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const unsigned int at = (step * UNROLL + u) * 32 + lane;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                loaded[r][u] = at < chunks ? load_once(w + (unsigned long long)row(group, r) * chunks + at) : make_uint4(0, 0, 0, 0);
            }
        }
    };
    let_next_begin();
    if (group < groups) {
        load(group, 0);
    }
    wait_for_previous();
    if (NORM) {
        stage_normed((const float*)x, norm, epsilon, chunks, staged, sums);
    } else {
        stage((const uint4*)x, chunks, staged);
    }
    unsigned int step = 0;
    float sum[ROWS] = {};
    while (group < groups) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const unsigned int at = (step * UNROLL + u) * 32 + lane;
            const uint4 value = at < chunks ? staged[at] : make_uint4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] = dot8(loaded[r][u], value, sum[r]);
            }
        }
        const unsigned int now = group;
        if (++step == steps) {
            step = 0;
            group += stride;
        }
        if (group < groups) {
            load(group, step);
        }
        if (step == 0) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] = warp_sum(sum[r]);
            }
            done(now, sum);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] = 0.0f;
            }
        }
    }
}
