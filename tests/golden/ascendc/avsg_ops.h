// avsg_ops.h: what the vector unit of a 910B lacks, made of what it has.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg::stage_one {

constexpr int32_t TILE = 512;                       // lanes of a tile
constexpr int32_t RUN = 1024;  // slots of a pass over lifetimes
constexpr uint32_t WORD_1_AT = 160;
constexpr uint32_t WORD_3F_AT = 192;
constexpr uint32_t WORD_3FF_AT = 224;
constexpr uint32_t WORD_1FFF_AT = 256;
constexpr uint32_t WORD_3FFF_AT = 288;
constexpr uint32_t WORD_FFFF_AT = 320;
constexpr uint32_t WORD_800000_AT = 352;
constexpr uint32_t KEEP_AT = 384;
constexpr uint32_t FOUND_AT = 480;
constexpr uint32_t IOTA_AT = 864;
constexpr uint32_t STAGE_AT = 2912;
constexpr uint32_t PACKED_AT = 5984;
constexpr uint32_t NUMBERS_AT = 9056;

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
    PipeBarrier<PIPE_V>();
    return Pack(Local<int32_t>(PACKED_AT, TILE), Local<int32_t>(IOTA_AT, TILE),
        mask.ReinterpretCast<uint32_t>(), lanes);
}

// The lanes that Append appends to a list of len words. A list ends anywhere, and GatherMask writes from a
// block's start on: so the q words that the list's last block holds go first, under q bits of their own.
__aicore__ inline void Keep(const LocalTensor<uint8_t> &mask, int32_t len)
{
    const LocalTensor<uint16_t> keep = Local<uint16_t>(KEEP_AT, 16 + TILE / 16);
    PipeBarrier<PIPE_V>();
    Duplicate(keep, static_cast<uint16_t>((1 << len % 8) - 1), 1);
    Or(keep[16], U16(mask), U16(mask), TILE / 16);
}

// Appends a value's lanes to one column of a list of len words, `most` at most; returns how many.
__aicore__ inline int32_t Append(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    int32_t lanes, int32_t most = TILE)
{
    const LocalTensor<int32_t> stage = Local<int32_t>(STAGE_AT, 256 + TILE);
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    const LocalTensor<int32_t> last = list[len / 8 * 8];
    const int32_t skip = len % 8 == 0 ? 256 : 0;    // the list ends with a block: nothing goes first
    PipeBarrier<PIPE_V>();
    if (skip == 0) {
        Adds(stage, last, 0, 8);
        Adds(stage[256], value, 0, lanes);
        PipeBarrier<PIPE_V>();
    }
    const LocalTensor<uint32_t> keep = Local<uint32_t>(KEEP_AT, 8 + TILE / 32);
    const int32_t kept = skip == 0 ? Pack(packed, stage, keep, 256 + lanes) : Pack(packed, value, keep[8], lanes);
    const int32_t n = Least(kept, len % 8 + most);
    PipeBarrier<PIPE_V>();
    Adds(last, packed, 0, n);
    return n - len % 8;
}

// column[index] = value under a mask, lane by lane: a 910B has no scatter.
__aicore__ inline void Scatter(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const LocalTensor<int32_t> words = Local<int32_t>(STAGE_AT, TILE);
    const LocalTensor<uint32_t> keep = mask.ReinterpretCast<uint32_t>();
    PipeBarrier<PIPE_V>();
    const int32_t n = Pack(at, index, keep, lanes);
    Pack(words, value, keep, lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n; i++) {
        column.SetValue(at.GetValue(i), words.GetValue(i));
    }
    After<HardEvent::S_V>(EVENT_ID0);
}

// life[slot] = one value under a mask.
__aicore__ inline void SetLife(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value,
    const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    PipeBarrier<PIPE_V>();
    const int32_t n = Pack(at, slot, mask.ReinterpretCast<uint32_t>(), lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n; i++) {
        life.SetValue(at.GetValue(i), value);
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
    const LocalTensor<uint8_t> found = Local<uint8_t>(FOUND_AT, RUN / 8);
    int32_t n = 0;
    for (int32_t base = 0; base < SLOTS; base += RUN) {
        PipeBarrier<PIPE_V>();
        CompareScalar(found, life[base], static_cast<half>(static_cast<float>(t)), CMPMODE::LE, RUN);
        PipeBarrier<PIPE_V>();
        n += Pack(Local<half>(PACKED_AT, RUN), life[base], U16(found), RUN);
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
    return low;
}

// Appends the slots whose life is `mode` t to a list of len words, in order, until it has `limit`.
__aicore__ inline int32_t AppendSlots(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<half> &life,
    CMPMODE mode, int32_t t, int32_t limit)
{
    const LocalTensor<uint8_t> found = Local<uint8_t>(FOUND_AT, TILE / 8);
    const LocalTensor<int32_t> slot = Local<int32_t>(NUMBERS_AT, TILE);
    for (int32_t base = 0; base < SLOTS && len < limit; base += TILE) {
        const int32_t lanes = Least(SLOTS - base, TILE);
        PipeBarrier<PIPE_V>();
        CompareScalar(found, life[base], static_cast<half>(static_cast<float>(t)), mode, lanes);
        Adds(slot, Local<int32_t>(IOTA_AT, TILE), base, lanes);
        Keep(found, len);
        len += Append(list, len, slot, lanes, limit - len);
    }
    return len;
}

} // namespace avsg::stage_one
