// Chooses the next token: the largest of logit * inverse_temperature + noise. With noise from the Gumbel distribution that is a draw from the softmax;
// at an inverse temperature of 0 there is none, and it is the largest logit. Of equals the first wins. The last block to finish writes the
// token where the next step reads it, into the history, and moves the position on; so nothing of a step waits for the host.
#include "common.cuh"

struct Sampling {
    float inverse_temperature;
    unsigned int seed;
};

__device__ __forceinline__ unsigned int mixed(unsigned int bits) {
    bits ^= bits >> 16;
    bits *= 0x85EBCA6Bu;
    bits ^= bits >> 13;
    bits *= 0xC2B2AE35u;
    return bits ^ bits >> 16;
}

// Order of numbers as order of integers, and behind it the place, so that the first of equals is the largest. NaN is below all.
__device__ __forceinline__ unsigned long long ranked(float value, unsigned int at) {
    unsigned int bits = __float_as_uint(value);
    bits = value != value ? 0 : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (unsigned long long)bits << 32 | (0xffffffffu - at);
}

__device__ __forceinline__ unsigned long long block_max(unsigned long long value, unsigned long long* shared) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = other > value ? other : value;
    }
    if (threadIdx.x % 32 == 0) {
        shared[threadIdx.x / 32] = value;
    }
    __syncthreads();
    for (unsigned int warp = 0; warp < blockDim.x / 32; ++warp) {
        value = shared[warp] > value ? shared[warp] : value;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(256) sample(const float* __restrict__ logits, unsigned int vocabulary, const Sampling* __restrict__ how,
                                                        unsigned int advance, unsigned long long* partial, unsigned int* arrived,
                                                        unsigned int* position, unsigned int* token, unsigned int* history,
                                                        unsigned int capacity) {
    __shared__ unsigned long long shared[8];
    __shared__ bool last;
    wait_for_previous();
    let_next_begin();
    const float inverse = how->inverse_temperature;
    const unsigned int now = *position;
    const unsigned int seed = mixed(how->seed ^ mixed(now + 0x9E3779B1u));
    unsigned long long best = 0;
    for (unsigned int at = blockIdx.x * blockDim.x + threadIdx.x; at < vocabulary; at += gridDim.x * blockDim.x) {
        float value = logits[at];
        if (inverse > 0.0f) {
            // Between 2^-24 and 1 - 2^-24, exact in 32 bits, so that neither logarithm is of 0.
            const float even = ((float)(mixed(at * 0x9E3779B1u + seed) >> 9) + 0.5f) * (1.0f / 8388608.0f);
            value = value * inverse - logf(-logf(even));
        }
        const unsigned long long rank = ranked(value, at);
        best = rank > best ? rank : best;
    }
    best = block_max(best, shared);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = best;
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    best = 0;
    for (unsigned int at = threadIdx.x; at < gridDim.x; at += blockDim.x) {
        const unsigned long long other = __ldcg(partial + at);
        best = other > best ? other : best;
    }
    __syncthreads();
    best = block_max(best, shared);
    if (threadIdx.x == 0) {
        const unsigned int chosen = 0xffffffffu - (unsigned int)best;
        *token = chosen;
        *arrived = 0;
        if (now + advance < capacity) {
            history[now + advance] = chosen;
        }
        *position = now + advance;
    }
}
