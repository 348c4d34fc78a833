// What compute capability 9.0 has for streams of data: barriers in shared memory that count bytes, copies that no thread waits for, and clusters of
// blocks that read each other's shared memory. Each function is an instruction or two (PTX ISA: mbarrier, cp.async.bulk, barrier.cluster, mapa).
#pragma once

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ unsigned int shared_address(const void* pointer) {
    return (unsigned int)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ unsigned int dynamic_shared_bytes() {
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

__device__ __forceinline__ void barrier_init(unsigned long long* barrier, unsigned int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes new barriers known to copies, whose writes go another way than those of threads.
__device__ __forceinline__ void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned long long* barrier, unsigned int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned long long* barrier, unsigned int parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// Copies bytes, a multiple of 16 from and to multiples of 16, and tells the barrier how many have come.
__device__ __forceinline__ void copy_to_shared(void* to, const void* from, unsigned int bytes, unsigned long long* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)), "l"(from),
                 "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// A barrier of the first threads of a block, without the warp that copies.
__device__ __forceinline__ void consumers_meet(unsigned int threads) {
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

// The two halves of a barrier of all threads of a cluster: what they wrote before the first, all see after the second.
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes a number where this block has `at` in its shared memory, but in that of the block with this rank in the cluster.
__device__ __forceinline__ void store_in_cluster(float* at, unsigned int rank, float value) {
    unsigned int there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(at)), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
}

#endif
