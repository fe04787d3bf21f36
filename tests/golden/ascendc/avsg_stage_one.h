// avsg_stage_one.h: Stage One of one request, from its tape.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_ops.h"

namespace avsg {

// Fields that end in At are offsets in elements.
struct Request {
    int32_t tokens, k, generation;
    int32_t stable;                     // tokens that were final before this step
    int32_t limit;                      // ids are below it
    int32_t rows;                       // rows or blocks of the host pool
    int32_t idsAt, idsStride, blocksAt, blocksLen, slotAt, slotStride, validAt, missAt, recordAt;
    int32_t shared, partAt, partLen;    // 1: this core probes a part of the first token, others the rest
    int32_t turn;                       // which of them it is
    bool owner;                         // and goes on when all have
    int32_t late;                       // the token, from 1, whose hits wait to be refreshed; 0: none
    uint64_t tableAt;
};

struct Gm {
    GlobalTensor<int32_t> ids, blocks, slot, valid, missPos, missId, missSlot, missRow, record, tables;
    GlobalTensor<half> rules;
};

namespace stage_one {

// Once per core: what every request needs and none changes.
__aicore__ inline void Setup(const Gm &gm)
{
    CreateVecIndex(Local<int32_t>(IOTA_AT, TILE), 0, TILE);
    Duplicate(Local<uint16_t>(KEEP_AT, 16), static_cast<uint16_t>(0), 16);
    Duplicate(Local<int32_t>(WORD_1_AT, 8), 1, 8);
    Duplicate(Local<int32_t>(WORD_3F_AT, 8), 63, 8);
    Duplicate(Local<int32_t>(WORD_3FF_AT, 8), 1023, 8);
    Duplicate(Local<int32_t>(WORD_1FFF_AT, 8), 8191, 8);
    Duplicate(Local<int32_t>(WORD_3FFF_AT, 8), 16383, 8);
    Duplicate(Local<int32_t>(WORD_FFFF_AT, 8), 65535, 8);
    Duplicate(Local<int32_t>(WORD_FFFFF_AT, 8), 1048575, 8);
}

// One request: Algorithm 1 for each of its tokens, on one table.
__aicore__ inline void StageOne(const Gm &gm, const Request &q)
{
    // Names of one declaration share a buffer, one after the other.
    const LocalTensor<int32_t> header = Local<int32_t>(0, 16);
    const LocalTensor<int32_t> record = Local<int32_t>(64, 16);
    const LocalTensor<int32_t> word = Local<int32_t>(128, 8);
    const LocalTensor<uint8_t> notNegative = Local<uint8_t>(1440, 64), isVoid = notNegative, notNext = notNegative,
        isOutside = notNegative, isFar = notNegative;
    const LocalTensor<uint8_t> notVoid = Local<uint8_t>(1504, 64), equal = notVoid, isMiss = notVoid, isDead = notVoid,
        isNext = notVoid;
    const LocalTensor<uint8_t> hit = Local<uint8_t>(1568, 64), negative = hit, isPending = hit, notEqual = hit;
    const LocalTensor<uint8_t> hit2 = Local<uint8_t>(1632, 64), notHit = hit2;
    const LocalTensor<int32_t> iota = Local<int32_t>(1696, 512);
    const LocalTensor<int32_t> fill = Local<int32_t>(9888, 512), position = fill, offset2 = fill, mixed2 = fill,
        stride2 = fill;
    const LocalTensor<int32_t> lane = Local<int32_t>(11936, 512), row = lane, beyond = lane, fill2 = lane;
    const LocalTensor<int32_t> x = Local<int32_t>(13984, 512), fresh = x;
    const LocalTensor<int32_t> sign = Local<int32_t>(16032, 512), entry = sign;
    const LocalTensor<int32_t> candidate = Local<int32_t>(18080, 512), mixed = candidate, sign2 = candidate;
    const LocalTensor<int32_t> at2 = Local<int32_t>(20128, 512), candidate2 = at2, over = at2;
    const LocalTensor<int32_t> stride = Local<int32_t>(22176, 512), held = stride;
    const LocalTensor<int32_t> offset = Local<int32_t>(24224, 512), high = offset;
    const LocalTensor<int32_t> id = Local<int32_t>(26272, 8192);
    const LocalTensor<half> life = Local<half>(59040, 8192);
    const LocalTensor<int32_t> link = Local<int32_t>(75424, 16384);
    const LocalTensor<int32_t> ids = Local<int32_t>(140960, 2048), miss2 = ids, dead = ids;
    const LocalTensor<int32_t> partWay = Local<int32_t>(149152, 2048), pending0 = partWay, miss0 = partWay,
        newLink = partWay;
    const LocalTensor<int32_t> wanted = Local<int32_t>(157344, 2048), pending1 = wanted, miss1 = wanted, way = wanted;
    const LocalTensor<int32_t> slot = Local<int32_t>(165536, 2048), at = slot;
    const LocalTensor<int32_t> void0 = Local<int32_t>(173728, 2048);
    const LocalTensor<int8_t> bytes = Local<int8_t>(173728, 8192);
    int32_t pendingLen = 0, nextLen = 0, missLen = 0, deadLen = 0, voidLen = 0, farLen = 0;
    int32_t outsideLen = 0;
    // The table, and a clear record.
    CopyIn(header, gm.tables[q.tableAt], HEADER_WORDS);
    CopyInTurn(id, gm.tables[q.tableAt + 16], SLOTS, q.turn);
    CopyIn(bytes.ReinterpretCast<int32_t>(), gm.tables[q.tableAt + 8208], 2048);
    CopyInTurn(link, gm.tables[q.tableAt + 10272], 16384, q.turn);
    Duplicate(record, 0, RECORD_WORDS);
    After<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);
    After<HardEvent::MTE2_S>(EVENT_ID0);
    const int32_t generation = header.GetValue(HEADER_GENERATION);
    // Reset, if the generation is another one.
    const int32_t idLanes = generation != q.generation ? 8192 : 0;
    for (int32_t base = 0; base < idLanes; base += TILE) {
        const int32_t lanes = ScalarMin(idLanes - base, TILE);
        Duplicate(id[base], -1, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(life[base], static_cast<half>(-128.0f), lanes);
    }
    const int32_t linkLanes = generation != q.generation ? 16384 : 0;
    for (int32_t base = 0; base < linkLanes; base += TILE) {
        const int32_t lanes = ScalarMin(linkLanes - base, TILE);
        Duplicate(link[base], 8388608, lanes);
    }
    header.SetValue(HEADER_GENERATION, q.generation);
    const int32_t top = header.GetValue(HEADER_TOP);
    // Invalidate: rows that were not final before this step.
    const int32_t idLanes2 = top > q.stable ? 8192 : 0;
    for (int32_t base = 0; base < idLanes2; base += TILE) {
        const int32_t lanes = ScalarMin(idLanes2 - base, TILE);
        const int32_t whole = Whole(lanes);
        Adds(fresh, id[base], -q.stable, lanes);
        Duplicate(fill, -1, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(F16(fill2), static_cast<half>(-128.0f), lanes);
        ShiftRight(sign, fresh, 31, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
        PipeBarrier<PIPE_V>();
        Select(F32(id[base]), notNegative, F32(fill), F32(id[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        PipeBarrier<PIPE_V>();
        Select(life[base], notNegative, F16(fill2), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
    }
    header.SetValue(HEADER_TOP, ScalarMax(ScalarMin(top, q.stable), q.limit));
    // Decay: one step older.
    Age(life, 1);
    farLen = 0;
    outsideLen = 0;
    After<HardEvent::V_S>(EVENT_ID0);
    record.SetValue(RECORD_TOTAL, 0);
    for (int32_t token = 0; token < q.tokens; token++) {
        const int32_t shares = q.shared * (1 > token ? 1 : 0);
        const int32_t first = q.partAt * shares;
        After<HardEvent::V_MTE2>(EVENT_ID0);
        CopyIn(ids, gm.ids[q.idsAt + q.idsStride * token + first], q.k - first);
        const int32_t part = q.partLen * shares;
        // Probe, shared: this core's part of the token, and then the others'.
        After<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < part; base += TILE) {
            const int32_t lanes = ScalarMin(part - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(sign, ids[base], 31, lanes);
            Maxs(x, ids[base], 0, lanes);
            Duplicate(fill, -2, lanes);
            PipeBarrier<PIPE_V>();
            Adds(over, x, -q.limit, lanes);
            CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
            Mix(mixed, x, 32, 27381, 2305, high, lanes);
            ShiftRight(sign, over, 31, lanes);
            PipeBarrier<PIPE_V>();
            Mix(stride, mixed, 32, 15605, 3809, high, lanes);
            ShiftRight(U32(mixed), U32(mixed), 6u, lanes);
            CompareScalar(negative, sign, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(stride), U32(stride), 6u, lanes);
            AndWord(mixed, mixed, WORD_3FFF_AT, lanes);
            And(U16(negative), U16(negative), U16(notNegative), whole / 16);
            PipeBarrier<PIPE_V>();
            AndWord(stride, stride, WORD_3FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            OrWord(stride, stride, WORD_1_AT, lanes);
            Select(F32(wanted[base]), negative, F32(x), F32(fill), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            PipeBarrier<PIPE_V>();
            Muls(stride, stride, 16384, lanes);
            PipeBarrier<PIPE_V>();
            Or(U16(partWay[base]), U16(stride), U16(mixed), 2 * lanes);
        }
        PipeBarrier<PIPE_V>();
        Find(slot, partWay, wanted, part, link, id);
        for (int32_t base = 0; base < part; base += TILE) {
            const int32_t lanes = ScalarMin(part - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(equal, wanted[base], -2, CMPMODE::EQ, whole);
            Duplicate(fill, -2, lanes);
            PipeBarrier<PIPE_V>();
            Select(F32(slot[base]), equal, F32(fill), F32(slot[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        }
        const int32_t sharedRow = q.k * shares;
        After<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.slot[q.slotAt + q.partAt], slot, part);
        if (sharedRow > 0 && Leaves(q.owner)) {
            return;
        }
        CopyIn(slot, gm.slot[q.slotAt], sharedRow);
        const int32_t own = q.k * (1 - shares);
        pendingLen = 0;
        nextLen = 0;
        voidLen = 0;
        // Probe, first round: which ids does the Hash-State hold?
        After<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < own; base += TILE) {
            const int32_t lanes = ScalarMin(own - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(sign, ids[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            Maxs(x, ids[base], 0, lanes);
            Duplicate(fill, -1, lanes);
            Adds(lane, iota, base, lanes);
            PipeBarrier<PIPE_V>();
            Adds(over, x, -q.limit, lanes);
            CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
            Mix(mixed, x, 32, 27381, 2305, high, lanes);
            ShiftRight(sign, over, 31, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(at2), U32(mixed), 6u, lanes);
            Mix(stride, mixed, 32, 15605, 3809, high, lanes);
            CompareScalar(negative, sign, -1, CMPMODE::EQ, whole);
            AndWord(at2, at2, WORD_3FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(stride), U32(stride), 6u, lanes);
            And(U16(notVoid), U16(negative), U16(notNegative), whole / 16);
            ShiftLeft(U32(offset), U32(at2), 2u, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(stride, stride, WORD_3FFF_AT, lanes);
            Gather(entry, link, U32(offset), 0, lanes);
            PipeBarrier<PIPE_V>();
            OrWord(stride, stride, WORD_1_AT, lanes);
            Not(U16(isVoid), U16(notVoid), whole / 16);
            AndWord(candidate, entry, WORD_1FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            Add(at2, at2, stride, lanes);
            ShiftLeft(U32(offset), U32(candidate), 2u, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(at2, at2, WORD_3FFF_AT, lanes);
            Gather(held, id, U32(offset), 0, lanes);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(offset), U32(at2), 2u, lanes);
            Compare(hit, held, x, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Gather(entry, link, U32(offset), 0, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(candidate2, entry, WORD_1FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(offset), U32(candidate2), 2u, lanes);
            Select(F32(entry), hit, F32(candidate), F32(candidate2), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            PipeBarrier<PIPE_V>();
            Gather(held, id, U32(offset), 0, lanes);
            PipeBarrier<PIPE_V>();
            Compare(hit2, held, x, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Or(U16(hit), U16(hit), U16(hit2), whole / 16);
            PipeBarrier<PIPE_V>();
            And(U16(hit), U16(hit), U16(notVoid), whole / 16);
            PipeBarrier<PIPE_V>();
            Select(F32(slot[base]), hit, F32(entry), F32(fill), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Not(U16(notHit), U16(hit), whole / 16);
            PipeBarrier<PIPE_V>();
            And(U16(isPending), U16(notVoid), U16(notHit), whole / 16);
            PipeBarrier<PIPE_V>();
            Append(pending0, pendingLen, x, isPending, lanes, true);
            pendingLen += Append(pending1, pendingLen, lane, isPending, lanes, false);
            voidLen += Append(void0, voidLen, ids[base], isVoid, lanes, true);
        }
        // Probe, later rounds: what is still pending is the miss list.
        for (int32_t round = 0; round < (own > 0 ? 3 : 0); round++) {
            for (int32_t base = 0; base < pendingLen; base += TILE) {
                const int32_t lanes = ScalarMin(pendingLen - base, TILE);
                const int32_t whole = Whole(lanes);
                PipeBarrier<PIPE_V>();
                Mix(mixed, pending0[base], 22, 27381, 2305, high, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(at2), U32(mixed), 6u, lanes);
                Mix(stride, mixed, 32, 15605, 3809, high, lanes);
                AndWord(at2, at2, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(stride), U32(stride), 6u, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(stride, stride, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(stride, stride, WORD_1_AT, lanes);
                PipeBarrier<PIPE_V>();
                Muls(stride2, stride, round + round + 2, lanes);
                PipeBarrier<PIPE_V>();
                Add(at2, at2, stride2, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(at2, at2, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(at2), 2u, lanes);
                PipeBarrier<PIPE_V>();
                Add(at2, at2, stride, lanes);
                Gather(entry, link, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(at2, at2, WORD_3FFF_AT, lanes);
                AndWord(candidate, entry, WORD_1FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(at2), 2u, lanes);
                ShiftLeft(U32(offset2), U32(candidate), 2u, lanes);
                PipeBarrier<PIPE_V>();
                Gather(entry, link, U32(offset), 0, lanes);
                Gather(held, id, U32(offset2), 0, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(candidate2, entry, WORD_1FFF_AT, lanes);
                Compare(hit, held, pending0[base], CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(candidate2), 2u, lanes);
                PipeBarrier<PIPE_V>();
                Gather(held, id, U32(offset), 0, lanes);
                Select(F32(entry), hit, F32(candidate), F32(candidate2), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
                PipeBarrier<PIPE_V>();
                Compare(hit2, held, pending0[base], CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Or(U16(notNext), U16(hit), U16(hit2), whole / 16);
                PipeBarrier<PIPE_V>();
                ScatterMasked(slot, pending1[base], entry, notNext, lanes);
                Not(U16(isNext), U16(notNext), whole / 16);
                After<HardEvent::S_V>(EVENT_ID0);
                PipeBarrier<PIPE_V>();
                AppendInPlace(pending0, nextLen, pending0[base], isNext, lanes, true);
                PipeBarrier<PIPE_V>();
                nextLen += AppendInPlace(pending1, nextLen, pending1[base], isNext, lanes, false);
            }
            pendingLen = nextLen;
            nextLen = 0;
        }
        // What the cores did not find of a shared token.
        PipeBarrier<PIPE_V>();
        Collect(pending0, pending1, pendingLen, void0, voidLen, ids, slot, sharedRow);
        for (int32_t base = 0; base < voidLen; base += TILE) {
            const int32_t lanes = ScalarMin(voidLen - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(sign, void0[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(isFar, sign, 0, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            farLen += Count(isFar, lanes);
        }
        const int32_t outsideBefore = outsideLen;
        missLen = 0;
        const int32_t first2 = token * 2048;
        // Locate: the host row of each miss.
        for (int32_t base = 0; base < pendingLen; base += TILE) {
            const int32_t lanes = ScalarMin(pendingLen - base, TILE);
            const int32_t whole = Whole(lanes);
            Adds(fresh, pending0[base], -q.stable, lanes);
            Adds(beyond, pending0[base], -q.rows, lanes);
            Adds(position, pending1[base], first2, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(sign, fresh, 31, lanes);
            ShiftRight(sign2, beyond, 31, lanes);
            PipeBarrier<PIPE_V>();
            Muls(row, fresh, -1, lanes);
            CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
            CompareScalar(negative, sign2, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Adds(row, row, -1, lanes);
            PipeBarrier<PIPE_V>();
            Select(F32(row), notNegative, F32(row), F32(pending0[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Or(U16(isMiss), U16(notNegative), U16(negative), whole / 16);
            PipeBarrier<PIPE_V>();
            AppendInPlace(miss0, missLen, pending0[base], isMiss, lanes, true);
            Not(U16(isOutside), U16(isMiss), whole / 16);
            Append(miss1, missLen, position, isMiss, lanes, false);
            missLen += Append(miss2, missLen, row, isMiss, lanes, false);
            PipeBarrier<PIPE_V>();
            outsideLen += Count(isOutside, lanes);
        }
        word.SetValue(0, q.k - voidLen + outsideBefore - outsideLen);
        After<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.valid[q.validAt + token], word, 1);
        const int32_t total = record.GetValue(RECORD_TOTAL);
        const int32_t missAt = q.missAt + total;
        // The token's misses.
        After<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.missId[missAt], miss0, missLen);
        CopyOut(gm.missPos[missAt], miss1, missLen);
        CopyOut(gm.missRow[missAt], miss2, missLen);
        record.SetValue(token, missLen);
        record.SetValue(RECORD_TOTAL, total + missLen);
        const int32_t notLate = token + 1 != q.late ? 1 : 0;
        const int32_t waits = (missLen > 0 ? 1 : 0) * (1 - notLate);
        const int32_t lastThreshold = header.GetValue(HEADER_THRESHOLD);
        // Deferral: a life that bounds the victims'; hits above it can wait.
        const int32_t threshold = LeastLife(life, lastThreshold, (missLen + 64) * waits);
        deadLen = 0;
        // Deferral: hits up to there, which must not wait.
        After<HardEvent::MTE3_V>(EVENT_ID0);
        deadLen += AppendLow(dead, deadLen, slot, q.k * waits, life, threshold);
        const int32_t manyDead = deadLen > 64 ? 1 : 0;
        // Refresh: hits live on.
        const int32_t slotLanes = q.k * ScalarMax(notLate, manyDead);
        for (int32_t base = 0; base < slotLanes; base += TILE) {
            const int32_t lanes = ScalarMin(slotLanes - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(sign, slot[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            After<HardEvent::S_V>(EVENT_ID0);
            SetLife(life, slot[base], static_cast<half>(127.0f), notNegative, lanes);
        }
        // Refresh: if those are few, only they.
        const int32_t deadLanes = deadLen * (1 - manyDead);
        After<HardEvent::V_S>(EVENT_ID0);
        for (int32_t base = 0; base < deadLanes; base += TILE) {
            const int32_t lanes = ScalarMin(deadLanes - base, TILE);
            SetLifeAll(life, dead[base], static_cast<half>(127.0f), lanes);
        }
        const int32_t lastThreshold2 = header.GetValue(HEADER_THRESHOLD);
        // CollectDead: the slots that live least, as many as there are misses.
        After<HardEvent::S_V>(EVENT_ID0);
        const int32_t threshold2 = LeastLife(life, lastThreshold2, missLen);
        header.SetValue(HEADER_THRESHOLD, threshold2);
        deadLen = 0;
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::LT, threshold2, missLen);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::EQ, threshold2, missLen);
        After<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.missSlot[missAt], dead, deadLen);
        // UpdateState: victims take the misses.
        for (int32_t base = 0; base < missLen; base += TILE) {
            const int32_t lanes = ScalarMin(missLen - base, TILE);
            PipeBarrier<PIPE_V>();
            Adds(lane, miss1[base], -first2, lanes);
            Mix(mixed, miss0[base], 22, 27381, 2305, high, lanes);
            ScatterBoth(id, dead[base], miss0[base], slot, lane, lanes);
            ShiftRight(U32(mixed2), U32(mixed), 10u, lanes);
            Mix(stride, mixed, 32, 15605, 3809, high, lanes);
            ShiftRight(U32(mixed), U32(mixed), 6u, lanes);
            AndWord(mixed2, mixed2, WORD_3FF_AT, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(stride), U32(stride), 6u, lanes);
            AndWord(mixed, mixed, WORD_3FFF_AT, lanes);
            Muls(mixed2, mixed2, 8192, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(stride, stride, WORD_3FFF_AT, lanes);
            Or(U16(mixed2), U16(mixed2), U16(dead[base]), 2 * lanes);
            PipeBarrier<PIPE_V>();
            OrWord(stride, stride, WORD_1_AT, lanes);
            PipeBarrier<PIPE_V>();
            Muls(stride, stride, 16384, lanes);
            After<HardEvent::S_V>(EVENT_ID0);
            Adds(newLink[base], mixed2, 0, lanes);
            PipeBarrier<PIPE_V>();
            Or(U16(way[base]), U16(stride), U16(mixed), 2 * lanes);
        }
        // UpdateState: lifetimes of new slots, unless they wait too.
        const int32_t deadLanes2 = deadLen * notLate;
        After<HardEvent::V_S>(EVENT_ID0);
        for (int32_t base = 0; base < deadLanes2; base += TILE) {
            const int32_t lanes = ScalarMin(deadLanes2 - base, TILE);
            SetLifeAll(life, dead[base], static_cast<half>(127.0f), lanes);
        }
        // The token's slots.
        CopyOut(gm.slot[q.slotAt + q.slotStride * token], slot, q.k);
        After<HardEvent::MTE3_V>(EVENT_ID0);
        for (int32_t round = 0; round < 2; round++) {
            PipeBarrier<PIPE_V>();
            FindFree(at, way, deadLen, link, id, 27381, 2305);
            // The claimed links: of two claims the later stays.
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                const int32_t whole = Whole(lanes);
                ShiftRight(sign, at[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                After<HardEvent::S_V>(EVENT_ID0);
                ScatterMasked(link, at[base], newLink[base], notNegative, lanes);
            }
            const int32_t deadBefore = deadLen;
            deadLen = 0;
            // Those whose link went to a later claim.
            After<HardEvent::S_V>(EVENT_ID0);
            for (int32_t base = 0; base < deadBefore; base += TILE) {
                const int32_t lanes = ScalarMin(deadBefore - base, TILE);
                const int32_t whole = Whole(lanes);
                PipeBarrier<PIPE_V>();
                AndWord(candidate, newLink[base], WORD_1FFF_AT, lanes);
                AndWord(offset, at[base], WORD_3FFF_AT, lanes);
                ShiftRight(sign, at[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(offset), 2u, lanes);
                CompareScalar(notNegative, sign, 0, CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Gather(entry, link, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(equal, entry, newLink[base], CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Not(U16(notEqual), U16(equal), whole / 16);
                PipeBarrier<PIPE_V>();
                And(U16(isDead), U16(notEqual), U16(notNegative), whole / 16);
                PipeBarrier<PIPE_V>();
                deadLen += Append(dead, deadLen, candidate, isDead, lanes, true);
            }
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(offset), U32(dead[base]), 2u, lanes);
                PipeBarrier<PIPE_V>();
                Gather(held, id, U32(offset), 0, lanes);
                PipeBarrier<PIPE_V>();
                Mix(mixed, held, 32, 27381, 2305, high, lanes);
                PipeBarrier<PIPE_V>();
                Mix(stride, mixed, 32, 15605, 3809, high, lanes);
                ShiftRight(U32(mixed2), U32(mixed), 6u, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(mixed), U32(mixed), 10u, lanes);
                ShiftRight(U32(stride), U32(stride), 6u, lanes);
                AndWord(mixed2, mixed2, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(mixed, mixed, WORD_3FF_AT, lanes);
                AndWord(stride, stride, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                Muls(mixed, mixed, 8192, lanes);
                OrWord(stride, stride, WORD_1_AT, lanes);
                PipeBarrier<PIPE_V>();
                Muls(stride, stride, 16384, lanes);
                PipeBarrier<PIPE_V>();
                Or(U16(way[base]), U16(stride), U16(mixed2), 2 * lanes);
                Or(U16(newLink[base]), U16(mixed), U16(dead[base]), 2 * lanes);
            }
        }
    }
    record.SetValue(RECORD_STATUS, (farLen > 0 ? 1 : 0) + (outsideLen > 0 ? 2 : 0));
    // The record, and the table as the next step finds it.
    After<HardEvent::S_MTE3>(EVENT_ID0);
    CopyOut(gm.record[q.recordAt], record, RECORD_WORDS);
    Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);
    CopyOut(gm.tables[q.tableAt], header, HEADER_WORDS);
    CopyOut(gm.tables[q.tableAt + 16], id, SLOTS);
    After<HardEvent::V_MTE3>(EVENT_ID0);
    CopyOut(gm.tables[q.tableAt + 8208], bytes.ReinterpretCast<int32_t>(), 2048);
    CopyOut(gm.tables[q.tableAt + 10272], link, 16384);
}

} // namespace stage_one

} // namespace avsg
