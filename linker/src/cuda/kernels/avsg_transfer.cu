// avsg_transfer: Stage Two of one layer. It copies the misses of a plan to their slots. Each block copies an equal
// share of the misses of the batch.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.

#include "avsg_transfer.cuh"

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_transfer(
    const int *cuQ, const int *state, const int *missSlot, const int *missRow, const int *record,
    const unsigned long long *hostChunks, unsigned char *kv0, unsigned char *kv1, const int *slotBlocks,
    const unsigned char *fresh0, const unsigned char *fresh1, const __grid_constant__ avsg::Tiling t)
{
    avsg::CopyShare(t, {hostChunks, kv0, kv1, fresh0, fresh1, slotBlocks}, {cuQ, state, missSlot, missRow, record});
}
