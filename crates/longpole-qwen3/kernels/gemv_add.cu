// The output and down projections of one token, added to the hidden state. `out` may be `residual`: a row is read and written by one thread.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(1024) gemv_add(const uint4* __restrict__ w, const float* __restrict__ x, const float* residual, float* out,
                                                           unsigned int rows, unsigned int columns) {
    gemv<false, 1, 2, 2>(
        w, x, nullptr, 0.0f, rows, columns, [&](unsigned int row) { return load_now(residual + row); },
        [&](unsigned int row, const float* sum, float before) { out[row] = before + sum[0]; });
}
