// y = W x with W of bfloat16, row after row, sums in 32 bits. Two ways: the slow one is what one writes first, the fast one is what it takes
// to reach the memory's speed.

__device__ inline float low(unsigned int pair) {
    return __uint_as_float(pair << 16);
}

__device__ inline float high(unsigned int pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

__device__ inline unsigned short rounded(float value) {
    const unsigned int bits = __float_as_uint(value);
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// A thread a row, two bytes a load: the threads of a warp read 32 rows at once, so of every 32-byte sector 2 bytes are used at a time.
extern "C" __global__ void gemv_thread_row(const unsigned short* __restrict__ w, const unsigned short* __restrict__ x,
                                           unsigned short* __restrict__ y, unsigned int rows, unsigned int columns) {
    const unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const unsigned short* line = w + (unsigned long long)row * columns;
    float sum = 0.0f;
    for (unsigned int column = 0; column < columns; ++column) {
        sum += __uint_as_float((unsigned int)line[column] << 16) * __uint_as_float((unsigned int)x[column] << 16);
    }
    y[row] = rounded(sum);
}

__device__ inline float dot8(const uint4 w, const uint4 x, float sum) {
    sum = fmaf(low(w.x), low(x.x), sum);
    sum = fmaf(high(w.x), high(x.x), sum);
    sum = fmaf(low(w.y), low(x.y), sum);
    sum = fmaf(high(w.y), high(x.y), sum);
    sum = fmaf(low(w.z), low(x.z), sum);
    sum = fmaf(high(w.z), high(x.z), sum);
    sum = fmaf(low(w.w), low(x.w), sum);
    return fmaf(high(w.w), high(x.w), sum);
}

// A warp a row, 16 bytes a load: neighbouring lanes read neighbouring bytes, and four loads of each lane are in flight. Columns are a
// multiple of 8.
extern "C" __global__ void __launch_bounds__(256) gemv_warp_row(const uint4* __restrict__ w, const uint4* __restrict__ x,
                                                               unsigned short* __restrict__ y, unsigned int rows, unsigned int columns) {
    const unsigned int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    const unsigned int chunks = columns / 8;
    const uint4* line = w + (unsigned long long)row * chunks;
    float sum = 0.0f;
    unsigned int at = lane;
    for (; at + 96 < chunks; at += 128) {
        const uint4 a = __ldcs(line + at);
        const uint4 b = __ldcs(line + at + 32);
        const uint4 c = __ldcs(line + at + 64);
        const uint4 d = __ldcs(line + at + 96);
        sum = dot8(a, x[at], sum);
        sum = dot8(b, x[at + 32], sum);
        sum = dot8(c, x[at + 64], sum);
        sum = dot8(d, x[at + 96], sum);
    }
    for (; at < chunks; at += 32) {
        sum = dot8(line[at], x[at], sum);
    }
    for (unsigned int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    }
    if (lane == 0) {
        y[row] = rounded(sum);
    }
}
