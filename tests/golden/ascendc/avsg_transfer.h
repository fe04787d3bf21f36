// avsg_transfer.h: Stage Two: the misses of a batch, in equal shares.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_rows.h"

namespace avsg {

// A run of one request's miss list, its words in the list buffers at `at`.
struct Piece {
    int32_t n, at, first, state;
};

// A core's place in the concatenated miss lists.
struct Place {
    int32_t request, taken, left;
};

// Has the next rows' slots and host rows read; returns how many pieces they come in.
__aicore__ inline int32_t NextPieces(
    const Tiling &t, Window &w, const GlobalTensor<int32_t> &missSlot,
    const GlobalTensor<int32_t> &missRow, Place &place, Piece *pieces)
{
    int32_t count = 0;
    int32_t at = 0;
    int32_t room = ScalarMin(t.halfRows, place.left);
    place.left -= room;
    After<HardEvent::S_MTE2>(EVENT_ID1);
    while (room > 0) {
        const int32_t misses = w.Word(RECORD, place.request, RECORD_TOTAL);
        const int32_t n = ScalarMin(misses - place.taken, room);
        if (n > 0) {
            Piece &piece = pieces[count++];
            piece = {n, at, w.Word(CU_Q, place.request), w.Word(STATE, place.request)};
            const int32_t from = piece.first * K + place.taken;
            CopyIn(Local<int32_t>(LIST_AT + at * 4, n), missSlot[from], n);
            CopyIn(Local<int32_t>(LIST_AT + LIST_BYTES + at * 4, n), missRow[from], n);
            at += Blocks(n * 4) / 4;
            place.taken += n;
            room -= n;
        } else {
            place.request++;
            place.taken = 0;
        }
    }
    return count;
}

// Where the pieces' rows come from and go to; returns how many rows there are.
__aicore__ inline int32_t MovesOf(
    const Tiling &t, const uint64_t *kv, const uint64_t *fresh, const Piece *pieces, int32_t count,
    Move *moves)
{
    const LocalTensor<int32_t> slots = Local<int32_t>(LIST_AT, LIST_BYTES / 4);
    const LocalTensor<int32_t> rows = Local<int32_t>(LIST_AT + LIST_BYTES, LIST_BYTES / 4);
    int32_t n = 0;
    for (int32_t p = 0; p < count; p++) {
        const Piece &piece = pieces[p];
        for (int32_t i = piece.at; i < piece.at + piece.n; i++) {
            const int32_t row = rows.GetValue(i);
            const int64_t slot = static_cast<int64_t>(piece.state) * SLOTS + slots.GetValue(i);
            Move &move = moves[n++];
            for (int32_t s = 0; s < t.segments; s++) {
                // -1 - g is the request's fresh row g.
                move.from[s] = row >= 0 ? HostRow(t, row, s)
                    : fresh[s] + Times(piece.first - 1 - row, t.freshStride[s]);
                move.to[s] = kv[s] + Times(slot, t.kvStride[s]);
            }
        }
    }
    return n;
}

// Misses in token order, request after request: core c copies [cut(n, c), cut(n, c + 1)) of them.
__aicore__ inline void Transfer(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR fresh0, GM_ADDR fresh1)
{
    const uint64_t kv[2] = {reinterpret_cast<uint64_t>(kv0), reinterpret_cast<uint64_t>(kv1)};
    const uint64_t fresh[2] = {reinterpret_cast<uint64_t>(fresh0), reinterpret_cast<uint64_t>(fresh1)};
    const GlobalTensor<int32_t> gmSlot = Global<int32_t>(missSlot);
    const GlobalTensor<int32_t> gmRow = Global<int32_t>(missRow);
    CopyIn(Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS), Global<uint64_t>(hostChunks), t.chunks);
    Window w(WINDOW_AT, WINDOW, t, cuQ);
    w.Add(state, 1);
    w.Add(record, RECORD_WORDS);
    int32_t total = 0;
    for (int32_t request = 0; request < t.requests; request++) {
        total += w.Word(RECORD, request, RECORD_TOTAL);
    }
    const Share share = ShareOf(t, total);
    Place place{0, share.begin, share.end - share.begin};
    while (place.left > 0 && place.taken >= w.Word(RECORD, place.request, RECORD_TOTAL)) {
        place.taken -= w.Word(RECORD, place.request++, RECORD_TOTAL);
    }

    Piece pieces[HALF_ROWS];
    Move moves[HALF_ROWS];
    OpenHalves();
    int32_t count = NextPieces(t, w, gmSlot, gmRow, place, pieces);
    for (int32_t half = 0; count > 0; half = 1 - half) {
        After<HardEvent::MTE2_S>(EVENT_ID1);
        const int32_t n = MovesOf(t, kv, fresh, pieces, count, moves);
        // The next lists are asked for before these rows, so that they do not wait behind them.
        count = NextPieces(t, w, gmSlot, gmRow, place, pieces);
        CopyRows(t, moves, n, half);
    }
    CloseHalves();
}

} // namespace avsg
