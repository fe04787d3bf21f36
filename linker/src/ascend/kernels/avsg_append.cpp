// avsg_append: copies this step's fresh rows from the device to one layer of the host pool.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.

#include "avsg_rows.h"

namespace avsg {

// A fresh row of the batch, and its target: row `place` of the block in entry `entry` of the block
// table, or of the pool if there is no block table.
struct FreshRow {
    int32_t row, place, entry;
};

// Returns a fresh row of the list.
__aicore__ inline FreshRow GetFreshRow(int32_t i)
{
    return {ItemWord(i, 0), ItemWord(i, 1), ItemWord(i, 2)};
}

// Finds the target of a row: row g of a request belongs to id stableLen + g. Returns false for a
// row that is not copied: one of a padded request or of a request without stableLen, or one whose
// id is not below seqLen or has no entry.
__aicore__ inline bool FindTarget(const Tiling &t, Window &w, int32_t request, int32_t row, FreshRow &to)
{
    const int32_t stable = w.Word(STABLE, request);
    const int32_t id = stable + row - w.Word(CU_Q, request);
    to = {row, id, 0};
    if (w.Word(STATE, request) < 0 || stable < 0 || id >= w.Word(SEQ, request)) {
        return false;
    }
    if constexpr (PAGE == 0) {
        return id < t.poolUnits;
    }
    to.place = id & (PAGE - 1);
    to.entry = request * t.blockStride + (id >> PAGE_SHIFT);
    return (id >> PAGE_SHIFT) < t.blockStride;
}

// Reads the blocks of the first n items' rows from the block table, and copies the rows whose block is
// in the pool.
__aicore__ inline void CopyFreshRows(
    const Tiling &t, const GlobalTensor<int32_t> &blocks, const Segments &fresh, int32_t n, int32_t half)
{
    int32_t kept = 0;
    if constexpr (PAGE > 0) {
        SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID1);
        for (int32_t i = 0; i < n; i++) {
            CopyIn(Local<int32_t>(LIST_AT + i * BLOCK, 1), blocks[GetFreshRow(i).entry], 1);
        }
        SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID1);
    }
    for (int32_t i = 0; i < n; i++) {
        const FreshRow row = GetFreshRow(i);
        int32_t to = row.place;
        if constexpr (PAGE > 0) {
            const int32_t block = Local<int32_t>(LIST_AT + i * BLOCK, 1).GetValue(0);
            if (block < 0 || block >= t.poolUnits) {
                continue;
            }
            to += block << PAGE_SHIFT;
        }
        for (int32_t s = 0; s < t.segments; s++) {
            SetRowCopy(kept, s, fresh.At(s) + StrideOffset(row.row, t.freshStride[s]), HostRow(t, to, s));
        }
        kept++;
    }
    CopyRows(t, kept, half);
}

// Copies this core's share of the batch's fresh rows.
__aicore__ inline void Append(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR stableLen, GM_ADDR seqLen, GM_ADDR blockTable,
    GM_ADDR hostChunks, GM_ADDR fresh0, GM_ADDR fresh1)
{
    const Segments fresh{reinterpret_cast<uint64_t>(fresh0), reinterpret_cast<uint64_t>(fresh1)};
    const GlobalTensor<int32_t> blocks = Global<int32_t>(blockTable);
    CopyElementsIn(Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS), Global<uint64_t>(hostChunks), t.chunks);
    Window w(WINDOW_AT, WINDOW_REQUESTS, t, cuQ);
    w.Add(state, 1);
    w.Add(stableLen, 1);
    w.Add(seqLen, 1);
    const Share share = ShareOf(t, t.requests > 0 ? w.Word(CU_Q, t.requests - 1, 1) : 0);

    int32_t n = 0;
    int32_t half = 0;
    InitHalves();
    int32_t row = share.begin;
    for (int32_t request = 0; request < t.requests && row < share.end; request++) {
        for (; row < ScalarMin(w.Word(CU_Q, request, 1), share.end); row++) {
            FreshRow to;
            if (FindTarget(t, w, request, row, to)) {
                SetItem(n++, to.row, to.place, to.entry, 0);
            }
            if (n == t.halfRows) {
                CopyFreshRows(t, blocks, fresh, n, half);
                half = 1 - half;
                n = 0;
            }
        }
    }
    CopyFreshRows(t, blocks, fresh, n, half);
    DrainHalves();
}

} // namespace avsg

extern "C" __global__ __aicore__ void avsg_append(
    GM_ADDR cuQ, GM_ADDR state, GM_ADDR stableLen, GM_ADDR seqLen, GM_ADDR blockTable, GM_ADDR hostChunks,
    GM_ADDR fresh0, GM_ADDR fresh1, AVSG_UPDATED(GM_ADDR hostChunksOut) GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    AVSG_START_TILING(avsg::COPY_TILING_AT);
    AVSG_TILING(t, avsg::COPY_TILING_AT);
    avsg::Append(t, cuQ, state, stableLen, seqLen, blockTable, hostChunks, fresh0, fresh1);
    PipeBarrier<PIPE_ALL>();
}
