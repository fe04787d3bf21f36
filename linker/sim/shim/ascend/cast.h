// Cast between the pairs of types, and in the rounding modes of each pair, that dav-c220 has. A
// value that does not fit its new integer type is an error, so that no kernel depends on
// saturation.
#pragma once

#include <limits>

#include "lanes.h"

namespace AscendC {
namespace shim {

constexpr uint32_t mode_bit(RoundMode m) { return 1u << uint32_t(m); }

// CAST_NONE is allowed for exact conversions, and for inexact ones where it is documented to mean
// CAST_RINT. The directed modes are not modelled.
constexpr uint32_t EXACT = mode_bit(RoundMode::CAST_NONE), NEAREST = mode_bit(RoundMode::CAST_RINT);

template <class D, class S> constexpr uint32_t cast_modes() {
    if (one_of<D, half>() && one_of<S, int8_t, uint8_t>()) return EXACT;
    if (one_of<D, half>() && one_of<S, int16_t, float>()) return EXACT | NEAREST;
    if (one_of<S, half>() && one_of<D, int8_t, uint8_t>()) return EXACT | NEAREST;
    if (one_of<S, half>() && one_of<D, int16_t, int32_t>()) return NEAREST;
    if (one_of<D, float>() && one_of<S, half, int16_t>()) return EXACT;
    if (one_of<D, float>() && one_of<S, int32_t>()) return EXACT | NEAREST;
    if (one_of<D, int32_t>() && one_of<S, float>()) return NEAREST;
    return one_of<D, int16_t>() && one_of<S, int32_t>() ? EXACT : 0;
}

// Integers of a magnitude above 2^24 may be inexact in binary32, and become the nearest one.
template <class D, class S> D cast_one(S v, bool &lost) {
    if (!std::is_integral<D>::value) return D(float(v));
    double r = std::is_integral<S>::value ? double(v) : std::nearbyint(double(float(v)));
    lost = !(r >= double(std::numeric_limits<D>::min()) && r <= double(std::numeric_limits<D>::max()));
    return lost ? D(0) : D(int64_t(r));
}

} // namespace shim

template <typename D, typename S>
__aicore__ inline void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, const RoundMode &mode,
                            const uint32_t count, AVSG_SHIM_SITE) {
    constexpr uint32_t modes = shim::cast_modes<D, S>();
    static_assert(modes != 0, "dav-c220 has no such Cast (int32 to half needs a scale: go through float)");
    shim::CallSite x{"Cast", at};
    shim::Core &c = shim::core(x);
    if (!(modes & shim::mode_bit(mode))) shim::fail("dtype", x, "this pair of types has no rounding mode ", int(mode));
    shim::count_of(x, count);
    constexpr uint32_t to_size = sizeof(D), from_size = sizeof(S);
    shim::declare_bytes(c, x, "src", src, count * from_size, false);
    shim::declare_bytes(c, x, "dst", dst, count * to_size, true);
    uint32_t s = src.addr, d = dst.addr;
    if (to_size != from_size || d != s)
        shim::check_disjoint(x, "src", d, d + count * to_size, s, s + count * from_size);
    c.issue(shim::V, x, [&c, x, d, s, count] {
        bool clean = !c.any_undefined(s, count * from_size);
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t from = s + i * from_size, to = d + i * to_size;
            bool lost = false, bad = !clean && c.any_undefined(from, from_size);
            S v = shim::load<S>(c.ub + from);
            shim::store<D>(c.ub + to, shim::cast_one<D, S>(v, lost));
            if (lost && !bad && c.checks)
                shim::fail("overflow", x, "lane ", i, ": ", double(float(v)), " does not fit the destination type");
            if (!clean) bad ? c.undefine(to, to_size) : c.define(to, to_size);
        }
        if (clean) c.define(d, count * to_size);
    });
}

} // namespace AscendC
