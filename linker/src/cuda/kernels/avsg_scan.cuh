// avsg_scan.cuh: the places of entries that threads add to a list, in the order of their lanes.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_block.cuh"

namespace avsg {

// Two buffers of shared memory for the totals of warps, which scans use in turn: the barrier of a scan is
// between the reads of the one before it and the writes of the one after it.
struct Scratch {
    int turn;

    __device__ __forceinline__ Scratch() : turn(0) {}

    __device__ __forceinline__ unsigned *Next()
    {
        turn ^= 1;
        return Shared<unsigned>(TOTALS_AT + turn * TOTALS_BYTES);
    }
};

// Returns the threads of the warp for which a condition holds, as bits.
__device__ __forceinline__ unsigned Ballot(bool holds) { return __ballot_sync(ALL_LANES, holds); }

// Returns the sum of the words of this thread and those before it in its warp.
__device__ __forceinline__ unsigned SumUpToLane(unsigned word)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const unsigned before = __shfl_up_sync(ALL_LANES, word, distance);
        word += LaneOfWarp() >= distance ? before : 0;
    }
    return word;
}

// Returns the sum of the words of a warp.
__device__ __forceinline__ unsigned SumOfWarp(unsigned word)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        word += __shfl_xor_sync(ALL_LANES, word, distance);
    }
    return word;
}

// The sum of the words before one, and the sum of all.
struct Sums {
    unsigned before, total;
};

// Returns the sums over the totals of warps: those before the warp of this thread, and all.
__device__ __forceinline__ Sums SumsOfWarps(const unsigned *totals)
{
    const unsigned own = LaneOfWarp() < WARPS ? totals[LaneOfWarp()] : 0;
    const unsigned sum = SumUpToLane(own);
    const unsigned before = __shfl_sync(ALL_LANES, sum - own, WarpOfBlock());
    return Sums{before, __shfl_sync(ALL_LANES, sum, WARP - 1)};
}

// Returns the sum of the words of the threads before this one, and that of all threads of the block. One
// barrier.
__device__ __forceinline__ Sums SumsOfBlock(unsigned word, Scratch &scratch)
{
    unsigned *const totals = scratch.Next();
    const unsigned sum = SumUpToLane(word);
    if (LaneOfWarp() == WARP - 1) {
        totals[WarpOfBlock()] = sum;
    }
    __syncthreads();
    const Sums warps = SumsOfWarps(totals);
    return Sums{warps.before + sum - word, warps.total};
}

// The places of entries behind the last entries of some lists, and the numbers of entries.
template <int LISTS, int ROUNDS> struct Places {
    int at[LISTS][ROUNDS];
    int total[LISTS];
};

// Returns the places of entries: in round r a thread adds an entry to list l if its bit of kept[l][r] is set. Two
// numbers of entries, each at most S, are in one word. One barrier.
template <int LISTS, int ROUNDS>
__device__ __forceinline__ Places<LISTS, ROUNDS> FindPlaces(const unsigned (&kept)[LISTS][ROUNDS], Scratch &scratch)
{
    constexpr int WORDS = (LISTS + 1) / 2;
    static_assert(WORDS * ROUNDS * WARPS * 4 <= TOTALS_BYTES, "totals");
    unsigned *const totals = scratch.Next();
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        // The word of the last list has one number if their number is odd.
        const int second = min(2 * w + 1, LISTS - 1);
        const unsigned one = 2 * w + 1 < LISTS ? 1u << 16 : 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (LaneOfWarp() == 0) {
                totals[(w * ROUNDS + r) * WARPS + WarpOfBlock()] = static_cast<unsigned>(__popc(kept[2 * w][r]))
                    + one * static_cast<unsigned>(__popc(kept[second][r]));
            }
        }
    }
    __syncthreads();
    Places<LISTS, ROUNDS> places;
    const unsigned below = (1u << LaneOfWarp()) - 1;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        const int second = min(2 * w + 1, LISTS - 1);
        unsigned sum = 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            const Sums warps = SumsOfWarps(totals + (w * ROUNDS + r) * WARPS);
            const unsigned first = sum + warps.before;
            places.at[second][r] = static_cast<int>(first >> 16) + __popc(kept[second][r] & below);
            places.at[2 * w][r] = static_cast<int>(first & 0xFFFF) + __popc(kept[2 * w][r] & below);
            sum += warps.total;
        }
        places.total[second] = static_cast<int>(sum >> 16);
        places.total[2 * w] = static_cast<int>(sum & 0xFFFF);
    }
    return places;
}

} // namespace avsg
