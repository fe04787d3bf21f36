// avsg_ops.h: constants of Stage One, and operations that the vector unit of a 910B does not have.
// avsg_plan.h includes it behind avsg_instructions.h.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, learned lifetimes, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

namespace avsg::stage_one {

// Tiles of 512 lanes, 185184 bytes of UB. Columns keep their words in the phases beside them; all
// other buffers that share bytes are in use by turns, each in a statement or a round.
//   first  bytes  type     phases                      buffers
//       0     64  int32_t                              header
//      64     64  int32_t                              summary
//     128     32  int32_t                              word
//     160     32  int32_t                              WORD_1
//     192     32  int32_t                              WORD_FF
//     224     32  int32_t                              WORD_100
//     256     32  int32_t                              WORD_3FF
//     288     32  int32_t                              WORD_1FFF
//     320     32  int32_t                              WORD_3FFF
//     352     32  int32_t                              WORD_FFFF
//     384     32  int32_t                              WORD_FFFFF
//     416     32  int32_t                              WORD_FFFFFF
//     448    544  uint8_t                              mask_scratch
//     480    128  uint8_t                              link_mask
//     480    512  uint8_t                              life_mask
//     992     64  uint8_t                              isFresh mask unused2
//    1056     64  uint8_t                              mask2 unused
//    1120    128  uint8_t                              wideHit wideMask
//    1248    128  uint8_t                              wideIsValid wideMask2
//    1376   2048  int32_t                              iota
//    3424   3072  int32_t                              lane_scratch
//    3424   4096  int32_t                              search0
//    3424   4608  int16_t                              slot_numbers
//    3424   8192  int32_t                              map_offsets
//    3424  14336  int16_t                              scratch
//    6496   3072  int32_t                              packed
//    7520   4096  int32_t                              search1
//    8032   4608  int16_t                              packed_slots
//    9568   2048  int32_t                              fresh freshRow lane2 lived2 mixed
//                                                     offset row sign stride2 value2
//                                                     victim
//    9568   4096  int32_t                              wideEntry wideFingerprint wideHigh wideLane wideLived2
//                                                     wideMixed wideOffset wideSign wideStep wideStride
//                                                     wideValue wideX
//   11616   1024  half                                 map_entries
//   11616   2048  int32_t                              beyond fill held high linkIndex
//                                                     offset2 sign4 value4
//   11616   4096  int32_t                              search2
//   13664   2048  int32_t                              fill2 fingerprint lane mixed2 position
//                                                     sign2 stride value3
//   13664   4096  int32_t                              wideFill wideFirstLink wideHeld wideHigh2 wideLane2
//                                                     wideLinkIndex wideLived wideOffset2 widePosition wideSign2
//                                                     wideValue2
//   15712   2048  int32_t                              entry fill3 high2 linkIndex2 lived
//                                                     sign3 value5
//   17760    512  half                                 rule
//   18272   1024  half                                 lifetimes
//   19296  32768  int32_t                              id
//   52064  16384  half                                 life
//   68448  65536  int32_t                              link
//  133984   8192  int32_t  start - Probe               ids
//  133984   8192  int32_t  Probe                       hash
//  133984   8192  int32_t  Probe - UpdateState         slot
//  142176   1024  int32_t  Decay                       learnedValues
//  142176   8192  int32_t  UpdateState                 sequence
//  142176   8192  int32_t  UpdateState                 linkPosition
//  143200   1024  int32_t  Decay - CollectDead         valueOf
//  144224   2048  int32_t  Decay                       sample
//  144224   8192  int32_t  Probe - Probe, pending ids  sought
//  144224   8192  int32_t  Locate                      miss2
//  144224  16384  half     CollectDead                 value
//  150368   8192  int32_t  UpdateState                 secondSequence
//  152416   8192  int32_t  Probe                       shareSequence
//  152416   8192  int32_t  Probe, pending ids - Locate invalid
//  160608   8192  int32_t  Probe                       candidate
//  160608   8192  int32_t  Probe, pending ids - Locate pending0
//  160608   8192  int32_t  Locate - UpdateState        miss0
//  160608   8192  int32_t  UpdateState                 newLink
//  168800   8192  int32_t  Probe, pending ids - Locate pending1
//  168800   8192  int32_t  Locate - UpdateState        miss1
//  176992   8192  int8_t                               bytes
//  176992   8192  int32_t  CollectDead - UpdateState   dead

constexpr int32_t TILE = 512;  // lanes of a tile
constexpr int32_t WIDE = 1024;  // lanes of a tile in sweeps that need few registers
constexpr int32_t SLOT_TILE = 2048;  // slots per iteration of AppendSlots
constexpr int32_t LIFE_TILE = 4096;  // slots per iteration over lifetimes
constexpr int32_t MAP_TILE = 2048;  // slots per iteration of MapLifetimes
constexpr int32_t MAP_ENTRIES = 512;  // halfs that CANN's check of its Gather demands
constexpr int32_t RULE_ENTRIES = 256;  // and of those of refreshes, of which 256 are the rule
constexpr int32_t ID_PLANE = 16;  // first word of the ids in a table
constexpr int32_t LIFE_PLANE = 8208;  // first word of the lifetimes, one byte each
constexpr int32_t LIFE_PLANE_WORDS = 2048;  // words of the lifetimes
constexpr int32_t LINK_PLANE = 10272;  // first word of the links
constexpr int32_t LINK_PLANE_WORDS = 16384;  // words of the links
constexpr int32_t LEARNED_PLANE = 26656;  // first word of what lifetimes learn
constexpr int32_t MIX_P = 3145;  // multiplies the low 16 bits of an id
constexpr int32_t MIX_Q = 26115;  // multiplies the next 8 bits of an id
constexpr int32_t STRIDE_P = 27139;  // multiplies the low 16 bits of a mixed word
constexpr int32_t STRIDE_Q = 2169;  // multiplies the next 8 bits of a mixed word
// Byte addresses in UB. The block at WORD_x_AT holds the word x (hexadecimal) eight times.
constexpr uint32_t WORD_1_AT = 160;
constexpr uint32_t WORD_FF_AT = 192;
constexpr uint32_t WORD_100_AT = 224;
constexpr uint32_t WORD_3FF_AT = 256;
constexpr uint32_t WORD_1FFF_AT = 288;
constexpr uint32_t WORD_3FFF_AT = 320;
constexpr uint32_t WORD_FFFF_AT = 352;
constexpr uint32_t WORD_FFFFF_AT = 384;
constexpr uint32_t WORD_FFFFFF_AT = 416;
constexpr uint32_t MASK_SCRATCH_AT = 448;
constexpr uint32_t LIFE_MASK_AT = 480;
constexpr uint32_t LINK_MASK_AT = 480;
constexpr uint32_t IOTA_AT = 1376;
constexpr uint32_t LANE_SCRATCH_AT = 3424;
constexpr uint32_t PACKED_AT = 6496;
constexpr uint32_t SCRATCH_AT = 3424;
constexpr uint32_t SLOT_NUMBERS_AT = 3424;
constexpr uint32_t PACKED_SLOTS_AT = 8032;
constexpr uint32_t SEARCH0_AT = 3424;
constexpr uint32_t SEARCH1_AT = 7520;
constexpr uint32_t SEARCH2_AT = 11616;
constexpr uint32_t RULE_AT = 17760;
constexpr uint32_t LIFETIMES_AT = 18272;
constexpr uint32_t MAP_OFFSETS_AT = 3424;
constexpr uint32_t MAP_ENTRIES_AT = 11616;
constexpr int32_t LINKS = 8;  // links of a probe sequence
constexpr uint32_t LINK_BITS = 14;  // bits of the position of a link
constexpr uint32_t SLOT_BITS = 13;  // bits of a slot
constexpr uint32_t FINGERPRINT_SHIFT = 10;  // number of that bit
constexpr int32_t SEARCH_IDS = 128;  // ids per iteration of a search
constexpr int32_t SEARCH_WORDS = 1024;  // words of a column of a search
constexpr uint32_t POSITION_WORD_AT = WORD_3FFF_AT;
constexpr uint32_t SLOT_WORD_AT = WORD_1FFF_AT;
constexpr uint32_t FINGERPRINT_WORD_AT = WORD_3FF_AT;
constexpr uint32_t RESULT_WORD_AT = WORD_FFFFF_AT;

// Writes 0..TILE-1 to iota. The scalar unit writes the first block, and each pass doubles the number of
// words. (CreateVecIndex takes an event from a TPipe, which these kernels do not have.)
__aicore__ inline void WriteIota()
{
    const LocalTensor<int32_t> iota = Local<int32_t>(IOTA_AT, TILE);
    for (int32_t i = 0; i < 8; i++) {
        iota.SetValue(i, i);
    }
    SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
    for (int32_t done = 8; done < TILE; done *= 2) {
        PipeBarrier<PIPE_V>();
        AddsWords(iota[done], iota, done, ScalarMin(done, TILE - done));
    }
}

// dst[i] = base + i for n lanes. The first TILE lanes are computed from iota, and each later pass
// doubles their number.
__aicore__ inline void Indices(const LocalTensor<int32_t> &dst, int32_t base, int32_t n)
{
    AddsWords(dst, Local<int32_t>(IOTA_AT, TILE), base, ScalarMin(n, TILE));
    for (int32_t done = TILE; done < n; done *= 2) {
        PipeBarrier<PIPE_V>();
        AddsWords(dst[done], dst, done, ScalarMin(done, n - done));
    }
}

// dst = (dst - 2^15) * p + (high mod 2^8) * q for `lanes` lanes. dst is in 0..2^16-1; high is
// overwritten, and is below 2^8 if bits <= 24.
AVSG_NOINLINE void SumOfProducts(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &high, int32_t bits,
    int32_t p, int32_t q, int32_t lanes)
{
    AddsWords(dst, dst, -32768, lanes);
    if (bits > 24) {
        AndWord(high, high, WORD_FF_AT, lanes);
    }
    PipeBarrier<PIPE_V>();
    MulsWords(dst, dst, p, lanes);
    MulsWords(high, high, q, lanes);
    PipeBarrier<PIPE_V>();
    Add(dst, dst, high, lanes);
}

// dst = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^8) * q for `lanes` lanes: the hash of an id, or
// of an earlier hash. x has no bits above `bits`, which is 24 or 32; `high` is scratch memory of as
// many lanes. p and q are below 2^15, so no product overflows.
AVSG_NOINLINE void Mix(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &x, int32_t bits, int32_t p,
    int32_t q, const LocalTensor<int32_t> &high, int32_t lanes)
{
    AndWord(dst, x, WORD_FFFF_AT, lanes);
    ShiftRightWords(high, x, 16u, lanes);
    PipeBarrier<PIPE_V>();
    SumOfProducts(dst, high, bits, p, q, lanes);
}

// Returns the number of set bits among the first `lanes` of a mask; lanes <= TILE.
AVSG_NOINLINE int32_t Count(const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    Compact(Local<int32_t>(PACKED_AT, TILE), Local<int32_t>(IOTA_AT, TILE), mask, lanes);
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    const int32_t kept = KeptLanes();
    return kept;
}

// packed = the words of the list's last, partly filled block, then the lanes of value under a mask.
// The words and their own bits lie one repeat before the lanes; lanes <= TILE. The columns of a list
// are appended in order under one mask: the first one extends the mask by those bits, and the next
// columns reuse it.
AVSG_NOINLINE void CompactAfterTail(const LocalTensor<int32_t> &packed, const LocalTensor<int32_t> &list, int32_t len,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes, bool first)
{
    const LocalTensor<uint16_t> joinedMask = Local<uint16_t>(MASK_SCRATCH_AT, TILE / 16 + 16);
    const LocalTensor<int32_t> joined = Local<int32_t>(LANE_SCRATCH_AT, TILE + 256);
    if (first) {
        Duplicate(joinedMask, static_cast<uint16_t>((1 << len % 8) - 1), 1);
        Or(U16(joinedMask[16]), U16(mask), U16(mask), TILE / 16);
    }
    AddsWords(joined, list[len / 8 * 8], 0, 8);
    AddsWords(joined[256], value, 0, lanes);
    PipeBarrier<PIPE_V>();
    Compact(packed, joined, joinedMask, lanes + 256);
}

// Appends the lanes of value under a mask to one column of a list of len words, and returns their
// number for the last column. GatherMask writes from the start of a block, so the words of a partly
// filled last block are compacted again with the lanes. lanes <= TILE unless len is a multiple of 8.
AVSG_NOINLINE int32_t Append(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    const LocalTensor<uint8_t> &mask, int32_t lanes, bool first, bool last)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, TILE + 256);
    if (len % 8 == 0) {
        Compact(list[len], value, mask, lanes);
    } else {
        CompactAfterTail(packed, list, len, value, mask, lanes, first);
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        const int32_t kept = KeptLanes();
        AddsWords(list[len / 8 * 8], packed, 0, kept);
    }
    if (last) {
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        const int32_t kept = KeptLanes();
        return kept - len % 8;
    }
    return 0;
}

