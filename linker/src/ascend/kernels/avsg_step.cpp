// avsg_step: Stage One, SyncAll, Stage Two, and what the tables learn. Launch it in batch schedule mode with at most as many
// blocks as there are vector cores, because all blocks must run at the same time.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.

#include "avsg_plan.h"
#include "avsg_transfer.h"
#include "avsg_globalize.h"
#include "avsg_late.h"
#include "avsg_learn.h"

extern "C" __global__ __aicore__ void avsg_step(
    GM_ADDR ids, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen,
    GM_ADDR blockTable, GM_ADDR tables, GM_ADDR rules, GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1,
    GM_ADDR slotBlocks, GM_ADDR fresh0, GM_ADDR fresh1, GM_ADDR slot, GM_ADDR valid, GM_ADDR missPos,
    GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR summary,
    AVSG_UPDATED(GM_ADDR tablesOut, GM_ADDR kv0Out, GM_ADDR kv1Out) GM_ADDR workspace, GM_ADDR tiling)
{
    // A kernel of this type has vector cores alone, and all of them start together, as SyncAll needs.
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    InitSocState();
    AVSG_START_TILING(avsg::TILING_AT);
    const avsg::Gm gm = avsg::PlanArrays(
        ids, blockTable, tables, rules, slot, valid, missPos, missId, missSlot, missRow, summary);
    avsg::PrepareCore(gm);
    AVSG_TILING(t, avsg::TILING_AT);
    avsg::Window words = avsg::BatchWindow(t, cuQ, state, generation, stableLen, seqLen);
    // Every request ends with a barrier over all pipes, so no copy is in progress at SyncAll.
    avsg::PlanBatch(gm, words, t, avsg::StepCores{});
    SyncAll<true>();
    avsg::LateRefresh late(t, gm, cuQ, state);
    avsg::Transfer(t, cuQ, state, missSlot, missRow, summary, hostChunks, kv0, kv1, slotBlocks, fresh0, fresh1);
    late.Run();
    if (t.slotBase >= 0) {
        // Until all cores are here, some of them may read the slots of a state.
        SyncAll<true>();
        avsg::GlobalizeSlots(t, cuQ, state, slot, slotBlocks, 1);
    }
    if constexpr (avsg::LEARN_SLOTS > 0) {
        avsg::LearnBatch<avsg::StepCores>(gm, t, cuQ, state);
    }
    PipeBarrier<PIPE_ALL>();
}
