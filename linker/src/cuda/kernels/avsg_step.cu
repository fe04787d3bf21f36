// avsg_step: Stage One and Stage Two of a batch. One block for each request copies the misses of this request, so
// no block waits for another.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.

#include "avsg_plan.cuh"

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_step(
    const int *ids, const int *cuQ, const int *state, const int *generation, const int *stableLen, const int *seqLen,
    const int *blockTable, int *tables, const unsigned long long *hostChunks, unsigned char *kv0, unsigned char *kv1,
    const int *slotBlocks, const unsigned char *fresh0, const unsigned char *fresh1, int *slot, int *valid, int *missPos,
    int *missId, int *missSlot, int *missRow, int *record, const __grid_constant__ avsg::Tiling t)
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
        avsg::FinishSlots(gm, t, rows, slotBlocks);
        return;
    }
    avsg::PrepareCopies(t, {hostChunks, kv0, kv1, fresh0, fresh1, slotBlocks}, missSlot, missRow, rows, avsg::LATE_AT);
    avsg::StepCopies copies(rows.first * avsg::K);
    avsg::PlanRequest(gm, {cuQ, state, generation, stableLen, seqLen}, t, rows, request, copies);
    avsg::FinishSlots(gm, t, rows, slotBlocks);
    copies.Finish();
}
