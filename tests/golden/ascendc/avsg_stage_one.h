// avsg_stage_one.h: Stage One of one request, generated from its tape.
// avsg_ops.h begins with the table of its buffers.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, learned lifetimes, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_request.h"
#include "avsg_search.h"

namespace avsg::stage_one {

// Writes the constants in UB that every request reads and none changes. It runs once per core.
__aicore__ inline void Setup(const Gm &gm)
{
    WriteIota();
    Duplicate(Local<uint16_t>(MASK_SCRATCH_AT, 16), static_cast<uint16_t>(0), 16);
    Duplicate(Local<int32_t>(WORD_1_AT, 8), 1, 8);
    Duplicate(Local<int32_t>(WORD_FF_AT, 8), 255, 8);
    Duplicate(Local<int32_t>(WORD_100_AT, 8), 256, 8);
    Duplicate(Local<int32_t>(WORD_3FF_AT, 8), 1023, 8);
    Duplicate(Local<int32_t>(WORD_1FFF_AT, 8), 8191, 8);
    Duplicate(Local<int32_t>(WORD_3FFF_AT, 8), 16383, 8);
    Duplicate(Local<int32_t>(WORD_FFFF_AT, 8), 65535, 8);
    Duplicate(Local<int32_t>(WORD_FFFFF_AT, 8), 1048575, 8);
    Duplicate(Local<int32_t>(WORD_FFFFFF_AT, 8), 16777215, 8);
    CopyElementsIn(Local<half>(RULE_AT, 256), gm.rules, 256);
}

// Runs Stage One (Alg. 1) for each token of one request, on its table. `cores` waits for the
// other cores that share the request.
template <typename Cores>
__aicore__ inline void StageOne(const Gm &gm, const Request &q, Cores cores)
{
    // The tensors of one declaration share a buffer, each at another time.
    const LocalTensor<int32_t> header = Local<int32_t>(0, 16);
    const LocalTensor<int32_t> summary = Local<int32_t>(64, 16);
    const LocalTensor<int32_t> word = Local<int32_t>(128, 8);
    const LocalTensor<uint8_t> isFresh = Local<uint8_t>(992, 64), mask = isFresh, unused2 = isFresh;
    const LocalTensor<uint8_t> mask2 = Local<uint8_t>(1056, 64), unused = mask2;
    const LocalTensor<uint8_t> wideHit = Local<uint8_t>(1120, 128), wideMask = wideHit;
    const LocalTensor<uint8_t> wideIsValid = Local<uint8_t>(1248, 128), wideMask2 = wideIsValid;
    const LocalTensor<int32_t> iota = Local<int32_t>(1376, 512);
    const LocalTensor<int32_t> fresh = Local<int32_t>(9568, 512), freshRow = fresh, lane2 = fresh, lived2 = fresh,
        mixed = fresh, offset = fresh, row = fresh, sign = fresh, stride2 = fresh, value2 = fresh, victim = fresh;
    const LocalTensor<int32_t> beyond = Local<int32_t>(11616, 512), fill = beyond, held = beyond, high = beyond,
        linkIndex = beyond, offset2 = beyond, sign4 = beyond, value4 = beyond;
    const LocalTensor<int32_t> fill2 = Local<int32_t>(13664, 512), fingerprint = fill2, lane = fill2, mixed2 = fill2,
        position = fill2, sign2 = fill2, stride = fill2, value3 = fill2;
    const LocalTensor<int32_t> entry = Local<int32_t>(15712, 512), fill3 = entry, high2 = entry, linkIndex2 = entry,
        lived = entry, sign3 = entry, value5 = entry;
    const LocalTensor<int32_t> wideEntry = Local<int32_t>(9568, 1024), wideFingerprint = wideEntry,
        wideHigh = wideEntry, wideLane = wideEntry, wideLived2 = wideEntry, wideMixed = wideEntry,
        wideOffset = wideEntry, wideSign = wideEntry, wideStep = wideEntry, wideStride = wideEntry,
        wideValue = wideEntry, wideX = wideEntry;
    const LocalTensor<int32_t> wideFill = Local<int32_t>(13664, 1024), wideFirstLink = wideFill, wideHeld = wideFill,
        wideHigh2 = wideFill, wideLane2 = wideFill, wideLinkIndex = wideFill, wideLived = wideFill,
        wideOffset2 = wideFill, widePosition = wideFill, wideSign2 = wideFill, wideValue2 = wideFill;
    const LocalTensor<int32_t> id = Local<int32_t>(19296, 8192);
    const LocalTensor<half> life = Local<half>(52064, 8192);
    const LocalTensor<int32_t> link = Local<int32_t>(68448, 16384);
    const LocalTensor<int32_t> ids = Local<int32_t>(133984, 2048), hash = ids, slot = ids;
    const LocalTensor<int32_t> learnedValues = Local<int32_t>(142176, 256);
    const LocalTensor<int32_t> sequence = Local<int32_t>(142176, 2048), linkPosition = sequence;
    const LocalTensor<int32_t> valueOf = Local<int32_t>(143200, 256);
    const LocalTensor<int32_t> sample = Local<int32_t>(144224, 512);
    const LocalTensor<int32_t> sought = Local<int32_t>(144224, 2048), miss2 = sought;
    const LocalTensor<half> value = Local<half>(144224, 8192);
    const LocalTensor<int32_t> secondSequence = Local<int32_t>(150368, 2048);
    const LocalTensor<int32_t> shareSequence = Local<int32_t>(152416, 2048), invalid = shareSequence;
    const LocalTensor<int32_t> candidate = Local<int32_t>(160608, 2048), pending0 = candidate, miss0 = candidate,
        newLink = candidate;
    const LocalTensor<int32_t> pending1 = Local<int32_t>(168800, 2048), miss1 = pending1;
    const LocalTensor<int32_t> dead = Local<int32_t>(176992, 2048);
    const LocalTensor<int8_t> bytes = Local<int8_t>(176992, 8192);
    int32_t pendingLen = 0, missLen = 0, deadLen = 0, invalidLen = 0, outOfRangeLen = 0, outOfPoolLen = 0;
    if (q.tokens > 0) {
        const int32_t shareAt = (q.shared > 0) * q.shareAt;
        CopyIn(ids, gm.ids[q.idsAt + q.idsStride * 0 + shareAt], q.k - shareAt);
    }
    // Copies the table in, and clears the summary.
    CopyIn(header, gm.tables[q.tableAt], HEADER_WORDS);
    CopyIn(bytes.ReinterpretCast<int32_t>(), gm.tables[q.tableAt + LIFE_PLANE], LIFE_PLANE_WORDS);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID5);
    Duplicate(summary, 0, SUMMARY_WORDS);
    SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);
    CopyIn(link, gm.tables[q.tableAt + LINK_PLANE], LINK_PLANE_WORDS);
    CopyIn(id, gm.tables[q.tableAt + ID_PLANE], SLOTS);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID5);
    const int32_t generation = header.GetValue(HEADER_GENERATION);
    // Reset: an empty table for another generation
    if (generation != q.generation) {
        SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
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
        header.SetValue(3, 0);
    }
    header.SetValue(HEADER_GENERATION, q.generation);
    const int32_t top = header.GetValue(HEADER_TOP);
    // Invalidate: removal of rows that were not final before this step
    if (top > q.stable) {
        SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < 8192; base += TILE) {
            const int32_t lanes = ScalarMin(8192 - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            AddsWords(value2, id[base], -q.stable, lanes);
            Duplicate(fill, -1, lanes);
            PipeBarrier<PIPE_V>();
            Duplicate(F16(fill2), static_cast<half>(-128.0f), lanes);
            SignWords(sign, value2, lanes);
            PipeBarrier<PIPE_V>();
            EqualWords(mask, sign, 0, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(id[base], mask, fill, id[base], lanes);
            PipeBarrier<PIPE_V>();
            Select(life[base], mask, F16(fill2), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        }
    }
    header.SetValue(HEADER_TOP, ScalarMax(ScalarMin(top, q.stable), q.limit));
    // Decay: the owner of the request works on learned lifetimes
    if (q.shareAt <= 0) {
        // Decay: the value of each lifetime
        CopyIn(learnedValues, gm.tables[q.tableAt + LEARNED_PLANE], 256);
        SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < 256; base += TILE) {
            const int32_t lanes = ScalarMin(256 - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            AndWord(value2, learnedValues[base], WORD_FF_AT, lanes);
            PipeBarrier<PIPE_V>();
            Duplicate(fill, 254, lanes);
            AddsWords(lane, iota, base, lanes);
            Duplicate(fill3, 255, lanes);
            EqualWords(mask, value2, 255, alignedLanes);
            PipeBarrier<PIPE_V>();
            AddsWords(value3, lane, -240, lanes);
            SelectWords(value4, mask, fill, value2, lanes);
            PipeBarrier<PIPE_V>();
            SignWords(sign2, value3, lanes);
            PipeBarrier<PIPE_V>();
            EqualWords(unused, sign2, -1, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(valueOf[base], unused, value4, fill3, lanes);
        }
        // Decay: the slots of the last step's sample that it used
        const int32_t count = header.GetValue(6);
        CopyIn(sample, gm.tables[q.tableAt + LEARNED_PLANE + 1536], 512);
        SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < 512; base += TILE) {
            const int32_t lanes = ScalarMin(512 - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            AddsWords(lane2, iota, base, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(value4, sample[base], WORD_FF_AT, lanes);
            AddsWords(value2, lane2, ScalarMax(ScalarMin(count, 7680), 0), lanes);
            PipeBarrier<PIPE_V>();
            OrWord(value3, value4, WORD_100_AT, lanes);
            ShiftLeftWords(offset, value2, 1u, lanes);
            PipeBarrier<PIPE_V>();
            Gather(F16(lived), life, U32(offset), 0, lanes);
            PipeBarrier<PIPE_V>();
            Cast(lived2, F16(lived), RoundMode::CAST_RINT, lanes);
            PipeBarrier<PIPE_V>();
            AddsWords(value2, lived2, -113, lanes);
            PipeBarrier<PIPE_V>();
            SignWords(sign, value2, lanes);
            PipeBarrier<PIPE_V>();
            EqualWords(unused2, sign, -1, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(sample[base], unused2, value4, value3, lanes);
        }
        SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.tables[q.tableAt + LEARNED_PLANE + 1024], sample, 512);
        // Decay: the next class for slots whose time in a class is over, and a sample
        const int32_t movesFrom = header.GetValue(4);
        DecayLifetimesFrom(life, 16, movesFrom);
        const int32_t count2 = header.GetValue(5);
        SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
        for (int32_t base = 0; base < 512; base += WIDE) {
            const int32_t lanes = ScalarMin(512 - base, WIDE);
            PipeBarrier<PIPE_V>();
            Indices(wideLane, base, lanes);
            PipeBarrier<PIPE_V>();
            AddsWords(wideValue, wideLane, ScalarMax(ScalarMin(count2, 7680), 0), lanes);
            PipeBarrier<PIPE_V>();
            ShiftLeftWords(wideOffset, wideValue, 1u, lanes);
            PipeBarrier<PIPE_V>();
            Gather(F16(wideLived), life, U32(wideOffset), 0, lanes);
            PipeBarrier<PIPE_V>();
            Cast(wideLived2, F16(wideLived), RoundMode::CAST_RINT, lanes);
            PipeBarrier<PIPE_V>();
            AddsWords(sample[base], wideLived2, 128, lanes);
        }
        SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.tables[q.tableAt + LEARNED_PLANE + 1536], sample, 512);
    }
    outOfRangeLen = 0;
    outOfPoolLen = 0;
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    summary.SetValue(SUMMARY_TOTAL, 0);
    if (q.tokens > 0) {
        // Probe: the probe sequences of the ids, or of this core's share of them
        const int32_t shared = q.shared > 0;
        const int32_t sought2 = ScalarMin(!shared * q.k + shared * q.shareLen, q.k);
        const int32_t k = q.k - shared * q.shareAt;
        SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
        for (int32_t base = 0; base < k; base += WIDE) {
            const int32_t lanes = ScalarMin(k - base, WIDE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            SignWords(wideSign, ids[base], lanes);
            PipeBarrier<PIPE_V>();
            Duplicate(wideFill, -2, lanes);
            EqualWords(wideMask, wideSign, -1, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(sought[base], wideMask, wideFill, ids[base], lanes);
        }
        for (int32_t base = 0; base < k; base += WIDE) {
            const int32_t lanes = ScalarMin(k - base, WIDE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            PipeBarrier<PIPE_V>();
            AddsWords(wideSign, sought[base], -q.limit, lanes);
            Duplicate(wideFill, 16777216, lanes);
            PipeBarrier<PIPE_V>();
            SignWords(wideSign, wideSign, lanes);
            PipeBarrier<PIPE_V>();
            EqualWords(wideMask, wideSign, -1, alignedLanes);
            PipeBarrier<PIPE_V>();
            SelectWords(sought[base], wideMask, sought[base], wideFill, lanes);
        }
        for (int32_t base = 0; base < sought2; base += WIDE) {
            const int32_t lanes = ScalarMin(sought2 - base, WIDE);
            PipeBarrier<PIPE_V>();
            Mix(hash[base], sought[base], 32, MIX_P, MIX_Q, wideHigh, lanes);
        }
        for (int32_t base = 0; base < sought2; base += WIDE) {
            const int32_t lanes = ScalarMin(sought2 - base, WIDE);
            PipeBarrier<PIPE_V>();
            Mix(wideValue, hash[base], 32, STRIDE_P, STRIDE_Q, wideHigh2, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRightWords(wideValue2, hash[base], 6u, lanes);
            ShiftRightWords(wideValue, wideValue, 6u, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(wideLinkIndex, wideValue2, WORD_3FFF_AT, lanes);
            AndWord(wideValue, wideValue, WORD_3FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            OrWord(wideStride, wideValue, WORD_1_AT, lanes);
            PipeBarrier<PIPE_V>();
            MulsWords(wideValue, wideStride, 16384, lanes);
            PipeBarrier<PIPE_V>();
            OrWords(shareSequence[base], wideValue, wideLinkIndex, lanes);
        }
        if (shared) {
            // Probe: all links of an id at once
            PipeBarrier<PIPE_V>();
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            Find(slot, shareSequence, sought, sought2, link, id);
        } else {
            // Probe: one link of each id per pass, from the last to the first
            for (int32_t base = 0; base < sought2; base += WIDE) {
                const int32_t lanes = ScalarMin(sought2 - base, WIDE);
                PipeBarrier<PIPE_V>();
                Duplicate(slot[base], -1, lanes);
            }
            SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            for (int32_t round = 0; round < 8; round++) {
                for (int32_t base = 0; base < sought2; base += WIDE) {
                    const int32_t lanes = ScalarMin(sought2 - base, WIDE);
                    PipeBarrier<PIPE_V>();
                    ShiftRightWords(wideValue, shareSequence[base], 14u, lanes);
                    AndWord(wideFirstLink, shareSequence[base], WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    MulsWords(wideStep, wideValue, 7 - round, lanes);
                    PipeBarrier<PIPE_V>();
                    Add(wideValue2, wideFirstLink, wideStep, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(widePosition, wideValue2, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeftWords(wideOffset2, widePosition, 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(wideEntry, link, U32(wideOffset2), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(candidate[base], wideEntry, WORD_1FFF_AT, lanes);
                }
                for (int32_t base = 0; base < sought2; base += WIDE) {
                    const int32_t lanes = ScalarMin(sought2 - base, WIDE);
                    const int32_t alignedLanes = (lanes + 127) / 128 * 128;
                    PipeBarrier<PIPE_V>();
                    ShiftLeftWords(wideOffset, candidate[base], 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(wideHeld, id, U32(wideOffset), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Compare(wideHit, wideHeld, sought[base], CMPMODE::EQ, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    SelectWords(slot[base], wideHit, candidate[base], slot[base], lanes);
                }
            }
        }
        if (shared) {
            // Probe: exchange of the cores' shares
            SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
            CopyOut(gm.slot[q.slotAt + q.shareAt], slot, sought2);
            cores.WaitForAll();
            if (!q.owner) {
                return;
            }
            CopyIn(slot, gm.slot[q.slotAt], q.k);
        }
        // Probe, pending ids: the ids that have no slot
        pendingLen = 0;
        invalidLen = 0;
        SetWaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < q.k; base += TILE) {
            const int32_t lanes = ScalarMin(q.k - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            PipeBarrier<PIPE_V>();
            AndWord(wideX, sought[base], WORD_FFFFFF_AT, lanes);
            EqualWords(wideMask, slot[base], -1, alignedLanes);
            AddsWords(wideLane2, iota, base, lanes);
            PipeBarrier<PIPE_V>();
            Compare(wideIsValid, sought[base], wideX, CMPMODE::EQ, alignedLanes);
            PipeBarrier<PIPE_V>();
            And(U16(wideMask), U16(wideMask), U16(wideIsValid), alignedLanes / 16);
            PipeBarrier<PIPE_V>();
            Not(U16(wideMask2), U16(wideIsValid), alignedLanes / 16);
            Append(pending0, pendingLen, wideX, wideMask, lanes, true, false);
            pendingLen += Append(pending1, pendingLen, wideLane2, wideMask, lanes, false, true);
            invalidLen += Append(invalid, invalidLen, sought[base], wideMask2, lanes, true, true);
        }
        // Locate: the host row of each miss
        for (int32_t base = 0; base < invalidLen; base += TILE) {
            const int32_t lanes = ScalarMin(invalidLen - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            SignWords(sign, invalid[base], lanes);
            PipeBarrier<PIPE_V>();
            EqualWords(mask, sign, 0, alignedLanes);
            PipeBarrier<PIPE_V>();
            outOfRangeLen += Count(mask, lanes);
        }
        const int32_t outOfPoolBefore = outOfPoolLen;
        missLen = 0;
        const int32_t first = 0 * 2048;
        for (int32_t base = 0; base < pendingLen; base += TILE) {
            const int32_t lanes = ScalarMin(pendingLen - base, TILE);
            const int32_t alignedLanes = (lanes + 127) / 128 * 128;
            AddsWords(fresh, pending0[base], -q.stable, lanes);
            AddsWords(beyond, pending0[base], -q.rows, lanes);
            AddsWords(position, pending1[base], first, lanes);
            PipeBarrier<PIPE_V>();
            SignWords(sign3, fresh, lanes);
            SignWords(sign4, beyond, lanes);
            PipeBarrier<PIPE_V>();
            MulsWords(value2, fresh, -1, lanes);
            EqualWords(isFresh, sign3, 0, alignedLanes);
            EqualWords(mask2, sign4, -1, alignedLanes);
            PipeBarrier<PIPE_V>();
            AddsWords(freshRow, value2, -1, lanes);
            PipeBarrier<PIPE_V>();
            SelectWords(row, isFresh, freshRow, pending0[base], lanes);
            Or(U16(mask2), U16(isFresh), U16(mask2), alignedLanes / 16);
            PipeBarrier<PIPE_V>();
            AppendInPlace(miss0, missLen, pending0[base], mask2, lanes, true, false);
            Not(U16(mask), U16(mask2), alignedLanes / 16);
            Append(miss1, missLen, position, mask2, lanes, false, false);
            missLen += Append(miss2, missLen, row, mask2, lanes, false, true);
            outOfPoolLen += Count(mask, lanes);
        }
        // Locate: publication of the token's misses, after which their columns are free
        word.SetValue(0, q.k - invalidLen + outOfPoolBefore - outOfPoolLen);
        SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.valid[q.validAt], word, 1);
        const int32_t total = summary.GetValue(SUMMARY_TOTAL);
        const int32_t missesAt = q.missAt + total;
        CopyOut(gm.missId[missesAt], miss0, missLen);
        CopyOut(gm.missPos[missesAt], miss1, missLen);
        CopyOut(gm.missRow[missesAt], miss2, missLen);
        summary.SetValue(SUMMARY_MISSES, missLen);
        summary.SetValue(SUMMARY_TOTAL, total + missLen);
        // Refresh: hits that could be chosen as victims
        const int32_t atOnce = 0 + 1 != q.deferred;
        deadLen = 0;
        // CollectDead: the value of each slot
        if (missLen > 0) {
            SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
            MapLifetimes(value, life, valueOf);
        }
        if (!atOnce) {
            if (missLen > 0) {
                const int32_t hint = header.GetValue(HEADER_THRESHOLD);
                PipeBarrier<PIPE_V>();
                const int32_t bound = FindThreshold(value, hint, missLen + 64);
                for (int32_t base = 0; base < q.k; base += TILE) {
                    const int32_t lanes = ScalarMin(q.k - base, TILE);
                    const int32_t alignedLanes = (lanes + 127) / 128 * 128;
                    AndWord(wideOffset, slot[base], WORD_1FFF_AT, lanes);
                    SignWords(wideSign2, slot[base], lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeftWords(wideOffset, wideOffset, 1u, lanes);
                    EqualWords(wideMask, wideSign2, 0, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    Gather(F16(wideLived), value, U32(wideOffset), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Compares(wideMask2, F16(wideLived), static_cast<half>(static_cast<float>(bound + 1)), CMPMODE::LT, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    And(U16(wideMask), U16(wideMask2), U16(wideMask), alignedLanes / 16);
                    PipeBarrier<PIPE_V>();
                    deadLen += Append(dead, deadLen, slot[base], wideMask, lanes, true, true);
                }
            }
        }
        // Refresh: either all hits, or only those that could be chosen as victims, at most 64
        if (atOnce || deadLen > 64) {
            for (int32_t base = 0; base < q.k; base += TILE) {
                const int32_t lanes = ScalarMin(q.k - base, TILE);
                const int32_t alignedLanes = (lanes + 127) / 128 * 128;
                PipeBarrier<PIPE_V>();
                SignWords(sign, slot[base], lanes);
                PipeBarrier<PIPE_V>();
                EqualWords(mask, sign, 0, alignedLanes);
                PipeBarrier<PIPE_V>();
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                RefreshLifetimeMasked(life, slot[base], mask, lanes);
            }
            // CollectDead: the value of each slot
            if (missLen > 0) {
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
                MapLifetimes(value, life, valueOf);
            }
        } else {
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                PipeBarrier<PIPE_V>();
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                RefreshLifetimeAll(life, dead[base], lanes);
            }
            SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
            SetWaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
            for (int32_t base = 0; base < deadLen; base += WIDE) {
                const int32_t lanes = ScalarMin(deadLen - base, WIDE);
                SetLifetimeAll(value, dead[base], static_cast<half>(127.0f), lanes);
            }
        }
        // CollectDead: the slots with the smallest lifetimes, one for each miss
        const int32_t lastThreshold = header.GetValue(HEADER_THRESHOLD);
        SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
        PipeBarrier<PIPE_V>();
        const int32_t threshold = FindThreshold(value, lastThreshold, missLen);
        header.SetValue(HEADER_THRESHOLD, threshold);
        deadLen = 0;
        deadLen = AppendSlots(dead, deadLen, value, CMPMODE::LT, threshold, missLen);
        PipeBarrier<PIPE_V>();
        deadLen = AppendSlots(dead, deadLen, value, CMPMODE::EQ, threshold, missLen);
        SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        CopyOut(gm.missSlot[missesAt], dead, deadLen);
        // UpdateState: the ids of the misses enter the victims
        SetWaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
        for (int32_t base = 0; base < missLen; base += TILE) {
            const int32_t lanes = ScalarMin(missLen - base, TILE);
            PipeBarrier<PIPE_V>();
            Mix(mixed, miss0[base], 24, MIX_P, MIX_Q, high, lanes);
            PipeBarrier<PIPE_V>();
            Mix(value3, mixed, 32, STRIDE_P, STRIDE_Q, high2, lanes);
            ShiftRightWords(value4, mixed, 6u, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRightWords(value3, value3, 6u, lanes);
            AndWord(linkIndex, value4, WORD_3FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(value3, value3, WORD_3FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            OrWord(stride, value3, WORD_1_AT, lanes);
            PipeBarrier<PIPE_V>();
            MulsWords(value3, stride, 16384, lanes);
            PipeBarrier<PIPE_V>();
            OrWords(sequence[base], value3, linkIndex, lanes);
        }
        SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
        for (int32_t base = 0; base < missLen; base += WIDE) {
            const int32_t lanes = ScalarMin(missLen - base, WIDE);
            ScatterAll(id, dead[base], miss0[base], 0, lanes);
        }
        // UpdateState: a link for every miss, and the slots of the misses
        SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
        FindFree(linkPosition, sequence, deadLen, link, id, MIX_P, MIX_Q);
        for (int32_t base = 0; base < missLen; base += WIDE) {
            const int32_t lanes = ScalarMin(missLen - base, WIDE);
            PipeBarrier<PIPE_V>();
            Mix(wideMixed, miss0[base], 24, MIX_P, MIX_Q, wideHigh2, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRightWords(wideValue, wideMixed, 10u, lanes);
            PipeBarrier<PIPE_V>();
            AndWord(wideFingerprint, wideValue, WORD_3FF_AT, lanes);
            PipeBarrier<PIPE_V>();
            MulsWords(wideValue, wideFingerprint, 8192, lanes);
            PipeBarrier<PIPE_V>();
            OrWords(newLink[base], wideValue, dead[base], lanes);
        }
        for (int32_t base = 0; base < missLen; base += WIDE) {
            const int32_t lanes = ScalarMin(missLen - base, WIDE);
            ScatterAll(slot, miss1[base], dead[base], first, lanes);
        }
        for (int32_t base = 0; base < deadLen; base += WIDE) {
            const int32_t lanes = ScalarMin(deadLen - base, WIDE);
            SetLifetimeAll(life, dead[base], static_cast<half>(112.0f), lanes);
        }
        for (int32_t round = 0; round < 2; round++) {
            // UpdateState: the links, of which a later miss overwrites an earlier one
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = ScalarMin(deadLen - base, TILE);
                const int32_t alignedLanes = (lanes + 127) / 128 * 128;
                PipeBarrier<PIPE_V>();
                SignWords(sign, linkPosition[base], lanes);
                PipeBarrier<PIPE_V>();
                EqualWords(mask, sign, 0, alignedLanes);
                PipeBarrier<PIPE_V>();
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                ScatterMasked(link, linkPosition[base], newLink[base], mask, lanes);
            }
            if (round != 1) {
                // UpdateState: another link for the misses whose link was overwritten
                const int32_t deadBefore = deadLen;
                deadLen = 0;
                SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
                for (int32_t base = 0; base < deadBefore; base += TILE) {
                    const int32_t lanes = ScalarMin(deadBefore - base, TILE);
                    const int32_t alignedLanes = (lanes + 127) / 128 * 128;
                    PipeBarrier<PIPE_V>();
                    AndWord(victim, newLink[base], WORD_1FFF_AT, lanes);
                    AndWord(offset2, linkPosition[base], WORD_3FFF_AT, lanes);
                    SignWords(sign2, linkPosition[base], lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeftWords(offset2, offset2, 2u, lanes);
                    EqualWords(mask, sign2, 0, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    Gather(entry, link, U32(offset2), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Compare(mask2, entry, newLink[base], CMPMODE::EQ, alignedLanes);
                    PipeBarrier<PIPE_V>();
                    Not(U16(mask2), U16(mask2), alignedLanes / 16);
                    PipeBarrier<PIPE_V>();
                    And(U16(mask), U16(mask2), U16(mask), alignedLanes / 16);
                    PipeBarrier<PIPE_V>();
                    deadLen += Append(dead, deadLen, victim, mask, lanes, true, true);
                }
                for (int32_t base = 0; base < deadLen; base += TILE) {
                    const int32_t lanes = ScalarMin(deadLen - base, TILE);
                    PipeBarrier<PIPE_V>();
                    ShiftLeftWords(offset, dead[base], 2u, lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(held, id, U32(offset), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(mixed2, held, 32, MIX_P, MIX_Q, high2, lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(value2, mixed2, 32, STRIDE_P, STRIDE_Q, high, lanes);
                    ShiftRightWords(value5, mixed2, 6u, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRightWords(value3, mixed2, 10u, lanes);
                    ShiftRightWords(value2, value2, 6u, lanes);
                    AndWord(linkIndex2, value5, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(fingerprint, value3, WORD_3FF_AT, lanes);
                    AndWord(value2, value2, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    MulsWords(value3, fingerprint, 8192, lanes);
                    OrWord(stride2, value2, WORD_1_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    OrWords(newLink[base], value3, dead[base], lanes);
                    MulsWords(value2, stride2, 16384, lanes);
                    PipeBarrier<PIPE_V>();
                    OrWords(secondSequence[base], value2, linkIndex2, lanes);
                }
                FindFree(linkPosition, secondSequence, deadLen, link, id, MIX_P, MIX_Q);
            }
        }
        SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
        CopyOut(gm.slot[q.slotAt + q.slotStride * 0], slot, q.k);
    }
    summary.SetValue(SUMMARY_STATUS, (outOfRangeLen > 0) + (outOfPoolLen > 0) * 2);
    // Copies the summary and the table out.
    SetWaitFlag<HardEvent::S_V>(EVENT_ID0);
    PipeBarrier<PIPE_V>();
    Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);
    SetWaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    CopyOut(gm.tables[q.tableAt + LINK_PLANE], link, LINK_PLANE_WORDS);
    SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    CopyOut(gm.tables[q.tableAt], header, HEADER_WORDS);
    CopyOut(gm.tables[q.tableAt + ID_PLANE], id, SLOTS);
    SetWaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    CopyOut(gm.tables[q.tableAt + LIFE_PLANE], bytes.ReinterpretCast<int32_t>(), LIFE_PLANE_WORDS);
    CopyOut(gm.summary[q.summaryAt], summary, SUMMARY_WORDS);
}

} // namespace avsg::stage_one
