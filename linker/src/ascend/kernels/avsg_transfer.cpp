// avsg_transfer: Stage Two of one layer. It copies the misses of a plan to their slots.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.

#include "avsg_transfer.h"

extern "C" __global__ __aicore__ void avsg_transfer(
    GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR summary, GM_ADDR hostChunks,
    GM_ADDR kv0, GM_ADDR kv1, GM_ADDR slotBlocks, GM_ADDR fresh0, GM_ADDR fresh1,
    AVSG_UPDATED(GM_ADDR kv0Out, GM_ADDR kv1Out) GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    AVSG_START_TILING(avsg::COPY_TILING_AT);
    AVSG_TILING(t, avsg::COPY_TILING_AT);
    avsg::Transfer(t, cuQ, state, missSlot, missRow, summary, hostChunks, kv0, kv1, slotBlocks, fresh0, fresh1);
    PipeBarrier<PIPE_ALL>();
}
