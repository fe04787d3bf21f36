// avsg_comparator: what AVSG is compared with: a batch LRU, written from a public description of the kernel of
// SGLang's HiSparse and not from its source. One block for each request makes a hash of the selected ids, walks all
// slots from the oldest to the newest, gives the oldest of the others to the misses, and copies their rows, a warp
// for each row. Ids are distinct and not negative. The rows' numbers, the slots' places and the number of requests
// are in memory, as in that kernel.
// From AVSG. Apache-2.0.

#include "avsg_scan.cuh"

namespace avsg {

struct ComparatorSizes {
    int rowBytes;       // a multiple of 16
};

// Addresses in the shared memory of a block.
constexpr int KEYS = 2 * K;
constexpr int KEYS_AT = 0;                              // the hash: ids
constexpr int WHERE_AT = KEYS_AT + KEYS * 4;            // and their positions in the row
constexpr int SLOT_OF_AT = WHERE_AT + KEYS * 2;         // slots of the positions, -1 for a miss
constexpr int MISSES_AT = SLOT_OF_AT + K * 2;           // positions of the misses
constexpr int PARTED_AT = MISSES_AT + K * 2;            // slots: hits forward, the others from the end backward
constexpr int WARP_TOTALS_AT = PARTED_AT + SLOTS * 2;
static_assert(WARP_TOTALS_AT + (WARPS + 1) * 4 == COMPARATOR_BYTES, "the host gives a block as many");

constexpr int PIECES = 4;       // pieces of a row that a thread has in flight at most
constexpr int NO_ID = -1;

__device__ __forceinline__ int FirstKey(int id)
{
    return static_cast<int>((static_cast<unsigned>(id) * 2654435761u) >> 16) % KEYS;
}

// Returns how many of the threads before this one, and of those of all chunks before, keep an entry, and counts
// those of this chunk. The first warp adds the totals of the warps. Two barriers.
__device__ __forceinline__ int RankOf(bool keeps)
{
    int *const totals = Shared<int>(WARP_TOTALS_AT);
    int *const sum = totals + WARPS;
    const unsigned kept = Ballot(keeps);
    // The threads of the warp have read its total of the chunk before.
    __syncwarp();
    if (LaneOfWarp() == 0) {
        totals[WarpOfBlock()] = __popc(kept);
    }
    __syncthreads();
    if (WarpOfBlock() == 0) {
        const int before = *sum;
        __syncwarp();
        const unsigned own = LaneOfWarp() < WARPS ? static_cast<unsigned>(totals[LaneOfWarp()]) : 0;
        const unsigned upTo = SumUpToLane(own);
        if (LaneOfWarp() < WARPS) {
            totals[LaneOfWarp()] = before + static_cast<int>(upTo - own);
        }
        if (LaneOfWarp() == WARP - 1) {
            *sum = before + static_cast<int>(upTo);
        }
    }
    __syncthreads();
    return totals[WarpOfBlock()] + __popc(kept & ((1u << LaneOfWarp()) - 1));
}

// Copies a row by the threads of a warp: all pieces are loaded before the first one is stored.
__device__ __forceinline__ void CopyRow(unsigned char *to, const unsigned char *from, int bytes)
{
    for (int first = LaneOfWarp(); first < bytes / 16; first += PIECES * WARP) {
        int4 piece[PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            if (first + i * WARP < bytes / 16) {
                piece[i] = __ldg(reinterpret_cast<const int4 *>(from) + first + i * WARP);
            }
        }
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            if (first + i * WARP < bytes / 16) {
                reinterpret_cast<int4 *>(to)[first + i * WARP] = piece[i];
            }
        }
    }
}

} // namespace avsg

// `ids` has K words for each request, and `out` gets as many. `held` has the id of each slot, or -1, and `order` the
// slots from the oldest to the newest: S words for each request. `hostRow` has the row of each id in `host`, and
// `deviceRow` that of each slot in `device`.
extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_comparator(
    const int *ids, int *held, short *order, const long long *hostRow, const int *deviceRow,
    const unsigned char *host, unsigned char *device, int *out, const int *requests,
    const __grid_constant__ avsg::ComparatorSizes sizes)
{
    using namespace avsg;
    const int request = static_cast<int>(blockIdx.x);
    if (request >= *requests) {
        return;
    }
    ids += request * K;
    out += request * K;
    held += request * SLOTS;
    order += request * SLOTS;
    deviceRow += request * SLOTS;
    int *const keys = Shared<int>(KEYS_AT);
    short *const where = Shared<short>(WHERE_AT);
    short *const slotOf = Shared<short>(SLOT_OF_AT);
    short *const misses = Shared<short>(MISSES_AT);
    short *const parted = Shared<short>(PARTED_AT);
    int *const sum = Shared<int>(WARP_TOTALS_AT) + WARPS;
    const int thread = static_cast<int>(threadIdx.x);

    for (int i = thread; i < KEYS; i += THREADS) {
        keys[i] = NO_ID;
    }
    for (int i = thread; i < K; i += THREADS) {
        slotOf[i] = -1;
    }
    if (thread == 0) {
        *sum = 0;
    }
    __syncthreads();
    for (int i = thread; i < K; i += THREADS) {
        int at = FirstKey(ids[i]);
        while (atomicCAS(&keys[at], NO_ID, ids[i]) != NO_ID) {
            at = (at + 1) % KEYS;
        }
        where[at] = static_cast<short>(i);
    }
    __syncthreads();

    // Slots are parted into hits and others, each from the oldest to the newest.
    for (int first = 0; first < SLOTS; first += THREADS) {
        const int i = first + thread;
        const int slot = i < SLOTS ? order[i] : 0;
        const int id = i < SLOTS ? held[slot] : NO_ID;
        bool hit = false;
        if (id != NO_ID) {
            int at = FirstKey(id);
            while (keys[at] != id && keys[at] != NO_ID) {
                at = (at + 1) % KEYS;
            }
            hit = keys[at] == id;
            if (hit) {
                slotOf[where[at]] = static_cast<short>(slot);
                out[where[at]] = deviceRow[slot];
            }
        }
        const int hits = RankOf(hit);
        if (i < SLOTS) {
            parted[hit ? hits : SLOTS - 1 - (i - hits)] = static_cast<short>(slot);
        }
    }
    __syncthreads();
    const int hits = *sum;
    __syncthreads();

    // Misses take the oldest of the others, in the order of their positions.
    if (thread == 0) {
        *sum = 0;
    }
    for (int first = 0; first < K; first += THREADS) {
        const int i = first + thread;
        const bool miss = i < K && slotOf[i] < 0;
        const int rank = RankOf(miss);
        if (miss) {
            const int slot = parted[SLOTS - 1 - rank];
            misses[rank] = static_cast<short>(i);
            held[slot] = ids[i];
            out[i] = deviceRow[slot];
        }
    }
    __syncthreads();
    const int missing = *sum;

    // The new order: slots that were not selected, misses, hits.
    const int stale = SLOTS - hits - missing;
    for (int i = thread; i < SLOTS; i += THREADS) {
        const int other = i < stale ? missing + i : i - stale;
        order[i] = i < SLOTS - hits ? parted[SLOTS - 1 - other] : parted[i - (SLOTS - hits)];
    }
    for (int i = WarpOfBlock(); i < missing; i += WARPS) {
        const unsigned char *const from = host + hostRow[ids[misses[i]]] * sizes.rowBytes;
        const long long to = static_cast<long long>(deviceRow[parted[SLOTS - 1 - i]]) * sizes.rowBytes;
        CopyRow(device + to, from, sizes.rowBytes);
    }
}
