// avsg_plan.cuh: Stage One of a batch, one block for each request.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_copies.cuh"
#include "avsg_learn.cuh"
#include "avsg_stage_one.cuh"

namespace avsg {

// The arrays of a batch with one word for each request.
struct BatchWords {
    const int *cuQ, *state, *generation, *stableLen, *seqLen;
};

// Returns the rows of a request. The words are limited, although the host has checked them: a wrong word must
// not become an address.
__device__ __forceinline__ Rows RowsOf(const Tiling &t, const int *cuQ, const int *states, int request)
{
    const int first = cuQ[request];
    const int state = states[request];
    const int tokens = max(0, min(TOKENS, cuQ[request + 1] - first));
    return Rows{first, tokens, state >= 0 && state < t.states ? state : -1};
}

// Returns the arrays of a request.
__device__ __forceinline__ Gm ArraysOf(
    const Rows &rows, const int *ids, const int *blockTable, int *tables, int *slot, int *valid, int *missPos,
    int *missId, int *missSlot, int *missRow, int *record)
{
    int *const table = tables + static_cast<long long>(max(rows.state, 0)) * TABLE_WORDS;
    return Gm{ids, blockTable, slot, valid, missPos, missId, missSlot, missRow, record, table, table + LEARNED_AT};
}

// Loads the table of a request, runs Stage One, and stores what it changed, of which ids and links are already
// written to both memories. Copies go on meanwhile.
template <typename Copies> __device__ __forceinline__ void RunStageOne(const Gm &gm, const Request &q, Copies &copies)
{
    Header header;
    Record record;
    header.Load(gm.table);
    record.Load(nullptr);
    if (WHOLE_TABLE) {
        CopyWords<4>(Shared<int>(TABLE_AT), gm.table, LINKS_END);
    } else {
        CopyWords<4>(Shared<int>(LIFE_AT), gm.table + LIFE_WORD, LIFE_WORDS);
    }
    __syncthreads();
    StageOne(gm, q, header, record, copies);
    Count(gm.learned, header);
    copies.Release();
    __syncthreads();
    CopyWords<1>(gm.table + LIFE_WORD, Shared<int>(LIFE_AT), SLOTS / 4);
    Learn(gm.learned, header);
    header.Store(gm.table);
    record.Store(gm.record + q.recordAt);
}

// Plans a request whose state is not padded.
template <typename Copies>
__device__ __forceinline__ void PlanRequest(
    const Gm &gm, const BatchWords &words, const Tiling &t, const Rows &rows, int request, Copies &copies)
{
    const int stable = words.stableLen[request];
    Request q;
    q.tokens = rows.tokens;
    q.k = t.k;
    q.generation = words.generation[request];
    q.stable = stable < 0 ? NO_STABLE_LEN : min(stable, NO_STABLE_LEN);
    q.limit = max(0, min(ID_LIMIT, words.seqLen[request]));
    q.rows = t.poolUnits;
    q.idsAt = rows.first * t.idsStride;
    q.idsStride = t.idsStride;
    q.blocksAt = request * t.blockStride;
    q.blocksLen = t.blockStride;
    q.slotAt = q.missAt = rows.first * K;
    q.slotStride = K;
    q.validAt = rows.first;
    q.recordAt = request * RECORD_WORDS;
    q.shared = q.shareAt = q.shareLen = q.deferred = 0;
    RunStageOne(gm, q, copies);
}

// Writes the outputs of a padded request.
__device__ __forceinline__ void PadRequest(const Gm &gm, const Rows &rows, int request)
{
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < rows.tokens) {
        gm.valid[rows.first + thread] = 0;
    }
    if (thread < RECORD_WORDS) {
        gm.record[request * RECORD_WORDS + thread] = 0;
    }
}

// Writes -1 to the slots behind the ids of each row, and turns the others into indices among the slots of all
// states where the launch asks for it. A thread has the slots that it published.
__device__ __forceinline__ void FinishSlots(
    const Gm &gm, const Tiling &t, const Rows &rows, const int *slotBlocks)
{
    const int n = rows.state < 0 ? 0 : t.k;
    for (int row = rows.first; row < rows.first + rows.tokens; row++) {
        int *const slots = gm.slot + row * K;
        for (int i = static_cast<int>(threadIdx.x); i < K; i += THREADS) {
            if (i >= n) {
                slots[i] = -1;
            } else if (t.slotBase >= 0 && slots[i] >= 0) {
                const long long slot = SlotOfAll(t, slotBlocks, rows.state, slots[i]);
                slots[i] = slot < 0 ? -1 : t.slotBase + static_cast<int>(slot);
            }
        }
    }
}

} // namespace avsg
