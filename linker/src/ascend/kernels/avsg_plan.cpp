// avsg_plan: Stage One of a batch. It writes slots, valid counts, miss lists and summaries.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.

#include "avsg_plan.h"
#include "avsg_globalize.h"
#include "avsg_learn.h"

extern "C" __global__ __aicore__ void avsg_plan(
    GM_ADDR ids, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen,
    GM_ADDR blockTable, GM_ADDR tables, GM_ADDR rules, GM_ADDR slotBlocks, GM_ADDR slot, GM_ADDR valid, GM_ADDR missPos,
    GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR summary,
    AVSG_UPDATED(GM_ADDR tablesOut) GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    AVSG_START_TILING(avsg::TILING_AT);
    const avsg::Gm gm = avsg::PlanArrays(
        ids, blockTable, tables, rules, slot, valid, missPos, missId, missSlot, missRow, summary);
    avsg::PrepareCore(gm);
    AVSG_TILING(t, avsg::TILING_AT);
    avsg::Window words = avsg::BatchWindow(t, cuQ, state, generation, stableLen, seqLen);
    avsg::PlanBatch(gm, words, t, avsg::SeparateCores{});
    if (t.slotBase >= 0) {
        // These are the rows that this core has planned.
        avsg::GlobalizeSlots(t, cuQ, state, slot, slotBlocks, avsg::TOKENS);
    }
    if constexpr (avsg::LEARN_SLOTS > 0) {
        avsg::LearnBatch<avsg::SeparateCores>(gm, t, cuQ, state);
    }
    PipeBarrier<PIPE_ALL>();
}
