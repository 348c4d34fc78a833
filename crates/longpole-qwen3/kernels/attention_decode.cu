// Attention of one token in one launch: its query heads are normalised and rotated, its key is too and goes into the cache with its value, the
// context is split over the blocks of a row of the grid, and these put their parts together. A block serves up to four query heads that share a
// key/value head.
//
// A warp takes 16 positions at a time and multiplies by matrices: scores = keys x queries, sums = values x shares. Keys and values have 16 bits as they
// lie in the cache; queries and shares are split into two numbers of 16 bits each, and the eight columns of a product are the four heads' upper
// parts and their lower ones. Sums do not ask for an order of what is added, so a lane reads 16 bytes in one piece where the instruction
// wants pairs from several places, and the other side is read alike.
//
// Keys and values of earlier positions are asked for before the kernel ahead, which makes this token's, is done: all that it waited for is done then, and
// so whatever wrote them.
#include "common.cuh"
#include "stream.cuh"

#define WARPS 10
#define HEADS 4
#define MAX_SPLITS 8
#define NEVER (-1e30f)

// Keys and values change within this launch, so they are read as what may; volatile, to be under way where it is written.
__device__ __forceinline__ uint4 load_plain(const uint4* from) {
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ unsigned int word(const uint4& of, int at) {
    return at == 0 ? of.x : at == 1 ? of.y : at == 2 ? of.z : of.w;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) attention_decode(
    const float* __restrict__ qkv, const unsigned int* __restrict__ q_weight, const unsigned int* __restrict__ k_weight,
    const float* __restrict__ cosines, const float* __restrict__ sines, const unsigned int* __restrict__ position, unsigned int* keys,
    unsigned int* values, float* partial, unsigned int* arrived, float* __restrict__ out, unsigned int heads, unsigned int kv_heads,
    unsigned int capacity, float epsilon) {
    // Upper parts of queries, then lower ones.
    __shared__ __align__(16) unsigned int q[2 * HEADS][64];
    __shared__ __align__(16) unsigned int new_key[64], new_value[64];
    __shared__ __align__(16) float share_of[WARPS][HEADS][16];
    __shared__ __align__(16) float merged[WARPS][HEADS][128];
    __shared__ float tops[WARPS][HEADS], totals[WARPS][HEADS];
    const unsigned int split = blockIdx.x, splits = gridDim.x;
    const unsigned int group = heads / kv_heads, blocks_each = (group + HEADS - 1) / HEADS;
    const unsigned int kv_head = blockIdx.y / blocks_each, within = blockIdx.y % blocks_each * HEADS;
    const unsigned int first_head = kv_head * group + within, count = min(group - within, (unsigned int)HEADS);
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
    const unsigned int now = min(*position, capacity - 1);
    const unsigned int length = (now + splits) / splits;
    const unsigned int begin = split * length, end = min(begin + length, now + 1);
    unsigned int* k_cache = keys + (unsigned long long)kv_head * capacity * 64;
    unsigned int* v_cache = values + (unsigned long long)kv_head * capacity * 64;
    const bool owner = begin <= now && now < end;
    // Of keys, columns 8c of each 32 at positions r and r + 8; of values, columns 8r and 64 + 8r at positions 2c, 2c + 1, 2c + 8 and 2c + 9.
    uint4 key[2][4], value[4][2];
    auto k_position = [&](int half) { return r + 8 * half; };
    auto v_position = [&](int at) { return 2 * c + (at & 1) + (at & 2) * 4; };
    auto load_keys = [&](unsigned int from) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint4* line = (const uint4*)k_cache + (unsigned long long)min(from + k_position(half), end - 1) * 16 + c;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                key[half][j] = load_plain(line + 4 * j);
            }
        }
    };
    auto load_values = [&](unsigned int from) {
#pragma unroll
        for (int at = 0; at < 4; ++at) {
            const uint4* line = (const uint4*)v_cache + (unsigned long long)min(from + v_position(at), end - 1) * 16 + r;
            value[at][0] = load_plain(line);
            value[at][1] = load_plain(line + 8);
        }
    };
    unsigned int from = begin + warp * 16;
    if (from < end) {
        load_keys(from);
        load_values(from);
    }
    // A warp has one job at most: a query, the key, or the value.
    const float2 cosine = load_once((const float2*)(cosines + (unsigned long long)now * 64) + lane);
    const float2 sine = load_once((const float2*)(sines + (unsigned long long)now * 64) + lane);
    const unsigned int* weight = warp < HEADS ? q_weight : k_weight;
    const unsigned int w_near = load_once(weight + lane), w_far = load_once(weight + lane + 32);