// Appends as Append does, where value lies in the same memory as the list and not before its end;
// lanes <= TILE.
__aicore__ inline int32_t AppendInPlace(const LocalTensor<int32_t> &list, int32_t len,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes, bool first, bool last)
{
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, TILE + 256);
    if (len % 8 == 0) {
        Compact(packed, value, mask, lanes);
    } else {
        CompactAfterTail(packed, list, len, value, mask, lanes, first);
    }
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    const int32_t kept = KeptLanes();
    AddsWords(list[len / 8 * 8], packed, 0, kept);
    return kept - len % 8;
}

// column[index[i] - first] = value[i] for n lanes, in ascending order. The scalar unit writes, because
// a 910B has no scatter. One 64-bit access reads the words of two lanes.
AVSG_NOINLINE void ScatterAll(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, int32_t first, int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = U64(index).GetValue(i);
        const uint64_t words = U64(value).GetValue(i);
        column.SetValue(static_cast<int32_t>(to) - first, static_cast<int32_t>(words));
        column.SetValue(static_cast<int32_t>(to >> 32) - first, static_cast<int32_t>(words >> 32));
    }
    if (n % 2 != 0) {
        const int32_t to = index.GetValue(n - 1);
        const int32_t word = value.GetValue(n - 1);
        column.SetValue(to - first, word);
    }
}

