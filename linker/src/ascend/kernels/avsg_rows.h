// avsg_rows.h: copies of rows between the host pool, the device buffer and the fresh rows.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg {

// Buffers of a kernel's copies, from byte 0 on: the memory of Stage One before them. No two share bytes.
constexpr int32_t WINDOW_REQUESTS = 128;                     // requests in the window
constexpr uint32_t COPY_TILING_AT = 0;
constexpr uint32_t WINDOW_AT = COPY_TILING_AT + 128;
constexpr uint32_t LIST_AT = WINDOW_AT + WINDOW_REQUESTS * (2 + SUMMARY_WORDS) * 4 + BLOCK;
constexpr uint32_t LIST_BYTES = HALF_ROWS * BLOCK;  // each entry may be in a block of its own
constexpr uint32_t CHUNKS_AT = LIST_AT + 2 * LIST_BYTES;
constexpr uint32_t ITEMS_AT = CHUNKS_AT + MAX_CHUNKS * 8;    // four words for each run of misses or fresh row
constexpr uint32_t COPIES_AT = ITEMS_AT + HALF_ROWS * 16;   // four addresses for each row
constexpr uint32_t SLOT_BLOCKS_AT = COPIES_AT + HALF_ROWS * 32;   // entries of slotBlocks for each run
constexpr uint32_t STAGING_AT = SLOT_BLOCKS_AT + MAX_SLOT_BLOCKS * 4;
static_assert(STAGING_AT + 2 * HALF_BYTES == COPY_BYTES && COPY_BYTES <= UB_BYTES, "the rows fit UB");

// One address for each segment of a row.
struct Segments {
    uint64_t first, second;

    __aicore__ inline uint64_t At(int32_t s) const { return s == 0 ? first : second; }
};

// Lists are in UB and not in local arrays, because the stack of the scalar unit is in global memory.

// Returns word `word` of item i, of HALF_ROWS items of four words.
__aicore__ inline int32_t ItemWord(int32_t i, int32_t word)
{
    return Local<int32_t>(ITEMS_AT, HALF_ROWS * 4).GetValue(i * 4 + word);
}

// Sets the words of item i.
__aicore__ inline void SetItem(int32_t i, int32_t a, int32_t b, int32_t c, int32_t d)
{
    const LocalTensor<int32_t> words = Local<int32_t>(ITEMS_AT, HALF_ROWS * 4);
    words.SetValue(i * 4, a);
    words.SetValue(i * 4 + 1, b);
    words.SetValue(i * 4 + 2, c);
    words.SetValue(i * 4 + 3, d);
}

// Returns the list of the addresses from and to which the next CopyRows copies: those of segment s of
// row i have the numbers i * 4 + s * 2 and i * 4 + s * 2 + 1.
__aicore__ inline LocalTensor<uint64_t> CopyAddresses() { return Local<uint64_t>(COPIES_AT, HALF_ROWS * 4); }

// Sets the addresses of segment s of row i.
__aicore__ inline void SetRowCopy(int32_t i, int32_t s, uint64_t from, uint64_t to)
{
    CopyAddresses().SetValue(i * 4 + s * 2, from);
    CopyAddresses().SetValue(i * 4 + s * 2 + 1, to);
}

// Returns the bytes of global memory from `at` on.
__aicore__ inline GlobalTensor<uint8_t> Bytes(uint64_t at) { return Global<uint8_t>(reinterpret_cast<GM_ADDR>(at)); }

// Rows are copied through the two halves of the staging area alternately: one half is filled while
// the other is written out. A half is free when its MTE3_MTE2 flag is set. Between InitHalves and
// DrainHalves the vector unit is idle and CopyRows writes no UB below STAGING_AT, so other work may
// run between two calls.
__aicore__ inline void InitHalves()
{
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

__aicore__ inline void DrainHalves()
{
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

// Copies the n rows of CopyAddresses() through half 0 or 1, which they fit. All copies in are issued
// before the one wait.
__aicore__ inline void CopyRows(const Tiling &t, int32_t n, int32_t half)
{
    const LocalTensor<uint64_t> copies = CopyAddresses();
    const auto event = half == 0 ? EVENT_ID0 : EVENT_ID1;
    const uint32_t staging = STAGING_AT + half * HALF_BYTES;
    WaitFlag<HardEvent::MTE3_MTE2>(event);
    uint32_t at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            CopyElementsIn(Local<uint8_t>(at, t.bytes[s]), Bytes(copies.GetValue(i * 4 + s * 2)), t.bytes[s]);
            at += AlignToBlock(t.bytes[s]);
        }
    }
    SetWaitFlag<HardEvent::MTE2_MTE3>(event);
    at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            CopyElementsOut(Bytes(copies.GetValue(i * 4 + s * 2 + 1)), Local<uint8_t>(at, t.bytes[s]), t.bytes[s]);
            at += AlignToBlock(t.bytes[s]);
        }
    }
    SetFlag<HardEvent::MTE3_MTE2>(event);
}

// Returns the offset of row n in blocks of 1 << blockShift rows, each followed by `gap` more bytes.
__aicore__ inline uint64_t BlockOffset(int64_t n, int32_t stride, int32_t blockShift, int32_t gap)
{
    return StrideOffset(n, stride) + StrideOffset(n >> blockShift, gap);
}

// Returns the address of segment s of a host row. No row crosses a chunk boundary.
__aicore__ inline uint64_t HostRow(const Tiling &t, int32_t row, int32_t s)
{
    const LocalTensor<uint64_t> chunks = Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS);
    const int32_t chunk = row >> t.chunkShift[s];
    const int32_t within = row - (chunk << t.chunkShift[s]);
    return chunks.GetValue(t.chunkFirst[s] + chunk)
        + BlockOffset(within, t.hostStride[s], t.hostBlockShift, t.hostGap[s]);
}

// A range of items: this core's share of them.
struct Share {
    int32_t begin, end;
};

// Returns this core's share of n items; only the first copyCores cores get one.
__aicore__ inline Share ShareOf(const Tiling &t, int32_t n)
{
    const int32_t core = GetBlockIdx();
    const int32_t cores = ScalarMin(t.copyCores, GetBlockNum());
    return core < cores ? Share{ShareBegin(n, core, cores), ShareBegin(n, core + 1, cores)} : Share{0, 0};
}

} // namespace avsg
