// avsg_ops.h: what the vector unit of a 910B lacks, made of what it has.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg::stage_one {

constexpr int32_t TILE = 512;  // lanes of a tile
constexpr int32_t WIDE = 2048;  // lanes of a sweep with few registers
constexpr int32_t RUN = 4096;  // slots numbered at once
constexpr int32_t PASS = 8192;  // slots counted at once
constexpr uint32_t WORD_1_AT = 160;
constexpr uint32_t WORD_3F_AT = 192;
constexpr uint32_t WORD_3FF_AT = 224;
constexpr uint32_t WORD_1FFF_AT = 256;
constexpr uint32_t WORD_3FFF_AT = 288;
constexpr uint32_t WORD_FFFF_AT = 320;
constexpr uint32_t WORD_FFFFF_AT = 352;
constexpr uint32_t WORD_3FFFFF_AT = 384;
constexpr uint32_t KEEP_AT = 416;
constexpr uint32_t IOTA_AT = 2560;
constexpr uint32_t STAGE_AT = 4608;
constexpr uint32_t PACKED_AT = 7680;
constexpr uint32_t SCRATCH_AT = 4608;
constexpr int32_t LINKS = 8;  // of an id
constexpr uint32_t LINK_BITS = 14;  // of a position
constexpr uint32_t SLOT_BITS = 13;  // of a slot
constexpr uint32_t FINGERPRINT_SHIFT = 10;  // of a print in the mixed word
constexpr uint32_t FOUND_BITS = 20;  // of what a search finds
constexpr int32_t CHUNK = 224;  // ids searched at once
constexpr int32_t SPAN = 1792;  // words of their links at most
constexpr int32_t PLANE_PIECES = 4;  // of a plane on its way in
constexpr uint32_t POSITION_WORD_AT = WORD_3FFF_AT;
constexpr uint32_t SLOT_WORD_AT = WORD_1FFF_AT;
constexpr uint32_t FINGERPRINT_WORD_AT = WORD_3FF_AT;
constexpr uint32_t FOUND_WORD_AT = WORD_FFFFF_AT;

__aicore__ inline int32_t ScalarMax(int32_t a, int32_t b)
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

// dst[i] = base + i for n lanes: a tile of numbers, then doubled.
__aicore__ inline void Indices(const LocalTensor<int32_t> &dst, int32_t base, int32_t n)
{
    Adds(dst, Local<int32_t>(IOTA_AT, TILE), base, ScalarMin(n, TILE));
    PipeBarrier<PIPE_V>();
    for (int32_t done = TILE; done < n; done *= 2) {
        Adds(dst[done], dst, done, ScalarMin(done, n - done));
        PipeBarrier<PIPE_V>();
    }
}

// dst = (dst - 2^15) * p + (high mod 2^6) * q: the end of Mix.
__aicore__ inline void Blend(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &high, int32_t bits, int32_t p,
    int32_t q, int32_t lanes)
{
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

// dst = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^6) * q, for an x of so many bits: the sum of products that
// hashes are made of. No product overflows; `high` is scratch.
__aicore__ inline void Mix(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &x, int32_t bits, int32_t p,
    int32_t q, const LocalTensor<int32_t> &high, int32_t lanes)
{
    AndWord(dst, x, WORD_FFFF_AT, lanes);
    ShiftRight(U32(high), U32(x), static_cast<uint32_t>(16), lanes);
    Blend(dst, high, bits, p, q, lanes);
}

// The lanes under a mask, closed up; returns how many.
template <typename T, typename U>
__aicore__ inline int32_t Compact(
    const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<U> &mask, int32_t lanes)
{
    uint64_t kept = 0;
    GatherMask(dst, src, mask, true, lanes, {1, 1, 8, 0}, kept);
    return static_cast<int32_t>(kept);
}

// How many lanes are under a mask.
__aicore__ inline int32_t Count(const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    return Compact(Local<int32_t>(PACKED_AT, TILE), Local<int32_t>(IOTA_AT, TILE),
        mask.ReinterpretCast<uint32_t>(), lanes);
}

// The words of a list's last block, and behind them a value's lanes under a mask.
__aicore__ inline int32_t CompactAfterTail(const LocalTensor<int32_t> &packed, const LocalTensor<int32_t> &list,
    int32_t len, const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes, bool first)
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
    return Compact(packed, stage, keep.ReinterpretCast<uint32_t>(), 256 + lanes);
}