// column[index[i]] = value[i] for the lanes under a mask, in ascending order; lanes <= TILE.
__aicore__ inline void ScatterMasked(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const LocalTensor<int32_t> words = Local<int32_t>(LANE_SCRATCH_AT, TILE);
    Compact(at, index, mask, lanes);
    Compact(words, value, mask, lanes);
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    const int32_t kept = KeptLanes();
    ScatterAll(column, at, words, 0, kept);
}

// life[slot[i]] = value for n lanes. One 64-bit access reads two slots.
AVSG_NOINLINE void SetLifetimeAll(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value,
    int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        const uint64_t to = U64(slot).GetValue(i);
        life.SetValue(static_cast<int32_t>(to), value);
        life.SetValue(static_cast<int32_t>(to >> 32), value);
    }
    if (n % 2 != 0) {
        const int32_t to = slot.GetValue(n - 1);
        life.SetValue(to, value);
    }
}

// life[slot[i]] = rule[life[slot[i]] + 128] for n lanes, n <= TILE: each slot is used once more.
// `rule` has 256 halfs, one for each lifetime from -128 on.
AVSG_NOINLINE void RefreshLifetimeAll(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, int32_t n)
{
    const LocalTensor<int32_t> offset = Local<int32_t>(LANE_SCRATCH_AT, TILE);
    const LocalTensor<half> lifetimes = Local<half>(LIFETIMES_AT, TILE);
    ShiftLeftWords(offset, slot, 1u, n);
    PipeBarrier<PIPE_V>();
    Gather(lifetimes, life, U32(offset), 0, n);
    PipeBarrier<PIPE_V>();
    Cast(offset, lifetimes, RoundMode::CAST_RINT, n);
    PipeBarrier<PIPE_V>();
    AddsWords(offset, offset, 128, n);
    PipeBarrier<PIPE_V>();
    ShiftLeftWords(offset, offset, 1u, n);
    PipeBarrier<PIPE_V>();
    Gather(lifetimes, Local<half>(RULE_AT, RULE_ENTRIES), U32(offset), 0, n);
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n; i++) {
        const int32_t to = slot.GetValue(i);
        const half next = lifetimes.GetValue(i);
        life.SetValue(to, next);
    }
}

