// Add, Sub, Mul and Max, and the forms of three of them with a scalar. An undefined bit in an operand makes
// the whole lane of the result undefined. An integer result that does not fit its type is an error,
// because no document says whether the device wraps it.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

// The type in which lanes are computed: 64 bits for integers, and binary32 for half and float.
template <class T> using Wide = std::conditional_t<std::is_integral<T>::value, int64_t, float>;

struct AddOp { template <class W> static W of(W a, W b) { return a + b; } };
struct SubOp { template <class W> static W of(W a, W b) { return a - b; } };
struct MulOp { template <class W> static W of(W a, W b) { return a * b; } };
struct MaxOp { template <class W> static W of(W a, W b) { return a > b ? a : b; } };

// Without a second source the second operand of each lane is `scalar`.
template <class Op, class T, size_t N>
void arithmetic(const CallSite &x, const Lanes &l, const Operand<T> (&operands)[N], T scalar = T(0)) {
    static_assert(one_of<T, half, float, int16_t, int32_t>(),
                  "this operation takes half, float, int16_t or int32_t: reinterpret unsigned data");
    issue_lanes(x, l, operands, [x, scalar](Core &c, const uint32_t (&at)[N], uint32_t n) {
        constexpr uint32_t size = sizeof(T);
        bool clean = !c.any_undefined(at[1], n * size) && (N == 2 || !c.any_undefined(at[N - 1], n * size));
        for (uint32_t i = 0; i < n * size; i += size) {
            bool bad = !clean && (c.any_undefined(at[1] + i, size) || (N > 2 && c.any_undefined(at[N - 1] + i, size)));
            T second = N == 2 ? scalar : load<T>(c.ub + at[N - 1] + i);
            Wide<T> wide = Op::template of<Wide<T>>(load<T>(c.ub + at[1] + i), second);
            T result = T(wide);
            if (std::is_integral<T>::value && Wide<T>(result) != wide && !bad && c.checks)
                fail("overflow", x, "lane ", i / size, ": the result does not fit its integer type, and whether the ",
                     "device wraps or saturates is not documented; mask the factors first");
            store<T>(c.ub + at[0] + i, result);
            if (!clean) bad ? c.undefine(at[0] + i, size) : c.define(at[0] + i, size);
        }
        if (clean) c.define(at[0], n * size);
    });
}

} // namespace shim

// Defines the forms of an instruction with two tensors.
#define AVSG_SHIM_BINARY(NAME, CALL)                                                                                   \
    template <typename T>                                                                                              \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                const int32_t &count, AVSG_SHIM_SITE) {                                                \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, shim::count_of(x, count), {shim::Operand<T>(dst), shim::Operand<T>(src0), shim::Operand<T>(src1)});    \
    }                                                                                                                  \
    template <typename T, typename M>                                                                                  \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                M mask, const uint8_t repeatTime, const BinaryRepeatParams &p, AVSG_SHIM_SITE) {       \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, shim::mask_of<T>(x, mask, repeatTime),                                                                 \
             {shim::Operand<T>(dst, p.dstBlkStride, p.dstRepStride),                                                   \
              shim::Operand<T>(src0, p.src0BlkStride, p.src0RepStride),                                                \
              shim::Operand<T>(src1, p.src1BlkStride, p.src1RepStride)});                                              \
    }

AVSG_SHIM_BINARY(Add, shim::arithmetic<shim::AddOp>)
AVSG_SHIM_BINARY(Sub, shim::arithmetic<shim::SubOp>)
AVSG_SHIM_BINARY(Mul, shim::arithmetic<shim::MulOp>)
AVSG_SHIM_BINARY(Max, shim::arithmetic<shim::MaxOp>)

// Defines the forms of an instruction with a tensor and a scalar. The type of the scalar is deduced
// as well, so that a scalar of any type but T does not compile.
#define AVSG_SHIM_SCALAR(NAME, CALL)                                                                                   \
    template <typename T>                                                                                              \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                 \
                                const int32_t &count, AVSG_SHIM_SITE) {                                                \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, shim::count_of(x, count), {shim::Operand<T>(dst), shim::Operand<T>(src)}, scalar);                     \
    }                                                                                                                  \
    template <typename T, typename M>                                                                                  \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, M mask,         \
                                const uint8_t repeatTime, const UnaryRepeatParams &p, AVSG_SHIM_SITE) {                \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, shim::mask_of<T>(x, mask, repeatTime),                                                                 \
             {shim::Operand<T>(dst, p.dstBlkStride, p.dstRepStride),                                                   \
              shim::Operand<T>(src, p.srcBlkStride, p.srcRepStride)}, scalar);                                         \
    }

AVSG_SHIM_SCALAR(Adds, shim::arithmetic<shim::AddOp>)
AVSG_SHIM_SCALAR(Muls, shim::arithmetic<shim::MulOp>)
AVSG_SHIM_SCALAR(Maxs, shim::arithmetic<shim::MaxOp>)

} // namespace AscendC
