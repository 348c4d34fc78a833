// What all kernels share: half precision as bits, loads that pass the first-level cache by, sums over warps and blocks.
#pragma once

// Numbers of 16 bits are IEEE half precision: three bits more than bfloat16, which all but take rounding away from the sum of errors, and a range that
// weights and activations of these models keep within. What exceeds it is cut to the largest number, never infinite.
typedef unsigned short f16;

// NaN stays NaN, which is how outputs that nobody wrote are found.
__device__ __forceinline__ float within_f16(float value) {
    const float cut = fminf(fmaxf(value, -65504.0f), 65504.0f);
    return value != value ? value : cut;
}

__device__ __forceinline__ float low(unsigned int pair) {
    float value;
    asm("{\n.reg .b16 first, second;\nmov.b32 {first, second}, %1;\ncvt.f32.f16 %0, first;\n}" : "=f"(value) : "r"(pair));
    return value;
}

__device__ __forceinline__ float high(unsigned int pair) {
    float value;
    asm("{\n.reg .b16 first, second;\nmov.b32 {first, second}, %1;\ncvt.f32.f16 %0, second;\n}" : "=f"(value) : "r"(pair));
    return value;
}

__device__ __forceinline__ float widened(f16 value) {
    return low(value);
}

// Two numbers rounded to the nearest of half precision, ties to even; the first is in the low half.
__device__ __forceinline__ unsigned int packed(float first, float second) {
    unsigned int pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(within_f16(second)), "f"(within_f16(first)));
    return pair;
}

__device__ __forceinline__ f16 rounded(float value) {
    return (f16)packed(value, 0.0f);
}

// 16 bytes that nobody reads again. Volatile, so that loads stay where they are written: ahead of a barrier, to be under way during it.
__device__ __forceinline__ uint4 load_once(const uint4* from) {
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
}

// The same of 8 and of 4 bytes, where the compiler would otherwise put off a load until its value is needed, behind a wait.
__device__ __forceinline__ float2 load_once(const float2* from) {
    float2 value;
    asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "l"(from));
    return value;
}

__device__ __forceinline__ unsigned int load_once(const unsigned int* from) {
    unsigned int value;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(from));
    return value;
}

// What the kernel ahead wrote, read after the wait for it: not by the path for what never changes, which compilers take for constant pointers, since this
// kernel had begun when it was written.
__device__ __forceinline__ float load_now(const float* from) {
    float value;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ float2 load_now(const float2* from) {
    float2 value;
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ float4 load_now(const float4* from) {
    float4 value;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ unsigned int load_now(const unsigned int* from) {
    unsigned int value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ void spread8(const float4 a, const float4 b, float* to) {
    to[0] = a.x;
    to[1] = a.y;
    to[2] = a.z;
    to[3] = a.w;
    to[4] = b.x;
    to[5] = b.y;
    to[6] = b.z;
    to[7] = b.w;
}

// Eight 32-bit numbers; the address is a multiple of 16.
__device__ __forceinline__ void load8(const float* from, float* to) {
    spread8(((const float4*)from)[0], ((const float4*)from)[1], to);
}

__device__ __forceinline__ void store8(float* to, const float* from) {
    ((float4*)to)[0] = make_float4(from[0], from[1], from[2], from[3]);
    ((float4*)to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}

// A kernel that may be launched before the one ahead of it is done waits for it, and then lets the next begin likewise. In this order no more
// than two are under way, and what one reads before it has waited may be weights, and whatever was written by kernels before the one
// ahead. Without such a launch, and before compute capability 9.0, both do nothing.
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

// Adds the products of eight numbers of 16 bits with eight of 32.
__device__ __forceinline__ float dot8(const uint4 a, const float* b, float sum) {
    sum = fmaf(low(a.x), b[0], sum);
    sum = fmaf(high(a.x), b[1], sum);
    sum = fmaf(low(a.y), b[2], sum);
    sum = fmaf(high(a.y), b[3], sum);
    sum = fmaf(low(a.z), b[4], sum);
    sum = fmaf(high(a.z), b[5], sum);
    sum = fmaf(low(a.w), b[6], sum);
    return fmaf(high(a.w), b[7], sum);
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

// sum += a b for a of 16 x 16 and b of 16 x 8 numbers (PTX ISA, mma.m16n8k16). With r = lane / 4 and c = lane % 4 a lane has of a the pairs in
// columns 2c and 2c + 8 of rows r and r + 8, of b those in the same rows of column r, and of the sum columns 2c and 2c + 1 of rows r and r + 8.
__device__ __forceinline__ void multiply(float* sum, unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int b0,
                                         unsigned int b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// What rounding two numbers leaves.
__device__ __forceinline__ unsigned int rest(float first, float second, unsigned int pair) {
    return packed(first - low(pair), second - high(pair));
}

// The sum over a warp, in every lane.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    }
    return value;
}

// Sums over each LANES lanes of N numbers of each lane, both powers of two: a step halves how many numbers a lane has left, so that N of them take about N
// exchanges and not N times as many as one. A lane ends with the sum of number `lane % LANES / (LANES / N)`.
template <int N, int LANES>
__device__ __forceinline__ float lane_sums(float* value, unsigned int lane) {
#pragma unroll
    for (int count = N, distance = LANES / 2; distance > 0; distance /= 2) {
        count /= 2;
        if (count > 0) {
            const bool upper = lane & distance;
#pragma unroll
            for (int i = 0; i < count; ++i) {
                const float kept = upper ? value[i + count] : value[i], sent = upper ? value[i] : value[i + count];
                value[i] = kept + __shfl_xor_sync(0xffffffffu, sent, distance);
            }
        } else {
            value[0] += __shfl_xor_sync(0xffffffffu, value[0], distance);
        }
    }
    return value[0];
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

// A head of 128 numbers, normalised and rotated by one warp. A lane holds numbers 2l, 2l+1 in `a`, and their partners 64 further on in `b`; likewise
// of the weights. Cosines and sines are those of its position.
__device__ __forceinline__ float4 normed_rotated(const float2 a, const float2 b, unsigned int wa, unsigned int wb, const float2 c, const float2 s,
                                                 float epsilon) {
    const float squares = a.x * a.x + a.y * a.y + b.x * b.x + b.y * b.y;
    const float scale = rsqrtf(warp_sum(squares) / 128.0f + epsilon);
    const float x0 = a.x * scale * low(wa), x1 = a.y * scale * high(wa);
    const float y0 = b.x * scale * low(wb), y1 = b.y * scale * high(wb);
    return make_float4(x0 * c.x - y0 * s.x, x1 * c.y - y1 * s.y, y0 * c.x + x0 * s.x, y1 * c.y + x1 * s.y);
}