// Appends a value's lanes under a mask to one column of a list of len words; returns how many. A list ends
// anywhere, and GatherMask writes from a block's start on: so where it ends inside a block, the words that the
// block holds go first, under as many bits of their own. `first`: of the
// list's columns it is the first.
__aicore__ inline int32_t Append(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    const LocalTensor<uint8_t> &mask, int32_t lanes, bool first)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    int32_t kept = 0;
    if (len % 8 == 0) {
        kept = Compact(list[len], value, mask.ReinterpretCast<uint32_t>(), lanes);
    } else {
        kept = CompactAfterTail(packed, list, len, value, mask, lanes, first);
        PipeBarrier<PIPE_V>();
        Adds(list[len / 8 * 8], packed, 0, kept);
    }
    return kept - len % 8;
}

// The same where the list grows in the value's own place.
__aicore__ inline int32_t AppendInPlace(const LocalTensor<int32_t> &list, int32_t len,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes, bool first)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    int32_t kept = 0;
    if (len % 8 == 0) {
        kept = Compact(packed, value, mask.ReinterpretCast<uint32_t>(), lanes);
    } else {
        kept = CompactAfterTail(packed, list, len, value, mask, lanes, first);
    }
    PipeBarrier<PIPE_V>();
    Adds(list[len / 8 * 8], packed, 0, kept);
    return kept - len % 8;
}

// column[index] = value, lane by lane: a 910B has no scatter.
__aicore__ inline void ScatterAll(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, int32_t n)
{
    // Two lanes' words come with one access.
    const LocalTensor<uint64_t> ats = index.ReinterpretCast<uint64_t>();
    const LocalTensor<uint64_t> both = value.ReinterpretCast<uint64_t>();
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = ats.GetValue(i);
        const uint64_t word = both.GetValue(i);
        column.SetValue(static_cast<uint32_t>(to), static_cast<int32_t>(word));
        column.SetValue(static_cast<uint32_t>(to >> 32), static_cast<int32_t>(word >> 32));
    }
    if (n % 2 != 0) {
        column.SetValue(index.GetValue(n - 1), value.GetValue(n - 1));
    }
}

// The same for two columns, of which one's index is the other's value. Four lanes' indices come with one access.
__aicore__ inline void ScatterBoth(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<int32_t> &other, const LocalTensor<int32_t> &place, int32_t n)
{
    const LocalTensor<int16_t> indices = Local<int16_t>(PACKED_AT, TILE);
    const LocalTensor<int16_t> places = Local<int16_t>(STAGE_AT, TILE);
    Cast(indices, index, RoundMode::CAST_NONE, n);
    Cast(places, place, RoundMode::CAST_NONE, n);
    After<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n / 4; i++) {
        const uint64_t ats = indices.ReinterpretCast<uint64_t>().GetValue(i);
        const uint64_t tos = places.ReinterpretCast<uint64_t>().GetValue(i);
        for (int32_t j = 0; j < 2; j++) {
            const uint64_t words = value.ReinterpretCast<uint64_t>().GetValue(2 * i + j);
            const uint32_t at = static_cast<uint32_t>(ats >> 32 * j), to = static_cast<uint32_t>(tos >> 32 * j);
            column.SetValue(at & 0xffff, static_cast<int32_t>(words));
            column.SetValue(at >> 16, static_cast<int32_t>(words >> 32));
            other.SetValue(to & 0xffff, static_cast<int32_t>(at & 0xffff));
            other.SetValue(to >> 16, static_cast<int32_t>(at >> 16));
        }
    }
    for (int32_t i = n / 4 * 4; i < n; i++) {
        const int32_t at = index.GetValue(i);
        column.SetValue(at, value.GetValue(i));
        other.SetValue(place.GetValue(i), at);
    }
}

// column[index] = value under a mask.
__aicore__ inline void ScatterMasked(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const LocalTensor<int32_t> words = Local<int32_t>(STAGE_AT, TILE);
    const LocalTensor<uint32_t> keep = mask.ReinterpretCast<uint32_t>();
    const int32_t n = Compact(at, index, keep, lanes);
    Compact(words, value, keep, lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    ScatterAll(column, at, words, n);
}

// life[slot] = one value.
__aicore__ inline void SetLifeAll(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value, int32_t n)
{
    const LocalTensor<uint64_t> both = slot.ReinterpretCast<uint64_t>();
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = both.GetValue(i);
        life.SetValue(static_cast<uint32_t>(to), value);
        life.SetValue(static_cast<uint32_t>(to >> 32), value);
    }
    if (n % 2 != 0) {
        life.SetValue(slot.GetValue(n - 1), value);
    }
}

