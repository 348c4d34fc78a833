// out[m][n] = sum over k of a[m][k] * b[n][k] without matrix units: a block makes 64 x 64 results, a thread 4 x 4 of them, and 16 steps of k lie
// in shared memory at a time. k is a multiple of 16; m and n are any. Results have
// 32 bits if they are to be `wide`.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) gemm_ref(const f16* __restrict__ a, const f16* __restrict__ b, void* __restrict__ out,
                                                          unsigned int m, unsigned int n, unsigned int k, unsigned int wide) {
    __shared__ float as[16][65], bs[16][65];
    const unsigned int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const unsigned int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (unsigned int k0 = 0; k0 < k; k0 += 16) {
        for (int i = 0; i < 4; ++i) {
            const unsigned int line = ty + 16 * i;
            as[tx][line] = row0 + line < m ? widened(a[(unsigned long long)(row0 + line) * k + k0 + tx]) : 0.0f;
            bs[tx][line] = column0 + line < n ? widened(b[(unsigned long long)(column0 + line) * k + k0 + tx]) : 0.0f;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) {
                    sum[i][j] = fmaf(as[kk][ty + 16 * i], bs[kk][tx + 16 * j], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const unsigned int row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
            if (row < m && column < n) {
                const unsigned long long at = (unsigned long long)row * n + column;
                if (wide) {
                    ((float*)out)[at] = sum[i][j];
                } else {
                    ((f16*)out)[at] = rounded(sum[i][j]);
                }
            }
        }
    }
}
