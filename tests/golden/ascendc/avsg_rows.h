// avsg_rows.h: copying rows between host, device buffer and fresh rows.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg {

constexpr int32_t WINDOW = 128;                     // requests whose words are read at once
constexpr uint32_t HALF_ROWS = 32;                  // rows in half of the staging area at most
constexpr uint32_t HALF_BYTES = 65536;
constexpr uint32_t MAX_CHUNKS = 2048;               // host chunks of a layer
constexpr uint32_t COPY_TILING_AT = 0;
constexpr uint32_t WINDOW_AT = COPY_TILING_AT + 128;
constexpr uint32_t LIST_AT = WINDOW_AT + WINDOW * (2 + RECORD_WORDS) * 4 + BLOCK;
constexpr uint32_t LIST_BYTES = HALF_ROWS * BLOCK;  // every row may be alone in its block
constexpr uint32_t CHUNKS_AT = LIST_AT + 2 * LIST_BYTES;
constexpr uint32_t STAGING_AT = CHUNKS_AT + MAX_CHUNKS * 8;
static_assert(STAGING_AT + 2 * HALF_BYTES == 158880 && 158880 <= UB_BYTES, "both halves fit");

// A row's way: where each segment comes from and goes to.
struct Move {
    uint64_t from[2];
    uint64_t to[2];
};

__aicore__ inline GlobalTensor<uint8_t> Bytes(uint64_t at)
{
    return Global<uint8_t>(reinterpret_cast<GM_ADDR>(at));
}

// Rows pass through two halves in turn: while one is written out the other is filled. A half is free
// when its MTE3_MTE2 flag is set. Between OpenHalves and CloseHalves the vector unit has nothing to do
// and CopyRows writes no UB below STAGING_AT: work may be put between two calls.
__aicore__ inline void OpenHalves()
{
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

__aicore__ inline void CloseHalves()
{
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

// Copies n rows: all of them are on their way before the one wait.
__aicore__ inline void CopyRows(const Tiling &t, const Move *moves, int32_t n, int32_t half)
{
    const auto event = half == 0 ? EVENT_ID0 : EVENT_ID1;
    const uint32_t staging = STAGING_AT + half * HALF_BYTES;
    WaitFlag<HardEvent::MTE3_MTE2>(event);
    uint32_t at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            CopyIn(Local<uint8_t>(at, t.bytes[s]), Bytes(moves[i].from[s]), t.bytes[s]);
            at += Blocks(t.bytes[s]);
        }
    }
    After<HardEvent::MTE2_MTE3>(event);
    at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            CopyOut(Bytes(moves[i].to[s]), Local<uint8_t>(at, t.bytes[s]), t.bytes[s]);
            at += Blocks(t.bytes[s]);
        }
    }
    SetFlag<HardEvent::MTE3_MTE2>(event);
}

// The address of a host row's segment: rows do not cross chunks.
__aicore__ inline uint64_t HostRow(const Tiling &t, int32_t row, int32_t s)
{
    const LocalTensor<uint64_t> chunks = Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS);
    const int32_t chunk = row >> t.chunkShift[s];
    const int32_t within = row - (chunk << t.chunkShift[s]);
    return chunks.GetValue(t.chunkFirst[s] + chunk) + Times(within, t.hostStride[s]);
}

// This core's share of n things.
struct Share {
    int32_t begin, end;
};

__aicore__ inline Share ShareOf(const Tiling &t, int32_t n)
{
    const int32_t core = GetBlockIdx();
    const int32_t cores = ScalarMin(t.copyCores, GetBlockNum());
    return core < cores ? Share{Cut(n, core, cores), Cut(n, core + 1, cores)} : Share{0, 0};
}

} // namespace avsg