// life[slot[i]] = rule[life[slot[i]] + 128] for the lanes under a mask; lanes <= TILE.
__aicore__ inline void RefreshLifetimeMasked(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot,
    const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    Compact(at, slot, mask, lanes);
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    const int32_t kept = KeptLanes();
    RefreshLifetimeAll(life, at, kept);
}

// life = life >= from ? max(life - by, -128) : life for all SLOTS slots.
__aicore__ inline void DecayLifetimesFrom(const LocalTensor<half> &life, int32_t by, int32_t from)
{
    const LocalTensor<uint8_t> old = Local<uint8_t>(LIFE_MASK_AT, LIFE_TILE / 8);
    const LocalTensor<half> aged = Local<half>(SCRATCH_AT, LIFE_TILE);
    for (int32_t base = 0; base < SLOTS; base += LIFE_TILE) {
        PipeBarrier<PIPE_V>();
        Compares(old, life[base], static_cast<half>(static_cast<float>(from)), CMPMODE::GE, LIFE_TILE);
        Adds(aged, life[base], static_cast<half>(static_cast<float>(-by)), LIFE_TILE);
        PipeBarrier<PIPE_V>();
        Maxs(aged, aged, static_cast<half>(-128.0f), LIFE_TILE);
        PipeBarrier<PIPE_V>();
        Select(life[base], old, aged, life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, LIFE_TILE);
    }
}

