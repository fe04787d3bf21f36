// avsg_late.h: refreshes that run after the misses are published, while Stage Two copies rows.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_plan.h"
#include "avsg_rows.h"

namespace avsg {

// Buffers that are in use from before the first copy of a row until after the last one.
constexpr uint32_t LATE_SLOTS_AT = STAGING_AT + 2 * HALF_BYTES;   // behind the memory of Stage Two
constexpr uint32_t LATE_PART_SLOTS_AT = LATE_SLOTS_AT + LATE_LANES * 4;
constexpr uint32_t LATE_MASK_AT = LATE_PART_SLOTS_AT + LATE_LANES * 4;
constexpr uint32_t LATE_RULE_AT = LATE_MASK_AT + LATE_LANES / 8;
constexpr uint32_t LATE_LIFETIMES_AT = LATE_RULE_AT + 256 * 2;
static_assert(!DEFERS || (LATE_LIFETIMES_AT + (1 << LATE_SHIFT) == STEP_BYTES && STEP_BYTES <= UB_BYTES), "deferred");

// The cores of a step. If it defers refreshes, several of them may plan one request.
struct StepCores {
    static constexpr bool SHARE = DEFERS;
    __aicore__ inline void WaitForAll() const
    {
        if constexpr (SHARE) {
            SyncAll<true>();
        }
    }
};

// Refreshes the lifetimes of the slots that the last token of each request hit, if the step defers that.
// The lifetimes of a request, in all its places, are divided into parts of whole 64-byte lines, in all at
// most one per core if LATE_SHIFT allows it. A core loads its first part before it copies any row, and updates it while rows are
// copied.
struct LateRefresh {
    const Tiling &t;
    const Gm &gm;
    Window w;
    int32_t cores, shift, unit;         // a part has 1 << shift slots; unit numbers the parts of all requests
    uint64_t shareAt;                    // index of the part's first word in gm.tables
    bool loaded;                        // a part is loaded, or its copies are issued

    __aicore__ inline LateRefresh(const Tiling &t, const Gm &gm, GM_ADDR cuQ, GM_ADDR state)
        : t(t), gm(gm), w(WINDOW_AT, WINDOW_REQUESTS, t, cuQ), cores(GetBlockNum()), shift(6), unit(GetBlockIdx()), shareAt(0),
          loaded(false)
    {
        w.Add(state, 1);
        while (shift < LATE_SHIFT && t.requests * (ID_WORDS >> shift) > cores) {
            shift++;
        }
        if constexpr (DEFERS && LIFETIME < 0) {
            CopyElementsIn(Local<half>(LATE_RULE_AT, 256), gm.rules, 256);
        }
        if constexpr (DEFERS) {
            LoadNextPart();
        }
    }

    // Returns the number of the part in its request.
    __aicore__ inline int32_t Part() const { return unit & ((ID_WORDS >> shift) - 1); }

    // Returns the lifetimes of the part in UB, four per word.
    __aicore__ inline LocalTensor<int32_t> PartLifetimes() const
    {
        return Local<int32_t>(LATE_LIFETIMES_AT, (1 << shift) / 4);
    }

    // Issues the copies of this core's next part. Padded requests and requests without tokens have
    // no parts.
    __aicore__ inline void LoadNextPart()
    {
        w.count = 0;                    // Stage Two's window has the same memory and has overwritten the words
        for (loaded = false; unit >> LogParts() < t.requests; unit += cores) {
            const int32_t request = unit >> LogParts();
            const int32_t state = w.Word(STATE, request);
            const int32_t row = w.Word(CU_Q, request, 1) - 1;
            if (state >= 0 && state < t.states && row >= w.Word(CU_Q, request)) {
                shareAt = StrideOffset(state, TABLE_WORDS) + HEADER_WORDS + ID_WORDS + (Part() << shift) / 4;
                CopyIn(Local<int32_t>(LATE_SLOTS_AT, LATE_LANES), gm.slot[row * K], t.k);
                CopyIn(PartLifetimes(), gm.tables[shareAt], (1 << shift) / 4);
                SetFlag<HardEvent::MTE2_V>(EVENT_ID2);
                loaded = true;
                return;
            }
        }
    }

    // Returns log2 of the parts of a request.
    __aicore__ inline int32_t LogParts() const { return SLOT_BITS - shift; }

    // Returns the lifetime of slot `at` of a part after a hit.
    __aicore__ inline int8_t AfterHit(const LocalTensor<int8_t> &life, int32_t at) const
    {
        if constexpr (LIFETIME >= 0) {
            return LIFETIME;
        } else {
            return static_cast<int8_t>(static_cast<float>(Local<half>(LATE_RULE_AT, 256).GetValue(life.GetValue(at) + 128)));
        }
    }

    // Sets the lifetimes of those of the `lanes` slots that are in the part.
    __aicore__ inline void SetLifetimes(int32_t lanes) const
    {
        const LocalTensor<int32_t> slots = Local<int32_t>(LATE_SLOTS_AT, LATE_LANES);
        const LocalTensor<int32_t> partSlots = Local<int32_t>(LATE_PART_SLOTS_AT, LATE_LANES);
        const LocalTensor<uint8_t> mask = Local<uint8_t>(LATE_MASK_AT, LATE_LANES / 8);
        const LocalTensor<int8_t> life = PartLifetimes().ReinterpretCast<int8_t>();
        ShiftRight(partSlots, slots, shift, lanes);
        PipeBarrier<PIPE_V>();
        Compares(mask, partSlots, Part(), CMPMODE::EQ, (lanes + 63) / 64 * 64);
        PipeBarrier<PIPE_V>();
        // GatherMask returns the count that its register has before it ends, which may be an earlier one.
        uint64_t earlier = 0;
        GatherMask(partSlots, slots, mask.ReinterpretCast<uint32_t>(), true, lanes, {1, 1, 8, 0}, earlier);
        SetWaitFlag<HardEvent::V_S>(EVENT_ID2);
        const int32_t n = static_cast<int32_t>(GetGatherMaskRemainCount());
        for (int32_t i = 0; i < n; i++) {
            const int32_t at = partSlots.GetValue(i) & ((1 << shift) - 1);
            life.SetValue(at, AfterHit(life, at));
        }
    }

    // Refreshes all parts of this core.
    __aicore__ inline void Run()
    {
        while (loaded) {
            WaitFlag<HardEvent::MTE2_V>(EVENT_ID2);
            SetLifetimes(t.k);
            SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
            CopyOut(gm.tables[shareAt], PartLifetimes(), (1 << shift) / 4);
            SetWaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
            unit += cores;
            LoadNextPart();
        }
    }
};

} // namespace avsg
