// Attention of one token in one launch: its query heads are normalised and rotated, its key is too and goes into the cache with its value, the
// context is split over blocks (32 at most), and the block of a key/value head that finishes last puts the splits together. A block serves the GROUP query
// heads that share a key/value head. 16 lanes read a key or value of 256 bytes, so a warp reads two positions a load and has four such loads of
// each under way.
#include "common.cuh"

#define WARPS 8
#define UNROLL 4

// Keys and values change within this launch, so they are read as what may; volatile, to be under way where it is written.
__device__ __forceinline__ uint4 load_plain(const uint4* from) {
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w) : "l"(from) : "memory");
    return value;
}

template <int GROUP>
__device__ __forceinline__ void attention(const unsigned int* __restrict__ qkv, const unsigned int* __restrict__ q_weight,
                                          const unsigned int* __restrict__ k_weight, const float* __restrict__ cosines,
                                          const float* __restrict__ sines, const unsigned int* __restrict__ position, unsigned int* keys,
                                          unsigned int* values, float* partial, unsigned int* arrived, bf16* __restrict__ out,
                                          unsigned int kv_heads, unsigned int capacity, float epsilon) {
    // Rounded as the cache is: half the registers.
    __shared__ __align__(16) unsigned int q[GROUP][64];
    __shared__ float merged[WARPS][GROUP][128];
    __shared__ float tops[WARPS][GROUP], totals[WARPS][GROUP];
    __shared__ float shares[GROUP][32];
    __shared__ bool last;
    const unsigned int kv_head = blockIdx.x, split = blockIdx.y, splits = gridDim.y;
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned int heads = kv_heads * GROUP;
    let_next_begin();
    wait_for_previous();
    const unsigned int now = min(*position, capacity - 1);
    const unsigned int length = (now + splits) / splits;
    const unsigned int begin = split * length, end = min(begin + length, now + 1);
    unsigned int* k_cache = keys + (unsigned long long)kv_head * capacity * 64;
    unsigned int* v_cache = values + (unsigned long long)kv_head * capacity * 64;
    const bool owner = begin <= now && now < end;
    const unsigned int half = lane / 16, part = lane % 16;
    // The first keys and values are under way while queries are prepared. What the owner of the newest position reads there is old, and read again.
    uint4 key[UNROLL], value[UNROLL];
    auto load = [&](unsigned int from) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const unsigned int at = min(from + 2 * u + half, end - 1);
            key[u] = load_plain((const uint4*)k_cache + (unsigned long long)at * 16 + part);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const unsigned int at = min(from + 2 * u + half, end - 1);
            value[u] = load_plain((const uint4*)v_cache + (unsigned long long)at * 16 + part);
        }
    };
    unsigned int from = begin + warp * 2 * UNROLL;
    if (from < end) {
        load(from);
    }
    const float *cosine = cosines + (unsigned long long)now * 64, *sine = sines + (unsigned long long)now * 64;
    for (unsigned int job = warp; job < GROUP + 2; job += WARPS) {
        if (job < GROUP) {
            const float4 value = normed_rotated(qkv + (kv_head * GROUP + job) * 64, q_weight, cosine, sine, lane, epsilon);
            q[job][lane] = packed(value.x, value.y);
            q[job][lane + 32] = packed(value.z, value.w);
        } else if (owner && job == GROUP) {
            const float4 value = normed_rotated(qkv + (heads + kv_head) * 64, k_weight, cosine, sine, lane, epsilon);
            k_cache[(unsigned long long)now * 64 + lane] = packed(value.x, value.y);
            k_cache[(unsigned long long)now * 64 + lane + 32] = packed(value.z, value.w);
        } else if (owner) {
            const unsigned int* from = qkv + (heads + kv_heads + kv_head) * 64;
            v_cache[(unsigned long long)now * 64 + lane] = from[lane];
            v_cache[(unsigned long long)now * 64 + lane + 32] = from[lane + 32];
        }
    }
    __syncthreads();
    if (owner && from <= now && now < from + 2 * UNROLL) {
        load(from);
    }
    // Scores count in powers of two.
    const float scale = 0.08838834764831845f * 1.4426950408889634f;
    uint4 mine[GROUP];
    float sum[GROUP][8], top[GROUP], total[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; ++g) {
        top[g] = -1e30f;
        total[g] = 0.0f;
        mine[g] = ((const uint4*)q[g])[part];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            sum[g][i] = 0.0f;
        }
    }
    while (from < end) {
        float score[GROUP][UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
            for (int g = 0; g < GROUP; ++g) {
                float dot = dot8(key[u], mine[g], 0.0f);
#pragma unroll
                for (int distance = 8; distance > 0; distance /= 2) {
                    dot += __shfl_xor_sync(0xffffffffu, dot, distance);
                }
                score[g][u] = from + 2 * u + half < end ? dot * scale : -1e30f;
            }
        }
#pragma unroll
        for (int g = 0; g < GROUP; ++g) {
            float highest = top[g];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                highest = fmaxf(highest, score[g][u]);
            }
            const float keep = power_of_two(top[g] - highest);
            top[g] = highest;
            total[g] *= keep;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                sum[g][i] *= keep;
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const bool there = from + 2 * u + half < end;
            float wide[8];
            unpacked(value[u], wide);
#pragma unroll
            for (int g = 0; g < GROUP; ++g) {
                const float share = there ? power_of_two(score[g][u] - top[g]) : 0.0f;
                total[g] += share;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    sum[g][i] = fmaf(share, wide[i], sum[g][i]);
                }
            }
        }
        from += WARPS * 2 * UNROLL;
        if (from < end) {
            load(from);
        }
    }
    // The two halves of a warp, then its warps.
