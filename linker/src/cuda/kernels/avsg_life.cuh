// avsg_life.cuh: lifetimes, which are bytes, four in a word.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_scan.cuh"

namespace avsg {

// Returns a word with four equal bytes.
__device__ __forceinline__ unsigned Four(int byte) { return 0x01010101u * (static_cast<unsigned>(byte) & 0xFF); }

// Subtracts `by`, 0..128, from every lifetime that is at least `from`, saturating at -128.
__device__ __forceinline__ void Age(signed char *life, int by, int from)
{
    unsigned *const words = reinterpret_cast<unsigned *>(life);
    if (from > 127) {
        return;
    }
    // A byte with a sign holds at most 127.
    const unsigned most = Four(min(by, 127));
    const unsigned rest = Four(by - min(by, 127));
    for (int i = static_cast<int>(threadIdx.x); i < SLOTS / 4; i += THREADS) {
        const unsigned aged = __vcmpges4(words[i], Four(max(from, -128)));
        words[i] = __vsubss4(__vsubss4(words[i], most & aged), rest & aged);
    }
}

// Replaces each lifetime by an entry of a table, 0..255, less 128.
__device__ __forceinline__ void MapLife(signed char *to, const signed char *life, const int *table)
{
    for (int i = static_cast<int>(threadIdx.x); i < SLOTS / 4; i += THREADS) {
        const unsigned word = reinterpret_cast<const unsigned *>(life)[i] ^ 0x80808080u;
        unsigned mapped = 0;
#pragma unroll
        for (int shift = 0; shift < 32; shift += 8) {
            mapped |= static_cast<unsigned>(table[(word >> shift) & 0xFF]) << shift;
        }
        reinterpret_cast<unsigned *>(to)[i] = mapped ^ 0x80808080u;
    }
}

// Returns the number of bytes of a word that are at most t, -128..127.
__device__ __forceinline__ unsigned CountUpTo(unsigned word, int t)
{
    return static_cast<unsigned>(__popc(__vcmples4(word, Four(t)))) / 8;
}

// Returns the smallest t for which at least `need` lifetimes are at most t, by their counts. Two barriers.
__device__ __noinline__ int ThresholdOfCounts(const signed char *life, int need)
{
    unsigned *const bins = Shared<unsigned>(SCRATCH_AT);
    for (int i = static_cast<int>(threadIdx.x); i < 256; i += THREADS) {
        bins[i] = 0;
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < SLOTS; i += THREADS) {
        atomicAdd(&bins[life[i] + 128], 1u);
    }
    __syncthreads();
    const int first = LaneOfWarp() * 8;
    unsigned own = 0;
    for (int i = 0; i < 8; i++) {
        own += bins[first + i];
    }
    const unsigned upTo = SumUpToLane(own);
    const unsigned reached = Ballot(upTo >= static_cast<unsigned>(need));
    unsigned sum = upTo - own;
    int t = first - 128;
    for (int i = 0; i < 8 && sum + bins[first + i] < static_cast<unsigned>(need); i++) {
        sum += bins[first + i];
        t++;
    }
    t = __shfl_sync(ALL_LANES, t, (__ffs(static_cast<int>(reached)) - 1) & (WARP - 1));
    return reached == 0 ? 127 : t;
}

// Returns the smallest t for which at least `need` lifetimes are at most t, 127 if there is none; -128 if none is
// needed. One pass suffices if it is `hint` or the next one.
__device__ __forceinline__ int Threshold(const signed char *life, int hint, int need, Scratch &scratch)
{
    if (need <= 0) {
        return -128;
    }
    const int guess = max(-127, min(126, hint));
    const unsigned *const words = reinterpret_cast<const unsigned *>(life);
    unsigned two = 0;
    unsigned three = 0;
    for (int i = static_cast<int>(threadIdx.x); i < SLOTS / 4; i += THREADS) {
        two += CountUpTo(words[i], guess - 1) + (CountUpTo(words[i], guess) << 16);
        three += CountUpTo(words[i], guess + 1);
    }
    unsigned *const totals = scratch.Next();
    two = SumOfWarp(two);
    three = SumOfWarp(three);
    if (LaneOfWarp() == 0) {
        totals[WarpOfBlock()] = two;
        totals[WARPS + WarpOfBlock()] = three;
    }
    __syncthreads();
    two = SumsOfWarps(totals).total;
    three = SumsOfWarps(totals + WARPS).total;
    const unsigned needed = static_cast<unsigned>(need);
    if ((two & 0xFFFF) < needed && needed <= (two >> 16)) {
        return guess;
    }
    if ((two >> 16) < needed && needed <= three) {
        return guess + 1;
    }
    return ThresholdOfCounts(life, need);
}

// Appends the slots with a lifetime below t, then those with t, each in the order of their indices, until the
// list has `limit` entries, and returns their number. A thread has neighbouring slots. One barrier.
template <bool BELOW, bool EQUAL>
__device__ __forceinline__ int AppendVictims(
    int *list, int length, int limit, const signed char *life, int t, Scratch &scratch)
{
    if (length >= limit) {
        return length;
    }
    constexpr int OWN = (SLOTS + THREADS - 1) / THREADS;
    const int first = static_cast<int>(threadIdx.x) * OWN;
    unsigned counts = 0;
    for (int i = first; i < first + OWN && i < SLOTS; i++) {
        counts += (BELOW && life[i] < t ? 1u : 0) + (EQUAL && life[i] == t ? 1u << 16 : 0);
    }
    const Sums sums = SumsOfBlock(counts, scratch);
    const int all = static_cast<int>(sums.total & 0xFFFF);
    int below = length + static_cast<int>(sums.before & 0xFFFF);
    int equal = length + all + static_cast<int>(sums.before >> 16);
    for (int i = first; i < first + OWN && i < SLOTS; i++) {
        if (BELOW && life[i] < t) {
            if (below < limit) {
                list[below] = i;
            }
            below++;
        } else if (EQUAL && life[i] == t) {
            if (equal < limit) {
                list[equal] = i;
            }
            equal++;
        }
    }
    return min(limit, length + all + static_cast<int>(sums.total >> 16));
}

} // namespace avsg
