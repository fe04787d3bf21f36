// Add, Sub, Mul and Max, and the forms of three of them with a scalar. An undefined bit in an operand makes
// the whole lane of the result undefined. An integer result that does not fit its type is an error,
// because no document says whether the device wraps it.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

template <class T> T narrowed(int64_t v, bool &over) {
    T t = T(v);
    over |= int64_t(t) != v;
    return t;
}

template <class T, bool INT = std::is_integral<T>::value> struct Number;

template <class T> struct Number<T, true> {
    static T add(T a, T b, bool &over) { return narrowed<T>(int64_t(a) + int64_t(b), over); }
    static T sub(T a, T b, bool &over) { return narrowed<T>(int64_t(a) - int64_t(b), over); }
    static T mul(T a, T b, bool &over) { return narrowed<T>(int64_t(a) * int64_t(b), over); }
    static T max(T a, T b, bool &) { return a > b ? a : b; }
};

template <class T> struct Number<T, false> {
    static T add(T a, T b, bool &) { return T(float(a) + float(b)); }
    static T sub(T a, T b, bool &) { return T(float(a) - float(b)); }
    static T mul(T a, T b, bool &) { return T(float(a) * float(b)); }
    static T max(T a, T b, bool &) { return float(a) > float(b) ? a : b; }
};

struct AddOp {
    template <class T> static T of(T a, T b, bool &o) { return Number<T>::add(a, b, o); }
};
struct SubOp {
    template <class T> static T of(T a, T b, bool &o) { return Number<T>::sub(a, b, o); }
};
struct MulOp {
    template <class T> static T of(T a, T b, bool &o) { return Number<T>::mul(a, b, o); }
};
struct MaxOp {
    template <class T> static T of(T a, T b, bool &o) { return Number<T>::max(a, b, o); }
};

[[noreturn]] inline void overflowed(const CallSite &x, uint32_t lane) {
    fail("overflow", x, "lane ", lane, ": the result does not fit its integer type, and whether the device wraps ",
         "or saturates is not documented; mask the factors first");
}

// Computes `n` contiguous lanes; with SCALAR the second operand is `scalar` instead of a tensor.
template <class T, class Op, bool SCALAR>
void arithmetic_run(Core &c, const CallSite &x, uint32_t d, uint32_t s0, uint32_t s1, T scalar, uint32_t n) {
    uint32_t bytes = n * uint32_t(sizeof(T));
    bool clean = !c.any_undefined(s0, bytes) && (SCALAR || !c.any_undefined(s1, bytes));
    uint8_t *pd = c.ub + d;
    const uint8_t *p0 = c.ub + s0, *p1 = c.ub + s1;
    bool over = false;
    if (clean) {
        for (uint32_t i = 0; i < bytes; i += sizeof(T)) {
            store<T>(pd + i, Op::template of<T>(load<T>(p0 + i), SCALAR ? scalar : load<T>(p1 + i), over));
            if (over && c.checks) overflowed(x, i / uint32_t(sizeof(T)));
        }
        c.define(d, bytes);
        return;
    }
    for (uint32_t i = 0; i < bytes; i += sizeof(T)) {
        bool bad = c.any_undefined(s0 + i, sizeof(T)) || (!SCALAR && c.any_undefined(s1 + i, sizeof(T)));
        over = false;
        store<T>(pd + i, Op::template of<T>(load<T>(p0 + i), SCALAR ? scalar : load<T>(p1 + i), over));
        if (over && !bad && c.checks) overflowed(x, i / uint32_t(sizeof(T)));
        bad ? c.undefine(d + i, sizeof(T)) : c.define(d + i, sizeof(T));
    }
}

template <class Op, class T>
void binary(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s0, const LocalTensor<T> &s1,
            const Lanes &l, const OperandLayout &wd, const OperandLayout &w0, const OperandLayout &w1) {
    static_assert(one_of<T, half, float, int16_t, int32_t>(),
                  "this operation takes half, float, int16_t or int32_t: reinterpret unsigned data");
    Core &c = core(x);
    declare_operand<sizeof(T)>(c, x, "src0", s0, l, w0, false);
    declare_operand<sizeof(T)>(c, x, "src1", s1, l, w1, false);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, wd, true);
    check_overlap<sizeof(T)>(x, "src0", l, wd, w0);
    check_overlap<sizeof(T)>(x, "src1", l, wd, w1);
    takes_repeats<sizeof(T)>(c, l);
    c.issue(V, x, [&c, x, l, wd, w0, w1] {
        const OperandLayout w[3] = {wd, w0, w1};
        for_each_run<sizeof(T)>(l, w, [&](const uint32_t (&a)[3], uint32_t n) {
            arithmetic_run<T, Op, false>(c, x, a[0], a[1], a[2], T(0), n);
        });
    });
}

