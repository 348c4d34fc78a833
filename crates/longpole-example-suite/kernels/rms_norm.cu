// y = x / sqrt(mean(x * x) + epsilon) * weight over rows of bfloat16, a block a row, 16 bytes a load.

__device__ inline unsigned int rounded(float value) {
    const unsigned int bits = __float_as_uint(value);
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__device__ inline void unpacked(const uint4 packed, float* out) {
    const unsigned int words[4] = {packed.x, packed.y, packed.z, packed.w};
    for (int i = 0; i < 4; ++i) {
        out[2 * i] = __uint_as_float(words[i] << 16);
        out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

// Columns are 8 for each thread of a block, so a row is read once and stays in registers.
extern "C" __global__ void __launch_bounds__(512) rms_norm_block_row(const uint4* __restrict__ x, const uint4* __restrict__ weight,
                                                                    uint4* __restrict__ y, unsigned int columns, float epsilon) {
    __shared__ float sums[16];
    const unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    float value[8];
    unpacked(x[at], value);
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) {
        sum = fmaf(value[i], value[i], sum);
    }
    for (unsigned int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    for (unsigned int warp = 0; warp < blockDim.x / 32; ++warp) {
        total += sums[warp];
    }
    const float scale = rsqrtf(total / (float)columns + epsilon);
    float factor[8];
    unpacked(weight[threadIdx.x], factor);
    unsigned int out[4];
    for (int i = 0; i < 4; ++i) {
        out[i] = rounded(value[2 * i] * scale * factor[2 * i]) | rounded(value[2 * i + 1] * scale * factor[2 * i + 1]) << 16;
    }
    y[at] = make_uint4(out[0], out[1], out[2], out[3]);
}
