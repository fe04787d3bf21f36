// avsg_transfer: Stage Two of one layer. It copies the misses of a plan to their slots.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.

#include "avsg_transfer.h"

extern "C" __global__ __aicore__ void avsg_transfer(
    GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR slotBlocks, GM_ADDR fresh0,
    GM_ADDR fresh1, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    const avsg::Tiling t = avsg::ReadTiling(tiling, avsg::COPY_TILING_AT);
    avsg::Transfer(t, cuQ, state, missSlot, missRow, record, hostChunks, kv0, kv1, slotBlocks, fresh0, fresh1);
    PipeBarrier<PIPE_ALL>();
}
