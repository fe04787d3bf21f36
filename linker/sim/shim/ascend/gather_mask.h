// GatherMask keeps the elements whose mask bit is set, in their order. The elements of dst from the
// count on are undefined. It returns what the register with its count holds before it has ended, which
// may be the count of an earlier GatherMask. GetGatherMaskRemainCount reads the register again, after a
// flag, which dst needs as well.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

inline bool builtin_bit(uint32_t pattern, uint32_t i) {
    if (pattern == 7) return true;
    return pattern < 3 ? i % 2 == pattern - 1 : i % 4 == pattern - 3;
}

// Compacts `total` contiguous elements under the bits of a tensor, or of a built-in pattern, 1 to 7, if `builtin` is
// not 0.
template <class T, class U>
void compact(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, const LocalTensor<U> &mask,
             uint32_t builtin, bool counter, uint32_t total, const GatherMaskParams &p, uint64_t &rsvd) {
    static_assert(one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "GatherMask takes 16-bit and 32-bit elements");
    static_assert(std::is_unsigned<U>::value && sizeof(U) == sizeof(T),
                  "the pattern of a 16-bit GatherMask is uint16_t and of a 32-bit one uint32_t");
    constexpr uint32_t size = sizeof(T);
    Core &c = core(x);
    c.soc.counter_mode = false; // It sets the mode of the mask, and sets it to normal at its end.
    if (!counter || p.repeatTimes != 1 || p.src0BlockStride != 1)
        fail("count", x, "is modelled in counter mode for one repeat of contiguous elements: true, n, {1, 1, 8, 0}");
    if (total == 0) fail("count", x, "mask 0 in counter mode: the number of elements is 1..2^32-1");
    if (total > UB_BYTES) fail("bounds", x, total, " elements do not fit UB");
    uint32_t from = s.addr, to = d.addr, pattern = mask.addr;
    uint32_t capacity = (d.hi - to) / size, max_kept = total < capacity ? total : capacity;
    declare_bytes(c, x, "src0", s, total * size, false);
    check_disjoint(x, "src0", to, to + max_kept * size, from, from + total * size);
    if (!builtin) {
        declare_bytes(c, x, "pattern", mask, (total + 7) / 8, false);
        check_disjoint(x, "pattern", to, to + max_kept * size, pattern, pattern + (total + 7) / 8);
    }
    declare_bytes(c, x, "dst", d, max_kept * size, true);

    std::vector<uint8_t> data, undefined_bits;
    uint64_t kept = 0;
    uint32_t seq = c.issue_now(V, x, [&] {
        for (uint32_t i = 0; i < total; ++i) {
            uint32_t byte = pattern + i / 8;
            if (!builtin && c.checks && (c.undefined[byte] >> (i % 8) & 1))
                fail("undefined", x, "pattern bit ", i, " (UB byte ", hex(byte), ") was not defined by any instruction");
            if (!(builtin ? builtin_bit(builtin, i) : c.ub[byte] >> (i % 8) & 1)) continue;
            const uint32_t at = from + i * size;
            data.insert(data.end(), c.ub + at, c.ub + at + size);
            undefined_bits.insert(undefined_bits.end(), c.undefined + at, c.undefined + at + size);
            ++kept;
        }
        if (kept > capacity) fail("bounds", x, kept, " elements are kept and the destination has space for ", capacity);
    });
    c.set_count(seq, kept, x);
    rsvd = c.read_count();
    c.defer(V, seq, [&c, to, max_kept, data, undefined_bits] {
        std::copy(data.begin(), data.end(), c.ub + to);
        std::copy(undefined_bits.begin(), undefined_bits.end(), c.undefined + to);
        c.undefine(to + uint32_t(data.size()), max_kept * size - uint32_t(data.size()));
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                                  const LocalTensor<U> &src1Pattern, const bool reduceMode, const uint32_t mask,
                                  const GatherMaskParams &params, uint64_t &rsvdCnt, AVSG_SHIM_SITE) {
    shim::compact(shim::CallSite{"GatherMask", at}, dst, src0, src1Pattern, 0, reduceMode, mask, params, rsvdCnt);
}

template <typename T>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const uint8_t src1Pattern,
                                  const bool reduceMode, const uint32_t mask, const GatherMaskParams &params,
                                  uint64_t &rsvdCnt, AVSG_SHIM_SITE) {
    shim::CallSite x{"GatherMask", at};
    if (src1Pattern < 1 || src1Pattern > 7)
        shim::fail("count", x, "built-in pattern ", int(src1Pattern), " is not in 1..7");
    LocalTensor<std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>> none;
    shim::compact(x, dst, src0, none, src1Pattern, reduceMode, mask, params, rsvdCnt);
}

__aicore__ inline int64_t GetGatherMaskRemainCount(AVSG_SHIM_SITE) {
    shim::CallSite x{"GetGatherMaskRemainCount", at};
    return int64_t(shim::core(x).use_count(x));
}

} // namespace AscendC
