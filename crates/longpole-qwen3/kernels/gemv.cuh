// Matrix times vector for one token, at the memory's speed.
//
// From compute capability 9.0 on, a block on each multiprocessor has a share of the rows that lies in one piece, and a warp of its own does nothing but
// ask for it: copies of ROWS rows at a time into a ring in shared memory, as many as fit, beginning before the kernel ahead is done, since weights
// are nobody's output. So the memory works on through the end of one kernel and the beginning of the next. The other warps
// wait for the kernel ahead, take their part of the vector into registers, the same columns for every row, and follow the ring.
//
// Before 9.0 a warp takes a row at a time from memory.
#pragma once

#include "common.cuh"
#include "stream.cuh"

// Stages of the ring at most.
#define MAX_STAGES 12

// Eight numbers of a hidden state, which has 32 bits, or zeros behind its end.
__device__ __forceinline__ void load_part(const float* x, unsigned int at, unsigned int chunks, float* to) {
    if (at < chunks) {
        const float4 a = load_now((const float4*)(x + at * 8)), b = load_now((const float4*)(x + at * 8 + 4));
        spread8(a, b, to);
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            to[i] = 0.0f;
        }
    }
}

// What a block is to do: outputs `begin` to `begin + count`.
struct Share {
    unsigned int begin, count;
};

__device__ __forceinline__ Share share_of_block(unsigned int outputs) {
    const unsigned int each = outputs / gridDim.x, more = outputs - each * gridDim.x;
    return {blockIdx.x * each + min(blockIdx.x, more), each + (blockIdx.x < more ? 1 : 0)};
}

// `before(output)` is read by the thread that will finish an output, as soon as the kernel ahead is done, and `done(output, sums, before)` gets it
// back with the sums of the output's rows.
//
// An output has RPO rows, as many rows apart as there are outputs. A thread has CHUNKS pieces of eight columns. Threads of a block: as many as that takes for all columns, rounded up to whole warps, times any number of
// groups that take stages in turn, and a warp for the copies.
template <bool NORM, int RPO, int ROWS, int CHUNKS, typename Before, typename Done>
__device__ __forceinline__ void gemv(const uint4* __restrict__ w, const float* __restrict__ x, const uint4* __restrict__ norm, float epsilon,
                                     unsigned int outputs, unsigned int columns, Before before, Done done) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ float squares_of[32];
    const unsigned int chunks = columns / 8;
    const Share share = share_of_block(outputs);
    const unsigned int lane = threadIdx.x % 32;
#if __CUDA_ARCH__ >= 900
    __shared__ unsigned long long full[MAX_STAGES], empty[MAX_STAGES];
    constexpr int PER = ROWS / RPO;
    const unsigned int row_bytes = columns * 2;
    const unsigned int consumers = blockDim.x - 32;
    const unsigned int group_threads = (chunks + CHUNKS * 32 - 1) / (CHUNKS * 32) * 32;
    const unsigned int group_warps = group_threads / 32, groups = consumers / group_threads;
    const unsigned int steps = (share.count + PER - 1) / PER;
    float* sums = (float*)shared;
    const unsigned int sums_bytes = (steps * ROWS * group_warps * 4 + 127) / 128 * 128;
    unsigned char* ring = shared + sums_bytes;
    const unsigned int stage_bytes = ROWS * row_bytes;
    // A stage is always the same group's: one that had not waited for its last turn would take that turn's barrier for the next one's.
    const unsigned int fit = min((unsigned int)MAX_STAGES, (dynamic_shared_bytes() - sums_bytes) / stage_bytes), stages = fit - fit % groups;
    if (threadIdx.x == 0) {
        for (unsigned int i = 0; i < stages; ++i) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, group_warps);
        }
        barriers_made();
    }
    __syncthreads();
    if (threadIdx.x >= consumers) {
        if (lane == 0) {
            const unsigned char* from = (const unsigned char*)w + (unsigned long long)share.begin * row_bytes;
            const unsigned long long apart = (unsigned long long)outputs * row_bytes;
            unsigned int slot = 0, turn = 0;
#pragma unroll 1
            for (unsigned int left = share.count; left > 0; from += PER * row_bytes) {
                if (turn > 0) {
                    barrier_wait(empty + slot, (turn - 1) & 1);
                }
                const unsigned int now = min((unsigned int)PER, left), bytes = now * row_bytes;
                barrier_expect(full + slot, RPO * bytes);
#pragma unroll
                for (int part = 0; part < RPO; ++part) {
                    copy_to_shared(ring + slot * stage_bytes + part * PER * row_bytes, from + part * apart, bytes, full + slot);
                }
                left -= now;
                if (++slot == stages) {
                    slot = 0;
                    ++turn;
                }
            }
        }
        return;
    }
    const unsigned int group = threadIdx.x / group_threads, within = threadIdx.x % group_threads, warp = within / 32;
    uint4 factor[NORM ? CHUNKS : 1];
    if (NORM) {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const unsigned int at = within + c * group_threads;
            factor[c] = at < chunks ? load_once(norm + at) : make_uint4(0, 0, 0, 0);
        }
    }
    wait_for_previous();
    let_next_begin();
    float value[CHUNKS][8];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        load_part(x, within + c * group_threads, chunks, value[c]);
    }
    const float early = threadIdx.x < share.count ? before(share.begin + threadIdx.x) : 0.0f;
    if (NORM) {
        float squares = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                squares = fmaf(value[c][i], value[c][i], squares);
            }
        }
        squares = warp_sum(squares);
        if (lane == 0) {
            squares_of[threadIdx.x / 32] = squares;
        }
        consumers_meet(consumers);
        float total = 0.0f;
        for (unsigned int i = 0; i < group_warps; ++i) {
            total += squares_of[i];
        }
        const float scale = rsqrtf(total / (float)columns + epsilon);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            float wide[8];
            unpacked(factor[c], wide);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                value[c][i] *= scale * wide[i];
            }
        }
    }
    unsigned int slot = group, parity = 0;
