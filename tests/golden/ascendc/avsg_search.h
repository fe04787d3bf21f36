// avsg_search.h: searches for the links of ids, and for links that can be reused.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, learned lifetimes, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_ops.h"

namespace avsg::stage_one {

// Gathers the LINKS links of each of `count` probe sequences into search column 1: link n of
// sequence i goes to lane n * lanes + i. `lanes` is count rounded up to 8; the lanes above count
// read link 0. Columns 0 and 2 are overwritten.
AVSG_NOINLINE void GatherLinks(const LocalTensor<int32_t> &sequence, const LocalTensor<int32_t> &link, int32_t count,
    int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(SEARCH0_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> stride = Local<int32_t>(SEARCH2_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> links = Local<int32_t>(SEARCH1_AT, SEARCH_WORDS);
    Duplicate(at, 0, lanes);
    Duplicate(stride, 0, lanes);
    PipeBarrier<PIPE_V>();
    AddsWords(at, sequence, 0, count);
    ShiftRightWords(stride, sequence, LINK_BITS, count);
    PipeBarrier<PIPE_V>();
    AndWord(at, at, POSITION_WORD_AT, lanes);
    for (int32_t n = 1; n < LINKS; n++) {
        PipeBarrier<PIPE_V>();
        Add(at[n * lanes], at[(n - 1) * lanes], stride, lanes);
    }
    PipeBarrier<PIPE_V>();
    AndWord(at, at, POSITION_WORD_AT, LINKS * lanes);
    PipeBarrier<PIPE_V>();
    ShiftLeftWords(at, at, 2u, LINKS * lanes);
    PipeBarrier<PIPE_V>();
    Gather(links, link, U32(at), 0, LINKS * lanes);
}

// dst[i] = the result of sequence i at its first link under the mask of the search, or -1 if there is
// none, for `count` sequences. `result` has LINKS * lanes words, ordered as GatherLinks orders links,
// each with its priority; it is overwritten.
AVSG_NOINLINE void SelectFirstLink(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &result, int32_t count,
    int32_t lanes)
{
    const LocalTensor<uint8_t> found = Local<uint8_t>(LINK_MASK_AT, SEARCH_WORDS / 8);
    Select(F32(result), found, F32(result), 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, LINKS * lanes);
    int32_t n = LINKS;
    for (int32_t half = 0; half < LINKS && n > 1; half++) {
        PipeBarrier<PIPE_V>();
        Max(result, result, result[(n - n / 2) * lanes], n / 2 * lanes);
        n = n - n / 2;
    }
    PipeBarrier<PIPE_V>();
    AndWord(result, result, RESULT_WORD_AT, count);
    PipeBarrier<PIPE_V>();
    AddsWords(dst, result, -1, count);
}

// slot[i] = the slot that contains sought[i], or -1 if no link of its probe sequence names such a
// slot, for n ids. `sequence` holds each id's first link and stride; `link` and `id` are the
// table's planes.
__aicore__ inline void Find(const LocalTensor<int32_t> &slot, const LocalTensor<int32_t> &sequence,
    const LocalTensor<int32_t> &sought, int32_t n, const LocalTensor<int32_t> &link, const LocalTensor<int32_t> &id)
{
    const LocalTensor<int32_t> linkSlot = Local<int32_t>(SEARCH1_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> offset = Local<int32_t>(SEARCH0_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> held = Local<int32_t>(SEARCH2_AT, SEARCH_WORDS);
    const LocalTensor<uint8_t> found = Local<uint8_t>(LINK_MASK_AT, SEARCH_WORDS / 8);
    for (int32_t base = 0; base < n; base += SEARCH_IDS) {
        const int32_t count = ScalarMin(n - base, SEARCH_IDS);
        const int32_t lanes = (count + 7) / 8 * 8;
        const int32_t all = LINKS * lanes;
        GatherLinks(sequence[base], link, count, lanes);
        PipeBarrier<PIPE_V>();
        AndWord(linkSlot, linkSlot, SLOT_WORD_AT, all);
        PipeBarrier<PIPE_V>();
        ShiftLeftWords(offset, linkSlot, 2u, all);
        PipeBarrier<PIPE_V>();
        Gather(held, id, U32(offset), 0, all);
        PipeBarrier<PIPE_V>();
        for (int32_t nth = 0; nth < LINKS; nth++) {
            Sub(held[nth * lanes], held[nth * lanes], sought[base], lanes);
            AddsWords(linkSlot[nth * lanes], linkSlot[nth * lanes], (LINKS - 1 - nth) * 1048576 + 1, lanes);
        }
        PipeBarrier<PIPE_V>();
        EqualWords(found, held, 0, (all + 127) / 128 * 128);
        PipeBarrier<PIPE_V>();
        SelectFirstLink(slot[base], linkSlot, count, lanes);
    }
}

// at[i] = the position of the first link of probe sequence i whose fingerprint differs from the
// fingerprint of the id in its slot, or -1 if there is none, for n sequences. Such a link may be
// overwritten; a link that was never written has the fingerprint of no id. `link` and `id` are the
// table's planes, and p and q the multipliers that hash an id.
AVSG_NOINLINE void FindFree(const LocalTensor<int32_t> &at, const LocalTensor<int32_t> &sequence, int32_t n,
    const LocalTensor<int32_t> &link, const LocalTensor<int32_t> &id, int32_t p, int32_t q)
{
    const LocalTensor<int32_t> mixed = Local<int32_t>(SEARCH0_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> fingerprint = Local<int32_t>(SEARCH1_AT, SEARCH_WORDS);
    const LocalTensor<int32_t> held = Local<int32_t>(SEARCH2_AT, SEARCH_WORDS);
    const LocalTensor<uint8_t> found = Local<uint8_t>(LINK_MASK_AT, SEARCH_WORDS / 8);
    for (int32_t base = 0; base < n; base += SEARCH_IDS) {
        const int32_t count = ScalarMin(n - base, SEARCH_IDS);
        const int32_t lanes = (count + 7) / 8 * 8;
        const int32_t all = LINKS * lanes;
        const int32_t repeats = (all + 127) / 128 * 128;
        PipeBarrier<PIPE_V>();
        GatherLinks(sequence[base], link, count, lanes);
        PipeBarrier<PIPE_V>();
        AndWord(mixed, fingerprint, SLOT_WORD_AT, all);
        PipeBarrier<PIPE_V>();
        ShiftLeftWords(mixed, mixed, 2u, all);
        ShiftRightWords(fingerprint, fingerprint, SLOT_BITS, all);
        PipeBarrier<PIPE_V>();
        Gather(held, id, U32(mixed), 0, all);
        PipeBarrier<PIPE_V>();
        AndWord(mixed, held, WORD_FFFF_AT, all);
        PipeBarrier<PIPE_V>();
        ShiftRightWords(held, held, 16u, all);
        PipeBarrier<PIPE_V>();
        SumOfProducts(mixed, held, 32, p, q, all);
        PipeBarrier<PIPE_V>();
        ShiftRightWords(mixed, mixed, FINGERPRINT_SHIFT, all);
        PipeBarrier<PIPE_V>();
        AndWord(mixed, mixed, FINGERPRINT_WORD_AT, all);
        PipeBarrier<PIPE_V>();
        Compare(found, fingerprint, mixed, CMPMODE::EQ, repeats);
        PipeBarrier<PIPE_V>();
        Not(U16(found), U16(found), repeats / 16);
        // The number of the first such link in its sequence.
        for (int32_t nth = 0; nth < LINKS; nth++) {
            Duplicate(fingerprint[nth * lanes], (LINKS - 1 - nth) * 1048576 + 1 + nth, lanes);
        }
        PipeBarrier<PIPE_V>();
        SelectFirstLink(fingerprint, fingerprint, count, lanes);
        // The position of that link: first position + number * stride, modulo the links.
        ShiftRightWords(held, sequence[base], LINK_BITS, count);
        AddsWords(mixed, sequence[base], 0, count);
        PipeBarrier<PIPE_V>();
        Mul(held, held, fingerprint, count);
        AndWord(mixed, mixed, POSITION_WORD_AT, count);
        PipeBarrier<PIPE_V>();
        Add(held, held, mixed, count);
        SignWords(fingerprint, fingerprint, count);
        PipeBarrier<PIPE_V>();
        AndWord(held, held, POSITION_WORD_AT, count);
        PipeBarrier<PIPE_V>();
        OrWords(at[base], held, fingerprint, count);
    }
}

} // namespace avsg::stage_one
