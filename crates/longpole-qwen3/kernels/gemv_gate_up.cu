// silu(gate) * up of one token: rows `i` and `rows + i` of the weights belong to number `i`.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(1024) gemv_gate_up(const uint4* __restrict__ w, const float* __restrict__ x,
                                                               const uint4* __restrict__ norm, float* __restrict__ out, unsigned int rows,
                                                               unsigned int columns, float epsilon) {
    gemv<true, 2, 4, 1>(
        w, x, norm, epsilon, rows, columns, [](unsigned int) { return 0.0f; },
        [&](unsigned int row, const float* sum, float) { out[row] = silu(sum[0]) * sum[1]; });
}