#pragma unroll 1
    for (unsigned int step = group; step < steps; step += groups) {
        const uint4* stage = (const uint4*)(ring + slot * stage_bytes);
        float sum[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            sum[r] = 0.0f;
        }
        barrier_wait(full + slot, parity);
        uint4 row[CHUNKS][ROWS];
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            // Behind the end of a row any piece will do: the vector has zeros there.
            const unsigned int at = min(within + c * group_threads, chunks - 1);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                row[c][r] = stage[r * chunks + at];
            }
        }
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] = dot8(row[c][r], value[c], sum[r]);
            }
        }
        __syncwarp();
        if (lane == 0) {
            barrier_arrive(empty + slot);
        }
        slot += groups;
        if (slot >= stages) {
            slot = group;
            parity ^= 1;
        }
        const float mine = lane_sums<ROWS, 32>(sum, lane);
        if (lane % (32 / ROWS) == 0) {
            sums[(step * ROWS + lane / (32 / ROWS)) * group_warps + warp] = mine;
        }
    }
    consumers_meet(consumers);
    for (unsigned int at = threadIdx.x; at < share.count; at += consumers) {
        float total[RPO];
#pragma unroll
        for (int part = 0; part < RPO; ++part) {
            const float* from = sums + (at / PER * ROWS + part * PER + at % PER) * group_warps;
            total[part] = 0.0f;
            for (unsigned int i = 0; i < group_warps; ++i) {
                total[part] += from[i];
            }
        }
        done(share.begin + at, total, at == threadIdx.x ? early : before(share.begin + at));
    }
#else
    float* staged = (float*)shared;
    float squares = 0.0f;
    for (unsigned int at = threadIdx.x; at < chunks; at += blockDim.x) {
        float value[8];
        load8(x + at * 8, value);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            squares = fmaf(value[i], value[i], squares);
        }
        store8(staged + at * 8, value);
    }
    const float scale = NORM ? rsqrtf(block_sum(squares, squares_of) / (float)columns + epsilon) : 1.0f;
    for (unsigned int at = threadIdx.x; NORM && at < chunks; at += blockDim.x) {
        float value[8], factor[8];
        load8(staged + at * 8, value);
        unpacked(norm[at], factor);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] *= scale * factor[i];
        }
        store8(staged + at * 8, value);
    }
    __syncthreads();
    for (unsigned int at = threadIdx.x / 32; at < share.count; at += blockDim.x / 32) {
        float total[RPO];
#pragma unroll
        for (int part = 0; part < RPO; ++part) {
            const uint4* row = w + (unsigned long long)(share.begin + at + part * outputs) * chunks;
            float sum = 0.0f;
#pragma unroll 4
            for (unsigned int chunk = lane; chunk < chunks; chunk += 32) {
                float value[8];
                load8(staged + chunk * 8, value);
                sum = dot8(load_once(row + chunk), value, sum);
            }
            total[part] = warp_sum(sum);
        }
        if (lane == 0) {
            done(share.begin + at, total, before(share.begin + at));
        }
    }
#endif
}