template <class Op, class T>
void with_scalar(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, T scalar, const Lanes &l,
                 const OperandLayout &wd, const OperandLayout &ws) {
    static_assert(one_of<T, half, float, int16_t, int32_t>(),
                  "this operation takes half, float, int16_t or int32_t: reinterpret unsigned data");
    Core &c = core(x);
    declare_operand<sizeof(T)>(c, x, "src", s, l, ws, false);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, wd, true);
    check_overlap<sizeof(T)>(x, "src", l, wd, ws);
    takes_repeats<sizeof(T)>(c, l);
    c.issue(V, x, [&c, x, l, wd, ws, scalar] {
        const OperandLayout w[2] = {wd, ws};
        for_each_run<sizeof(T)>(l, w, [&](const uint32_t (&a)[2], uint32_t n) {
            arithmetic_run<T, Op, true>(c, x, a[0], a[1], a[1], scalar, n);
        });
    });
}

} // namespace shim

// Defines the forms of an instruction with two source tensors: the count form, and the repeat form,
// whose mask is a number of lanes or two words of bits.
#define AVSG_SHIM_BINARY(NAME, CALL)                                                                                   \
    template <typename T>                                                                                              \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                const int32_t &count, AVSG_SHIM_SITE) {                                                \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, dst, src0, src1, shim::count_of(x, count), shim::contiguous(dst), shim::contiguous(src0),              \
             shim::contiguous(src1));                                                                                  \
    }                                                                                                                  \
    template <typename T, typename M>                                                                                  \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                M mask, const uint8_t repeatTime, const BinaryRepeatParams &p, AVSG_SHIM_SITE) {       \
        shim::CallSite x{#NAME, at};                                                                                   \
        shim::Lanes l = shim::mask_of<T>(x, mask, repeatTime);                                                         \
        if (!p.dstBlkStride) shim::fail("count", x, "dstBlkStride 0 writes one block eight times");                    \
        CALL(x, dst, src0, src1, l, shim::strided(dst, p.dstBlkStride, p.dstRepStride),                                \
             shim::strided(src0, p.src0BlkStride, p.src0RepStride),                                                    \
             shim::strided(src1, p.src1BlkStride, p.src1RepStride));                                                   \
    }

AVSG_SHIM_BINARY(Add, shim::binary<shim::AddOp>)
AVSG_SHIM_BINARY(Sub, shim::binary<shim::SubOp>)
AVSG_SHIM_BINARY(Mul, shim::binary<shim::MulOp>)
AVSG_SHIM_BINARY(Max, shim::binary<shim::MaxOp>)

// Defines the forms of an instruction with a tensor and a scalar. The type of the scalar is deduced
// as well, so that a scalar of any type but T does not compile.
#define AVSG_SHIM_SCALAR(NAME, CALL)                                                                                   \
    template <typename T>                                                                                              \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                 \
                                const int32_t &count, AVSG_SHIM_SITE) {                                                \
        shim::CallSite x{#NAME, at};                                                                                   \
        CALL(x, dst, src, scalar, shim::count_of(x, count), shim::contiguous(dst), shim::contiguous(src));             \
    }                                                                                                                  \
    template <typename T, typename M>                                                                                  \
    __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, M mask,         \
                                const uint8_t repeatTime, const UnaryRepeatParams &p, AVSG_SHIM_SITE) {                \
        shim::CallSite x{#NAME, at};                                                                                   \
        shim::Lanes l = shim::mask_of<T>(x, mask, repeatTime);                                                         \
        if (!p.dstBlkStride) shim::fail("count", x, "dstBlkStride 0 writes one block eight times");                    \
        CALL(x, dst, src, scalar, l, shim::strided(dst, p.dstBlkStride, p.dstRepStride),                               \
             shim::strided(src, p.srcBlkStride, p.srcRepStride));                                                      \
    }

AVSG_SHIM_SCALAR(Adds, shim::with_scalar<shim::AddOp>)
AVSG_SHIM_SCALAR(Muls, shim::with_scalar<shim::MulOp>)
AVSG_SHIM_SCALAR(Maxs, shim::with_scalar<shim::MaxOp>)

} // namespace AscendC
