// Kernels that break a rule of the shim, and one that keeps all.

#include "avsg_instructions.cuh"

extern __shared__ __align__(128) unsigned char avsgShared[];

// A name, and what the shim says of the kernel; `wrong.rs` reads both from this file.
#define KERNEL(name, says) extern "C" __global__ void name(int *words, const int *input)

__device__ int *Words() { return reinterpret_cast<int *>(avsgShared); }

KERNEL(right, "")
{
    const int thread = static_cast<int>(threadIdx.x);
    Words()[thread] = input[thread];
    __syncthreads();
    const unsigned all = __ballot_sync(0xFFFFFFFFu, Words()[63 - thread] >= 0);
    words[blockIdx.x * 64 + threadIdx.x] = Words()[63 - thread] + static_cast<int>(all);
    avsg::SetLife(reinterpret_cast<signed char *>(Words() + 64), 7);
}

KERNEL(reads_before_a_barrier, "since the last barrier")
{
    Words()[threadIdx.x] = 1;
    words[threadIdx.x] = Words()[63 - threadIdx.x];
}

KERNEL(a_warp_reads_behind_its_barrier, "")
{
    Words()[threadIdx.x] = 1;
    __syncwarp();
    words[blockIdx.x * 64 + threadIdx.x] = Words()[threadIdx.x ^ 1];
    __syncwarp();
    Words()[threadIdx.x ^ 3] = 1;
}

KERNEL(a_warp_reads_before_its_barrier, "since the last barrier")
{
    Words()[threadIdx.x] = 1;
    words[blockIdx.x * 64 + threadIdx.x] = Words()[threadIdx.x ^ 1];
    __syncwarp();
}

KERNEL(a_barrier_of_a_warp_is_not_one_of_the_block, "since the last barrier")
{
    Words()[threadIdx.x] = 1;
    __syncwarp();
    words[blockIdx.x * 64 + threadIdx.x] = Words()[threadIdx.x ^ 32];
}

KERNEL(two_threads_write_one_byte, "has written since the last barrier") { Words()[threadIdx.x / 2] = 1; }

KERNEL(two_blocks_write_one_word, "which another block has accessed") { words[threadIdx.x] = 1; }

KERNEL(writes_behind_its_memory, "which no argument has") { words[threadIdx.x + 128] = 1; }

KERNEL(writes_behind_shared_memory, "byte 2048 of shared memory, of which the launch gives 2048")
{
    if (threadIdx.x == 0) {
        Words()[512] = 1;
    }
}

KERNEL(writes_an_input, "which is an input") { const_cast<int *>(input)[threadIdx.x] = 1; }

KERNEL(half_of_a_block_waits, "hang: ")
{
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __ballot_sync(0xFFFFFFFFu, threadIdx.x != 40 || words == nullptr);
        if (threadIdx.x != 40) {
            __ballot_sync(0xFFFFFFFFu, true);
        }
    }
}

KERNEL(lanes_of_a_warp_part, "a shuffle")
{
    if (threadIdx.x % 2 == 0) {
        __ballot_sync(0xFFFFFFFFu, true);
    } else {
        __shfl_sync(0xFFFFFFFFu, 1, 0);
    }
}

KERNEL(lifetimes_differ, "threads set a lifetime to") { avsg::SetLife(reinterpret_cast<signed char *>(Words()), static_cast<signed char>(threadIdx.x)); }

KERNEL(misaligned, "which is misaligned")
{
    *reinterpret_cast<int4 *>(Words() + 1 + 4 * threadIdx.x) = *reinterpret_cast<const int4 *>(input);
}

KERNEL(more_bytes_are_expected_than_arrive, "a barrier expects 80 bytes, and 64 arrive")
{
    if (threadIdx.x == 0) {
        avsg::CopyBarrier *const barrier = reinterpret_cast<avsg::CopyBarrier *>(avsgShared);
        avsg::InitCopyBarrier(barrier);
        avsg::FenceBulkCopies();
        avsg::ExpectBytes(barrier, 80);
        avsg::StartLoad(avsgShared + 64, input, 64, barrier);
        while (!avsg::HasBytes(barrier, 0)) {
        }
    }
}

KERNEL(a_row_is_read_before_it_arrives, "which a bulk copy has that no thread has waited for")
{
    if (threadIdx.x == 0) {
        avsg::CopyBarrier *const barrier = reinterpret_cast<avsg::CopyBarrier *>(avsgShared);
        avsg::InitCopyBarrier(barrier);
        avsg::FenceBulkCopies();
        avsg::ExpectBytes(barrier, 64);
        avsg::StartLoad(avsgShared + 64, input, 64, barrier);
        avsg::StartStore(words, avsgShared + 64, 64);
    }
}

KERNEL(a_slot_is_read_before_the_kernel_ends, "which a bulk copy has until the kernel ends")
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        avsg::FenceBulkCopies();
        avsg::StartStore(words, avsgShared + 64, 64);
        avsg::EndGroup();
        avsg::WaitForReads();
        words[64] = words[0];
    }
}

KERNEL(nobody_waits_for_a_copy, "before a thread has waited for 1 bulk copies")
{
    if (threadIdx.x == 0) {
        avsg::CopyBarrier *const barrier = reinterpret_cast<avsg::CopyBarrier *>(avsgShared);
        avsg::InitCopyBarrier(barrier);
        avsg::FenceBulkCopies();
        avsg::ExpectBytes(barrier, 64);
        avsg::StartLoad(avsgShared + 64, input, 64, barrier);
    }
}
