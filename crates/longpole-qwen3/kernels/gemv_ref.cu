// Matrix times vector as one writes it first: a warp a row, two bytes a load.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) gemv_ref(const f16* __restrict__ w, const f16* __restrict__ x, void* __restrict__ out,
                                                          unsigned int rows, unsigned int columns, unsigned int wide) {
    const unsigned int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) {
        return;
    }
    const f16* line = w + (unsigned long long)row * columns;
    float sum = 0.0f;
    for (unsigned int column = threadIdx.x % 32; column < columns; column += 32) {
        sum = fmaf(widened(line[column]), widened(x[column]), sum);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        if (wide) {
            ((float*)out)[row] = sum;
        } else {
            ((f16*)out)[row] = rounded(sum);
        }
    }
}
