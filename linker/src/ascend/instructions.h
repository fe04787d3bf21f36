// Returns the larger of two scalars.
__aicore__ inline int32_t ScalarMax(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

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
__aicore__ inline void AndWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    And(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = src | w, as AndWord.
__aicore__ inline void OrWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    Or(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// Copies the 32-bit or 16-bit lanes of src under a mask to the start of dst, in order. dst starts on a block.
template <typename T, typename M>
__aicore__ inline void Compact(
    const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<M> &mask, int32_t lanes)
{
    // GatherMask returns the count that its register has before it ends, which may be an earlier one.
    uint64_t earlier = 0;
    if constexpr (sizeof(T) == 4) {
        GatherMask(dst, src, mask.template ReinterpretCast<uint32_t>(), true, lanes, {1, 1, 8, 0}, earlier);
    } else {
        GatherMask(dst, src, mask.template ReinterpretCast<uint16_t>(), true, lanes, {1, 1, 8, 0}, earlier);
    }
}

// Returns the number of lanes that the last Compact kept.
__aicore__ inline int32_t KeptLanes() { return static_cast<int32_t>(GetGatherMaskRemainCount()); }
