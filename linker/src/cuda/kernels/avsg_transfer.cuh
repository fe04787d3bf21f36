// avsg_transfer.cuh: the copies of a batch that is planned, spread over any number of blocks.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_copies.cuh"

namespace avsg {

// The arrays of a plan that say what to copy.
struct Planned {
    const int *cuQ, *state, *missSlot, *missRow, *record;

    __device__ __forceinline__ int MissesOf(int request) const { return record[request * RECORD_WORDS + RECORD_TOTAL]; }
};

// Copies the share of this block of the misses of a batch, in the order of requests and tokens. A window is as many
// requests as a block has threads, so most batches have one.
__device__ __forceinline__ void CopyShare(const Tiling &t, const Layer &layer, const Planned &planned)
{
    const int thread = static_cast<int>(threadIdx.x);
    CopyPlan &c = SharedCopyPlan();
    int *const ends = Shared<int>(ENDS_AT);
    PrepareCopies(t, layer, planned.missSlot, planned.missRow, Rows{0, 0, 0}, ENDS_AT + THREADS * 4);
    if (thread == 0) {
        c.ends = ends;
        c.cuQ = planned.cuQ;
        c.states = planned.state;
    }
    Scratch scratch;
    unsigned own = 0;
    for (int request = thread; request < t.requests; request += THREADS) {
        own += static_cast<unsigned>(planned.MissesOf(request));
    }
    const long long all = SumsOfBlock(own, scratch).total;
    const int begin = static_cast<int>(all * blockIdx.x / gridDim.x);
    const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
    int before = 0;
    int turn = NO_TURN;
    for (int window = 0; window < t.requests && before < end; window += THREADS) {
        const int n = window + thread < t.requests ? planned.MissesOf(window + thread) : 0;
        // Its barrier is behind the copies of the last window.
        const Sums sums = SumsOfBlock(static_cast<unsigned>(n), scratch);
        const int total = static_cast<int>(sums.total);
        const int from = max(begin - before, 0);
        const int to = min(end - before, total);
        ends[thread] = static_cast<int>(sums.before) + n;
        if (thread == 0) {
            c.windowFirst = window;
            c.windowLen = min(THREADS, t.requests - window);
            c.next = from;
        }
        __syncthreads();
        turn = turn == NO_TURN ? turn : TakeMiss(c) + (turn & 2);
        turn = FinishCopies<true>(turn, from, to);
        before += total;
    }
}

} // namespace avsg
