// avsg_instructions.h: instructions of the vector unit as Stage One writes them.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg::stage_one {

// Returns the larger of two scalars.
__aicore__ inline int32_t ScalarMax(int32_t a, int32_t b) { return a > b ? a : b; }

// Views of the bytes of a tensor as elements of another type.
__aicore__ inline LocalTensor<uint32_t> U32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<uint32_t>(); }
__aicore__ inline LocalTensor<float> F32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<float>(); }
__aicore__ inline LocalTensor<half> F16(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<half>(); }
template <typename T> __aicore__ inline LocalTensor<uint16_t> U16(const LocalTensor<T> &x)
{
    return x.template ReinterpretCast<uint16_t>();
}
template <typename T> __aicore__ inline LocalTensor<uint64_t> U64(const LocalTensor<T> &x)
{
    return x.template ReinterpretCast<uint64_t>();
}

// dst = src & w for `lanes` 32-bit lanes, rounded up to 64. `word` is the UB address of a block
// that holds w eight times. And has 16-bit lanes, and strides of 0 make every repeat read that
// block as the second operand.
AVSG_NOINLINE void AndWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    And(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = src | w, as AndWord.
AVSG_NOINLINE void OrWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    Or(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// Instructions over n lanes of 32 bits. A call of one of these functions is shorter than the instruction with
// the mask that it sets and resets.
AVSG_NOINLINE void AddsWords(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, int32_t value, int32_t n)
{
    Adds(dst, src, value, n);
}

AVSG_NOINLINE void MulsWords(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, int32_t value, int32_t n)
{
    Muls(dst, src, value, n);
}

AVSG_NOINLINE void ShiftLeftWords(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t bits, int32_t n)
{
    ShiftLeft(U32(dst), U32(src), bits, n);
}

// Shifts in zeros.
AVSG_NOINLINE void ShiftRightWords(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t bits, int32_t n)
{
    ShiftRight(U32(dst), U32(src), bits, n);
}

// dst = src < 0 ? -1 : 0.
AVSG_NOINLINE void SignWords(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, int32_t n)
{
    ShiftRight(dst, src, 31, n);
}

// Sets the bits of dst for the lanes that are equal to a value.
AVSG_NOINLINE void EqualWords(const LocalTensor<uint8_t> &dst, const LocalTensor<int32_t> &src, int32_t value, int32_t n)
{
    Compares(dst, src, value, CMPMODE::EQ, n);
}

// dst = mask ? yes : no.
AVSG_NOINLINE void SelectWords(const LocalTensor<int32_t> &dst, const LocalTensor<uint8_t> &mask,
    const LocalTensor<int32_t> &yes, const LocalTensor<int32_t> &no, int32_t n)
{
    Select(F32(dst), mask, F32(yes), F32(no), SELMODE::VSEL_TENSOR_TENSOR_MODE, n);
}

// dst = a | b.
AVSG_NOINLINE void OrWords(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &a, const LocalTensor<int32_t> &b, int32_t n)
{
    Or(U16(dst), U16(a), U16(b), 2 * n);
}

// The words of a mask under which GatherMask copies elements of so many bytes.
template <uint32_t BYTES> struct MaskWords;
template <> struct MaskWords<2> { using Type = uint16_t; };
template <> struct MaskWords<4> { using Type = uint32_t; };

// Copies the 32-bit or 16-bit lanes of src under a mask to the start of dst, in order. dst starts on a block.
template <typename T, typename M>
__aicore__ inline void Compact(
    const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<M> &mask, int32_t lanes)
{
    // GatherMask returns the count that its register has before it ends, which may be an earlier one.
    uint64_t earlier = 0;
    const auto words = mask.template ReinterpretCast<typename MaskWords<sizeof(T)>::Type>();
    GatherMask(dst, src, words, true, lanes, {1, 1, 8, 0}, earlier);
}

// Returns the number of lanes that the last Compact kept.
__aicore__ inline int32_t KeptLanes() { return static_cast<int32_t>(GetGatherMaskRemainCount()); }

} // namespace avsg::stage_one
