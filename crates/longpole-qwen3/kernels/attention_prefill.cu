// Causal attention of many tokens on matrix units. A block takes 64 queries of a head, a warp 16 of them; 64 keys and values lie in shared memory
// while the next 64 are fetched. Scores stay in registers: the sums of a product of 16 x 16 lie as the next product wants its left side. Lines
// of 256 bytes are stored with their 16-byte pieces swapped by line, so that eight lines of a column fall on different banks.
#include "common.cuh"

#define TILE 64

__device__ __forceinline__ unsigned int shared_address(const void* at) {
    return (unsigned int)__cvta_generic_to_shared(at);
}

__device__ __forceinline__ unsigned int place(unsigned int line, unsigned int piece) {
    return line * 256 + ((piece ^ (line & 7)) << 4);
}

__device__ __forceinline__ void matrices(unsigned int (&to)[4], unsigned int at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}

__device__ __forceinline__ void matrices_turned(unsigned int (&to)[4], unsigned int at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

// 64 lines of 256 bytes into shared memory; lines from `there` on are zeros.
__device__ __forceinline__ void fetch(unsigned int to, const uint4* from, unsigned int there) {
    for (unsigned int at = threadIdx.x; at < TILE * 16; at += 128) {
        const unsigned int line = at / 16, piece = at % 16;
        const int bytes = line < there ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + place(line, piece)), "l"(from + (line < there ? at : 0)), "r"(bytes));
    }
}

extern "C" __global__ void __launch_bounds__(128) attention_prefill(const uint4* __restrict__ queries, const uint4* __restrict__ keys,
                                                                   const uint4* __restrict__ values, const unsigned int* __restrict__ first,
                                                                   unsigned int* __restrict__ out, unsigned int tokens, unsigned int heads,
                                                                   unsigned int kv_heads, unsigned int capacity) {
    // Keys and values, twice each.
    extern __shared__ __align__(128) unsigned char tiles[];
    const unsigned int base = shared_address(tiles);
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // The last queries see most, so they come first.
    const unsigned int tile = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, kv_head = head / (heads / kv_heads);
    const unsigned int start = *first, row0 = tile * TILE;
    const unsigned int seen = min(start + min(row0 + TILE, tokens), capacity);
    const unsigned int steps = (seen + TILE - 1) / TILE;
    const uint4* k = keys + (unsigned long long)kv_head * capacity * 16;
    const uint4* v = values + (unsigned long long)kv_head * capacity * 16;
    fetch(base, k, seen);
    fetch(base + 2 * TILE * 256, v, seen);
    asm volatile("cp.async.commit_group;");

    // Left sides of the products with the keys: rows lane / 4 and 8 further, two numbers at 2 * (lane % 4) and 8 further.
    const unsigned int row = row0 + warp * 16 + lane / 4;
    unsigned int q[8][4];
    const unsigned int* line = (const unsigned int*)queries + ((unsigned long long)row * heads + head) * 64 + lane % 4;
    const bool here = row < tokens, there = row + 8 < tokens;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        q[s][0] = here ? line[s * 8] : 0;
        q[s][1] = there ? line[s * 8 + (unsigned long long)heads * 512] : 0;
        q[s][2] = here ? line[s * 8 + 4] : 0;
        q[s][3] = there ? line[s * 8 + 4 + (unsigned long long)heads * 512] : 0;
    }
    float sum[16][4] = {};
    float top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
    const float scale = 0.08838834764831845f * 1.4426950408889634f;
    const unsigned int matrix = lane / 8, inner = lane % 8;
    for (unsigned int step = 0; step < steps; ++step) {
        const unsigned int key0 = step * TILE, buffer = step % 2;
        if (step + 1 < steps) {
            const unsigned long long next = (unsigned long long)(key0 + TILE) * 16;
            fetch(base + (1 - buffer) * TILE * 256, k + next, seen - key0 - TILE);
            fetch(base + (3 - buffer) * TILE * 256, v + next, seen - key0 - TILE);
            asm volatile("cp.async.commit_group;");
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        const unsigned int k_at = base + buffer * TILE * 256, v_at = base + (2 + buffer) * TILE * 256;
        float score[8][4] = {};
#pragma unroll
        for (int s = 0; s < 8; ++s) {
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                unsigned int b[4];
                matrices(b, k_at + place(n * 16 + (matrix >> 1) * 8 + inner, s * 2 + (matrix & 1)));
                multiply(score[2 * n], q[s][0], q[s][1], q[s][2], q[s][3], b[0], b[1]);
                multiply(score[2 * n + 1], q[s][0], q[s][1], q[s][2], q[s][3], b[2], b[3]);
            }
        }
        // Only the last keys of a tile's queries lie ahead of some of them.
        if (key0 + TILE - 1 > start + row0) {
            const unsigned int reach = start + row;
#pragma unroll
            for (int n = 0; n < 8; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const unsigned int key = key0 + n * 8 + lane % 4 * 2 + i % 2;
                    score[n][i] = key <= reach + i / 2 * 8 ? score[n][i] : -1e30f;
                }
            }
        }
        float highest[2] = {top[0], top[1]};
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                highest[i / 2] = fmaxf(highest[i / 2], score[n][i]);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            highest[h] = fmaxf(highest[h], __shfl_xor_sync(0xffffffffu, highest[h], 1));
            highest[h] = fmaxf(highest[h], __shfl_xor_sync(0xffffffffu, highest[h], 2));
            const float keep = power_of_two((top[h] - highest[h]) * scale);
            top[h] = highest[h];
            total[h] *= keep;
#pragma unroll
            for (int n = 0; n < 16; ++n) {
                sum[n][2 * h] *= keep;
                sum[n][2 * h + 1] *= keep;
            }
        }
        // Every row sees its first key, which lies in the first step, so `top` is a score from then on and what is masked becomes 0.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                score[n][i] = power_of_two(fmaf(score[n][i], scale, -top[i / 2] * scale));
                total[i / 2] += score[n][i];
            }
        }
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const unsigned int a[4] = {packed(score[2 * s][0], score[2 * s][1]), packed(score[2 * s][2], score[2 * s][3]),
                                       packed(score[2 * s + 1][0], score[2 * s + 1][1]), packed(score[2 * s + 1][2], score[2 * s + 1][3])};
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                unsigned int b[4];
                matrices_turned(b, v_at + place(s * 16 + (matrix & 1) * 8 + inner, n * 2 + (matrix >> 1)));
                multiply(sum[2 * n], a[0], a[1], a[2], a[3], b[0], b[1]);
                multiply(sum[2 * n + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        if (row + 8 * h < tokens) {
            unsigned int* to = out + ((unsigned long long)(row + 8 * h) * heads + head) * 64 + lane % 4;
#pragma unroll
            for (int n = 0; n < 16; ++n) {
                to[n * 4] = packed(sum[n][2 * h] / total[h], sum[n][2 * h + 1] / total[h]);
            }
        }
    }
}