// to[i] = table[life[i] + 128] - 128 for all SLOTS slots. `table` has 256 words in 0..255. Each word is
// two 16-bit numbers, of which the first one is its value.
AVSG_NOINLINE void MapLifetimes(const LocalTensor<half> &to, const LocalTensor<half> &life,
    const LocalTensor<int32_t> &table)
{
    const LocalTensor<half> entries = Local<half>(MAP_ENTRIES_AT, MAP_ENTRIES);
    const LocalTensor<int32_t> offset = Local<int32_t>(MAP_OFFSETS_AT, MAP_TILE);
    Cast(entries, table.ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, 512);
    PipeBarrier<PIPE_V>();
    Adds(entries, entries, static_cast<half>(-128.0f), 512);
    for (int32_t base = 0; base < SLOTS; base += MAP_TILE) {
        PipeBarrier<PIPE_V>();
        Cast(offset, life[base], RoundMode::CAST_RINT, MAP_TILE);
        PipeBarrier<PIPE_V>();
        AddsWords(offset, offset, 128, MAP_TILE);
        PipeBarrier<PIPE_V>();
        ShiftLeftWords(offset, offset, 2u, MAP_TILE);
        PipeBarrier<PIPE_V>();
        Gather(to[base], entries, U32(offset), 0, MAP_TILE);
    }
}

