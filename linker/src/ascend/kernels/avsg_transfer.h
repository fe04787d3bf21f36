// avsg_transfer.h: Stage Two. Every core copies an equal share of the misses of a batch.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_rows.h"

namespace avsg {

// n adjacent entries of one request's miss list, from word `at` of the list buffers on, with the
// request's first row and its state.
struct MissRun {
    int32_t n, at, first, state;
};

// Returns a run of the list.
__aicore__ inline MissRun GetMissRun(int32_t i)
{
    return {ItemWord(i, 0), ItemWord(i, 1), ItemWord(i, 2), ItemWord(i, 3)};
}

// The position of a core in the concatenated miss lists: `taken` entries of `request` are before
// it, and `left` entries of the core's share are behind it.
struct Cursor {
    int32_t request, taken, left;
};

// Arrays in global memory.
struct MissArrays {
    GlobalTensor<int32_t> slot, row, blocks;
};

// Returns the UB address of the entries of slotBlocks for run i.
__aicore__ inline uint32_t SlotBlocksOf(const Tiling &t, int32_t i)
{
    return SLOT_BLOCKS_AT + i * AlignToBlock((SLOTS >> t.kvBlockShift) * 4);
}

// Copies the slots and host rows of the next misses to the list buffers, with the entries of
// slotBlocks if there are any, and returns the number of runs, which become the items. Runs whose
// entries have no room are left for the next list. Those of one run have room, because PlanBatch
// returns no misses otherwise.
AVSG_NOINLINE int32_t LoadMissRuns(const Tiling &t, Window &w, const MissArrays &gm, Cursor &cursor)
{
    int32_t count = 0;
    int32_t at = 0;
    int32_t rows = ScalarMin(t.halfRows, cursor.left);
    cursor.left -= rows;
    SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID1);
    while (rows > 0) {
        const int32_t misses = w.Word(SUMMARY, cursor.request, SUMMARY_TOTAL);
        const int32_t n = ScalarMin(misses - cursor.taken, rows);
        if (n > 0) {
            const int32_t first = w.Word(CU_Q, cursor.request);
            const int32_t state = w.Word(STATE, cursor.request);
            if (t.kvBlocks > 0) {
                if (SlotBlocksOf(t, count + 1) > STAGING_AT) {
                    cursor.left += rows;
                    break;
                }
                const int32_t blocks = SLOTS >> t.kvBlockShift;
                const uint64_t own = static_cast<uint64_t>(state) * blocks;
                CopyIn(Local<int32_t>(SlotBlocksOf(t, count), blocks), gm.blocks[own], blocks);
            }
            SetItem(count++, n, at, first, state);
            const int32_t from = first * K + cursor.taken;
            CopyIn(Local<int32_t>(LIST_AT + at * 4, n), gm.slot[from], n);
            CopyIn(Local<int32_t>(LIST_AT + LIST_BYTES + at * 4, n), gm.row[from], n);
            at += AlignToBlock(n * 4) / 4;
            cursor.taken += n;
            rows -= n;
        } else {
            cursor.request++;
            cursor.taken = 0;
        }
    }
    return count;
}

// Returns the index of a slot of run i by slotBlocks; -1 if its block is not in the device buffer.
__aicore__ inline int64_t SlotByBlocks(const Tiling &t, int32_t i, int32_t slot)
{
    const LocalTensor<int32_t> blocks = Local<int32_t>(SlotBlocksOf(t, i), SLOTS >> t.kvBlockShift);
    const int32_t block = blocks.GetValue(slot >> t.kvBlockShift);
    const int32_t within = slot & ((1 << t.kvBlockShift) - 1);
    return block < 0 || block >= t.kvBlocks ? -1 : (static_cast<int64_t>(block) << t.kvBlockShift) + within;
}

// Sets the addresses of the rows in some runs, and returns the number of rows. A slot whose block is
// not in the device buffer gets no row.
__aicore__ inline int32_t SetRowCopies(const Tiling &t, const Segments &kv, const Segments &fresh, int32_t count)
{
    const LocalTensor<int32_t> slots = Local<int32_t>(LIST_AT, LIST_BYTES / 4);
    const LocalTensor<int32_t> rows = Local<int32_t>(LIST_AT + LIST_BYTES, LIST_BYTES / 4);
    int32_t n = 0;
    for (int32_t p = 0; p < count; p++) {
        const MissRun run = GetMissRun(p);
        for (int32_t i = run.at; i < run.at + run.n; i++) {
            const int32_t row = rows.GetValue(i);
            int64_t slot = static_cast<int64_t>(run.state) * SLOTS + slots.GetValue(i);
            if (t.kvBlocks > 0) {
                slot = SlotByBlocks(t, p, slots.GetValue(i));
                if (slot < 0) {
                    continue;
                }
            }
            for (int32_t s = 0; s < t.segments; s++) {
                // A row of -1 - g is fresh row g of the request.
                const uint64_t from = row >= 0 ? HostRow(t, row, s)
                    : fresh.At(s) + StrideOffset(run.first - 1 - row, t.freshStride[s]);
                const uint64_t to = BlockOffset(slot, t.kvStride[s], t.kvBlockShift, t.kvGap[s]);
                SetRowCopy(n, s, from, kv.At(s) + to);
            }
            n++;
        }
    }
    return n;
}

// Copies the misses of all requests, in the order of requests and tokens. Core c copies those from
// ShareBegin(n, c) to ShareBegin(n, c + 1).
__aicore__ inline void Transfer(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR summary,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR slotBlocks, GM_ADDR fresh0, GM_ADDR fresh1)
{
    const Segments kv{reinterpret_cast<uint64_t>(kv0), reinterpret_cast<uint64_t>(kv1)};
    const Segments fresh{reinterpret_cast<uint64_t>(fresh0), reinterpret_cast<uint64_t>(fresh1)};
    const MissArrays gm{Global<int32_t>(missSlot), Global<int32_t>(missRow), Global<int32_t>(slotBlocks)};
    CopyElementsIn(Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS), Global<uint64_t>(hostChunks), t.chunks);
    Window w(WINDOW_AT, WINDOW_REQUESTS, t, cuQ);
    w.Add(state, 1);
    w.Add(summary, SUMMARY_WORDS);
    int32_t total = 0;
    for (int32_t request = 0; request < t.requests; request++) {
        total += w.Word(SUMMARY, request, SUMMARY_TOTAL);
    }
    const Share share = ShareOf(t, total);
    Cursor cursor{0, share.begin, share.end - share.begin};
    while (cursor.left > 0 && cursor.taken >= w.Word(SUMMARY, cursor.request, SUMMARY_TOTAL)) {
        cursor.taken -= w.Word(SUMMARY, cursor.request++, SUMMARY_TOTAL);
    }

    InitHalves();
    int32_t count = LoadMissRuns(t, w, gm, cursor);
    for (int32_t half = 0; count > 0; half = 1 - half) {
        SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID1);
        const int32_t n = SetRowCopies(t, kv, fresh, count);
        // The next lists are copied before these rows, so that they do not wait for them.
        count = LoadMissRuns(t, w, gm, cursor);
        CopyRows(t, n, half);
    }
    DrainHalves();
}

} // namespace avsg
