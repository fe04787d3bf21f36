// avsg_transfer: Stage Two of one layer. It copies the misses of a plan to their slots. Each block copies an equal
// share of the misses of the batch.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.

#include "avsg_plan.cuh"

extern "C" __global__ void __launch_bounds__(avsg::THREADS, 1) avsg_transfer(
    const int *cuQ, const int *state, const int *missSlot, const int *missRow, const int *record,
    const unsigned long long *hostChunks, unsigned char *kv0, unsigned char *kv1, const int *slotBlocks,
    const unsigned char *fresh0, const unsigned char *fresh1, const __grid_constant__ avsg::Tiling t)
{
    const avsg::Layer layer = {hostChunks, kv0, kv1, fresh0, fresh1, slotBlocks};
    const int total_at = avsg::RECORD_TOTAL;
    long long total = 0;
    for (int request = 0; request < t.requests; request++) {
        total += record[request * avsg::RECORD_WORDS + total_at];
    }
    // This block has the misses begin..end - 1 of all, in the order of requests and tokens.
    const int begin = static_cast<int>(total * blockIdx.x / gridDim.x);
    const int end = static_cast<int>(total * (blockIdx.x + 1) / gridDim.x);
    int before = 0;
    for (int request = 0; request < t.requests && before < end; request++) {
        const int n = record[request * avsg::RECORD_WORDS + total_at];
        const int from = max(begin, before) - before;
        const int to = min(end, before + n) - before;
        if (from < to) {
            const avsg::Rows rows = avsg::RowsOf(t, cuQ, state, request);
            const int at = rows.first * avsg::K + from;
            avsg::CopyRows(t, layer, {missSlot + at, missRow + at, to - from, rows.first, rows.state});
            // The next request has the same ring.
            __syncthreads();
        }
        before += n;
    }
}