#pragma unroll
    for (int g = 0; g < GROUP; ++g) {
        const float other = __shfl_xor_sync(0xffffffffu, top[g], 16);
        const float highest = fmaxf(top[g], other), keep = power_of_two(top[g] - highest);
        total[g] *= keep;
        total[g] += __shfl_xor_sync(0xffffffffu, total[g], 16);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float kept = sum[g][i] * keep;
            sum[g][i] = kept + __shfl_xor_sync(0xffffffffu, kept, 16);
        }
        if (half == 0) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                merged[warp][g][part * 8 + i] = sum[g][i];
            }
            if (part == 0) {
                tops[warp][g] = highest;
                totals[warp][g] = total[g];
            }
        }
    }
    __syncthreads();
    // Of a split and head: 128 sums, the largest score, the total.
    for (unsigned int at = threadIdx.x; at < GROUP * 128; at += WARPS * 32) {
        const unsigned int g = at / 128, i = at % 128;
        float highest = tops[0][g];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            highest = fmaxf(highest, tops[w][g]);
        }
        float value = 0.0f, all = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const float keep = power_of_two(tops[w][g] - highest);
            value = fmaf(keep, merged[w][g][i], value);
            all = fmaf(keep, totals[w][g], all);
        }
        if (splits == 1) {
            out[(kv_head * GROUP + g) * 128 + i] = rounded(value / all);
        } else {
            float* to = partial + ((unsigned long long)(kv_head * GROUP + g) * splits + split) * 130;
            to[i] = value;
            if (i == 0) {
                to[128] = highest;
                to[129] = all;
            }
        }
    }
    if (splits == 1) {
        return;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrived + kv_head, 1) == splits - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    // A warp a head: lane s knows what split s counts for.
    const float* splits_of = partial + (unsigned long long)kv_head * GROUP * splits * 130;
    for (unsigned int g = warp; g < GROUP; g += WARPS) {
        const float* mine_of = splits_of + (unsigned long long)(g * splits + min(lane, splits - 1)) * 130;
        const float own = lane < splits ? __ldcg(mine_of + 128) : -1e30f;
        float highest = own;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, distance));
        }
        const float keep = lane < splits ? power_of_two(own - highest) : 0.0f;
        const float all = warp_sum(keep > 0.0f ? keep * __ldcg(mine_of + 129) : 0.0f);
        shares[g][lane] = keep / all;
    }
    __syncthreads();
    for (unsigned int at = threadIdx.x; at < GROUP * 128; at += WARPS * 32) {
        const unsigned int g = at / 128, i = at % 128;
        const float* from_split = splits_of + (unsigned long long)g * splits * 130 + i;
        float value = 0.0f;
#pragma unroll 16
        for (unsigned int s = 0; s < splits; ++s) {
            value = fmaf(shares[g][s], __ldcg(from_split + s * 130), value);
        }
        out[(kv_head * GROUP + g) * 128 + i] = rounded(value);
    }
    if (threadIdx.x == 0) {
        arrived[kv_head] = 0;
    }
}

#define KERNEL(GROUP)                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(WARPS * 32, 2) attention_decode_##GROUP(                                                          \
        const unsigned int* __restrict__ qkv, const unsigned int* __restrict__ q_weight, const unsigned int* __restrict__ k_weight,             \
        const float* __restrict__ cosines, const float* __restrict__ sines, const unsigned int* __restrict__ position, unsigned int* keys,      \
        unsigned int* values, float* partial, unsigned int* arrived, bf16* __restrict__ out, unsigned int kv_heads, unsigned int capacity,      \
        float epsilon) {                                                                                                                        \
        attention<GROUP>(qkv, q_weight, k_weight, cosines, sines, position, keys, values, partial, arrived, out, kv_heads, capacity, epsilon);  \
    }

KERNEL(1)
KERNEL(2)
KERNEL(4)
