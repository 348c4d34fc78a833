// From the projections of tokens to what attention reads: queries and keys normalised by head and rotated, keys and values put into the cache. A
// warp a head of 128 numbers. The projections of a token lie in a row: queries, keys, values. Token t stands at position `first` + t.
#include "common.cuh"

// A head of a row of projections.
__device__ __forceinline__ float4 turned(const unsigned int* head, const unsigned int* weight, const float* cosines, const float* sines,
                                         unsigned int lane, float epsilon) {
    const unsigned int a = head[lane], b = head[lane + 32];
    return normed_rotated(make_float2(low(a), high(a)), make_float2(low(b), high(b)), weight[lane], weight[lane + 32],
                          ((const float2*)cosines)[lane], ((const float2*)sines)[lane], epsilon);
}

__device__ __forceinline__ void put(unsigned int* to, unsigned int lane, const float4 value) {
    to[lane] = packed(value.x, value.y);
    to[lane + 32] = packed(value.z, value.w);
}

extern "C" __global__ void __launch_bounds__(128) q_inputs(const unsigned int* __restrict__ qkv, const unsigned int* __restrict__ weight,
                                                          const float* __restrict__ cosines, const float* __restrict__ sines,
                                                          const unsigned int* __restrict__ first, unsigned int* __restrict__ out,
                                                          unsigned int tokens, unsigned int heads, unsigned int kv_heads, float epsilon) {
    const unsigned int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (job >= tokens * heads) {
        return;
    }
    const unsigned int token = job / heads, head = job % heads;
    const unsigned long long position = *first + token;
    const unsigned int* from = qkv + ((unsigned long long)token * (heads + 2 * kv_heads) + head) * 64;
    put(out + (unsigned long long)job * 64, lane, turned(from, weight, cosines + position * 64, sines + position * 64, lane, epsilon));
}

// Keys and values of a head lie position after position, `capacity` of them.
extern "C" __global__ void __launch_bounds__(128) kv_inputs(const unsigned int* __restrict__ qkv, const unsigned int* __restrict__ weight,
                                                           const float* __restrict__ cosines, const float* __restrict__ sines,
                                                           const unsigned int* __restrict__ first, unsigned int* __restrict__ keys,
                                                           unsigned int* __restrict__ values, unsigned int tokens, unsigned int heads,
                                                           unsigned int kv_heads, unsigned int capacity, float epsilon) {
    const unsigned int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (job >= tokens * kv_heads) {
        return;
    }
    const unsigned int token = job / kv_heads, head = job % kv_heads;
    const unsigned long long position = *first + token;
    if (position >= capacity) {
        return;
    }
    const unsigned int* from = qkv + ((unsigned long long)token * (heads + 2 * kv_heads) + heads + head) * 64;
    const unsigned long long to = ((unsigned long long)head * capacity + position) * 64;
    put(keys + to, lane, turned(from, weight, cosines + position * 64, sines + position * 64, lane, epsilon));
    const unsigned int* value = from + kv_heads * 64;
    values[to + lane] = value[lane];
    values[to + lane + 32] = value[lane + 32];
}
