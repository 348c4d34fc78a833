// Causal attention, plainly: a warp a token and head, one position after the other, sums kept as the largest score grows. Heads have 128 numbers,
// queries are normalised and rotated, keys and values come from the cache. Token t stands at position `first` + t and sees all up to itself.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) attention_ref(const uint2* __restrict__ queries, const uint2* __restrict__ keys,
                                                               const uint2* __restrict__ values, const unsigned int* __restrict__ first,
                                                               uint2* __restrict__ out, unsigned int tokens, unsigned int heads,
                                                               unsigned int kv_heads, unsigned int capacity) {
    const unsigned int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (job >= tokens * heads) {
        return;
    }
    const unsigned int token = job / heads, kv_head = job % heads / (heads / kv_heads);
    const unsigned int seen = min(*first + token + 1, capacity);
    const uint2 q = queries[(unsigned long long)job * 32 + lane];
    const uint2* k = keys + (unsigned long long)kv_head * capacity * 32 + lane;
    const uint2* v = values + (unsigned long long)kv_head * capacity * 32 + lane;
    // Scores count in powers of two.
    const float scale = 0.08838834764831845f * 1.4426950408889634f;
    float largest = -1e30f, total = 0.0f;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned int position = 0; position < seen; ++position) {
        const uint2 key = k[(unsigned long long)position * 32], value = v[(unsigned long long)position * 32];
        const float part = low(q.x) * low(key.x) + high(q.x) * high(key.x) + low(q.y) * low(key.y) + high(q.y) * high(key.y);
        const float score = warp_sum(part) * scale;
        const float now = fmaxf(largest, score), keep = exp2f(largest - now), share = exp2f(score - now);
        largest = now;
        total = total * keep + share;
        sum.x = sum.x * keep + share * low(value.x);
        sum.y = sum.y * keep + share * high(value.x);
        sum.z = sum.z * keep + share * low(value.y);
        sum.w = sum.w * keep + share * high(value.y);
    }
    out[(unsigned long long)job * 32 + lane] = make_uint2(packed(sum.x / total, sum.y / total), packed(sum.z / total, sum.w / total));
}
