// avsg_learn.h: what a step teaches about the lifetimes that are worth keeping, after it has returned its misses.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_plan.h"

namespace avsg {

constexpr int32_t LEARN_STATE_WORDS = 4;        // words of a header that belong to learned lifetimes
// Buffers from byte 0 on, behind a barrier for all units, when no earlier memory is in use.
constexpr uint32_t LEARN_WINDOW_AT = 0;
constexpr uint32_t LEARN_HEADER_AT = LEARN_WINDOW_AT + 2 * PLAN_REQUESTS * 4 + BLOCK;
constexpr uint32_t LEARN_RULE_AT = LEARN_HEADER_AT + BLOCK;
constexpr uint32_t LEARN_WORDS_AT = LEARN_RULE_AT + LIFETIMES * 2;
constexpr uint32_t LEARN_SAMPLE_AT = LEARN_WORDS_AT + LEARN_RESULT * 4;
static_assert(LEARN_SAMPLE_AT + LEARN_SLOTS * 4 == LEARN_BYTES && LEARN_BYTES <= UB_BYTES, "learn");

// Returns a * b, of which one has the unit 2^-16. All such numbers are below 2^31, and products need 64 bits.
__aicore__ inline int64_t LearnProduct(int64_t a, int64_t b) { return (a * b) >> 16; }

// Returns the logarithm of the steps that a slot stays in the class 15 - row.
__aicore__ inline int32_t LearnLogSteps(int32_t row) { return static_cast<int32_t>(LEARN_LOG_STEPS >> (4 * row) & 15); }

// One table while it learns from a step. Its words are those behind the links, by lifetime + 128.
struct LearnTable {
    LocalTensor<int32_t> value, uses, counted, used;

    __aicore__ inline LearnTable()
        : value(Local<int32_t>(LEARN_WORDS_AT, LIFETIMES)), uses(Local<int32_t>(LEARN_WORDS_AT + LIFETIMES * 4, LIFETIMES)),
          counted(Local<int32_t>(LEARN_WORDS_AT + LIFETIMES * 8, LIFETIMES)),
          used(Local<int32_t>(LEARN_WORDS_AT + LIFETIMES * 12, LIFETIMES))
    {
    }

    // Forgets what an earlier request taught. Values are the order of classes, and empty slots come first.
    __aicore__ inline void Start() const
    {
        for (int32_t at = 0; at < LIFETIMES; at++) {
            value.SetValue(at, (at & -LEARN_LEVELS) + ScalarMin(at, 1));
            uses.SetValue(at, 0);
            counted.SetValue(at, 0);
            used.SetValue(at, 0);
        }
    }

    // Counts the slots of the last step's sample.
    __aicore__ inline void CountSample() const
    {
        const LocalTensor<int32_t> sample = Local<int32_t>(LEARN_SAMPLE_AT, LEARN_SLOTS);
        for (int32_t i = 0; i < LEARN_SLOTS; i++) {
            const int32_t word = sample.GetValue(i);
            const int32_t at = word & (LIFETIMES - 1);
            counted.SetValue(at, counted.GetValue(at) + LEARN_SLOT);
            if ((word & LEARN_WAS_USED) != 0) {
                used.SetValue(at, used.GetValue(at) + LEARN_SLOT);
            }
        }
    }

    // Returns a count of slots, an eighth of which decays.
    __aicore__ inline int32_t Decay(const LocalTensor<int32_t> &counts, int32_t at) const
    {
        const int32_t count = counts.GetValue(at);
        counts.SetValue(at, count - (count >> 3));
        return count - (count >> 3);
    }

    // Estimates the uses of the slots of the class 15 - row. Class 0 is left at the end of a step.
    __aicore__ inline void Estimate(int32_t row) const
    {
        const LocalTensor<half> afterHit = Local<half>(LEARN_RULE_AT, LIFETIMES);
        const uint64_t ages = row < 8 ? LEARN_OLD_AGES : LEARN_YOUNG_AGES;
        const int32_t age = static_cast<int32_t>(ages >> (8 * (row % 8)) & 255);
        const int32_t steps = LearnLogSteps(row);
        const int64_t prior = LEARN_PRIOR * LEARN_ONE / (2 * age);
        for (int32_t at = row * LEARN_LEVELS; row < 15 && at < (row + 1) * LEARN_LEVELS; at++) {
            const int64_t all = Decay(counted, at) + LEARN_PRIOR;
            const int64_t hits = (Decay(used, at) * LEARN_ONE + prior) / all;
            const int64_t h = hits < LEARN_ONE ? hits : LEARN_ONE;
            // A slot of class 0 is in class 1 when the next step begins.
            const int32_t hit = static_cast<int32_t>(static_cast<float>(afterHit.GetValue(at))) + 128 - LEARN_LEVELS;
            int64_t later = uses.GetValue(at);
            if (row > 0) {
                later = (uses.GetValue(at - LEARN_LEVELS) + ((1 << steps) - 1) * later) >> steps;
            }
            const int64_t ifUsed = LEARN_ONE + LearnProduct(LEARN_BETA, uses.GetValue(hit));
            const int64_t ifNot = LearnProduct(LEARN_BETA, later);
            uses.SetValue(at, static_cast<int32_t>(LearnProduct(h, ifUsed) + LearnProduct(LEARN_ONE - h, ifNot)));
        }
    }

