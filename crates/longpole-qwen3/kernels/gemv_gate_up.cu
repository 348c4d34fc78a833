// silu(gate) * up of one token: rows `i` and `rows + i` of the weights belong to number `i`, and a warp reads both.
#include "gemv.cuh"

extern "C" __global__ void __launch_bounds__(512) gemv_gate_up(const uint4* __restrict__ w, const float* __restrict__ x,
                                                              const uint4* __restrict__ norm, bf16* __restrict__ out, unsigned int rows,
                                                              unsigned int columns, float epsilon) {
    gemv<true, 2, 2>(
        w, x, norm, epsilon, rows, columns, [&](unsigned int group, int r) { return r == 0 ? group : rows + group; },
        [&](unsigned int group, const float* sum) {
            if (threadIdx.x % 32 == 0) {
                out[group] = rounded(silu(sum[0]) * sum[1]);
            }
        });
}
