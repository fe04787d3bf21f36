// Compare and Compares give one bit per element, in little-endian bit order. They compare
// whole repeats of 256 bytes only; the bits of a shorter tail are undefined.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

template <class T> bool holds(T a, T b, CMPMODE m) {
    switch (m) {
    case CMPMODE::LT: return a < b;
    case CMPMODE::GT: return a > b;
    case CMPMODE::EQ: return a == b;
    case CMPMODE::LE: return a <= b;
    case CMPMODE::GE: return a >= b;
    default: return a != b;
    }
}

// The type in which lanes are compared: int32_t itself, and binary32 for half and float.
template <class T> using Compared = std::conditional_t<std::is_integral<T>::value, T, float>;

template <class T, bool SCALAR, CMPMODE M>
void compare_rows(Core &c, uint32_t d, uint32_t s0, uint32_t s1, T scalar, uint32_t whole, uint32_t count) {
    bool clean = !c.any_undefined(s0, whole * sizeof(T)) && (SCALAR || !c.any_undefined(s1, whole * sizeof(T)));
    const uint8_t *p0 = c.ub + s0, *p1 = c.ub + s1;
    Compared<T> k = scalar;
    for (uint32_t i = 0; i < whole; i += 8) {
        uint32_t bits = 0, undefined_bits = 0;
        for (uint32_t j = 0; j < 8; ++j) {
            uint32_t at = (i + j) * uint32_t(sizeof(T));
            Compared<T> a = load<T>(p0 + at), b = SCALAR ? k : Compared<T>(load<T>(p1 + at));
            bits |= uint32_t(holds<Compared<T>>(a, b, M)) << j;
            if (!clean && (c.any_undefined(s0 + at, sizeof(T)) || (!SCALAR && c.any_undefined(s1 + at, sizeof(T)))))
                undefined_bits |= 1u << j;
        }
        c.ub[d + i / 8] = uint8_t(bits);
        c.undefined[d + i / 8] = uint8_t(undefined_bits);
    }
    // The bits of the tail are not a result of this instruction.
    for (uint32_t i = whole; i < count; i += 8) c.undefine(d + i / 8, 1);
}

template <class T, bool SCALAR>
void compare(const CallSite &x, const LocalTensor<uint8_t> &d, const LocalTensor<T> &s0, const LocalTensor<T> &s1,
             T scalar, CMPMODE m, uint32_t count) {
    static_assert(one_of<T, half, float, int32_t>(), "comparisons take half, float or (EQ only) int32_t");
    if (std::is_same<T, int32_t>::value && m != CMPMODE::EQ)
        fail("dtype", x, "int32 compares for EQ only; the device would ignore the mode and compare for EQ");
    Core &c = core(x);
    Lanes l = count_of(x, count);
    if (!count) return;
    constexpr uint32_t lanes = 256 / sizeof(T);
    uint32_t whole = count / lanes * lanes, bytes = (count + 7) / 8;
    declare_operand<sizeof(T)>(c, x, "src0", s0, l, contiguous(s0), false);
    if (!SCALAR) declare_operand<sizeof(T)>(c, x, "src1", s1, l, contiguous(s1), false);
    check_aligned(x, "dst", d.addr);
    check_bounds(x, "dst", d.addr, d.addr + bytes, d.lo, d.hi);
    check_disjoint(x, "src0", d.addr, d.addr + bytes, s0.addr, s0.addr + count * uint32_t(sizeof(T)));
    if (!SCALAR) check_disjoint(x, "src1", d.addr, d.addr + bytes, s1.addr, s1.addr + count * uint32_t(sizeof(T)));
    c.writes(d.addr, d.addr + bytes);
    takes_repeats<sizeof(T)>(c, l);
    uint32_t to = d.addr, a = s0.addr, b = s1.addr;
    c.issue(V, x, [&c, to, a, b, scalar, m, whole, count] {
        switch (m) {
        case CMPMODE::LT: return compare_rows<T, SCALAR, CMPMODE::LT>(c, to, a, b, scalar, whole, count);
        case CMPMODE::GT: return compare_rows<T, SCALAR, CMPMODE::GT>(c, to, a, b, scalar, whole, count);
        case CMPMODE::EQ: return compare_rows<T, SCALAR, CMPMODE::EQ>(c, to, a, b, scalar, whole, count);
        case CMPMODE::LE: return compare_rows<T, SCALAR, CMPMODE::LE>(c, to, a, b, scalar, whole, count);
        case CMPMODE::GE: return compare_rows<T, SCALAR, CMPMODE::GE>(c, to, a, b, scalar, whole, count);
        default: return compare_rows<T, SCALAR, CMPMODE::NE>(c, to, a, b, scalar, whole, count);
        }
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                               CMPMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    static_assert(std::is_same<U, uint8_t>::value, "the result of Compare is a LocalTensor<uint8_t>");
    shim::compare<T, false>(shim::CallSite{"Compare", at}, dst, src0, src1, T(0), mode, count);
}

template <typename T, typename U>
__aicore__ inline void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar,
                                     CMPMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    static_assert(std::is_same<U, uint8_t>::value, "the result of Compares is a LocalTensor<uint8_t>");
    shim::compare<T, true>(shim::CallSite{"Compares", at}, dst, src, src, scalar, mode, count);
}

} // namespace AscendC
