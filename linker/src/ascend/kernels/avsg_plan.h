// avsg_plan.h: Stage One of a batch, distributed over the cores.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_instructions.h"
#include "avsg_stage_one.h"

namespace avsg {

constexpr int32_t PLAN_REQUESTS = 16;            // requests in the window
// Words of 0 in UB. The last SUMMARY_WORDS are the summary of a padded request; the first ones are the counts of
// its rows, and include no status bits.
constexpr int32_t ZERO_WORDS = TOKENS > SUMMARY_STATUS ? 2 * SUMMARY_WORDS : SUMMARY_WORDS;
constexpr int32_t ZERO_SUMMARY = ZERO_WORDS - SUMMARY_WORDS;
constexpr int32_t PAD_WORDS = 128 + SUMMARY_WORDS - ZERO_WORDS;  // words of -1 in UB, with which rows are padded
// Buffers of a core that plans, which lie behind those of Stage One and keep their words for all requests.
constexpr uint32_t TILING_AT = FRAME_AT;
constexpr uint32_t WORDS_AT = TILING_AT + 128;
constexpr uint32_t ZERO_AT = WORDS_AT + 5 * PLAN_REQUESTS * 4 + BLOCK;
constexpr uint32_t PAD_AT = ZERO_AT + ZERO_WORDS * 4;
static_assert(PAD_AT + PAD_WORDS * 4 == FRAME_AT + FRAME_BYTES && FRAME_AT + FRAME_BYTES <= UB_BYTES, "frame");

// Writes -1 to the slots from..K-1 of a row.
__aicore__ inline void PadSlots(const Gm &gm, int32_t row, int32_t from)
{
    for (int32_t at = from; at < K; at += PAD_WORDS) {
        CopyOut(gm.slot[row * K + at], Local<int32_t>(PAD_AT, PAD_WORDS), ScalarMin(K - at, PAD_WORDS));
    }
}

// The cores of a kernel that plans each request on one core. The text of such a kernel does not name
// the call that waits for all cores: the operator compiler searches the text for that name, and would
// schedule the kernel as one that needs it.
struct SeparateCores {
    static constexpr bool SHARE = false;
    __aicore__ inline void WaitForAll() const {}
};

// Returns the zeros of padded requests.
__aicore__ inline LocalTensor<int32_t> Zeros() { return Local<int32_t>(ZERO_AT, ZERO_WORDS); }

// Writes what a core needs for all requests, while the launch scalars are copied. PlanBatch waits for it.
__aicore__ inline void PrepareCore(const Gm &gm)
{
    Duplicate(Zeros(), 0, ZERO_WORDS);
    Duplicate(Local<int32_t>(PAD_AT, PAD_WORDS), -1, PAD_WORDS);
    stage_one::Setup(gm);
}

// The requests that a core plans, or that it shares with others: it owns them if it is sharer 0.
struct CoreRequests {
    int32_t sharers, sharer, begin, end;
};

// Returns the requests of this core. Each core takes a contiguous run of requests, and the lengths of two
// runs differ by at most one; or several cores share each request.
template <typename Cores>
__aicore__ inline CoreRequests RequestsOf(const Tiling &t)
{
    // With fewer cores than the host expected no request is shared, because some part would have no
    // core.
    const int32_t sharers = Cores::SHARE && t.sharers * t.requests <= GetBlockNum() ? t.sharers : 1;
    const int32_t run = GetBlockIdx() / sharers;
    const int32_t runs = sharers > 1 ? t.requests : GetBlockNum();
    const int32_t begin = run < runs ? ShareBegin(t.requests, run, runs) : 0;
    const int32_t end = run < runs ? ShareBegin(t.requests, run + 1, runs) : 0;
    return {sharers, static_cast<int32_t>(GetBlockIdx()) % sharers, begin, end};
}

// Plans a batch. If several cores share each request, all cores, with or without a
// request, wait for each other once. No core returns before that. If the type of `cores` is
// StepCores, cores may share requests, and the refreshes of each request's last token are left
// to LateRefresh. If a state has too many entries in slotBlocks, every request is padded and has a
// status bit, so that no kernel copies a row.
template <typename Cores>
__aicore__ inline void PlanBatch(const Gm &gm, Window &w, const Tiling &t, Cores cores)
{
    const CoreRequests own = RequestsOf<Cores>(t);
    const int32_t sharers = own.sharers;
    const int32_t sharer = own.sharer;
    bool synced = sharers == 1;
    const bool refused = HasTooManySlotBlocks(t);
    const LocalTensor<int32_t> zero = Zeros();
    PipeBarrier<PIPE_ALL>();
    if (refused) {
        // The flags of the window order this write before the copies out.
        zero.SetValue(ZERO_SUMMARY + SUMMARY_STATUS, TOO_MANY_SLOT_BLOCKS);
    }
    for (int32_t request = own.begin; request < own.end; request++) {
        // The words are limited again, although the host has checked them: a wrong word must not
        // become an address.
        const int32_t first = w.Word(CU_Q, request);
        const int32_t tokens = ScalarClamp(w.Word(CU_Q, request, 1) - first, 0, TOKENS);
        const int32_t state = w.Word(STATE, request);
        const bool padded = refused || state < 0 || state >= t.states;
        if (sharer > 0 && (padded || tokens == 0)) {
            continue;
        }
        if (padded) {
            CopyOut(gm.valid[first], zero, tokens);
            CopyOut(gm.summary[request * SUMMARY_WORDS], zero[ZERO_SUMMARY], SUMMARY_WORDS);
        } else {
            const int32_t stable = w.Word(STABLE, request);
            Request q;
            q.tokens = tokens;
            q.k = t.k;
            q.generation = w.Word(GENERATION, request);
            q.stable = stable < 0 ? NO_STABLE_LEN : ScalarMin(stable, NO_STABLE_LEN);
            q.limit = ScalarClamp(w.Word(SEQ, request), 0, ID_LIMIT);
            q.rows = t.poolUnits;
            q.idsAt = first * t.idsStride;
            q.idsStride = t.idsStride;
            q.blocksAt = request * t.blockStride;
            q.blocksLen = t.blockStride;
            q.slotAt = q.missAt = first * K;
            q.slotStride = K;
            q.validAt = first;
            q.summaryAt = request * SUMMARY_WORDS;
            q.shared = sharers > 1 && tokens > 0 ? 1 : 0;
            q.shareAt = ScalarMin(sharer * t.shareLen, t.k);
            q.shareLen = ScalarMin(t.shareLen, t.k - q.shareAt);
            q.owner = sharer == 0;
            q.deferred = Cores::SHARE ? tokens : 0;
            q.tableAt = static_cast<uint64_t>(state) * TABLE_WORDS;
            stage_one::StageOne(gm, q, cores);
            synced = synced || q.shared > 0;
        }
        if (sharer > 0) {
            continue;
        }
        for (int32_t row = first; row < first + tokens; row++) {
            PadSlots(gm, row, padded ? 0 : t.k);
        }
        PipeBarrier<PIPE_ALL>();
    }
    if (!synced) {
        cores.WaitForAll();
    }
}

// Returns the arrays of a plan.
__aicore__ inline Gm PlanArrays(
    GM_ADDR ids, GM_ADDR blockTable, GM_ADDR tables, GM_ADDR rules, GM_ADDR slot, GM_ADDR valid, GM_ADDR missPos,
    GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR summary)
{
    Gm gm;
    gm.ids = Global<int32_t>(ids);
    gm.blockTable = Global<int32_t>(blockTable);
    gm.tables = Global<int32_t>(tables);
    gm.rules = Global<half>(rules);
    gm.slot = Global<int32_t>(slot);
    gm.valid = Global<int32_t>(valid);
    gm.missPos = Global<int32_t>(missPos);
    gm.missId = Global<int32_t>(missId);
    gm.missSlot = Global<int32_t>(missSlot);
    gm.missRow = Global<int32_t>(missRow);
    gm.summary = Global<int32_t>(summary);
    return gm;
}

// Returns a window over the batch arrays of a plan.
__aicore__ inline Window BatchWindow(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen)
{
    Window w(WORDS_AT, PLAN_REQUESTS, t, cuQ);
    w.Add(state, 1);
    w.Add(stableLen, 1);
    w.Add(seqLen, 1);
    w.Add(generation, 1);
    return w;
}

} // namespace avsg
