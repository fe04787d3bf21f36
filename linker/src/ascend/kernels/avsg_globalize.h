// avsg_globalize.h: turns returned slots into indices among the slots of all states.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg {

// Buffers from byte 0 on, when all rows and tables are written: the memory of Stage One and of copies before them.
constexpr int32_t GLOBAL_PIECE = 2048;              // slots of a row in UB at once
constexpr int32_t GLOBAL_REQUESTS = 16;             // requests in the window, which is at address 0
constexpr int32_t NO_START = -(1 << 30);            // makes every sum with a slot negative
constexpr uint32_t GLOBAL_BLOCKS_AT = 2 * GLOBAL_REQUESTS * 4 + BLOCK;
constexpr uint32_t GLOBAL_STARTS_AT = GLOBAL_BLOCKS_AT + MAX_SLOT_BLOCKS * 4;
constexpr uint32_t GLOBAL_SLOTS_AT = GLOBAL_STARTS_AT + MAX_SLOT_BLOCKS * 4 + BLOCK;
constexpr uint32_t GLOBAL_WORK_AT = GLOBAL_SLOTS_AT + GLOBAL_PIECE * 4;
constexpr uint32_t GLOBAL_ADDENDS_AT = GLOBAL_WORK_AT + GLOBAL_PIECE * 4;
static_assert(GLOBAL_ADDENDS_AT + GLOBAL_PIECE * 4 == GLOBAL_BYTES && GLOBAL_BYTES <= UB_BYTES, "global slots");

// The addends of a state's slots, and the slots that they are added to.
struct GlobalSlots {
    const Tiling &t;
    GlobalTensor<int32_t> slot, blocks;
    int32_t shift;                      // log2 of the slots of a block; without a table a state is a block

    // Sets the addends of the slots of each block of a state, behind that of -1. A sum is negative if
    // the slot is -1 or its block is not in the device buffer.
    __aicore__ inline void SetStarts(int32_t state) const
    {
        const int32_t n = t.kvBlocks > 0 ? SLOTS >> shift : 1;
        const LocalTensor<int32_t> entries = Local<int32_t>(GLOBAL_BLOCKS_AT, MAX_SLOT_BLOCKS);
        const LocalTensor<int32_t> starts = Local<int32_t>(GLOBAL_STARTS_AT, MAX_SLOT_BLOCKS + 1);
        if (t.kvBlocks > 0) {
            SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
            CopyIn(entries, blocks[static_cast<uint64_t>(state) * n], n);
            SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
        }
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        starts.SetValue(0, NO_START);
        for (int32_t i = 0; i < n; i++) {
            int32_t start = state * SLOTS;
            bool inside = true;
            if (t.kvBlocks > 0) {
                const int32_t block = entries.GetValue(i);
                inside = block >= 0 && block < t.kvBlocks;
                start = inside ? (block - i) * (1 << shift) : 0;
            }
            starts.SetValue(i + 1, inside ? t.slotBase + start : NO_START);
        }
        SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
    }

    // Replaces the slots of a row by their sums, and negative sums by -1.
    __aicore__ inline void Replace(int32_t row) const
    {
        const LocalTensor<int32_t> slots = Local<int32_t>(GLOBAL_SLOTS_AT, GLOBAL_PIECE);
        const LocalTensor<int32_t> work = Local<int32_t>(GLOBAL_WORK_AT, GLOBAL_PIECE);
        const LocalTensor<int32_t> addends = Local<int32_t>(GLOBAL_ADDENDS_AT, GLOBAL_PIECE);
        const LocalTensor<uint32_t> offsets = work.ReinterpretCast<uint32_t>();
        for (int32_t at = 0; at < t.k; at += GLOBAL_PIECE) {
            const int32_t n = ScalarMin(t.k - at, GLOBAL_PIECE);
            SetWaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
            CopyIn(slots, slot[row * K + at], n);
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            ShiftRight(work, slots, shift, n);
            PipeBarrier<PIPE_V>();
            Adds(work, work, 1, n);
            PipeBarrier<PIPE_V>();
            ShiftLeft(offsets, offsets, static_cast<uint32_t>(2), n);
            PipeBarrier<PIPE_V>();
            Gather(addends, Local<int32_t>(GLOBAL_STARTS_AT, MAX_SLOT_BLOCKS + 1), offsets, 0, n);
            PipeBarrier<PIPE_V>();
            Add(slots, slots, addends, n);
            PipeBarrier<PIPE_V>();
            ShiftRight(work, slots, 31, n);
            PipeBarrier<PIPE_V>();
            Or(slots.ReinterpretCast<uint16_t>(), slots.ReinterpretCast<uint16_t>(), work.ReinterpretCast<uint16_t>(),
               2 * n);
            SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
            CopyOut(slot[row * K + at], slots, n);
        }
    }
};

// Replaces the slots of this core's share of the rows, if TOKENS rows are counted for every request; `run` rows of a
// request stay together. The caller has finished all other work in UB, which is overwritten from address 0 on.
__aicore__ inline void GlobalizeSlots(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR slot, GM_ADDR slotBlocks, int32_t run)
{
    const int32_t runs = t.requests * (TOKENS / run);
    const int32_t core = GetBlockIdx();
    const int32_t begin = ShareBegin(runs, core, GetBlockNum()) * run;
    const int32_t end = ShareBegin(runs, core + 1, GetBlockNum()) * run;
    const int32_t shift = t.kvBlocks > 0 ? t.kvBlockShift : SLOT_BITS;
    const GlobalSlots slots{t, Global<int32_t>(slot), Global<int32_t>(slotBlocks), shift};
    Window w(0, GLOBAL_REQUESTS, t, cuQ);
    w.Add(state, 1);
    int32_t current = -1;
    for (int32_t at = HasTooManySlotBlocks(t) ? end : begin; at < end; at++) {
        const int32_t request = at / TOKENS;
        const int32_t row = w.Word(CU_Q, request) + at % TOKENS;
        const int32_t own = w.Word(STATE, request);
        if (row >= w.Word(CU_Q, request, 1) || own < 0 || own >= t.states) {
            continue;
        }
        if (own != current) {
            slots.SetStarts(own);
            current = own;
        }
        slots.Replace(row);
    }
}

} // namespace avsg
