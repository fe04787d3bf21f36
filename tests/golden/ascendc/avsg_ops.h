// avsg_ops.h: what the vector unit of a 910B lacks, made of what it has.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg::stage_one {

constexpr int32_t TILE = 512;  // lanes of a tile
constexpr int32_t RUN = 4096;  // slots numbered at once
constexpr int32_t PASS = 8192;  // slots counted at once
constexpr uint32_t WORD_1_AT = 160;
constexpr uint32_t WORD_3F_AT = 192;
constexpr uint32_t WORD_3FF_AT = 224;
constexpr uint32_t WORD_1FFF_AT = 256;
constexpr uint32_t WORD_3FFF_AT = 288;
constexpr uint32_t WORD_FFFF_AT = 320;
constexpr uint32_t WORD_800000_AT = 352;
constexpr uint32_t KEEP_AT = 384;
constexpr uint32_t IOTA_AT = 1696;
constexpr uint32_t STAGE_AT = 3744;
constexpr uint32_t PACKED_AT = 6816;
constexpr uint32_t SCRATCH_AT = 3744;

__aicore__ inline int32_t Most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

// The same bits as another type.
__aicore__ inline LocalTensor<uint32_t> U32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<uint32_t>(); }
__aicore__ inline LocalTensor<float> F32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<float>(); }
__aicore__ inline LocalTensor<half> F16(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<half>(); }
template <typename T> __aicore__ inline LocalTensor<uint16_t> U16(const LocalTensor<T> &x)
{
    return x.template ReinterpretCast<uint16_t>();
}

// Compares leave the tail of a repeat out, so they run over whole ones; what is behind `lanes` is cut later.
__aicore__ inline int32_t Whole(int32_t lanes) { return (lanes + 127) / 128 * 128; }

// dst = src & one word. And has 16-bit lanes; its second operand stays on one block.
__aicore__ inline void AndWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    And(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = src | one word.
__aicore__ inline void OrWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    Or(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^6) * q, for an x of so many bits: the sum of products that
// hashes are made of. No product overflows; `high` is scratch.
__aicore__ inline void Mix(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &x, int32_t bits, int32_t p,
    int32_t q, const LocalTensor<int32_t> &high, int32_t lanes)
{
    AndWord(dst, x, WORD_FFFF_AT, lanes);
    ShiftRight(U32(high), U32(x), static_cast<uint32_t>(16), lanes);
    PipeBarrier<PIPE_V>();
    Adds(dst, dst, -32768, lanes);
    if (bits > 22) {
        AndWord(high, high, WORD_3F_AT, lanes);
    }
    PipeBarrier<PIPE_V>();
    Muls(dst, dst, p, lanes);
    Muls(high, high, q, lanes);
    PipeBarrier<PIPE_V>();
    Add(dst, dst, high, lanes);
}

// The lanes under a mask, closed up; returns how many.
template <typename T, typename U>
__aicore__ inline int32_t Pack(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<U> &mask, int32_t lanes)
{
    uint64_t kept = 0;
    GatherMask(dst, src, mask, true, lanes, {1, 1, 8, 0}, kept);
    return static_cast<int32_t>(kept);
}

// How many lanes are under a mask.
__aicore__ inline int32_t Count(const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    return Pack(Local<int32_t>(PACKED_AT, TILE), Local<int32_t>(IOTA_AT, TILE),
        mask.ReinterpretCast<uint32_t>(), lanes);
}

// The words of a list's last block, and behind them a value's lanes under a mask.
__aicore__ inline int32_t Behind(const LocalTensor<int32_t> &packed, const LocalTensor<int32_t> &list, int32_t len,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes, bool first)
{
    const LocalTensor<int32_t> stage = Local<int32_t>(STAGE_AT, 256 + TILE);
    const LocalTensor<uint16_t> keep = Local<uint16_t>(KEEP_AT, 16 + TILE / 16);
    if (first) {
        Duplicate(keep, static_cast<uint16_t>((1 << len % 8) - 1), 1);
        Or(keep[16], U16(mask), U16(mask), TILE / 16);
    }
    Adds(stage, list[len / 8 * 8], 0, 8);
    Adds(stage[256], value, 0, lanes);
    PipeBarrier<PIPE_V>();
    return Pack(packed, stage, keep.ReinterpretCast<uint32_t>(), 256 + lanes);
}

// Appends a value's lanes under a mask to one column of a list of len words; returns how many. A list ends
// anywhere, and GatherMask writes from a block's start on: so where it ends inside a block, the words that the
// block holds go first, under as many bits of their own. `first` and `last` say which of the list's columns it is;
// behind the last all is done.
__aicore__ inline int32_t Append(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    const LocalTensor<uint8_t> &mask, int32_t lanes, bool first, bool last)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    int32_t kept = 0;
    if (len % 8 == 0) {
        kept = Pack(list[len], value, mask.ReinterpretCast<uint32_t>(), lanes);
    } else {
        kept = Behind(packed, list, len, value, mask, lanes, first);
        PipeBarrier<PIPE_V>();
        Adds(list[len / 8 * 8], packed, 0, kept);
    }
    if (last) {
        PipeBarrier<PIPE_V>();
    }
    return kept - len % 8;
}