#if __CUDA_ARCH__ >= 900
    cluster_arrive();
#endif
    wait_for_previous();
    let_next_begin();
    const bool query = warp < count;
    if (query || (owner && (warp == HEADS || warp == HEADS + 1))) {
        const float2* line = (const float2*)(qkv + (query ? first_head + warp : heads + (warp - HEADS) * kv_heads + kv_head) * 128);
        const float2 a = line[lane], b = line[lane + 32];
        const bool turns = warp <= HEADS;
        const float4 turned = turns ? normed_rotated(a, b, w_near, w_far, cosine, sine, epsilon) : make_float4(a.x, a.y, b.x, b.y);
        const unsigned int near = packed(turned.x, turned.y), far = packed(turned.z, turned.w);
        unsigned int* here = query ? q[warp] : turns ? new_key : new_value;
        here[lane] = near;
        here[lane + 32] = far;
        if (query) {
            q[HEADS + warp][lane] = rest(turned.x, turned.y, near);
            q[HEADS + warp][lane + 32] = rest(turned.z, turned.w, far);
        } else if (within == 0) {
            // Blocks of other heads that share the key/value head need them too; one writes them.
            unsigned int* there = (turns ? k_cache : v_cache) + (unsigned long long)now * 64;
            there[lane] = near;
            there[lane + 32] = far;
        }
    } else if (warp < HEADS) {
        // Of fewer than four heads the others are zeros.
        q[warp][lane] = q[warp][lane + 32] = q[HEADS + warp][lane] = q[HEADS + warp][lane + 32] = 0;
    }
    __syncthreads();
    // Scores count in powers of two.
    const float scale = 0.08838834764831845f * 1.4426950408889634f;
    float sum[8][4] = {};
    // Of the two heads whose columns this lane has.
    float top[2] = {NEVER, NEVER}, total[2] = {0.0f, 0.0f};
    while (from < end) {
        if (owner) {
            // What was read at the newest position, there or in place of what is behind the end, is old.
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (from + k_position(half) >= now) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        key[half][j] = ((const uint4*)new_key)[c + 4 * j];
                    }
                }
            }
#pragma unroll
            for (int at = 0; at < 4; ++at) {
                if (from + v_position(at) >= now) {
                    value[at][0] = ((const uint4*)new_value)[r];
                    value[at][1] = ((const uint4*)new_value)[r + 8];
                }
            }
        }
        float score[2][4] = {};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const uint4 query = ((const uint4*)q[r])[c + 4 * j];
            multiply(score[0], key[0][j].x, key[1][j].x, key[0][j].y, key[1][j].y, query.x, query.y);
            multiply(score[1], key[0][j].z, key[1][j].z, key[0][j].w, key[1][j].w, query.z, query.w);
        }
        const unsigned int next = from + WARPS * 16;
        if (next < end) {
            load_keys(next);
        }
        float share[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float part = score[0][i] + score[1][i];
            const float both = part + __shfl_xor_sync(0xffffffffu, part, 2);
            share[i] = from + k_position(i / 2) < end ? both * scale : NEVER;
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float highest = fmaxf(share[e], share[e + 2]);
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2) {
                highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, distance));
            }
            highest = fmaxf(highest, top[e]);
            const float keep = power_of_two(top[e] - highest);
            top[e] = highest;
            // The first position of a turn is always there, so that `highest` is a score.
            share[e] = power_of_two(share[e] - highest);
            share[e + 2] = power_of_two(share[e + 2] - highest);
            total[e] = total[e] * keep + share[e] + share[e + 2];
#pragma unroll
            for (int t = 0; t < 8; ++t) {
                sum[t][e] *= keep;
                sum[t][e + 2] *= keep;
            }
            if (c < 2) {
                share_of[warp][2 * c + e][r] = share[e];
                share_of[warp][2 * c + e][r + 8] = share[e + 2];
            }
        }
        __syncwarp();
        const float2 near = ((const float2*)share_of[warp][r % 4])[c], far = ((const float2*)share_of[warp][r % 4])[c + 4];
        unsigned int b0 = packed(near.x, near.y), b1 = packed(far.x, far.y);
        if (r >= 4) {
            b0 = rest(near.x, near.y, b0);
            b1 = rest(far.x, far.y, b1);
        }
        __syncwarp();
