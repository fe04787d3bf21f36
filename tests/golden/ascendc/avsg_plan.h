// avsg_plan.h: the requests of a batch, core by core.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_stage_one.h"

namespace avsg {

constexpr int32_t TILE = 16;            // requests whose words are read at once
constexpr int32_t MINUS = 128;          // words of -1
constexpr uint32_t FRAME = 182784;       // behind Stage One's memory, kept while it runs
constexpr uint32_t FRAME_BYTES = 1056;
constexpr uint32_t TILING_AT = FRAME;
constexpr uint32_t WORDS_AT = TILING_AT + 128;
constexpr uint32_t ZERO_AT = WORDS_AT + 5 * TILE * 4 + BLOCK;
constexpr uint32_t MINUS_AT = ZERO_AT + RECORD_WORDS * 4;
static_assert(MINUS_AT + MINUS * 4 == FRAME + FRAME_BYTES && FRAME + FRAME_BYTES <= UB_BYTES, "frame");

// Slots `from..K` of a row: -1.
__aicore__ inline void PadSlots(const Gm &gm, int32_t row, int32_t from)
{
    for (int32_t at = from; at < K; at += MINUS) {
        CopyOut(gm.slot[row * K + at], Local<int32_t>(MINUS_AT, MINUS), ScalarMin(K - at, MINUS));
    }
}

// Every core takes a run of requests; no two runs differ by more than one. Or several share one: then all meet
// once, whether they have one or not. Nothing returns early: a core without requests still has to reach SyncAll.
// `late`: refreshes of a request's last token are left to whoever comes after, and cores may share.
__aicore__ inline void PlanBatch(const Gm &gm, Window &w, const Tiling &t, bool late)
{
    // A launch on fewer cores than the host counted on shares nothing: a part would have no core.
    const int32_t sharers = late && t.sharers * t.requests <= GetBlockNum() ? t.sharers : 1;
    const int32_t core = GetBlockIdx() / sharers;
    const int32_t cores = sharers > 1 ? t.requests : GetBlockNum();
    const int32_t begin = core < cores ? Cut(t.requests, core, cores) : 0;
    const int32_t end = core < cores ? Cut(t.requests, core + 1, cores) : 0;
    const int32_t sharer = GetBlockIdx() % sharers;
    bool met = sharers == 1;
    const LocalTensor<int32_t> zero = Local<int32_t>(ZERO_AT, RECORD_WORDS);
    if (begin < end) {
        Duplicate(zero, 0, RECORD_WORDS);
        Duplicate(Local<int32_t>(MINUS_AT, MINUS), -1, MINUS);
        stage_one::Setup(gm);
        PipeBarrier<PIPE_ALL>();
    }
    for (int32_t request = begin; request < end; request++) {
        // What the host promises is kept here once more: a bad word must not become an address.
        const int32_t first = w.Word(CU_Q, request);
        const int32_t tokens = Between(0, w.Word(CU_Q, request, 1) - first, TOKENS);
        const int32_t state = w.Word(STATE, request);
        const bool padded = state < 0 || state >= t.states;
        if (sharer > 0 && (padded || tokens == 0)) {
            continue;
        }
        if (padded) {
            CopyOut(gm.valid[first], zero, tokens);
            CopyOut(gm.record[request * RECORD_WORDS], zero, RECORD_WORDS);
        } else {
            const int32_t stable = w.Word(STABLE, request);
            Request q;
            q.tokens = tokens;
            q.k = t.k;
            q.generation = w.Word(GENERATION, request);
            q.stable = stable < 0 ? NO_STABLE_LEN : ScalarMin(stable, NO_STABLE_LEN);
            q.limit = Between(0, w.Word(SEQ, request), ID_LIMIT);
            q.rows = t.poolUnits;
            q.idsAt = first * t.idsStride;
            q.idsStride = t.idsStride;
            q.blocksAt = request * t.blockStride;
            q.blocksLen = t.blockStride;
            q.slotAt = q.missAt = first * K;
            q.slotStride = K;
            q.validAt = first;
            q.recordAt = request * RECORD_WORDS;
            q.shared = sharers > 1 && tokens > 0 ? 1 : 0;
            q.shareAt = ScalarMin(sharer * t.shareLen, t.k);
            q.shareLen = ScalarMin(t.shareLen, t.k - q.shareAt);
            q.turn = sharer;
            q.owner = sharer == 0;
            q.deferred = late ? tokens : 0;
            q.tableAt = static_cast<uint64_t>(state) * TABLE_WORDS;
            stage_one::StageOne(gm, q);
            met = met || q.shared > 0;
        }
        if (sharer > 0) {
            continue;
        }
        for (int32_t row = first; row < first + tokens; row++) {
            PadSlots(gm, row, padded ? 0 : t.k);
        }
        PipeBarrier<PIPE_ALL>();
    }
    if (!met) {
        SyncAll<true>();
    }
}

// The kernel's arrays; batch arrays become the window's.
__aicore__ inline Window BatchWindow(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen)
{
    Window w(WORDS_AT, TILE, t, cuQ);
    w.Add(state, 1);
    w.Add(stableLen, 1);
    w.Add(seqLen, 1);
    w.Add(generation, 1);
    return w;
}

} // namespace avsg