// Returns the number of slots with life <= t, for t in -128..127. `life` has SLOTS elements.
__aicore__ inline int32_t CountLe(const LocalTensor<half> &life, int32_t t)
{
    const LocalTensor<uint8_t> mask = Local<uint8_t>(LIFE_MASK_AT, LIFE_TILE / 8);
    int32_t n = 0;
    for (int32_t base = 0; base < SLOTS; base += LIFE_TILE) {
        Compares(mask, life[base], static_cast<half>(static_cast<float>(t)), CMPMODE::LE, LIFE_TILE);
        PipeBarrier<PIPE_V>();
        Compact(Local<half>(SCRATCH_AT, LIFE_TILE), life[base], mask, LIFE_TILE);
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        const int32_t kept = KeptLanes();
        n = n + kept;
    }
    return n;
}

// Returns the smallest t in -128..127 with CountLe(life, t) >= need, or 127 if there is none: a
// bisection that tries `hint` and its neighbour first.
AVSG_NOINLINE int32_t FindThreshold(const LocalTensor<half> &life, int32_t hint, int32_t need)
{
    int32_t low = -128;
    int32_t high = 127;
    if (need <= 0) {
        high = -128;
    }
    int32_t t = ScalarMax(ScalarMin(hint, 126), -128);
    for (int32_t round = 0; round < 256 && high > low; round++) {
        const int32_t n = CountLe(life, t);
        if (need > n) {
            low = t + 1;
        } else {
            high = t;
        }
        t = low + (high - low) / 2;
        if (round == 0) {
            if (need > n) {
                t = low;
            } else {
                t = ScalarMax(high - 1, low);
            }
        }
    }
    return low;
}

// Appends the slots whose lifetime compares by `mode` with t to a list of len words, in ascending
// order, until the list has `limit` words; returns the new length. The slots of an iteration have
// 16-bit numbers, relative to its first slot, because GatherMask processes twice as many of them
// per repeat. The words of the list's last block take part as in CompactAfterTail.
AVSG_NOINLINE int32_t AppendSlots(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<half> &life,
    CMPMODE mode, int32_t t, int32_t limit)
{
    const LocalTensor<int16_t> number = Local<int16_t>(SLOT_NUMBERS_AT, SLOT_TILE + 256);
    const LocalTensor<uint16_t> mask = Local<uint16_t>(MASK_SCRATCH_AT, SLOT_TILE / 16 + 16);
    const LocalTensor<int16_t> packed = Local<int16_t>(PACKED_SLOTS_AT, SLOT_TILE + 256);
    Cast(number[256], Local<int32_t>(IOTA_AT, TILE), RoundMode::CAST_NONE, TILE);
    for (int32_t n = TILE; n < SLOT_TILE; n *= 2) {
        PipeBarrier<PIPE_V>();
        Adds(number[n + 256], number[256], static_cast<int16_t>(n), n);
    }
    int32_t size = len;
    for (int32_t base = 0; base < SLOTS && limit > size; base += SLOT_TILE) {
        const int32_t tail = size % 8;
        Duplicate(mask, static_cast<uint16_t>((1 << tail) - 1), 1);
        Compares(mask[16].ReinterpretCast<uint8_t>(), life[base], static_cast<half>(static_cast<float>(t)), mode, SLOT_TILE);
        PipeBarrier<PIPE_V>();
        AddsWords(packed.ReinterpretCast<int32_t>(), list[size - tail], -base, tail);
        PipeBarrier<PIPE_V>();
        Cast(number, packed.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, tail);
        PipeBarrier<PIPE_V>();
        Compact(packed, number, mask, SLOT_TILE + 256);
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        const int32_t kept = KeptLanes();
        const int32_t n = ScalarMin(kept, tail + limit - size);
        Cast(F32(list[size - tail]), packed, RoundMode::CAST_NONE, n);
        PipeBarrier<PIPE_V>();
        Cast(list[size - tail], F32(list[size - tail]), RoundMode::CAST_RINT, n);
        PipeBarrier<PIPE_V>();
        AddsWords(list[size - tail], list[size - tail], base, n);
        size = size + n - tail;
    }
    return size;
}

} // namespace avsg::stage_one
