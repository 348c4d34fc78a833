// Copies 16 bytes a load. Every thread has four loads in flight before its first store, a whole grid apart so that a warp's are contiguous.
extern "C" __global__ void __launch_bounds__(256) copy_vec16(const uint4* __restrict__ from, uint4* __restrict__ to, unsigned long long count) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; at + 3 * stride < count; at += 4 * stride) {
        const uint4 a = from[at];
        const uint4 b = from[at + stride];
        const uint4 c = from[at + 2 * stride];
        const uint4 d = from[at + 3 * stride];
        to[at] = a;
        to[at + stride] = b;
        to[at + 2 * stride] = c;
        to[at + 3 * stride] = d;
    }
    for (; at < count; at += stride) {
        to[at] = from[at];
    }
}
