// avsg_transfer.h: Stage Two. Every core copies an equal share of the misses of a batch.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_rows.h"

namespace avsg {

// n adjacent entries of one request's miss list, from word `at` of the list buffers on, with the
// request's first row and its state.
struct MissRun {
    int32_t n, at, first, state;
};

// The position of a core in the concatenated miss lists: `taken` entries of `request` are before
// it, and `left` entries of the core's share are behind it.
struct Cursor {
    int32_t request, taken, left;
};

// Copies the slots and host rows of the next misses to the list buffers, and returns the number of
// runs.
__aicore__ inline int32_t LoadMissRuns(
    const Tiling &t, Window &w, const GlobalTensor<int32_t> &missSlot,
    const GlobalTensor<int32_t> &missRow, Cursor &cursor, MissRun *runs)
{
    int32_t count = 0;
    int32_t at = 0;
    int32_t rows = ScalarMin(t.halfRows, cursor.left);
    cursor.left -= rows;
    SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID1);
    while (rows > 0) {
        const int32_t misses = w.Word(RECORD, cursor.request, RECORD_TOTAL);
        const int32_t n = ScalarMin(misses - cursor.taken, rows);
        if (n > 0) {
            MissRun &run = runs[count++];
            run = {n, at, w.Word(CU_Q, cursor.request), w.Word(STATE, cursor.request)};
            const int32_t from = run.first * K + cursor.taken;
            CopyIn(Local<int32_t>(LIST_AT + at * 4, n), missSlot[from], n);
            CopyIn(Local<int32_t>(LIST_AT + LIST_BYTES + at * 4, n), missRow[from], n);
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

// Writes the addresses of the rows in some runs to `copies`, and returns the number of rows.
__aicore__ inline int32_t RowCopiesOf(
    const Tiling &t, const uint64_t *kv, const uint64_t *fresh, const MissRun *runs, int32_t count,
    RowCopy *copies)
{
    const LocalTensor<int32_t> slots = Local<int32_t>(LIST_AT, LIST_BYTES / 4);
    const LocalTensor<int32_t> rows = Local<int32_t>(LIST_AT + LIST_BYTES, LIST_BYTES / 4);
    int32_t n = 0;
    for (int32_t p = 0; p < count; p++) {
        const MissRun &run = runs[p];
        for (int32_t i = run.at; i < run.at + run.n; i++) {
            const int32_t row = rows.GetValue(i);
            const int64_t slot = static_cast<int64_t>(run.state) * SLOTS + slots.GetValue(i);
            RowCopy &copy = copies[n++];
            for (int32_t s = 0; s < t.segments; s++) {
                // A row of -1 - g is fresh row g of the request.
                copy.from[s] = row >= 0 ? HostRow(t, row, s)
                    : fresh[s] + StrideOffset(run.first - 1 - row, t.freshStride[s]);
                copy.to[s] = kv[s] + BlockOffset(slot, t.kvStride[s], t.kvBlockShift, t.kvGap[s]);
            }
        }
    }
    return n;
}

// Copies the misses of all requests, in the order of requests and tokens. Core c copies those from
// ShareBegin(n, c) to ShareBegin(n, c + 1).
__aicore__ inline void Transfer(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR fresh0, GM_ADDR fresh1)
{
    const uint64_t kv[2] = {reinterpret_cast<uint64_t>(kv0), reinterpret_cast<uint64_t>(kv1)};
    const uint64_t fresh[2] = {reinterpret_cast<uint64_t>(fresh0), reinterpret_cast<uint64_t>(fresh1)};
    const GlobalTensor<int32_t> gmSlot = Global<int32_t>(missSlot);
    const GlobalTensor<int32_t> gmRow = Global<int32_t>(missRow);
    CopyIn(Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS), Global<uint64_t>(hostChunks), t.chunks);
    Window w(WINDOW_AT, WINDOW_REQUESTS, t, cuQ);
    w.Add(state, 1);
    w.Add(record, RECORD_WORDS);
    int32_t total = 0;
    for (int32_t request = 0; request < t.requests; request++) {
        total += w.Word(RECORD, request, RECORD_TOTAL);
    }
    const Share share = ShareOf(t, total);
    Cursor cursor{0, share.begin, share.end - share.begin};
    while (cursor.left > 0 && cursor.taken >= w.Word(RECORD, cursor.request, RECORD_TOTAL)) {
        cursor.taken -= w.Word(RECORD, cursor.request++, RECORD_TOTAL);
    }

    MissRun runs[HALF_ROWS];
    RowCopy copies[HALF_ROWS];
    InitHalves();
    int32_t count = LoadMissRuns(t, w, gmSlot, gmRow, cursor, runs);
    for (int32_t half = 0; count > 0; half = 1 - half) {
        SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID1);
        const int32_t n = RowCopiesOf(t, kv, fresh, runs, count, copies);
        // The next lists are copied before these rows, so that they do not wait for them.
        count = LoadMissRuns(t, w, gmSlot, gmRow, cursor, runs);
        CopyRows(t, copies, n, half);
    }
    DrainHalves();
}

} // namespace avsg
