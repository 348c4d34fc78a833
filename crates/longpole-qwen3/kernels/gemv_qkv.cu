// Queries, keys and values of one token: the normalised hidden state times their weights, which lie one below the other.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(512) gemv_qkv(const uint4* __restrict__ w, const float* __restrict__ x, const uint4* __restrict__ norm,
                                                          bf16* __restrict__ out, unsigned int rows, unsigned int columns, float epsilon) {
    gemv<true, 1, 5>(
        w, x, norm, epsilon, rows, columns, [](unsigned int group, int) { return group; },
        [&](unsigned int group, const float* sum) {
            if (threadIdx.x % 32 == 0) {
                out[group] = rounded(sum[0]);
            }
        });
}
