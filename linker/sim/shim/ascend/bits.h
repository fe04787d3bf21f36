// And, Or and Not on 16-bit lanes, and shifts by a constant. Each bit of a result has its own
// definedness: a defined 0 decides a bit of And and a defined 1 decides a bit of Or whatever the
// other operand is, so a kernel can clear the undefined tail of a mask.
#pragma once

#include "arithmetic.h"

namespace AscendC {
namespace shim {

struct AndOp {
    static uint64_t of(uint64_t a, uint64_t b) { return a & b; }
    static uint64_t undefined(uint64_t a, uint64_t ua, uint64_t b, uint64_t ub) {
        return (ua | ub) & (a | ua) & (b | ub);
    }
};
struct OrOp {
    static uint64_t of(uint64_t a, uint64_t b) { return a | b; }
    static uint64_t undefined(uint64_t a, uint64_t ua, uint64_t b, uint64_t ub) {
        return (ua | ub) & (~a | ua) & (~b | ub);
    }
};
// It has one source, which is both operands.
struct NotOp {
    static uint64_t of(uint64_t a, uint64_t) { return ~a; }
    static uint64_t undefined(uint64_t, uint64_t ua, uint64_t, uint64_t) { return ua; }
};

template <class Op, class W, size_t N>
void bit_words(Core &c, const uint32_t (&at)[N], uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i += sizeof(W)) {
        uint64_t a = load<W>(c.ub + at[1] + i), b = load<W>(c.ub + at[N - 1] + i);
        uint64_t ua = load<W>(c.undefined + at[1] + i), ub = load<W>(c.undefined + at[N - 1] + i);
        store<W>(c.ub + at[0] + i, W(Op::of(a, b)));
        store<W>(c.undefined + at[0] + i, W(Op::undefined(a, ua, b, ub)));
    }
}

template <class Op, class T, size_t N>
void bitwise(const CallSite &x, const Lanes &l, const Operand<T> (&operands)[N]) {
    static_assert(one_of<T, int16_t, uint16_t>(),
                  "And, Or and Not are 16-bit instructions (an int32 count form does half of the data): use "
                  "ReinterpretCast<uint16_t>() and twice the count");
    issue_lanes(x, l, operands, [](Core &c, const uint32_t (&at)[N], uint32_t n) {
        uint32_t wide = n * 2 & ~7u;
        bit_words<Op, uint64_t>(c, at, 0, wide);
        bit_words<Op, uint16_t>(c, at, wide, n * 2);
    });
}

template <class T> T shifted(T v, uint32_t k, bool left) {
    if (k >= 8 * sizeof(T)) return !left && std::is_signed<T>::value && v < 0 ? T(-1) : T(0);
    return left ? T(v << k) : T(v >> k); // g++ shifts signed numbers arithmetically.
}

template <class T>
void shift(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, T k, bool left, int32_t count) {
    uint32_t by = uint32_t(k), width = 8 * uint32_t(sizeof(T));
    if (int64_t(k) < 0 || by > width) fail("count", x, "shift by ", int64_t(k), " is not in 0..", width);
    issue_lanes(x, count_of(x, count), {Operand<T>(d), Operand<T>(s)},
                [by, left](Core &c, const uint32_t (&at)[2], uint32_t n) {
        // The shadow bits shift in the same way: copies of an undefined sign bit are undefined.
        for (uint8_t *memory : {c.ub, c.undefined})
            for (uint32_t i = 0; i < n * sizeof(T); i += sizeof(T))
                store<T>(memory + at[0] + i, shifted<T>(load<T>(memory + at[1] + i), by, left));
    });
}

} // namespace shim

AVSG_SHIM_BINARY(And, shim::bitwise<shim::AndOp>)
AVSG_SHIM_BINARY(Or, shim::bitwise<shim::OrOp>)

template <typename T>
__aicore__ inline void Not(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count,
                           AVSG_SHIM_SITE) {
    shim::CallSite x{"Not", at};
    shim::bitwise<shim::NotOp>(x, shim::count_of(x, count), {shim::Operand<T>(dst), shim::Operand<T>(src)});
}

template <typename T>
__aicore__ inline void ShiftLeft(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &k,
                                 const int32_t &count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, uint16_t, uint32_t>(),
                  "ShiftLeft is modelled for uint16_t and uint32_t: on signed data the device keeps the sign bit, so "
                  "reinterpret it as unsigned");
    shim::shift<T>(shim::CallSite{"ShiftLeft", at}, dst, src, k, true, count);
}

template <typename T>
__aicore__ inline void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &k,
                                  const int32_t &count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, uint16_t, uint32_t, int16_t, int32_t>(),
                  "ShiftRight takes 16-bit and 32-bit integers");
    shim::shift<T>(shim::CallSite{"ShiftRight", at}, dst, src, k, false, count);
}

} // namespace AscendC
