// IEEE 754 binary16, computed in binary32. For + - * the result of the binary32 operation, rounded
// to binary16, is the correctly rounded result, because 24 bits are at least 2 * 11 + 2.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "fault.h"

namespace AscendC::shim {

inline float widen_half(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 0x3ff;
    float v = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : std::ldexp(float(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
    return h & 0x8000 ? -v : v;
}

// Returns the binary32 values of all 65536 halves. Lifetimes are halves, and sweeps over them are long, so
// each loaded kernel library computes the conversions once.
AVSG_SHIM_STATE const float *half_values() {
    static const std::vector<float> table = [] {
        std::vector<float> all(65536);
        for (uint32_t h = 0; h < 65536; ++h) all[h] = widen_half(uint16_t(h));
        return all;
    }();
    return table.data();
}

// Rounds to nearest, ties to even.
inline uint16_t narrow_to_half(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) {
        uint32_t odd = (magnitude >> 13) & 1u;
        return uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
    // Below 2^-14 halves are multiples of 2^-24; nearbyint rounds ties to even in the default mode.
    return uint16_t(sign | uint32_t(std::nearbyint(std::fabs(f) * 16777216.0f)));
}

struct Half {
    uint16_t bits;

    Half() = default;
    // The device's half is an arithmetic type, so numbers convert to it and from it without a cast.
    template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>>
    Half(N n) : bits(narrow_to_half(float(n))) {}
    operator float() const { return half_values()[bits]; }
};

static_assert(sizeof(Half) == 2 && std::is_trivially_copyable<Half>::value, "half is two bytes");

} // namespace AscendC::shim

using half = AscendC::shim::Half;
