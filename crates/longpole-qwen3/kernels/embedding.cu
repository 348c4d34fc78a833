// The rows of the table that tokens name, as the hidden state, which has 32 bits; a block a token. A token outside the table gives its last row.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) embedding(const uint4* __restrict__ table, const unsigned int* __restrict__ tokens,
                                                           float* __restrict__ out, unsigned int vocabulary, unsigned int hidden) {
    const unsigned int chunks = hidden / 8;
    wait_for_previous();
    let_next_begin();
    const unsigned int token = min(tokens[blockIdx.x], vocabulary - 1);
    for (unsigned int at = threadIdx.x; at < chunks; at += blockDim.x) {
        float value[8];
        unpacked(table[(unsigned long long)token * chunks + at], value);
        store8(out + ((unsigned long long)blockIdx.x * chunks + at) * 8, value);
    }
}
