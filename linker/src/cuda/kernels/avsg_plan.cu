// avsg_plan: Stage One of a batch. It writes slots, valid counts, miss lists and records. One block for each
// request.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.

#include "avsg_plan.cuh"

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_plan(
    const int *ids, const int *cuQ, const int *state, const int *generation, const int *stableLen, const int *seqLen,
    const int *blockTable, int *tables, const int *slotBlocks, int *slot, int *valid, int *missPos, int *missId,
    int *missSlot, int *missRow, int *record, const __grid_constant__ avsg::Tiling t)
{
    const int request = static_cast<int>(blockIdx.x);
    if (request >= t.requests) {
        return;
    }
    const avsg::Rows rows = avsg::RowsOf(t, cuQ, state, request);
    const avsg::Gm gm = avsg::ArraysOf(
        rows, ids, blockTable, tables, slot, valid, missPos, missId, missSlot, missRow, record);
    if (rows.state < 0) {
        avsg::PadRequest(gm, rows, request);
    } else {
        avsg::NoCopies copies;
        avsg::PlanRequest(gm, {cuQ, state, generation, stableLen, seqLen}, t, rows, request, copies);
    }
    avsg::FinishSlots(gm, t, rows, slotBlocks);
}
