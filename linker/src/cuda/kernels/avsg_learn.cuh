// avsg_learn.cuh: what a step teaches about the lifetimes that are worth keeping, after it has published its misses.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_scan.cuh"
#include "avsg_stage_one.cuh"

namespace avsg {

// Returns a * b, of which one has the unit 2^-16. All such numbers are below 2^31, and products need 64 bits.
__device__ __forceinline__ int64_t LearnProduct(int64_t a, int64_t b) { return (a * b) >> 16; }

// Returns the logarithm of the steps that a slot stays in the class 15 - row.
__device__ __forceinline__ int LearnLogSteps(int row) { return static_cast<int>(LEARN_LOG_STEPS >> (4 * row) & 15); }

// One table while a warp learns from a step. Its words are those behind the links, by lifetime + 128.
struct LearnTable {
    int *value, *uses, *counted, *used;

    __device__ __forceinline__ explicit LearnTable(int *words)
        : value(words), uses(words + LIFETIMES), counted(words + 2 * LIFETIMES), used(words + 3 * LIFETIMES)
    {
    }

    // Forgets what an earlier request taught. Values are the order of classes, and empty slots come first.
    __device__ __forceinline__ void Start() const
    {
        for (int at = LaneOfWarp(); at < LIFETIMES; at += WARP) {
            value[at] = (at & -LEARN_LEVELS) + min(at, 1);
            uses[at] = counted[at] = used[at] = 0;
        }
    }

    // Counts the slots of the last step's sample, by all threads: each counts those that it has written down.
    __device__ __forceinline__ void CountSample(const int *sample) const
    {
        for (int i = static_cast<int>(threadIdx.x); i < LEARN_SLOTS; i += THREADS) {
            const int word = sample[i];
            const int at = word & (LIFETIMES - 1);
            atomicAdd(&counted[at], LEARN_SLOT);
            if ((word & LEARN_WAS_USED) != 0) {
                atomicAdd(&used[at], LEARN_SLOT);
            }
        }
    }

    // Returns a count of slots, an eighth of which decays.
    __device__ __forceinline__ static int Decay(int *count)
    {
        const int kept = *count - (*count >> 3);
        *count = kept;
        return kept;
    }

    // Estimates the uses of the slots of the class 15 - row, a level by each of the first lanes. Class 0 is left
    // at the end of a step.
    __device__ __forceinline__ void Estimate(int row) const
    {
        const int at = row * LEARN_LEVELS + LaneOfWarp();
        const bool estimates = row < 15 && LaneOfWarp() < LEARN_LEVELS;
        int64_t ifUsed = 0;
        int64_t ifNot = 0;
        int64_t h = 0;
        if (estimates) {
            const uint64_t ages = row < 8 ? LEARN_OLD_AGES : LEARN_YOUNG_AGES;
            const int age = static_cast<int>(ages >> (8 * (row % 8)) & 255);
            const int steps = LearnLogSteps(row);
            const int64_t prior = LEARN_PRIOR * LEARN_ONE / (2 * age);
            const int64_t all = Decay(&counted[at]) + LEARN_PRIOR;
            const int64_t hits = (Decay(&used[at]) * LEARN_ONE + prior) / all;
            h = hits < LEARN_ONE ? hits : LEARN_ONE;
            // A slot of class 0 is in class 1 when the next step begins.
            const int hit = AFTER_HIT[at] + 128 - LEARN_LEVELS;
            int64_t later = uses[at];
            if (row > 0) {
                later = (uses[at - LEARN_LEVELS] + ((1 << steps) - 1) * later) >> steps;
            }
            ifUsed = LEARN_ONE + LearnProduct(LEARN_BETA, uses[hit]);
            ifNot = LearnProduct(LEARN_BETA, later);
        }
        __syncwarp();
        if (estimates) {
            uses[at] = static_cast<int>(LearnProduct(h, ifUsed) + LearnProduct(LEARN_ONE - h, ifNot));
        }
    }

    // Writes the values of all lifetimes: 16 times the binary logarithm of their uses. An empty slot is the
    // first victim.
    __device__ __forceinline__ void Publish() const
    {
        int all[LIFETIMES / WARP];
#pragma unroll
        for (int i = 0; i < LIFETIMES / WARP; i++) {
            all[i] = uses[i * WARP + LaneOfWarp()];
        }
#pragma unroll
        for (int i = 0; i < LIFETIMES / WARP; i++) {
            const int at = i * WARP + LaneOfWarp();
            const int64_t n = max(all[i], 1);
            int log = 0;
            for (int bits = 16; bits > 0; bits /= 2) {
                log += n >> (log + bits) > 0 ? bits : 0;
            }
            const int fraction = static_cast<int>((n << 4) >> log) & 15;
            value[at] = at == 0 ? 0 : max(1, min(LEARN_MAX_VALUE, 16 * (log - 5) + fraction));
        }
    }
};

// Begins to learn from a step, by all threads. `learned` are the words behind the links; a geometry with constant
// lifetimes has none.
__device__ __forceinline__ void Count(int *learned, const Header &header)
{
    if (LEARNED_WORDS > 0 && header.Get(HEADER_LEARN + LEARN_STEP) != 0) {
        LearnTable(learned).CountSample(learned + LEARN_RESULT);
    }
}

// Learns from what is counted, by the last warp of the block, and prepares the header for the next step. A barrier of
// the block is behind the counts.
__device__ __forceinline__ void Learn(int *learned, Header &header)
{
    if (LEARNED_WORDS == 0) {
        return;
    }
    const int step = header.Get(HEADER_LEARN + LEARN_STEP);
    const int next = step == 0x7FFFFFFF ? LEARN_SWEEP * LEARN_START : step + 1;
    if (WarpOfBlock() == WARPS - 1) {
        const LearnTable table(learned);
        if (step == 0) {
            table.Start();
            __syncwarp();
        }
        table.Estimate(step & (LEARN_SWEEP - 1));
        if ((next & (LEARN_SWEEP - 1)) == 0 && next >= LEARN_START) {
            // Such a step estimates class 0, so the uses are those of earlier steps.
            table.Publish();
        }
    }
    const unsigned order = static_cast<unsigned>(next) * 0x9E3779B1u >> 16;
    // The steps of classes are powers of two that do not fall with the age.
    int moving = 0;
    while (moving < 15 && next % (1 << LearnLogSteps(15 - moving)) == 0) {
        moving++;
    }
    const int sample = header.Get(HEADER_LEARN + LEARN_SAMPLE);
    header.Set(HEADER_LEARN + LEARN_STEP, next);
    header.Set(HEADER_LEARN + LEARN_LAST_SAMPLE, sample);
    header.Set(HEADER_LEARN + LEARN_SAMPLE, static_cast<int>(order % 16) * LEARN_SLOTS);
    header.Set(HEADER_LEARN + LEARN_MOVES_FROM, 16 * (8 - moving));
}

} // namespace avsg
