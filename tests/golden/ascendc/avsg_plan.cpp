// avsg_plan: Stage One of a batch. It writes slots, valid counts, miss lists and records.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.

#include "avsg_plan.h"
#include "avsg_globalize.h"

extern "C" __global__ __aicore__ void avsg_plan(
    GM_ADDR ids, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen,
    GM_ADDR blockTable, GM_ADDR tables, GM_ADDR rules, GM_ADDR slotBlocks, GM_ADDR slot,
    GM_ADDR valid, GM_ADDR missPos, GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow,
    GM_ADDR record, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    const avsg::Tiling t = avsg::ReadTiling(tiling, avsg::TILING_AT);
    const avsg::Gm gm{
        avsg::Global<int32_t>(ids), avsg::Global<int32_t>(blockTable), avsg::Global<int32_t>(slot),
        avsg::Global<int32_t>(valid), avsg::Global<int32_t>(missPos), avsg::Global<int32_t>(missId),
        avsg::Global<int32_t>(missSlot), avsg::Global<int32_t>(missRow), avsg::Global<int32_t>(record),
        avsg::Global<int32_t>(tables), avsg::Global<half>(rules)};
    avsg::Window words = avsg::BatchWindow(t, cuQ, state, generation, stableLen, seqLen);
    avsg::PlanBatch(gm, words, t, avsg::SeparateCores{});
    if (t.slotBase >= 0) {
        // These are the rows that this core has planned.
        const int32_t core = GetBlockIdx();
        const int32_t begin = avsg::ShareBegin(t.requests, core, GetBlockNum()) * avsg::TOKENS;
        const int32_t end = avsg::ShareBegin(t.requests, core + 1, GetBlockNum()) * avsg::TOKENS;
        avsg::GlobalizeSlots(t, cuQ, state, slot, slotBlocks, begin, end);
    }
    PipeBarrier<PIPE_ALL>();
}
