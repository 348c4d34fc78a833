// The output and down projections of one token, added to the hidden state, which has 32 bits. `out` may be `residual`: a row is read and written by one thread.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(256) gemv_add(const uint4* __restrict__ w, const uint4* __restrict__ x, const float* residual, float* out,
                                                          unsigned int rows, unsigned int columns) {
    gemv<false, 1, 8>(
        w, x, nullptr, 0.0f, rows, columns, [](unsigned int group, int) { return group; },
        [&](unsigned int group, const float* sum) {
            if (threadIdx.x % 32 == 0) {
                out[group] = residual[group] + sum[0];
            }
        });
}
