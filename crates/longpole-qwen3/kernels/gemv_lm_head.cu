// The logits of one token, in 32 bits.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(512) gemv_lm_head(const uint4* __restrict__ w, const float* __restrict__ x,
                                                              const uint4* __restrict__ norm, float2* __restrict__ out, unsigned int rows,
                                                              unsigned int columns, float epsilon) {
    gemv<true, 2, 2>(
        w, x, norm, epsilon, rows / 2, columns, [](unsigned int group, int r) { return 2 * group + r; },
        [&](unsigned int group, const float* sum) {
            if (threadIdx.x % 32 == 0) {
                out[group] = make_float2(sum[0], sum[1]);
            }
        });
}
