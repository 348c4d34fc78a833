// silu(gate) * up of many tokens. A row holds the gates, then the ups.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) swiglu(const uint4* __restrict__ gate_up, uint4* __restrict__ out, unsigned int rows,
                                                        unsigned int columns) {
    const unsigned int chunks = columns / 8;
    const unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (unsigned long long)rows * chunks) {
        return;
    }
    const unsigned long long row = at / chunks, chunk = at % chunks;
    float gate[8], up[8];
    unpacked(gate_up[row * 2 * chunks + chunk], gate);
    unpacked(gate_up[row * 2 * chunks + chunks + chunk], up);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        gate[i] = silu(gate[i]) * up[i];
    }
    out[at] = packed8(gate);
}
