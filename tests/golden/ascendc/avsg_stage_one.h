// avsg_stage_one.h: Stage One of one request, generated from its tape.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_ops.h"

namespace avsg {

// The arguments of Stage One for one request. Offsets are in words from the start of an array in Gm.
struct Request {
    int32_t tokens;             // The number of tokens in this step.
    int32_t k;                  // The number of ids per token.
    int32_t generation;         // The table is emptied if it belongs to another generation.
    int32_t stable;             // The number of tokens that were final before this step.
    int32_t limit;              // The sequence length; ids are below it.
    int32_t rows;               // The number of rows or blocks of the host pool.
    int32_t idsAt;              // The first word of the ids.
    int32_t idsStride;          // The number of words from one row of ids to the next.
    int32_t blocksAt;           // The first entry of the block table.
    int32_t blocksLen;          // The number of entries of the block table.
    int32_t slotAt;             // The first word of the slots.
    int32_t slotStride;         // The number of words from one row of slots to the next.
    int32_t validAt;            // The first word of the counts of valid ids.
    int32_t missAt;             // The first entry of the miss list.
    int32_t recordAt;           // The first word of the record.
    int32_t shared;             // 1 if several cores probe the first token, each one a share of it, else 0.
    int32_t shareAt;            // The first lane of this core's share.
    int32_t shareLen;           // The number of lanes of this core's share.
    int32_t deferred;           // The token, counted from 1, whose hits are refreshed after the step; 0 for none.
    int32_t turn;               // Number of this core among those that share the request.
    bool owner;                 // Whether this core continues after all parts are probed.
    uint64_t tableAt;           // First word of the table.
};

// Arrays in global memory.
struct Gm {
    GlobalTensor<int32_t> ids, blockTable, slot, valid, missPos, missId, missSlot, missRow, record, tables;
    GlobalTensor<half> rules;
};

namespace stage_one {

// Writes the constants in UB that every request reads and none changes. It runs once per core.
__aicore__ inline void Setup(const Gm &gm)
{
    WriteIota();
    Duplicate(Local<uint16_t>(MASK_SCRATCH_AT, 16), static_cast<uint16_t>(0), 16);
    Duplicate(Local<int32_t>(WORD_1_AT, 8), 1, 8);
    Duplicate(Local<int32_t>(WORD_3F_AT, 8), 63, 8);
    Duplicate(Local<int32_t>(WORD_3FF_AT, 8), 1023, 8);
    Duplicate(Local<int32_t>(WORD_1FFF_AT, 8), 8191, 8);
    Duplicate(Local<int32_t>(WORD_3FFF_AT, 8), 16383, 8);
    Duplicate(Local<int32_t>(WORD_FFFF_AT, 8), 65535, 8);
    Duplicate(Local<int32_t>(WORD_FFFFF_AT, 8), 1048575, 8);
    Duplicate(Local<int32_t>(WORD_3FFFFF_AT, 8), 4194303, 8);
}

// Runs Stage One (Alg. 1) for each token of one request, on its table. `cores` waits for the
// other cores that share the request.
template <typename Cores>
__aicore__ inline void StageOne(const Gm &gm, const Request &q, Cores cores)
{
    // The tensors of one declaration share a buffer, each at another time.
    const LocalTensor<int32_t> header = Local<int32_t>(0, 16);
    const LocalTensor<int32_t> record = Local<int32_t>(64, 16);
    const LocalTensor<int32_t> word = Local<int32_t>(128, 8);
    const LocalTensor<uint8_t> valid = Local<uint8_t>(1472, 64), isFresh = valid, equal = valid, isDead = valid,
        isOutOfPool = valid, isNext = valid, isOutOfRange = valid;
    const LocalTensor<uint8_t> notNegative = Local<uint8_t>(1536, 64), isInvalid = notNegative, isMiss = notNegative;
    const LocalTensor<uint8_t> hit = Local<uint8_t>(1600, 64), negative = hit, isPending = hit, notEqual = hit;
    const LocalTensor<uint8_t> anyHit = Local<uint8_t>(1664, 64), notHit = anyHit;
    const LocalTensor<uint8_t> secondHit = Local<uint8_t>(1728, 64);
    const LocalTensor<uint8_t> wideNotNegative = Local<uint8_t>(1792, 256), wideIsInvalid = wideNotNegative,
        wideEqual = wideNotNegative;
    const LocalTensor<uint8_t> wideIsPending = Local<uint8_t>(2048, 256), wideNegative = wideIsPending;
    const LocalTensor<uint8_t> wideIsDead = Local<uint8_t>(2304, 256);
    const LocalTensor<int32_t> iota = Local<int32_t>(2560, 512);
    const LocalTensor<int32_t> lane = Local<int32_t>(10752, 512), position = lane, victim = lane, fill2 = lane,
        offset2 = lane, fingerprint = lane, step = lane;
    const LocalTensor<int32_t> x = Local<int32_t>(12800, 512), freshRow = x, beyond = x;
    const LocalTensor<int32_t> fill = Local<int32_t>(14848, 512), sign2 = fill, row = fill;
    const LocalTensor<int32_t> sign = Local<int32_t>(16896, 512), entry = sign, foundSlot = sign;
    const LocalTensor<int32_t> held = Local<int32_t>(18944, 512), stride = held, overLimit = held, fresh = held;
    const LocalTensor<int32_t> linkIndex = Local<int32_t>(20992, 512), secondCandidate = linkIndex;
    const LocalTensor<int32_t> offset = Local<int32_t>(23040, 512), mixed = offset;
    const LocalTensor<int32_t> candidate = Local<int32_t>(25088, 512), high = candidate;
    const LocalTensor<int32_t> wideLane = Local<int32_t>(10752, 2048), wideLived = wideLane, wideSign = wideLane,
        wideFill = wideLane;
    const LocalTensor<int32_t> wideOffset = Local<int32_t>(18944, 2048), wideX = wideOffset;
    const LocalTensor<int32_t> id = Local<int32_t>(27136, 8192);
    const LocalTensor<half> life = Local<half>(59904, 8192);
    const LocalTensor<int32_t> link = Local<int32_t>(76288, 16384);
    const LocalTensor<int32_t> ids = Local<int32_t>(141824, 2048), miss2 = ids, dead = ids;
    const LocalTensor<int32_t> shareId = Local<int32_t>(150016, 2048), invalid = shareId, linkPosition = shareId;
    const LocalTensor<int32_t> shareSequence = Local<int32_t>(158208, 2048), pending0 = shareSequence,
        miss0 = shareSequence, newLink = shareSequence;
    const LocalTensor<int32_t> slot = Local<int32_t>(166400, 2048);
    const LocalTensor<int32_t> pending1 = Local<int32_t>(174592, 2048), miss1 = pending1, sequence = pending1;
    const LocalTensor<int8_t> bytes = Local<int8_t>(174592, 8192);
    int32_t pendingLen = 0, nextLen = 0, missLen = 0, deadLen = 0, invalidLen = 0, outOfRangeLen = 0;
    int32_t outOfPoolLen = 0;
    // Copies the table in, and clears the record.
    CopyIn(header, gm.tables[q.tableAt], HEADER_WORDS);
    CopyInStaggered(id, gm.tables[q.tableAt + ID_PLANE], SLOTS, q.turn);
    CopyIn(bytes.ReinterpretCast<int32_t>(), gm.tables[q.tableAt + LIFE_PLANE], LIFE_PLANE_WORDS);
    CopyInStaggered(link, gm.tables[q.tableAt + LINK_PLANE], LINK_PLANE_WORDS, q.turn);
    Duplicate(record, 0, RECORD_WORDS);
    SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);
    SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    const int32_t generation = header.GetValue(HEADER_GENERATION);
    // Reset: an empty table for another generation
    if (generation != q.generation) {
        for (int32_t base = 0; base < 8192; base += WIDE) {
            const int32_t lanes = ScalarMin(8192 - base, WIDE);
            Duplicate(id[base], -1, lanes);
            PipeBarrier<PIPE_V>();
            Duplicate(life[base], static_cast<half>(-128.0f), lanes);
        }
        for (int32_t base = 0; base < 16384; base += WIDE) {
            const int32_t lanes = ScalarMin(16384 - base, WIDE);
            Duplicate(link[base], 8388608, lanes);
        }
    }
    header.SetValue(HEADER_GENERATION, q.generation);
    const int32_t top = header.GetValue(HEADER_TOP);
    // Invalidate: removal of rows that were not final before this step
    if (top > q.stable) {
        for (int32_t base = 0; base < 8192; base += TILE) {
            const int32_t lanes = ScalarMin(8192 - base, TILE);
            const int32_t alignedLanes = AlignToRepeat(lanes);
            Adds(held, id[base], -q.stable, lanes);
            Duplicate(fill, -1, lanes);
            PipeBarrier<PIPE_V>();
            Duplicate(F16(fill2), static_cast<half>(-128.0f), lanes);
            ShiftRight(sign, held, 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(id[base], notNegative, fill, id[base], lanes);
            PipeBarrier<PIPE_V>();
            Select(life[base], notNegative, F16(fill2), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        }
    }
    header.SetValue(HEADER_TOP, ScalarMax(ScalarMin(top, q.stable), q.limit));
    // Decay: one less for every lifetime
    DecayLifetimes(life, 1);
    outOfRangeLen = 0;
    outOfPoolLen = 0;
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    record.SetValue(RECORD_TOTAL, 0);
    for (int32_t token = 0; token < q.tokens; token++) {
        const int32_t from = q.idsAt + q.idsStride * token;
        const bool shared = q.shared > token;
        if (shared) {
            // Probe: this core's share of a token
            SetWaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
            CopyIn(ids, gm.ids[from + q.shareAt], q.k - q.shareAt);
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            for (int32_t base = 0; base < q.shareLen; base += TILE) {
                const int32_t lanes = ScalarMin(q.shareLen - base, TILE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                ShiftRight(sign, ids[base], 31, lanes);
                Maxs(x, ids[base], 0, lanes);
                Duplicate(fill, -2, lanes);
                PipeBarrier<PIPE_V>();
                Adds(overLimit, x, -q.limit, lanes);
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
                Mix(mixed, x, 32, MIX_P, MIX_Q, high, lanes);
                ShiftRight(sign, overLimit, 31, lanes);
                PipeBarrier<PIPE_V>();
                Mix(stride, mixed, 32, STRIDE_P, STRIDE_Q, high, lanes);
                ShiftRight(U32(linkIndex), U32(mixed), 6u, lanes);
                CompareScalar(negative, sign, -1, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(stride), U32(stride), 6u, lanes);
                AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                And(U16(valid), U16(negative), U16(notNegative), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                AndWord(stride, stride, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(stride, stride, WORD_1_AT, lanes);
                SelectWords(shareId[base], valid, x, fill, lanes);
                PipeBarrier<PIPE_V>();
                Muls(stride, stride, 16384, lanes);
                PipeBarrier<PIPE_V>();
                Or(U16(shareSequence[base]), U16(stride), U16(linkIndex), 2 * lanes);
            }
            PipeBarrier<PIPE_V>();
            Find(slot, shareSequence, shareId, q.shareLen, link, id);
            for (int32_t base = 0; base < q.shareLen; base += WIDE) {
                const int32_t lanes = ScalarMin(q.shareLen - base, WIDE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(wideEqual, shareId[base], -2, CMPMODE::EQ, alignedLanes);
                Duplicate(wideFill, -2, lanes);
                PipeBarrier<PIPE_V>();
                SelectWords(slot[base], wideEqual, wideFill, slot[base], lanes);
            }
            // Probe: exchange of the cores' shares
            SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
            CopyOut(gm.slot[q.slotAt + q.shareAt], slot, q.shareLen);
            if (IsDoneAfterSyncAll(cores, q.owner)) {
                return;
            }
            CopyIn(slot, gm.slot[q.slotAt], q.k);
            // Probe, later rounds: the ids that no core found
            pendingLen = 0;
            invalidLen = 0;
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            for (int32_t base = 0; base < q.k; base += WIDE) {
                const int32_t lanes = ScalarMin(q.k - base, WIDE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                AndWord(wideX, ids[base], WORD_3FFFFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(wideIsPending, slot[base], -1, CMPMODE::EQ, alignedLanes);
                Indices(wideLane, base, lanes);
                CompareScalar(wideIsInvalid, slot[base], -2, CMPMODE::EQ, alignedLanes);
                Append(pending0, pendingLen, wideX, wideIsPending, lanes, FIRST_COLUMN);
                PipeBarrier<PIPE_V>();
                Maxs(slot[base], slot[base], -1, lanes);
                pendingLen += Append(pending1, pendingLen, wideLane, wideIsPending, lanes, NEXT_COLUMN);
                invalidLen += Append(invalid, invalidLen, ids[base], wideIsInvalid, lanes, FIRST_COLUMN);
            }
        } else {
            // Probe: the first links of each id
            SetWaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
            CopyIn(ids, gm.ids[from], q.k);
            pendingLen = 0;
            nextLen = 0;
            invalidLen = 0;
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            for (int32_t base = 0; base < q.k; base += TILE) {
                const int32_t lanes = ScalarMin(q.k - base, TILE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                ShiftRight(sign, ids[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                Maxs(x, ids[base], 0, lanes);
                Duplicate(fill, -1, lanes);
                Adds(lane, iota, base, lanes);
                PipeBarrier<PIPE_V>();
                Adds(overLimit, x, -q.limit, lanes);
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
                Mix(mixed, x, 32, MIX_P, MIX_Q, high, lanes);
                ShiftRight(sign, overLimit, 31, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(linkIndex), U32(mixed), 6u, lanes);
                Mix(stride, mixed, 32, STRIDE_P, STRIDE_Q, high, lanes);
                CompareScalar(negative, sign, -1, CMPMODE::EQ, alignedLanes);
                AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(stride), U32(stride), 6u, lanes);
                And(U16(valid), U16(negative), U16(notNegative), alignedLanes / 16);
                ShiftLeft(U32(offset), U32(linkIndex), 2u, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(stride, stride, WORD_3FFF_AT, lanes);
                Gather(entry, link, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(stride, stride, WORD_1_AT, lanes);
                Not(U16(isInvalid), U16(valid), alignedLanes / 16);
                AndWord(candidate, entry, WORD_1FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                Add(linkIndex, linkIndex, stride, lanes);
                ShiftLeft(U32(offset), U32(candidate), 2u, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                Gather(held, id, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(linkIndex), 2u, lanes);
                Compare(hit, held, x, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                Gather(entry, link, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(secondCandidate, entry, WORD_1FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(secondCandidate), 2u, lanes);
                SelectWords(foundSlot, hit, candidate, secondCandidate, lanes);
                PipeBarrier<PIPE_V>();
                Gather(held, id, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(secondHit, held, x, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                Or(U16(anyHit), U16(hit), U16(secondHit), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                And(U16(hit), U16(anyHit), U16(valid), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                SelectWords(slot[base], hit, foundSlot, fill, lanes);
                Not(U16(notHit), U16(hit), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                And(U16(isPending), U16(valid), U16(notHit), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                Append(pending0, pendingLen, x, isPending, lanes, FIRST_COLUMN);
                pendingLen += Append(pending1, pendingLen, lane, isPending, lanes, NEXT_COLUMN);
                invalidLen += Append(invalid, invalidLen, ids[base], isInvalid, lanes, FIRST_COLUMN);
            }
            // Probe, later rounds: the other links of the ids that are not found yet
            for (int32_t round = 0; round < 3; round++) {
                for (int32_t base = 0; base < pendingLen; base += TILE) {
                    const int32_t lanes = ScalarMin(pendingLen - base, TILE);
                    const int32_t alignedLanes = AlignToRepeat(lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(mixed, pending0[base], 22, MIX_P, MIX_Q, high, lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(stride, mixed, 32, STRIDE_P, STRIDE_Q, high, lanes);
                    ShiftRight(U32(linkIndex), U32(mixed), 6u, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(stride), U32(stride), 6u, lanes);
                    AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(stride, stride, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    OrWord(stride, stride, WORD_1_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Muls(step, stride, round + round + 2, lanes);
                    PipeBarrier<PIPE_V>();
                    Add(linkIndex, linkIndex, step, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(offset), U32(linkIndex), 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Add(linkIndex, linkIndex, stride, lanes);
                    Gather(entry, link, U32(offset), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                    AndWord(candidate, entry, WORD_1FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(offset), U32(linkIndex), 2u, lanes);
                    ShiftLeft(U32(offset2), U32(candidate), 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(entry, link, U32(offset), 0, lanes);
                    Gather(held, id, U32(offset2), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(secondCandidate, entry, WORD_1FFF_AT, lanes);
                    Compare(hit, held, pending0[base], CMPMODE::EQ, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(offset), U32(secondCandidate), 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(held, id, U32(offset), 0, lanes);
                    SelectWords(foundSlot, hit, candidate, secondCandidate, lanes);
                    PipeBarrier<PIPE_V>();
                    Compare(secondHit, held, pending0[base], CMPMODE::EQ, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    Or(U16(anyHit), U16(hit), U16(secondHit), alignedLanes / 16);
                    PipeBarrier<PIPE_V>();
                    ScatterMasked(slot, pending1[base], foundSlot, anyHit, lanes);
                    Not(U16(isNext), U16(anyHit), alignedLanes / 16);
                    SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                    PipeBarrier<PIPE_V>();
                    AppendInPlace(pending0, nextLen, pending0[base], isNext, lanes, FIRST_COLUMN);
                    PipeBarrier<PIPE_V>();
                    nextLen += AppendInPlace(pending1, nextLen, pending1[base], isNext, lanes, NEXT_COLUMN);
                }
                pendingLen = nextLen;
                nextLen = 0;
            }
        }
        // Locate: the host row of each miss
        for (int32_t base = 0; base < invalidLen; base += TILE) {
            const int32_t lanes = ScalarMin(invalidLen - base, TILE);
            const int32_t alignedLanes = AlignToRepeat(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(sign, invalid[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(isOutOfRange, sign, 0, CMPMODE::EQ, alignedLanes);
            PipeBarrier<PIPE_V>();
            outOfRangeLen += Count(isOutOfRange, lanes);
        }
        const int32_t outOfPoolBefore = outOfPoolLen;
        missLen = 0;
        const int32_t first = token * 2048;
        for (int32_t base = 0; base < pendingLen; base += TILE) {
            const int32_t lanes = ScalarMin(pendingLen - base, TILE);
            const int32_t alignedLanes = AlignToRepeat(lanes);
            PipeBarrier<PIPE_V>();
            Adds(fresh, pending0[base], -q.stable, lanes);
            Adds(beyond, pending0[base], -q.rows, lanes);
            Adds(position, pending1[base], first, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(sign, fresh, 31, lanes);
            ShiftRight(sign2, beyond, 31, lanes);
            PipeBarrier<PIPE_V>();
            Muls(freshRow, fresh, -1, lanes);
            CompareScalar(isFresh, sign, 0, CMPMODE::EQ, alignedLanes);
            CompareScalar(negative, sign2, -1, CMPMODE::EQ, alignedLanes);
            PipeBarrier<PIPE_V>();
            Adds(freshRow, freshRow, -1, lanes);
            PipeBarrier<PIPE_V>();
            SelectWords(row, isFresh, freshRow, pending0[base], lanes);
            Or(U16(isMiss), U16(isFresh), U16(negative), alignedLanes / 16);
            PipeBarrier<PIPE_V>();
            AppendInPlace(miss0, missLen, pending0[base], isMiss, lanes, FIRST_COLUMN);
            Not(U16(isOutOfPool), U16(isMiss), alignedLanes / 16);
            Append(miss1, missLen, position, isMiss, lanes, NEXT_COLUMN);
            missLen += Append(miss2, missLen, row, isMiss, lanes, NEXT_COLUMN);
            PipeBarrier<PIPE_V>();
            outOfPoolLen += Count(isOutOfPool, lanes);
        }
        // Locate: publication of the token's misses, after which their columns are free
        SetWaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
        word.SetValue(0, q.k - invalidLen + outOfPoolBefore - outOfPoolLen);
        SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.valid[q.validAt + token], word, 1);
        const int32_t total = record.GetValue(RECORD_TOTAL);
        const int32_t missesAt = q.missAt + total;
        SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.missId[missesAt], miss0, missLen);
        CopyOut(gm.missPos[missesAt], miss1, missLen);
        CopyOut(gm.missRow[missesAt], miss2, missLen);
        record.SetValue(RECORD_MISSES + token, missLen);
        record.SetValue(RECORD_TOTAL, total + missLen);
        // Refresh: hits that could be chosen as victims
        const bool atOnce = token + 1 != q.deferred;
        deadLen = 0;
        if (!atOnce) {
            if (missLen > 0) {
                const int32_t hint = header.GetValue(HEADER_THRESHOLD);
                const int32_t bound = FindThreshold(life, hint, missLen + 64);
                SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
                for (int32_t base = 0; base < q.k; base += WIDE) {
                    const int32_t lanes = ScalarMin(q.k - base, WIDE);
                    const int32_t alignedLanes = AlignToRepeat(lanes);
                    AndWord(wideOffset, slot[base], WORD_1FFF_AT, lanes);
                    ShiftRight(wideSign, slot[base], 31, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(wideOffset), U32(wideOffset), 1u, lanes);
                    CompareScalar(wideNotNegative, wideSign, 0, CMPMODE::EQ, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    Gather(F16(wideLived), life, U32(wideOffset), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    CompareScalar(wideNegative, F16(wideLived), static_cast<half>(static_cast<float>(bound + 1)), CMPMODE::LT, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    And(U16(wideIsDead), U16(wideNegative), U16(wideNotNegative), alignedLanes / 16);
                    PipeBarrier<PIPE_V>();
                    deadLen += Append(dead, deadLen, slot[base], wideIsDead, lanes, FIRST_COLUMN);
                }
            }
        }
        // Refresh: either all hits, or only those that could be chosen as victims
        const bool refreshAll = atOnce || deadLen > 64;
        if (refreshAll) {
            for (int32_t base = 0; base < q.k; base += TILE) {
                const int32_t lanes = ScalarMin(q.k - base, TILE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(sign, slot[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                SetLifetimeMasked(life, slot[base], static_cast<half>(127.0f), notNegative, lanes);
            }
        } else {
            SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
            for (int32_t base = 0; base < deadLen; base += WIDE) {
                const int32_t lanes = ScalarMin(deadLen - base, WIDE);
                SetLifetimeAll(life, dead[base], static_cast<half>(127.0f), lanes);
            }
        }
        // CollectDead: the slots with the smallest lifetimes, one for each miss
        const int32_t lastThreshold = header.GetValue(HEADER_THRESHOLD);
        SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
        const int32_t threshold = FindThreshold(life, lastThreshold, missLen);
        header.SetValue(HEADER_THRESHOLD, threshold);
        deadLen = 0;
        SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::LT, threshold, missLen);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::EQ, threshold, missLen);
        SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.missSlot[missesAt], dead, deadLen);
        // UpdateState: the misses enter the victims
        for (int32_t base = 0; base < missLen; base += TILE) {
            const int32_t lanes = ScalarMin(missLen - base, TILE);
            Adds(lane, miss1[base], -first, lanes);
            Mix(mixed, miss0[base], 22, MIX_P, MIX_Q, high, lanes);
            ScatterBoth(id, dead[base], miss0[base], slot, lane, lanes);
            Mix(stride, mixed, 32, STRIDE_P, STRIDE_Q, high, lanes);
            ShiftRight(U32(linkIndex), U32(mixed), 6u, lanes);
            SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
            ShiftRight(U32(fingerprint), U32(mixed), 10u, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(stride), U32(stride), 6u, lanes);
            AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
            AndWord(fingerprint, fingerprint, WORD_3FF_AT, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(stride, stride, WORD_3FFF_AT, lanes);
            Muls(fingerprint, fingerprint, 8192, lanes);
            PipeBarrier<PIPE_V>();
            OrWord(stride, stride, WORD_1_AT, lanes);
            Or(U16(newLink[base]), U16(fingerprint), U16(dead[base]), 2 * lanes);
            PipeBarrier<PIPE_V>();
            Muls(stride, stride, 16384, lanes);
            PipeBarrier<PIPE_V>();
            Or(U16(sequence[base]), U16(stride), U16(linkIndex), 2 * lanes);
        }
        if (atOnce) {
            SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
            for (int32_t base = 0; base < deadLen; base += WIDE) {
                const int32_t lanes = ScalarMin(deadLen - base, WIDE);
                SetLifetimeAll(life, dead[base], static_cast<half>(127.0f), lanes);
            }
        }
        SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.slot[q.slotAt + q.slotStride * token], slot, q.k);
        // UpdateState: a link for every miss
        for (int32_t round = 0; round < 2; round++) {
            PipeBarrier<PIPE_V>();
            FindFree(linkPosition, sequence, deadLen, link, id, MIX_P, MIX_Q);
            // UpdateState: the links, of which a later miss overwrites an earlier one
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                ShiftRight(sign, linkPosition[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                ScatterMasked(link, linkPosition[base], newLink[base], notNegative, lanes);
            }
            // UpdateState: the misses whose link was overwritten
            const int32_t deadBefore = deadLen;
            deadLen = 0;
            SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
            SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
            for (int32_t base = 0; base < deadBefore; base += TILE) {
                const int32_t lanes = ScalarMin(deadBefore - base, TILE);
                const int32_t alignedLanes = AlignToRepeat(lanes);
                PipeBarrier<PIPE_V>();
                AndWord(victim, newLink[base], WORD_1FFF_AT, lanes);
                AndWord(offset, linkPosition[base], WORD_3FFF_AT, lanes);
                ShiftRight(sign, linkPosition[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(offset), 2u, lanes);
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                Gather(entry, link, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(equal, entry, newLink[base], CMPMODE::EQ, alignedLanes);
                PipeBarrier<PIPE_V>();
                Not(U16(notEqual), U16(equal), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                And(U16(isDead), U16(notEqual), U16(notNegative), alignedLanes / 16);
                PipeBarrier<PIPE_V>();
                deadLen += Append(dead, deadLen, victim, isDead, lanes, FIRST_COLUMN);
            }
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(dead[base]), 2u, lanes);
                PipeBarrier<PIPE_V>();
                Gather(held, id, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                Mix(mixed, held, 32, MIX_P, MIX_Q, high, lanes);
                PipeBarrier<PIPE_V>();
                Mix(stride, mixed, 32, STRIDE_P, STRIDE_Q, high, lanes);
                ShiftRight(U32(linkIndex), U32(mixed), 6u, lanes);
                ShiftRight(U32(fingerprint), U32(mixed), 10u, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(stride), U32(stride), 6u, lanes);
                AndWord(linkIndex, linkIndex, WORD_3FFF_AT, lanes);
                AndWord(fingerprint, fingerprint, WORD_3FF_AT, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(stride, stride, WORD_3FFF_AT, lanes);
                Muls(fingerprint, fingerprint, 8192, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(stride, stride, WORD_1_AT, lanes);
                Or(U16(newLink[base]), U16(fingerprint), U16(dead[base]), 2 * lanes);
                PipeBarrier<PIPE_V>();
                Muls(stride, stride, 16384, lanes);
                PipeBarrier<PIPE_V>();
                Or(U16(sequence[base]), U16(stride), U16(linkIndex), 2 * lanes);
            }
        }
    }
    record.SetValue(RECORD_STATUS, (outOfRangeLen > 0) + (outOfPoolLen > 0) * 2);
    // Copies the record and the table out.
    SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    CopyOut(gm.record[q.recordAt], record, RECORD_WORDS);
    PipeBarrier<PIPE_V>();
    Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);
    CopyOut(gm.tables[q.tableAt], header, HEADER_WORDS);
    CopyOut(gm.tables[q.tableAt + ID_PLANE], id, SLOTS);
    SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    CopyOut(gm.tables[q.tableAt + LIFE_PLANE], bytes.ReinterpretCast<int32_t>(), LIFE_PLANE_WORDS);
    CopyOut(gm.tables[q.tableAt + LINK_PLANE], link, LINK_PLANE_WORDS);
}

} // namespace stage_one

} // namespace avsg