    // Writes the values of all lifetimes: 16 times the binary logarithm of their uses. An empty slot is the
    // first victim.
    __aicore__ inline void Publish() const
    {
        value.SetValue(0, 0);
        for (int32_t at = 1; at < LIFETIMES; at++) {
            const int64_t n = uses.GetValue(at) > 1 ? uses.GetValue(at) : 1;
            int32_t log = 0;
            for (int32_t bits = 16; bits > 0; bits /= 2) {
                log += n >> (log + bits) > 0 ? bits : 0;
            }
            const int32_t fraction = static_cast<int32_t>((n << 4) >> log) & 15;
            value.SetValue(at, ScalarClamp(16 * (log - 5) + fraction, 1, LEARN_MAX_VALUE));
        }
    }

    // Learns from a step, and prepares the header for the next one.
    __aicore__ inline void Step() const
    {
        const LocalTensor<int32_t> header = Local<int32_t>(LEARN_HEADER_AT, LEARN_STATE_WORDS);
        const int32_t step = header.GetValue(LEARN_STEP);
        if (step == 0) {
            Start();
        } else {
            CountSample();
        }
        Estimate(step & (LEARN_SWEEP - 1));
        const int32_t next = step == 0x7FFFFFFF ? LEARN_SWEEP * LEARN_START : step + 1;
        if ((next & (LEARN_SWEEP - 1)) == 0 && next >= LEARN_START) {
            Publish();
        }
        const uint32_t order = static_cast<uint32_t>(next) * 0x9E3779B1u >> 16;
        // The steps of classes are powers of two that do not fall with the age.
        int32_t moving = 0;
        while (moving < 15 && next % (1 << LearnLogSteps(15 - moving)) == 0) {
            moving++;
        }
        header.SetValue(LEARN_STEP, next);
        header.SetValue(LEARN_LAST_SAMPLE, header.GetValue(LEARN_SAMPLE));
        header.SetValue(LEARN_SAMPLE, static_cast<int32_t>(order % 16) * LEARN_SLOTS);
        header.SetValue(LEARN_MOVES_FROM, 16 * (8 - moving));
    }
};

// Learns from the requests of a batch that this core has planned. Stage One of a request has written its
// header and its sample before, and the core has waited for these copies.
template <typename Cores>
__aicore__ inline void LearnBatch(const Gm &gm, const Tiling &t, GM_ADDR cuQ, GM_ADDR state)
{
    const CoreRequests own = RequestsOf<Cores>(t);
    if (own.sharer > 0 || HasTooManySlotBlocks(t)) {
        return;
    }
    // Earlier work of this core may use the same memory.
    PipeBarrier<PIPE_ALL>();
    Window w(LEARN_WINDOW_AT, PLAN_REQUESTS, t, cuQ);
    w.Add(state, 1);
    CopyElementsIn(Local<half>(LEARN_RULE_AT, LIFETIMES), gm.rules, LIFETIMES);
    const LocalTensor<int32_t> headerWords = Local<int32_t>(LEARN_HEADER_AT, LEARN_STATE_WORDS);
    const LocalTensor<int32_t> words = Local<int32_t>(LEARN_WORDS_AT, LEARN_RESULT + LEARN_SLOTS);
    const LearnTable table;
    for (int32_t request = own.begin; request < own.end; request++) {
        const int32_t of = w.Word(STATE, request);
        if (of < 0 || of >= t.states) {
            continue;
        }
        const uint64_t header = StrideOffset(of, TABLE_WORDS) + HEADER_LEARN;
        const uint64_t learned = StrideOffset(of, TABLE_WORDS) + LEARNED_AT;
        CopyIn(headerWords, gm.tables[header], LEARN_STATE_WORDS);
        CopyIn(words, gm.tables[learned], LEARN_RESULT + LEARN_SLOTS);
        SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
        table.Step();
        SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.tables[learned], words, LEARN_RESULT);
        CopyOut(gm.tables[header], headerWords, LEARN_STATE_WORDS);
        SetWaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    }
}

} // namespace avsg