// The same where the list grows in the value's own place.
__aicore__ inline int32_t Close(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    const LocalTensor<uint8_t> &mask, int32_t lanes, bool first, bool last)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    int32_t kept = 0;
    if (len % 8 == 0) {
        kept = Pack(packed, value, mask.ReinterpretCast<uint32_t>(), lanes);
    } else {
        kept = Behind(packed, list, len, value, mask, lanes, first);
    }
    PipeBarrier<PIPE_V>();
    Adds(list[len / 8 * 8], packed, 0, kept);
    if (last) {
        PipeBarrier<PIPE_V>();
    }
    return kept - len % 8;
}

// column[index] = value under a mask, lane by lane: a 910B has no scatter.
__aicore__ inline void Scatter(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const LocalTensor<int32_t> words = Local<int32_t>(STAGE_AT, TILE);
    const LocalTensor<uint32_t> keep = mask.ReinterpretCast<uint32_t>();
    const int32_t n = Pack(at, index, keep, lanes);
    Pack(words, value, keep, lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    // Two lanes' words come with one access.
    const LocalTensor<uint64_t> ats = at.ReinterpretCast<uint64_t>();
    const LocalTensor<uint64_t> both = words.ReinterpretCast<uint64_t>();
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = ats.GetValue(i);
        const uint64_t word = both.GetValue(i);
        column.SetValue(static_cast<uint32_t>(to), static_cast<int32_t>(word));
        column.SetValue(static_cast<uint32_t>(to >> 32), static_cast<int32_t>(word >> 32));
    }
    if (n % 2 != 0) {
        column.SetValue(at.GetValue(n - 1), words.GetValue(n - 1));
    }
    After<HardEvent::S_V>(EVENT_ID0);
}

// life[slot] = one value under a mask.
__aicore__ inline void SetLife(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value,
    const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const int32_t n = Pack(at, slot, mask.ReinterpretCast<uint32_t>(), lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    const LocalTensor<uint64_t> ats = at.ReinterpretCast<uint64_t>();
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = ats.GetValue(i);
        life.SetValue(static_cast<uint32_t>(to), value);
        life.SetValue(static_cast<uint32_t>(to >> 32), value);
    }
    if (n % 2 != 0) {
        life.SetValue(at.GetValue(n - 1), value);
    }
    After<HardEvent::S_V>(EVENT_ID0);
}

// life -= by, no lower than -128.
__aicore__ inline void Age(const LocalTensor<half> &life, int32_t by)
{
    PipeBarrier<PIPE_V>();
    Adds(life, life, static_cast<half>(static_cast<float>(-by)), SLOTS);
    PipeBarrier<PIPE_V>();
    Maxs(life, life, static_cast<half>(-128.0f), SLOTS);
}

