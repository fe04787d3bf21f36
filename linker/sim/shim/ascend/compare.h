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

// Without a second source the second operand of each lane is `scalar`.
template <class T, class U, size_t N>
void compare(const CallSite &x, const LocalTensor<U> &d, const Operand<T> (&sources)[N], T scalar, CMPMODE m,
             uint32_t count) {
    static_assert(std::is_same<U, uint8_t>::value, "the result of a comparison is a LocalTensor<uint8_t>");
    static_assert(one_of<T, half, float, int32_t>(), "comparisons take half, float or (EQ only) int32_t");
    if (std::is_same<T, int32_t>::value && m != CMPMODE::EQ)
        fail("dtype", x, "int32 compares for EQ only; the device would ignore the mode and compare for EQ");
    Core &c = core(x);
    Lanes l = count_of(x, count);
    if (!count) return;
    constexpr uint32_t size = sizeof(T), lanes = 256 / size;
    uint32_t whole = count / lanes * lanes, bytes = (count + 7) / 8, to = d.addr;
    for (const Operand<T> &s : sources) {
        declare_operand(c, x, "a source", s, l, false);
        check_disjoint(x, "a source", to, to + bytes, s.at.addr, s.at.addr + count * size);
    }
    declare_bytes(c, x, "dst", d, bytes, true);
    uint32_t s0 = sources[0].at.addr, s1 = sources[N - 1].at.addr;
    c.issue(V, x, [&c, to, s0, s1, scalar, m, whole, bytes] {
        bool clean = !c.any_undefined(s0, whole * size) && !c.any_undefined(s1, whole * size);
        Compared<T> second = scalar;
        for (uint32_t i = 0; i < whole; i += 8) {
            uint32_t bits = 0, undefined_bits = 0;
            for (uint32_t j = 0; j < 8; ++j) {
                uint32_t at = (i + j) * size;
                if (N == 2) second = load<T>(c.ub + s1 + at);
                bits |= uint32_t(holds<Compared<T>>(load<T>(c.ub + s0 + at), second, m)) << j;
                if (!clean && (c.any_undefined(s0 + at, size) || c.any_undefined(s1 + at, size)))
                    undefined_bits |= 1u << j;
            }
            c.ub[to + i / 8] = uint8_t(bits);
            c.undefined[to + i / 8] = uint8_t(undefined_bits);
        }
        // The bits of the tail are not a result of this instruction.
        c.undefine(to + whole / 8, bytes - whole / 8);
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                               CMPMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::compare(shim::CallSite{"Compare", at}, dst, {shim::Operand<T>(src0), shim::Operand<T>(src1)}, T(0), mode,
                  count);
}

template <typename T, typename U>
__aicore__ inline void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar,
                                     CMPMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::compare(shim::CallSite{"Compares", at}, dst, {shim::Operand<T>(src)}, scalar, mode, count);
}

} // namespace AscendC
