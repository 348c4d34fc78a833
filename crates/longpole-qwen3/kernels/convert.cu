// Weights as they come from files, bfloat16, to what kernels here read, in place: 16 bytes a thread, and what is left over number by number.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) bf16_to_f16(uint4* numbers, unsigned long long count) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    auto converted = [](unsigned int pair) { return packed(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)); };
    for (unsigned long long at = first; at < count / 8; at += stride) {
        const uint4 value = numbers[at];
        numbers[at] = make_uint4(converted(value.x), converted(value.y), converted(value.z), converted(value.w));
    }
    f16* rest = (f16*)(numbers + count / 8);
    if (first < count % 8) {
        rest[first] = rounded(__uint_as_float((unsigned int)rest[first] << 16));
    }
}