#pragma unroll
        for (int t = 0; t < 8; ++t) {
            // The lower or the upper halves of two words.
            const unsigned int halves = t % 2 == 0 ? 0x5410 : 0x7632;
            auto pair = [&](int at, int far) { return __byte_perm(word(value[at][far], t / 2), word(value[at + 1][far], t / 2), halves); };
            multiply(sum[t], pair(0, 0), pair(0, 1), pair(2, 0), pair(2, 1), b0, b1);
        }
        if (next < end) {
            load_values(next);
        }
        from = next;
    }
    // Upper and lower parts; then the lanes of a head's total.
#pragma unroll
    for (int t = 0; t < 8; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum[t][i] += __shfl_xor_sync(0xffffffffu, sum[t][i], 2);
        }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2) {
            total[e] += __shfl_xor_sync(0xffffffffu, total[e], distance);
        }
        if (c < 2) {
            float near[8], far[8];
#pragma unroll
            for (int t = 0; t < 8; ++t) {
                near[t] = sum[t][e];
                far[t] = sum[t][e + 2];
            }
            store8(merged[warp][2 * c + e] + 8 * r, near);
            store8(merged[warp][2 * c + e] + 64 + 8 * r, far);
            if (r == 0) {
                tops[warp][2 * c + e] = top[e];
                totals[warp][2 * c + e] = total[e];
            }
        }
    }
    __syncthreads();
    // A split's part of a number: the sum of its shares times values; the largest score and the sum of shares of its head.
    struct Part {
        float value, top, total;
    };
    auto of_block = [&](unsigned int at) {
        const unsigned int g = at / 128, i = at % 128;
        Part whole = {0.0f, NEVER, 0.0f};
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            whole.top = fmaxf(whole.top, tops[w][g]);
        }
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const float keep = power_of_two(tops[w][g] - whole.top);
            whole.value = fmaf(keep, merged[w][g][i], whole.value);
            whole.total = fmaf(keep, totals[w][g], whole.total);
        }
        return whole;
    };
    float* to = out + first_head * 128;
#if __CUDA_ARCH__ >= 900
    // The blocks of a row are a cluster: each finishes some of its numbers, and the others leave their parts of these in its shared memory.
    __shared__ float parts[HEADS * 128], top_of[MAX_SPLITS][HEADS], total_of[MAX_SPLITS][HEADS];
    const unsigned int each = count * 128 / splits;
    cluster_wait();
    for (unsigned int at = threadIdx.x; at < count * 128; at += WARPS * 32) {
        const Part whole = of_block(at);
        store_in_cluster(parts + split * each + at % each, at / each, whole.value);
        if (at % 128 < splits) {
            store_in_cluster(&top_of[split][at / 128], at % 128, whole.top);
            store_in_cluster(&total_of[split][at / 128], at % 128, whole.total);
        }
    }
    cluster_arrive();
    cluster_wait();
    for (unsigned int mine = threadIdx.x; mine < each; mine += WARPS * 32) {
        const unsigned int at = split * each + mine, g = at / 128;
        float highest = NEVER, value = 0.0f, all = 0.0f;
        for (unsigned int other = 0; other < splits; ++other) {
            highest = fmaxf(highest, top_of[other][g]);
        }
        for (unsigned int other = 0; other < splits; ++other) {
            const float keep = power_of_two(top_of[other][g] - highest);
            value = fmaf(keep, parts[other * each + mine], value);
            all = fmaf(keep, total_of[other][g], all);
        }
        to[at] = value / all;
    }
#else
    // The block that finishes last reads what the others left.
    __shared__ bool last;
    for (unsigned int at = threadIdx.x; at < count * 128; at += WARPS * 32) {
        const Part whole = of_block(at);
        float* of_split = partial + ((unsigned long long)(first_head + at / 128) * splits + split) * 130;
        of_split[at % 128] = whole.value;
        if (at % 128 == 0) {
            of_split[128] = whole.top;
            of_split[129] = whole.total;
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrived + blockIdx.y, 1) == splits - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    for (unsigned int at = threadIdx.x; at < count * 128; at += WARPS * 32) {
        const float* of_head = partial + (unsigned long long)(first_head + at / 128) * splits * 130;
        float highest = NEVER, value = 0.0f, all = 0.0f;
        for (unsigned int other = 0; other < splits; ++other) {
            highest = fmaxf(highest, __ldcg(of_head + other * 130 + 128));
        }
        for (unsigned int other = 0; other < splits; ++other) {
            const float keep = power_of_two(__ldcg(of_head + other * 130 + 128) - highest);
            value = fmaf(keep, __ldcg(of_head + other * 130 + at % 128), value);
            all = fmaf(keep, __ldcg(of_head + other * 130 + 129), all);
        }
        to[at] = value / all;
    }
    if (threadIdx.x == 0) {
        arrived[blockIdx.y] = 0;
    }
#endif
}
