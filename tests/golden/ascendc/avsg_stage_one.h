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
    Duplicate(Local<int32_t>(WORD_800000_AT, 8), 8388608, 8);
}

// One request: Algorithm 1 for each of its tokens, on one table.
__aicore__ inline void StageOne(const Gm &gm, const Request &q)
{
    const LocalTensor<int32_t> header = Local<int32_t>(0, 16);
    const LocalTensor<int32_t> record = Local<int32_t>(64, 16);
    const LocalTensor<int32_t> word = Local<int32_t>(128, 8);
    const LocalTensor<uint8_t> m0 = Local<uint8_t>(608, 64);
    const LocalTensor<uint8_t> m1 = Local<uint8_t>(672, 64);
    const LocalTensor<uint8_t> m2 = Local<uint8_t>(736, 64);
    const LocalTensor<uint8_t> m3 = Local<uint8_t>(800, 64);
    const LocalTensor<int32_t> iota = Local<int32_t>(864, 512);
    const LocalTensor<int32_t> x0 = Local<int32_t>(11104, 512);
    const LocalTensor<int32_t> x1 = Local<int32_t>(13152, 512);
    const LocalTensor<int32_t> x2 = Local<int32_t>(15200, 512);
    const LocalTensor<int32_t> x3 = Local<int32_t>(17248, 512);
    const LocalTensor<int32_t> x4 = Local<int32_t>(19296, 512);
    const LocalTensor<int32_t> x5 = Local<int32_t>(21344, 512);
    const LocalTensor<int32_t> id = Local<int32_t>(23392, 8192);
    const LocalTensor<half> life = Local<half>(56160, 8192);
    const LocalTensor<int32_t> link = Local<int32_t>(72544, 16384);
    const LocalTensor<int32_t> ids = Local<int32_t>(138080, 2048);
    const LocalTensor<int32_t> miss2 = Local<int32_t>(138080, 2048);
    const LocalTensor<int32_t> dead = Local<int32_t>(138080, 2048);
    const LocalTensor<int32_t> pending0 = Local<int32_t>(146272, 2048);
    const LocalTensor<int32_t> miss0 = Local<int32_t>(146272, 2048);
    const LocalTensor<int32_t> seek0 = Local<int32_t>(146272, 2048);
    const LocalTensor<int32_t> pending1 = Local<int32_t>(154464, 2048);
    const LocalTensor<int32_t> miss1 = Local<int32_t>(154464, 2048);
    const LocalTensor<int32_t> seek1 = Local<int32_t>(154464, 2048);
    const LocalTensor<int32_t> slot = Local<int32_t>(162656, 2048);
    const LocalTensor<int32_t> claim0 = Local<int32_t>(162656, 2048);
    const LocalTensor<int32_t> void0 = Local<int32_t>(170848, 2048);
    const LocalTensor<int32_t> claim1 = Local<int32_t>(170848, 2048);
    const LocalTensor<int8_t> bytes = Local<int8_t>(170848, 8192);
    int32_t pendingLen = 0, nextLen = 0, missLen = 0, deadLen = 0, seekLen = 0, seekNextLen = 0, claimLen = 0, voidLen = 0, farLen = 0, outsideLen = 0;
    // The table, and a clear record.
    Pull(header, gm.tables[q.tableAt + 0], 16);
    Pull(id, gm.tables[q.tableAt + 16], 8192);
    Pull(bytes.ReinterpretCast<int32_t>(), gm.tables[q.tableAt + 8208], 2048);
    Pull(link, gm.tables[q.tableAt + 10272], 16384);
    Duplicate(record, 0, 16);
    After<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);
    After<HardEvent::MTE2_S>(EVENT_ID0);
    const int32_t s16 = header.GetValue(0);
    // Reset, if the generation is another one.
    for (int32_t base = 0; base < (s16 != q.generation ? 8192 : 0); base += TILE) {
        const int32_t lanes = Least((s16 != q.generation ? 8192 : 0) - base, TILE);
        const int32_t whole = Whole(lanes);
        Adds(x0, iota, base, lanes);
        Duplicate(id[base], -1, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(F16(x1), static_cast<half>(-128.0f), lanes);
        ShiftRight(x2, x0, 31, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(m0, x2, 0, CMPMODE::EQ, whole);
        PipeBarrier<PIPE_V>();
        Select(life[base], m0, F16(x1), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
    }
    for (int32_t base = 0; base < (s16 != q.generation ? 16384 : 0); base += TILE) {
        const int32_t lanes = Least((s16 != q.generation ? 16384 : 0) - base, TILE);
        Duplicate(link[base], 8388608, lanes);
    }
    header.SetValue(0, q.generation);
    const int32_t s27 = header.GetValue(1);
    // Invalidate: rows that were not final before this step.
    for (int32_t base = 0; base < (s27 > q.stable ? 8192 : 0); base += TILE) {
        const int32_t lanes = Least((s27 > q.stable ? 8192 : 0) - base, TILE);
        const int32_t whole = Whole(lanes);
        Adds(x0, id[base], -q.stable, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(x1, -1, lanes);
        Duplicate(F16(x2), static_cast<half>(-128.0f), lanes);
        ShiftRight(x3, x0, 31, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(m0, x3, 0, CMPMODE::EQ, whole);
        PipeBarrier<PIPE_V>();
        Select(F32(id[base]), m0, F32(x1), F32(id[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        PipeBarrier<PIPE_V>();
        Select(life[base], m0, F16(x2), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
    }
    header.SetValue(1, Most(Least(s27, q.stable), q.limit));
    // Decay: one step older.
    Age(life, 1);
    farLen = 0;
    outsideLen = 0;
    After<HardEvent::V_S>(EVENT_ID0);
    record.SetValue(8, 0);
    for (int32_t token = 0; token < q.tokens; token++) {
        // Probe, first round: which ids does the Hash-State hold?
        After<HardEvent::V_MTE2>(EVENT_ID0);
        Pull(ids, gm.ids[q.idsAt + (q.idsStride * token)], q.k);
        pendingLen = 0;
        nextLen = 0;
        voidLen = 0;
        After<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < q.k; base += TILE) {
            const int32_t lanes = Least(q.k - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(x0, ids[base], 31, lanes);
            Maxs(x1, ids[base], 0, lanes);
            Duplicate(x2, -1, lanes);
            Adds(x3, iota, base, lanes);
            PipeBarrier<PIPE_V>();
            Adds(x4, x1, -q.limit, lanes);
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Mix(x0, x1, 32, 27381, 2305, x5, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x5, x4, 31, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(x4), U32(x0), static_cast<uint32_t>(6), lanes);
            CompareScalar(m1, x5, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            AndWord(x0, x4, WORD_3FFF_AT, lanes);
            And(U16(m2), U16(m1), U16(m0), whole / 16);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(x4), U32(x0), static_cast<uint32_t>(2), lanes);
            PipeBarrier<PIPE_V>();
            Gather(x0, link, U32(x4), 0, lanes);
            Not(U16(m0), U16(m2), whole / 16);
            PipeBarrier<PIPE_V>();
            AndWord(x4, x0, WORD_1FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(x0), U32(x4), static_cast<uint32_t>(2), lanes);
            PipeBarrier<PIPE_V>();
            Gather(x5, id, U32(x0), 0, lanes);
            PipeBarrier<PIPE_V>();
            Compare(m1, x5, x1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            And(U16(m3), U16(m1), U16(m2), whole / 16);
            PipeBarrier<PIPE_V>();
            Select(F32(slot[base]), m3, F32(x4), F32(x2), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Not(U16(m1), U16(m3), whole / 16);
            PipeBarrier<PIPE_V>();
            And(U16(m3), U16(m2), U16(m1), whole / 16);
            Keep(m3, pendingLen);
            Append(pending0, pendingLen, x1, lanes);
            pendingLen += Append(pending1, pendingLen, x3, lanes);
            Keep(m0, voidLen);
            voidLen += Append(void0, voidLen, ids[base], lanes);
        }
        for (int32_t base = 0; base < voidLen; base += TILE) {
            const int32_t lanes = Least(voidLen - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x0, void0[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            farLen += Count(m0, lanes);
        }
        // Probe, later rounds: what is still pending is the miss list.
        for (int32_t round = 0; round < 7; round++) {
            for (int32_t base = 0; base < pendingLen; base += TILE) {
                const int32_t lanes = Least(pendingLen - base, TILE);
                const int32_t whole = Whole(lanes);
                Mix(x0, pending0[base], 22, 27381, 2305, x1, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(x1), U32(x0), static_cast<uint32_t>(6), lanes);
                Mix(x2, x0, 32, 15605, 3809, x3, lanes);
                AndWord(x0, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(x1), U32(x2), static_cast<uint32_t>(6), lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x2, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(x1, x2, WORD_1_AT, lanes);
                PipeBarrier<PIPE_V>();
                Muls(x2, x1, (round + 1), lanes);
                PipeBarrier<PIPE_V>();
                Add(x1, x0, x2, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x0, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(x1), U32(x0), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x0, link, U32(x1), 0, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x1, x0, WORD_1FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(x0), U32(x1), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x2, id, U32(x0), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(m0, x2, pending0[base], CMPMODE::EQ, whole);
                Scatter(slot, pending1[base], x1, m0, lanes);
                Not(U16(m1), U16(m0), whole / 16);
                Keep(m1, nextLen);
                Append(pending0, nextLen, pending0[base], lanes);
                nextLen += Append(pending1, nextLen, pending1[base], lanes);
            }
            pendingLen = nextLen;
            nextLen = 0;
        }
        // Refresh: hits live on.
        for (int32_t base = 0; base < q.k; base += TILE) {
            const int32_t lanes = Least(q.k - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(x0, slot[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            SetLife(life, slot[base], static_cast<half>(127.0f), m0, lanes);
        }
        const int32_t s99 = outsideLen;
        missLen = 0;
        const int32_t s101 = token * 2048;
        // Locate: the host row of each miss.
        for (int32_t base = 0; base < pendingLen; base += TILE) {
            const int32_t lanes = Least(pendingLen - base, TILE);
            const int32_t whole = Whole(lanes);
            Adds(x0, pending0[base], -q.stable, lanes);
            Adds(x1, pending0[base], -q.rows, lanes);
            PipeBarrier<PIPE_V>();
            Adds(x2, pending1[base], s101, lanes);
            ShiftRight(x3, x0, 31, lanes);
            ShiftRight(x4, x1, 31, lanes);
            PipeBarrier<PIPE_V>();
            Muls(x1, x0, -1, lanes);
            CompareScalar(m0, x3, 0, CMPMODE::EQ, whole);
            CompareScalar(m1, x4, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Adds(x0, x1, -1, lanes);
            PipeBarrier<PIPE_V>();
            Select(F32(x1), m0, F32(x0), F32(pending0[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Or(U16(m2), U16(m0), U16(m1), whole / 16);
            Keep(m2, missLen);
            Not(U16(m0), U16(m2), whole / 16);
            Append(miss0, missLen, pending0[base], lanes);
            Append(miss1, missLen, x2, lanes);
            missLen += Append(miss2, missLen, x1, lanes);
            outsideLen += Count(m0, lanes);
        }
        After<HardEvent::MTE3_S>(EVENT_ID0);
        word.SetValue(0, (((q.k - voidLen) + s99) - outsideLen));
        After<HardEvent::S_MTE3>(EVENT_ID0);
        Push(gm.valid[(q.validAt + token)], word, 1);
        const int32_t s123 = missLen;
        const int32_t s124 = record.GetValue(8);
        const int32_t s125 = q.missAt + s124;
        // The token's misses.
        After<HardEvent::V_MTE3>(EVENT_ID0);
        Push(gm.missId[s125], miss0, missLen);
        Push(gm.missPos[s125], miss1, missLen);
        Push(gm.missRow[s125], miss2, missLen);
        record.SetValue(token, s123);
        record.SetValue(8, (s124 + s123));
        const int32_t s128 = missLen;
        const int32_t s130 = header.GetValue(2);
        // CollectDead: the slots that live least, as many as there are misses.
        const int32_t s133 = LeastLife(life, s130, s128);
        header.SetValue(2, s133);
        deadLen = 0;
        After<HardEvent::MTE3_V>(EVENT_ID0);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::LT, s133, s128);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::EQ, s133, s128);
        After<HardEvent::V_MTE3>(EVENT_ID0);
        Push(gm.missSlot[s125], dead, deadLen);
        seekLen = 0;
        // UpdateState: victims take the misses.
        for (int32_t base = 0; base < missLen; base += TILE) {
            const int32_t lanes = Least(missLen - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x0, dead[base], 31, lanes);
            Adds(x1, miss1[base], -s101, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            SetLife(life, dead[base], static_cast<half>(127.0f), m0, lanes);
            Keep(m0, seekLen);
            Scatter(id, dead[base], miss0[base], m0, lanes);
            Scatter(slot, x1, dead[base], m0, lanes);
            Append(seek0, seekLen, miss0[base], lanes);
            seekLen += Append(seek1, seekLen, dead[base], lanes);
        }
        // The token's slots.
        After<HardEvent::S_MTE3>(EVENT_ID0);
        Push(gm.slot[q.slotAt + (q.slotStride * token)], slot, q.k);
        // UpdateState: a link for every miss; once more for those that lost theirs.
        for (int32_t round = 0; round < 2; round++) {
            claimLen = 0;
            seekNextLen = 0;
            for (int32_t probe = 0; probe < 8; probe++) {
                After<HardEvent::MTE3_V>(EVENT_ID0);
                for (int32_t base = 0; base < seekLen; base += TILE) {
                    const int32_t lanes = Least(seekLen - base, TILE);
                    const int32_t whole = Whole(lanes);
                    Mix(x0, seek0[base], 32, 27381, 2305, x1, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x1), U32(x0), static_cast<uint32_t>(6), lanes);
                    Mix(x2, x0, 32, 15605, 3809, x3, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x3), U32(x0), static_cast<uint32_t>(10), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x0, x1, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x1), U32(x2), static_cast<uint32_t>(6), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x2, x3, WORD_3FF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x3, x1, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Muls(x1, x2, 8192, lanes);
                    PipeBarrier<PIPE_V>();
                    OrWord(x2, x3, WORD_1_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Or(U16(x3), U16(x1), U16(seek1[base]), 2 * lanes);
                    PipeBarrier<PIPE_V>();
                    Muls(x1, x2, probe, lanes);
                    PipeBarrier<PIPE_V>();
                    Add(x2, x0, x1, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x0, x2, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(x1), U32(x0), static_cast<uint32_t>(2), lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(x2, link, U32(x1), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x1, x2, WORD_800000_AT, lanes);
                    AndWord(x4, x2, WORD_1FFF_AT, lanes);
                    ShiftRight(U32(x5), U32(x2), static_cast<uint32_t>(13), lanes);
                    PipeBarrier<PIPE_V>();
                    CompareScalar(m0, x1, 8388608, CMPMODE::EQ, whole);
                    PipeBarrier<PIPE_V>();
                    AndWord(x1, x5, WORD_3FF_AT, lanes);
                    ShiftLeft(U32(x2), U32(x4), static_cast<uint32_t>(2), lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(x4, id, U32(x2), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(x2, x4, 32, 27381, 2305, x5, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x4), U32(x2), static_cast<uint32_t>(10), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x2, x4, WORD_3FF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Compare(m1, x1, x2, CMPMODE::EQ, whole);
                    PipeBarrier<PIPE_V>();
                    Not(U16(m2), U16(m1), whole / 16);
                    PipeBarrier<PIPE_V>();
                    Or(U16(m1), U16(m0), U16(m2), whole / 16);
                    Keep(m1, claimLen);
                    Not(U16(m0), U16(m1), whole / 16);
                    Append(claim0, claimLen, x0, lanes);
                    claimLen += Append(claim1, claimLen, x3, lanes);
                    Keep(m0, seekNextLen);
                    Append(seek0, seekNextLen, seek0[base], lanes);
                    seekNextLen += Append(seek1, seekNextLen, seek1[base], lanes);
                }
                seekLen = seekNextLen;
                seekNextLen = 0;
            }
            for (int32_t base = 0; base < claimLen; base += TILE) {
                const int32_t lanes = Least(claimLen - base, TILE);
                const int32_t whole = Whole(lanes);
                ShiftRight(x0, claim1[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
                Scatter(link, claim0[base], claim1[base], m0, lanes);
            }
            seekLen = 0;
            deadLen = 0;
            for (int32_t base = 0; base < claimLen; base += TILE) {
                const int32_t lanes = Least(claimLen - base, TILE);
                const int32_t whole = Whole(lanes);
                AndWord(x0, claim1[base], WORD_1FFF_AT, lanes);
                ShiftLeft(U32(x1), U32(claim0[base]), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x2, link, U32(x1), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(m0, x2, claim1[base], CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Not(U16(m1), U16(m0), whole / 16);
                Keep(m1, deadLen);
                deadLen += Append(dead, deadLen, x0, lanes);
            }
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = Least(deadLen - base, TILE);
                const int32_t whole = Whole(lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(x0, dead[base], 31, lanes);
                ShiftLeft(U32(x1), U32(dead[base]), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Gather(x0, id, U32(x1), 0, lanes);
                Keep(m0, seekLen);
                Append(seek0, seekLen, x0, lanes);
                seekLen += Append(seek1, seekLen, dead[base], lanes);
            }
        }
    }
    record.SetValue(9, (farLen > 0 ? 1 : 0) + (outsideLen > 0 ? 2 : 0));
    // The record, and the table as the next step finds it.
    After<HardEvent::S_MTE3>(EVENT_ID0);
    Push(gm.record[q.recordAt], record, 16);
    Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);
    Push(gm.tables[q.tableAt + 0], header, 16);
    Push(gm.tables[q.tableAt + 16], id, 8192);
    After<HardEvent::V_MTE3>(EVENT_ID0);
    Push(gm.tables[q.tableAt + 8208], bytes.ReinterpretCast<int32_t>(), 2048);
    Push(gm.tables[q.tableAt + 10272], link, 16384);
}

} // namespace stage_one

} // namespace avsg