// The same under a mask.
__aicore__ inline void SetLife(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value,
    const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const int32_t n = Compact(at, slot, mask.ReinterpretCast<uint32_t>(), lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    SetLifeAll(life, at, value, n);
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
        n += Compact(Local<half>(SCRATCH_AT, PASS), life[base], U16(found), PASS);
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
        const int32_t n = ScalarMin(Compact(packed, number, keep, 256 + RUN), begun + limit - len);
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

// n words in pieces, of which sharers begin with different ones: cores that read one address at once wait for each
// other.
__aicore__ inline void CopyInTurn(
    const LocalTensor<int32_t> &to, const GlobalTensor<int32_t> &from, int32_t n, int32_t turn)
{
    for (int32_t piece = 0; piece < PLANE_PIECES; piece++) {
        const int32_t at = (piece + turn) % PLANE_PIECES * (n / PLANE_PIECES);
        CopyIn(to[at], from[at], n / PLANE_PIECES);
    }
}

// All cores wait for each other. The result says whether this core has nothing more to do.
__aicore__ inline bool Leaves(bool owner)
{
    SyncAll<true>();
    return !owner;
}

// Column n of three of SPAN words in scratch memory.
__aicore__ inline LocalTensor<int32_t> Column(uint32_t n) { return Local<int32_t>(SCRATCH_AT + n * SPAN * 4, SPAN); }

// Masks of a search's lanes.
__aicore__ inline LocalTensor<uint8_t> Fits() { return Local<uint8_t>(KEEP_AT + BLOCK, SPAN / 8); }

// The links of some ids along their probe sequences, link after link, `step` lanes each: column 1 has what they hold.
__aicore__ inline void Follow(const LocalTensor<int32_t> &sequence, const LocalTensor<int32_t> &link, int32_t some, int32_t step)
{
    const LocalTensor<int32_t> at = Column(0), stride = Column(2);
    // What is behind the last id is looked at, too.
    Duplicate(at, 0, step);
    Duplicate(stride, 0, step);
    PipeBarrier<PIPE_V>();
    Adds(at, sequence, 0, some);
    ShiftRight(U32(stride), U32(sequence), LINK_BITS, some);
    PipeBarrier<PIPE_V>();
    AndWord(at, at, POSITION_WORD_AT, step);
    for (int32_t n = 1; n < LINKS; n++) {
        PipeBarrier<PIPE_V>();
        Add(at[n * step], at[(n - 1) * step], stride, step);
    }
    PipeBarrier<PIPE_V>();
    AndWord(at, at, POSITION_WORD_AT, LINKS * step);
    PipeBarrier<PIPE_V>();
    ShiftLeft(U32(at), U32(at), static_cast<uint32_t>(2), LINKS * step);
    PipeBarrier<PIPE_V>();
    Gather(Column(1), link, U32(at), 0, LINKS * step);
    PipeBarrier<PIPE_V>();
}

// On top of what a search finds at link n: an earlier link's word is the larger one, and none is 0.
__aicore__ inline int32_t Rank(int32_t n) { return (LINKS - 1 - n) * (1 << FOUND_BITS) + 1; }

// Of the ranked words of each lane's links, link after link, the first one's under a mask; -1 where there is none.
__aicore__ inline void First(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &found, int32_t some, int32_t step)
{
    PipeBarrier<PIPE_V>();
    Select(F32(found), Fits(), F32(found), 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, LINKS * step);
    for (int32_t n = LINKS; n > 1; n -= n / 2) {
        PipeBarrier<PIPE_V>();
        Max(found, found, found[(n - n / 2) * step], n / 2 * step);
    }
    PipeBarrier<PIPE_V>();
    AndWord(found, found, FOUND_WORD_AT, some);
    PipeBarrier<PIPE_V>();
    Adds(dst, found, -1, some);
}

// For each of n ids and its probe sequence the slot that the first of its links names whose slot holds the id; -1 where none
// does.
__aicore__ inline void Find(const LocalTensor<int32_t> &slot, const LocalTensor<int32_t> &sequence,
    const LocalTensor<int32_t> &sought, int32_t n, const LocalTensor<int32_t> &link, const LocalTensor<int32_t> &id)
{
    const LocalTensor<int32_t> offset = Column(0), named = Column(1), held = Column(2);
    for (int32_t base = 0; base < n; base += CHUNK) {
        const int32_t some = ScalarMin(n - base, CHUNK);
        const int32_t step = (some + 7) / 8 * 8;
        Follow(sequence[base], link, some, step);
        AndWord(named, named, SLOT_WORD_AT, LINKS * step);
        PipeBarrier<PIPE_V>();
        ShiftLeft(U32(offset), U32(named), static_cast<uint32_t>(2), LINKS * step);
        PipeBarrier<PIPE_V>();
        Gather(held, id, U32(offset), 0, LINKS * step);
        PipeBarrier<PIPE_V>();
        for (int32_t nth = 0; nth < LINKS; nth++) {
            Sub(held[nth * step], held[nth * step], sought[base], step);
            Adds(named[nth * step], named[nth * step], Rank(nth), step);
        }
        PipeBarrier<PIPE_V>();
        CompareScalar(Fits(), held, 0, CMPMODE::EQ, Whole(LINKS * step));
        // The next ids begin in other columns.
        First(slot[base], named, some, step);
    }
}

// For each of n probe sequences where the first of its links lies whose print is not that of the id in its slot; -1 where there
// is none. A link that was never used has the print of no id. p and q mix an id.
__aicore__ inline void FindFree(const LocalTensor<int32_t> &at, const LocalTensor<int32_t> &sequence, int32_t n,
    const LocalTensor<int32_t> &link, const LocalTensor<int32_t> &id, int32_t p, int32_t q)
{
    const LocalTensor<int32_t> mixed = Column(0), print = Column(1), held = Column(2);
    for (int32_t base = 0; base < n; base += CHUNK) {
        const int32_t some = ScalarMin(n - base, CHUNK);
        const int32_t step = (some + 7) / 8 * 8;
        Follow(sequence[base], link, some, step);
        AndWord(mixed, print, SLOT_WORD_AT, LINKS * step);
        PipeBarrier<PIPE_V>();
        ShiftLeft(U32(mixed), U32(mixed), static_cast<uint32_t>(2), LINKS * step);
        ShiftRight(U32(print), U32(print), SLOT_BITS, LINKS * step);
        PipeBarrier<PIPE_V>();
        Gather(held, id, U32(mixed), 0, LINKS * step);
        PipeBarrier<PIPE_V>();
        AndWord(mixed, held, WORD_FFFF_AT, LINKS * step);
        PipeBarrier<PIPE_V>();
        ShiftRight(U32(held), U32(held), static_cast<uint32_t>(16), LINKS * step);
        Blend(mixed, held, 32, p, q, LINKS * step);
        PipeBarrier<PIPE_V>();
        ShiftRight(U32(mixed), U32(mixed), FINGERPRINT_SHIFT, LINKS * step);
        PipeBarrier<PIPE_V>();
        AndWord(mixed, mixed, FINGERPRINT_WORD_AT, LINKS * step);
        PipeBarrier<PIPE_V>();
        Compare(Fits(), print, mixed, CMPMODE::EQ, Whole(LINKS * step));
        PipeBarrier<PIPE_V>();
        Not(U16(Fits()), U16(Fits()), Whole(LINKS * step) / 16);
        // Which link it is.
        for (int32_t nth = 0; nth < LINKS; nth++) {
            Duplicate(print[nth * step], Rank(nth) + nth, step);
        }
        First(print, print, some, step);
        // And where that lies.
        ShiftRight(U32(held), U32(sequence[base]), LINK_BITS, some);
        Adds(mixed, sequence[base], 0, some);
        PipeBarrier<PIPE_V>();
        Mul(held, held, print, some);
        AndWord(mixed, mixed, POSITION_WORD_AT, some);
        PipeBarrier<PIPE_V>();
        Add(held, held, mixed, some);
        ShiftRight(print, print, 31, some);
        PipeBarrier<PIPE_V>();
        AndWord(held, held, POSITION_WORD_AT, some);
        PipeBarrier<PIPE_V>();
        Or(U16(at[base]), U16(held), U16(print), 2 * some);
        PipeBarrier<PIPE_V>();
    }
}

} // namespace avsg::stage_one
