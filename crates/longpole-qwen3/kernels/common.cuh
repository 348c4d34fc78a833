// What all kernels share: bfloat16 as bits, loads that pass the first-level cache by, sums over warps and blocks.
#pragma once

typedef unsigned short bf16;

__device__ __forceinline__ float low(unsigned int pair) {
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float high(unsigned int pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

__device__ __forceinline__ float widened(bf16 value) {
    return __uint_as_float((unsigned int)value << 16);
}

// Two numbers rounded to the nearest bfloat16, ties to even; the first is in the low half.
__device__ __forceinline__ unsigned int packed(float first, float second) {
    unsigned int pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

__device__ __forceinline__ bf16 rounded(float value) {
    return (bf16)packed(value, 0.0f);
}

// 16 bytes that nobody reads again. Volatile, so that loads stay where they are written: ahead of a barrier, to be under way during it.
__device__ __forceinline__ uint4 load_once(const uint4* from) {
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
}

// Eight 32-bit numbers; the address is a multiple of 16.
__device__ __forceinline__ void load8(const float* from, float* to) {
    const float4 a = ((const float4*)from)[0], b = ((const float4*)from)[1];
    to[0] = a.x;
    to[1] = a.y;
    to[2] = a.z;
    to[3] = a.w;
    to[4] = b.x;
    to[5] = b.y;
    to[6] = b.z;
    to[7] = b.w;
}

__device__ __forceinline__ void store8(float* to, const float* from) {
    ((float4*)to)[0] = make_float4(from[0], from[1], from[2], from[3]);
    ((float4*)to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}

// A kernel that may be launched before the one ahead of it is done: lets the next begin likewise, and waits for the one ahead. What is read before
// the wait is nothing that a kernel writes: weights. Without such a launch, and before compute capability 9.0, both do nothing.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ float dot8(const uint4 a, const uint4 b, float sum) {
    sum = fmaf(low(a.x), low(b.x), sum);
    sum = fmaf(high(a.x), high(b.x), sum);
    sum = fmaf(low(a.y), low(b.y), sum);
    sum = fmaf(high(a.y), high(b.y), sum);
    sum = fmaf(low(a.z), low(b.z), sum);
    sum = fmaf(high(a.z), high(b.z), sum);
    sum = fmaf(low(a.w), low(b.w), sum);
    return fmaf(high(a.w), high(b.w), sum);
}

__device__ __forceinline__ void unpacked(const uint4 from, float* to) {
    to[0] = low(from.x);
    to[1] = high(from.x);
    to[2] = low(from.y);
    to[3] = high(from.y);
    to[4] = low(from.z);
    to[5] = high(from.z);
    to[6] = low(from.w);
    to[7] = high(from.w);
}

__device__ __forceinline__ uint4 packed8(const float* from) {
    return make_uint4(packed(from[0], from[1]), packed(from[2], from[3]), packed(from[4], from[5]), packed(from[6], from[7]));
}

// The sum over a warp, in every lane.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    }
    return value;
}

// The sum over a block of whole warps, in every thread. `sums` holds a number for each warp. One barrier.
__device__ __forceinline__ float block_sum(float value, float* sums) {
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (unsigned int warp = 0; warp < blockDim.x / 32; ++warp) {
        total += sums[warp];
    }
    return total;
}

// 2 to the power of a number, within 2 units of the last place; 0 for what is far below.
__device__ __forceinline__ float power_of_two(float exponent) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}

__device__ __forceinline__ float silu(float value) {
    return value / (1.0f + __expf(-value));
}

// A head of 128 numbers, normalised and rotated by one warp. A lane holds numbers 2l, 2l+1, and their partners 64 further on; cosines and sines
// are those of its position, 64 of each.
__device__ __forceinline__ float4 normed_rotated(const unsigned int* head, const unsigned int* weight, const float* cosines, const float* sines,
                                                 unsigned int lane, float epsilon) {
    const unsigned int a = head[lane], b = head[lane + 32];
    const unsigned int wa = weight[lane], wb = weight[lane + 32];
    const float squares = low(a) * low(a) + high(a) * high(a) + low(b) * low(b) + high(b) * high(b);
    const float scale = rsqrtf(warp_sum(squares) / 128.0f + epsilon);
    const float x0 = low(a) * scale * low(wa), x1 = high(a) * scale * high(wa);
    const float y0 = low(b) * scale * low(wb), y1 = high(b) * scale * high(wb);
    const float2 c = ((const float2*)cosines)[lane], s = ((const float2*)sines)[lane];
    return make_float4(x0 * c.x - y0 * s.x, x1 * c.y - y1 * s.y, y0 * c.x + x0 * s.x, y1 * c.y + x1 * s.y);
}