// How many slots have life <= t.
__aicore__ inline int32_t CountLe(const LocalTensor<half> &life, int32_t t)
{
    const LocalTensor<uint8_t> found = Local<uint8_t>(KEEP_AT + BLOCK, PASS / 8);
    int32_t n = 0;
    for (int32_t base = 0; base < SLOTS; base += PASS) {
        PipeBarrier<PIPE_V>();
        CompareScalar(found, life[base], static_cast<half>(static_cast<float>(t)), CMPMODE::LE, PASS);
        PipeBarrier<PIPE_V>();
        n += Pack(Local<half>(SCRATCH_AT, PASS), life[base], U16(found), PASS);
    }
    return n;
}

// The least t in -128..127 with CountLe(t) >= need, or 127. Looks beside the hint first.
__aicore__ inline int32_t LeastLife(const LocalTensor<half> &life, int32_t hint, int32_t need)
{
    int32_t low = -128;
    int32_t high = need > 0 ? 127 : -128;
    int32_t t = Between(-128, hint, 126);
    for (bool first = true; low < high; first = false) {
        const bool enough = CountLe(life, t) >= need;
        if (enough) {
            high = t;
        } else {
            low = t + 1;
        }
        t = first ? Between(low, enough ? high - 1 : low, high) : low + (high - low) / 2;
    }
    PipeBarrier<PIPE_V>();
    return low;
}

// Appends the slots whose life is `mode` t to a list of len words, in order, until it has `limit`. Slots of a run
// are numbered by 16-bit words, which are packed twice as fast; behind the words of the list's last block, as in
// Append.
__aicore__ inline int32_t AppendSlots(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<half> &life,
    CMPMODE mode, int32_t t, int32_t limit)
{
    const LocalTensor<int16_t> number = Local<int16_t>(SCRATCH_AT, 256 + RUN);
    const LocalTensor<int16_t> packed = Local<int16_t>(SCRATCH_AT + (256 + RUN) * 2, 256 + RUN);
    const LocalTensor<uint16_t> keep = Local<uint16_t>(KEEP_AT, 16 + RUN / 16);
    Cast(number[256], Local<int32_t>(IOTA_AT, TILE), RoundMode::CAST_NONE, TILE);
    for (int32_t n = TILE; n < RUN; n *= 2) {
        PipeBarrier<PIPE_V>();
        Adds(number[256 + n], number[256], static_cast<int16_t>(n), n);
    }
    for (int32_t base = 0; base < SLOTS && len < limit; base += RUN) {
        const int32_t begun = len % 8;
        const LocalTensor<int32_t> last = list[len - begun];
        const LocalTensor<int32_t> before = packed.ReinterpretCast<int32_t>();
        PipeBarrier<PIPE_V>();
        Duplicate(keep, static_cast<uint16_t>((1 << begun) - 1), 1);
        CompareScalar(keep[16].ReinterpretCast<uint8_t>(), life[base], static_cast<half>(static_cast<float>(t)), mode, RUN);
        Adds(before, last, -base, begun);
        PipeBarrier<PIPE_V>();
        Cast(number, before, RoundMode::CAST_NONE, begun);
        PipeBarrier<PIPE_V>();
        const int32_t n = Least(Pack(packed, number, keep, 256 + RUN), begun + limit - len);
        PipeBarrier<PIPE_V>();
        Cast(F32(last), packed, RoundMode::CAST_NONE, n);
        PipeBarrier<PIPE_V>();
        Cast(last, F32(last), RoundMode::CAST_RINT, n);
        PipeBarrier<PIPE_V>();
        Adds(last, last, base, n);
        len += n - begun;
    }
    PipeBarrier<PIPE_V>();
    return len;
}

} // namespace avsg::stage_one
