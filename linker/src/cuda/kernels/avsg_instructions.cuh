// avsg_instructions.cuh: what C++ has no word for: bulk copies and their barriers, and bytes that several
// threads write alike.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

namespace avsg {

// Sets a lifetime. Threads that set one byte at the same time set it to the same value.
__device__ __forceinline__ void SetLife(signed char *life, signed char value) { *life = value; }

// Replaces a lifetime by that of a rule, which is idempotent: whether a thread reads the byte before or after
// another one has replaced it, it writes the same value.
__device__ __forceinline__ void StepLife(signed char *life, const signed char *rule) { *life = rule[*life + 128]; }

// A barrier in shared memory that counts the bytes of bulk copies.
typedef unsigned long long CopyBarrier;

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ unsigned SharedAddress(const void *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Prepares a barrier for one thread.
__device__ __forceinline__ void InitCopyBarrier(CopyBarrier *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier)) : "memory");
}

// Orders what this thread and those before a barrier of the block did in shared memory before bulk copies.
__device__ __forceinline__ void FenceBulkCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Tells a barrier how many bytes the next bulk copies to shared memory have.
__device__ __forceinline__ void ExpectBytes(CopyBarrier *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes)
                 : "memory");
}

// Returns whether these bytes are there. `phase` is 0 and 1 alternately.
__device__ __forceinline__ bool HasBytes(CopyBarrier *barrier, int phase)
{
    unsigned has;
    asm volatile("{\n"
                 ".reg .pred has;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 has, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, has;\n"
                 "}\n"
                 : "=r"(has)
                 : "r"(SharedAddress(barrier)), "r"(phase)
                 : "memory");
    return has != 0;
}

// Starts a copy from global to shared memory. Addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void StartLoad(void *to, const void *from, int bytes, CopyBarrier *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     SharedAddress(to)),
                 "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
                 : "memory");
}

// Starts a copy from shared to global memory.
__device__ __forceinline__ void StartStore(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(SharedAddress(from)), "r"(bytes)
                 : "memory");
}

// Makes a group of the stores that this thread has started since the last group.
__device__ __forceinline__ void EndGroup() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all stores of this thread have read shared memory. They write global memory before the kernel ends,
// and no thread reads or writes those bytes before.
__device__ __forceinline__ void WaitForReads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

#endif

} // namespace avsg
