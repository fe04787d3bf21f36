// GatherMask keeps the elements whose mask bit is set, in their order. The elements of dst from the
// count on are undefined. It returns what the register with its count holds before it has ended, which
// may be the count of an earlier GatherMask. GetGatherMaskRemainCount reads the register again, after a
// flag, which dst needs as well.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

// The elements that a call reads, and the places of their mask bits.
struct Compaction {
    bool counter;
    uint32_t per_repeat, repeats;     // Elements per repeat, and the number of repeats.
    uint32_t src, block, repeat;      // UB address, and strides in bytes.
    uint32_t pattern, pattern_repeat; // UB address, and stride in bytes.
    uint32_t builtin;                 // The built-in pattern, 1 to 7; 0 if the pattern is in UB.
};

inline bool builtin_bit(uint32_t pattern, uint32_t i) {
    if (pattern == 7) return true;
    return pattern < 3 ? i % 2 == pattern - 1 : i % 4 == pattern - 3;
}

template <class T>
void compact(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, bool counter, uint32_t mask,
             const GatherMaskParams &p, uint64_t &rsvd, uint32_t builtin, uint32_t pattern, uint32_t pattern_lo,
             uint32_t pattern_hi) {
    static_assert(one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "GatherMask takes 16-bit and 32-bit elements");
    constexpr uint32_t size = sizeof(T), lanes = 256 / size;
    Core &c = core(x);
    c.soc.counter_mode = false; // It sets the mode of the mask, and sets it to normal at its end.
    Compaction k{counter, lanes, p.repeatTimes, s.addr, p.src0BlockStride * BLOCK, p.src0RepeatStride * BLOCK,
                 pattern, p.src1RepeatStride * BLOCK, builtin};
    if (counter) {
        if (mask == 0) fail("count", x, "mask 0 in counter mode: the number of elements is 1..2^32-1");
        if (p.repeatTimes != 1 || p.src0BlockStride != 1)
            fail("count", x, "counter mode is modelled for one repeat of contiguous elements: {1, 1, 8, 0}");
        k.per_repeat = mask;
    } else if (p.repeatTimes == 0) {
        rsvd = c.read_count();
        return;
    }
    uint64_t total = uint64_t(k.per_repeat) * k.repeats;
    if (total > UB_BYTES) fail("bounds", x, total, " elements do not fit UB");
    check_aligned(x, "src0", s.addr);
    check_aligned(x, "dst", d.addr);
    auto at = [=](uint32_t r, uint32_t i) {
        if (k.counter) return k.src + i * size;
        return k.src + r * k.repeat + i / (BLOCK / size) * k.block + i % (BLOCK / size) * size;
    };
    // The destination must not overlap the source, because a later repeat could read what an
    // earlier repeat has written.
    uint32_t capacity = (d.hi - d.addr) / size, max_kept = total < capacity ? uint32_t(total) : capacity;
    auto source = [&](uint32_t lo, uint32_t hi) {
        check_bounds(x, "src0", lo, hi, s.lo, s.hi);
        c.reads(lo, hi);
        check_disjoint(x, "src0", d.addr, d.addr + max_kept * size, lo, hi);
    };
    for (uint32_t r = 0; r < k.repeats; ++r) {
        if (counter) {
            source(s.addr, s.addr + mask * size);
        } else {
            for (uint32_t b = 0; b < 8; ++b) source(at(r, b * (BLOCK / size)), at(r, b * (BLOCK / size)) + BLOCK);
        }
        if (builtin) continue;
        uint32_t lo = pattern + r * k.pattern_repeat, hi = lo + (k.per_repeat + 7) / 8;
        check_bounds(x, "pattern", lo, hi, pattern_lo, pattern_hi);
        c.reads(lo, hi);
        check_disjoint(x, "pattern", d.addr, d.addr + max_kept * size, lo, hi);
    }
    c.writes(d.addr, d.addr + max_kept * size);
    c.time.takes(&avsg_shim_prices::compact, double((total * size + 255) / 256));

    std::vector<uint8_t> data, undefined_bits;
    uint64_t kept = 0;
    uint32_t seq = c.issue_now(V, x, [&] {
        for (uint32_t r = 0; r < k.repeats; ++r)
            for (uint32_t i = 0; i < k.per_repeat; ++i) {
                bool take;
                if (builtin) {
                    take = builtin_bit(builtin, i);
                } else {
                    uint32_t byte = k.pattern + r * k.pattern_repeat + i / 8;
                    if (c.checks && (c.undefined[byte] >> (i % 8) & 1))
                        fail("undefined", x, "pattern bit ", i, " of repeat ", r, " (UB byte ", hex(byte),
                             ") was not defined by any instruction");
                    take = c.ub[byte] >> (i % 8) & 1;
                }
                if (!take) continue;
                uint32_t from = at(r, i);
                data.insert(data.end(), c.ub + from, c.ub + from + size);
                undefined_bits.insert(undefined_bits.end(), c.undefined + from, c.undefined + from + size);
                ++kept;
            }
        if (kept > capacity) fail("bounds", x, kept, " elements are kept and the destination has space for ", capacity);
    });
    c.set_count(seq, kept, x);
    rsvd = c.read_count();
    uint32_t to = d.addr;
    c.defer(V, seq, [&c, to, max_kept, data, undefined_bits] {
        std::memcpy(c.ub + to, data.data(), data.size());
        std::memcpy(c.undefined + to, undefined_bits.data(), undefined_bits.size());
        c.undefine(to + uint32_t(data.size()), max_kept * size - uint32_t(data.size()));
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                                  const LocalTensor<U> &src1Pattern, const bool reduceMode, const uint32_t mask,
                                  const GatherMaskParams &params, uint64_t &rsvdCnt, AVSG_SHIM_SITE) {
    static_assert(std::is_unsigned<U>::value && sizeof(U) == sizeof(T),
                  "the pattern of a 16-bit GatherMask is uint16_t and of a 32-bit one uint32_t");
    shim::CallSite x{"GatherMask", at};
    shim::check_aligned(x, "pattern", src1Pattern.addr);
    shim::compact(x, dst, src0, reduceMode, mask, params, rsvdCnt, 0, src1Pattern.addr, src1Pattern.lo,
                  src1Pattern.hi);
}

template <typename T>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const uint8_t src1Pattern,
                                  const bool reduceMode, const uint32_t mask, const GatherMaskParams &params,
                                  uint64_t &rsvdCnt, AVSG_SHIM_SITE) {
    shim::CallSite x{"GatherMask", at};
    if (src1Pattern < 1 || src1Pattern > 7)
        shim::fail("count", x, "built-in pattern ", int(src1Pattern), " is not in 1..7");
    shim::compact(x, dst, src0, reduceMode, mask, params, rsvdCnt, src1Pattern, 0, 0, 0);
}

__aicore__ inline int64_t GetGatherMaskRemainCount(AVSG_SHIM_SITE) {
    shim::CallSite x{"GetGatherMaskRemainCount", at};
    return int64_t(shim::core(x).use_count(x));
}

} // namespace AscendC
