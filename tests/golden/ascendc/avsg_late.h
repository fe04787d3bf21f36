// avsg_late.h: refreshes that waited until the misses were published.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_plan.h"
#include "avsg_rows.h"

namespace avsg {

constexpr int32_t LATE_LANES = 2048;                // room for a row's slots
constexpr int32_t LATE_SHIFT = 13;                  // a part has 1 << this slots at most
constexpr uint32_t LATE_SLOTS_AT = STAGING_AT + 2 * HALF_BYTES;   // beside what Stage Two uses
constexpr uint32_t LATE_OWN_AT = LATE_SLOTS_AT + LATE_LANES * 4;
constexpr uint32_t LATE_MASK_AT = LATE_OWN_AT + LATE_LANES * 4;
constexpr uint32_t LATE_RULE_AT = LATE_MASK_AT + LATE_LANES / 8;
constexpr uint32_t LATE_LIVES_AT = LATE_RULE_AT + 256 * 2;
static_assert(LATE_LIVES_AT + (1 << LATE_SHIFT) == 184224 && 184224 <= UB_BYTES, "late");

// What the requests' last tokens hit lives on. A request's lifetimes are cut into parts of whole 64-byte
// lines, at most as many in all as there are cores; a core sets those of its part. The first part is asked
// for before any row is copied, and done while rows are on their way.
struct Late {
    const Tiling &t;
    const Gm &gm;
    Window w;
    int32_t cores, shift, unit;
    uint64_t lives;                     // the part's first word of `tables`
    bool asked;

    __aicore__ inline Late(const Tiling &t, const Gm &gm, GM_ADDR cuQ, GM_ADDR state)
        : t(t), gm(gm), w(WINDOW_AT, WINDOW, t, cuQ), cores(GetBlockNum()), shift(6), unit(GetBlockIdx())
    {
        w.Add(state, 1);
        while (shift < LATE_SHIFT && t.requests * (SLOTS >> shift) > cores) {
            shift++;
        }
        Ask();
    }

    __aicore__ inline int32_t Part() const { return unit & ((SLOTS >> shift) - 1); }

    __aicore__ inline LocalTensor<int32_t> Lives() const { return Local<int32_t>(LATE_LIVES_AT, (1 << shift) / 4); }

    // Has this core's next part read. Padded requests and such without tokens have none.
    __aicore__ inline void Ask()
    {
        w.n = 0;                        // its words lie where Stage Two's do
        for (asked = false; unit >> LogParts() < t.requests; unit += cores) {
            const int32_t request = unit >> LogParts();
            const int32_t state = w.Word(STATE, request);
            const int32_t row = w.Word(CU_Q, request, 1) - 1;
            if (state >= 0 && state < t.states && row >= w.Word(CU_Q, request)) {
                lives = Times(state, TABLE_WORDS) + 8208 + (Part() << shift) / 4;
                CopyIn(Local<int32_t>(LATE_SLOTS_AT, LATE_LANES), gm.slot[row * K], t.k);
                CopyIn(Lives(), gm.tables[lives], (1 << shift) / 4);
                SetFlag<HardEvent::MTE2_V>(EVENT_ID2);
                asked = true;
                return;
            }
        }
    }

    __aicore__ inline int32_t LogParts() const { return 13 - shift; }

    // Sets the lifetimes of those of the slots that are in the part.
    __aicore__ inline void Set(int32_t lanes) const
    {
        const LocalTensor<int32_t> slots = Local<int32_t>(LATE_SLOTS_AT, LATE_LANES);
        const LocalTensor<int32_t> own = Local<int32_t>(LATE_OWN_AT, LATE_LANES);
        const LocalTensor<uint8_t> mask = Local<uint8_t>(LATE_MASK_AT, LATE_LANES / 8);
        const LocalTensor<int8_t> life = Lives().ReinterpretCast<int8_t>();
        ShiftRight(own, slots, shift, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(mask, own, Part(), CMPMODE::EQ, (lanes + 63) / 64 * 64);
        PipeBarrier<PIPE_V>();
        uint64_t n = 0;
        GatherMask(own, slots, mask.ReinterpretCast<uint32_t>(), true, lanes, {1, 1, 8, 0}, n);
        After<HardEvent::V_S>(EVENT_ID2);
        for (int32_t i = 0; i < static_cast<int32_t>(n); i++) {
            const int32_t at = own.GetValue(i) & ((1 << shift) - 1);
            life.SetValue(at, static_cast<int8_t>(127));
        }
    }

    __aicore__ inline void Run()
    {
        while (asked) {
            WaitFlag<HardEvent::MTE2_V>(EVENT_ID2);
            Set(t.k);
            After<HardEvent::S_MTE3>(EVENT_ID2);
            CopyOut(gm.tables[lives], Lives(), (1 << shift) / 4);
            After<HardEvent::MTE3_MTE2>(EVENT_ID2);
            unit += cores;
            Ask();
        }
    }
};

} // namespace avsg
