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

template <class Op, class W> void bit_words(Core &c, uint32_t d, uint32_t s0, uint32_t s1, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i += sizeof(W)) {
        uint64_t a = load<W>(c.ub + s0 + i), b = load<W>(c.ub + s1 + i);
        uint64_t ua = load<W>(c.undefined + s0 + i), ub = load<W>(c.undefined + s1 + i);
        store<W>(c.ub + d + i, W(Op::of(a, b)));
        store<W>(c.undefined + d + i, W(Op::undefined(a, ua, b, ub)));
    }
}

template <class Op, class T>
void bitwise(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s0, const LocalTensor<T> &s1,
             const Lanes &l, const OperandLayout &wd, const OperandLayout &w0, const OperandLayout &w1) {
    static_assert(one_of<T, int16_t, uint16_t>(),
                  "And and Or are 16-bit instructions (an int32 count form does half of the data): use "
                  "ReinterpretCast<uint16_t>() and twice the count");
    Core &c = core(x);
    declare_operand<2>(c, x, "src0", s0, l, w0, false);
    declare_operand<2>(c, x, "src1", s1, l, w1, false);
    declare_operand<2>(c, x, "dst", d, l, wd, true);
    check_overlap<2>(x, "src0", l, wd, w0);
    check_overlap<2>(x, "src1", l, wd, w1);
    takes_repeats<2>(c, l);
    c.issue(V, x, [&c, l, wd, w0, w1] {
        const OperandLayout w[3] = {wd, w0, w1};
        for_each_run<2>(l, w, [&](const uint32_t (&a)[3], uint32_t n) {
            uint32_t wide = n * 2 & ~7u;
            bit_words<Op, uint64_t>(c, a[0], a[1], a[2], 0, wide);
            bit_words<Op, uint16_t>(c, a[0], a[1], a[2], wide, n * 2);
        });
    });
}

template <class T>
void invert(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, const Lanes &l,
            const OperandLayout &wd, const OperandLayout &ws) {
    static_assert(one_of<T, int16_t, uint16_t>(), "Not takes int16_t or uint16_t only: reinterpret the mask");
    Core &c = core(x);
    declare_operand<2>(c, x, "src", s, l, ws, false);
    declare_operand<2>(c, x, "dst", d, l, wd, true);
    check_overlap<2>(x, "src", l, wd, ws);
    takes_repeats<2>(c, l);
    c.issue(V, x, [&c, l, wd, ws] {
        const OperandLayout w[2] = {wd, ws};
        for_each_run<2>(l, w, [&](const uint32_t (&a)[2], uint32_t n) {
            for (uint32_t i = 0; i < 2 * n; ++i) {
                c.ub[a[0] + i] = uint8_t(~c.ub[a[1] + i]);
                c.undefined[a[0] + i] = c.undefined[a[1] + i];
            }
        });
    });
}

template <class T> T shifted(T v, uint32_t k, bool left) {
    if (k >= 8 * sizeof(T)) return !left && std::is_signed<T>::value && v < 0 ? T(-1) : T(0);
    return left ? T(v << k) : T(v >> k); // g++ shifts signed numbers arithmetically.
}

template <class T>
void shift(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, T k, bool left, const Lanes &l) {
    Core &c = core(x);
    uint32_t by = uint32_t(k), width = 8 * uint32_t(sizeof(T));
    if (int64_t(k) < 0 || by > width) fail("count", x, "shift by ", int64_t(k), " is not in 0..", width);
    OperandLayout wd = contiguous(d), ws = contiguous(s);
    declare_operand<sizeof(T)>(c, x, "src", s, l, ws, false);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, wd, true);
    check_overlap<sizeof(T)>(x, "src", l, wd, ws);
    takes_repeats<sizeof(T)>(c, l);
    c.issue(V, x, [&c, l, wd, ws, by, left] {
        for (uint32_t i = 0; i < l.n * sizeof(T); i += sizeof(T)) {
            store<T>(c.ub + wd.addr + i, shifted<T>(load<T>(c.ub + ws.addr + i), by, left));
            // The shadow bits shift in the same way: copies of an undefined sign bit are undefined.
            store<T>(c.undefined + wd.addr + i, shifted<T>(load<T>(c.undefined + ws.addr + i), by, left));
        }
    });
}

} // namespace shim

AVSG_SHIM_BINARY(And, shim::bitwise<shim::AndOp>)
AVSG_SHIM_BINARY(Or, shim::bitwise<shim::OrOp>)

template <typename T>
__aicore__ inline void Not(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count,
                           AVSG_SHIM_SITE) {
    shim::CallSite x{"Not", at};
    shim::invert(x, dst, src, shim::count_of(x, count), shim::contiguous(dst), shim::contiguous(src));
}

template <typename T>
__aicore__ inline void ShiftLeft(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &k,
                                 const int32_t &count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, uint16_t, uint32_t>(),
                  "ShiftLeft is modelled for uint16_t and uint32_t: on signed data the device keeps the sign bit, so "
                  "reinterpret it as unsigned");
    shim::CallSite x{"ShiftLeft", at};
    shim::shift<T>(x, dst, src, k, true, shim::count_of(x, count));
}

template <typename T>
__aicore__ inline void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &k,
                                  const int32_t &count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, uint16_t, uint32_t, int16_t, int32_t>(),
                  "ShiftRight takes 16-bit and 32-bit integers");
    shim::CallSite x{"ShiftRight", at};
    shim::shift<T>(x, dst, src, k, false, shim::count_of(x, count));
}

} // namespace AscendC
