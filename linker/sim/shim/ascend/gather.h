// Gather copies the element at byte src + base + offset[i] to dst[i]. An offset that is undefined,
// unaligned or outside of the source tensor is an error; the device would fault or read other data.
#pragma once

#include "lanes.h"

namespace AscendC {

template <typename T>
__aicore__ inline void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                              const LocalTensor<uint32_t> &offset, const uint32_t base, const uint32_t count,
                              AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "Gather takes 16-bit and 32-bit elements; 64-bit data is gathered as two halves");
    shim::CallSite x{"Gather", at};
    shim::Core &c = shim::core(x);
    // The library stores the number of whole repeats in eight bits.
    constexpr uint32_t lanes = 256 / sizeof(T), limit = 255 * lanes + lanes - 1;
    if (count > limit) shim::fail("count", x, "count ", count, " is above ", limit, ", where its repeat count wraps");
    if (!count) return;
    if (base % sizeof(T)) shim::fail("alignment", x, "base ", base, " is no multiple of ", sizeof(T));
    shim::count_of(x, count);
    // CANN's check of the parameters on a CPU demands a block for each whole repeat but the last, and 64 elements for that one.
    const uint32_t whole = count / lanes, last = (whole ? 64 : std::min(count, 64u)) * sizeof(T);
    const uint32_t has = src.hi - src.addr, demanded = last + 32 * (whole ? whole - 1 : 0);
    if (has < demanded)
        shim::fail("bounds", x, "the source has ", has, " bytes, and CANN's check of ", count, " elements demands ", demanded);
    uint32_t bytes = count * uint32_t(sizeof(T)), off_bytes = count * 4;
    shim::check_aligned(x, "src", src.addr);
    shim::declare_bytes(c, x, "offset", offset, off_bytes, false);
    shim::declare_bytes(c, x, "dst", dst, bytes, true);
    if (src.addr + uint64_t(base) >= src.hi)
        shim::fail("bounds", x, "base ", base, " is past the source tensor's end");
    // The elements that are read depend on the offsets. The whole source counts as read, so that
    // the hazard check does not depend on data.
    c.accesses(src.addr + base, src.hi, false);
    shim::check_disjoint(x, "src", dst.addr, dst.addr + bytes, src.addr, src.hi);
    shim::check_disjoint(x, "offset", dst.addr, dst.addr + bytes, offset.addr, offset.addr + off_bytes);
    uint32_t to = dst.addr, from = src.addr + base, end = src.hi, offs = offset.addr;
    c.issue(shim::V, x, [&c, x, to, from, end, offs, count, bytes] {
        if (c.checks && c.any_undefined(offs, count * 4))
            for (uint32_t i = 0; i < count; ++i)
                if (c.any_undefined(offs + 4 * i, 4))
                    shim::fail("undefined", x, "offset ", i, " (UB byte ", shim::hex(offs + 4 * i),
                               ") holds bits that no instruction has defined");
        bool clean = !c.any_undefined(from, end - from);
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t o = shim::load<uint32_t>(c.ub + offs + 4 * i);
            if (o % sizeof(T))
                shim::fail("alignment", x, "offset ", i, " is ", o, ", no multiple of ", sizeof(T));
            if (o + uint64_t(sizeof(T)) > end - from)
                shim::fail("bounds", x, "offset ", i, " is ", o, " (", int32_t(o), "), outside the source's ",
                           end - from, " bytes");
            std::memcpy(c.ub + to + i * sizeof(T), c.ub + from + o, sizeof(T));
            if (!clean) std::memcpy(c.undefined + to + i * sizeof(T), c.undefined + from + o, sizeof(T));
        }
        if (clean) c.define(to, bytes);
    });
}

} // namespace AscendC
