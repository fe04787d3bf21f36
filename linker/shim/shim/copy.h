// Copies within UB: Copy, DataCopy from UB to UB, and Brcb. They all run on the vector pipe.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

template <class T>
void copy(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<T> &s, const Lanes &l, const OperandLayout &wd,
          const OperandLayout &ws) {
    Core &c = core(x);
    declare_operand<sizeof(T)>(c, x, "src", s, l, ws, false);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, wd, true);
    check_overlap<sizeof(T)>(x, "src", l, wd, ws);
    takes_repeats<sizeof(T)>(c, l);
    c.issue(V, x, [&c, l, wd, ws] {
        const OperandLayout w[2] = {wd, ws};
        for_each_run<sizeof(T)>(l, w, [&](const uint32_t (&a)[2], uint32_t n) {
            std::memmove(c.ub + a[0], c.ub + a[1], n * sizeof(T));
            std::memmove(c.undefined + a[0], c.undefined + a[1], n * sizeof(T));
        });
    });
}

} // namespace shim

template <typename T, typename M>
__aicore__ inline void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask, const uint8_t repeatTime,
                            const CopyRepeatParams &p, AVSG_SHIM_SITE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy takes 16-bit and 32-bit elements");
    shim::CallSite x{"Copy", at};
    if (!p.dstStride) shim::fail("count", x, "dstStride 0 writes one block eight times");
    shim::copy(x, dst, src, shim::mask_of<T>(x, mask, repeatTime), shim::strided(dst, p.dstStride, p.dstRepeatSize),
               shim::strided(src, p.srcStride, p.srcRepeatSize));
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopy(UB to UB)", at};
    if (count * sizeof(T) % shim::BLOCK)
        shim::fail("count", x, count, " elements are ", count * sizeof(T), " bytes, no multiple of 32");
    shim::copy(x, dst, src, shim::count_of(x, count), shim::contiguous(dst), shim::contiguous(src));
}

// Brcb fills one block at dst + r * dstRepStride + e * dstBlkStride (both in blocks) with element e
// of repeat r.
template <typename T>
__aicore__ inline void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t repeatTime,
                            const BrcbRepeatParams &p, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "Brcb takes 16-bit and 32-bit elements");
    shim::CallSite x{"Brcb", at};
    shim::Core &c = shim::core(x);
    if (!repeatTime) return;
    if (!p.dstBlkStride) shim::fail("count", x, "dstBlkStride 0 writes one block eight times");
    uint64_t all[2] = {~uint64_t(0), sizeof(T) == 2 ? ~uint64_t(0) : 0};
    shim::Lanes l = shim::mask_of<T>(x, all, repeatTime), in = shim::count_of(x, repeatTime * 8);
    shim::OperandLayout wd = shim::strided(dst, p.dstBlkStride, p.dstRepStride);
    shim::declare_operand<sizeof(T)>(c, x, "src", src, in, shim::contiguous(src), false);
    shim::declare_operand<sizeof(T)>(c, x, "dst", dst, l, wd, true);
    for (const shim::Range &r : shim::ranges<sizeof(T)>(l, wd))
        shim::check_disjoint(x, "src", r.lo, r.hi, src.addr, src.addr + in.n * uint32_t(sizeof(T)));
    shim::takes_repeats<sizeof(T)>(c, l);
    uint32_t from = src.addr, n = in.n;
    c.issue(shim::V, x, [&c, wd, from, n] {
        for (uint32_t i = 0; i < n; ++i)
            for (uint32_t j = 0; j < shim::BLOCK; j += sizeof(T)) {
                uint32_t to = wd.addr + i / 8 * wd.repeat + i % 8 * wd.block + j;
                std::memcpy(c.ub + to, c.ub + from + i * sizeof(T), sizeof(T));
                std::memcpy(c.undefined + to, c.undefined + from + i * sizeof(T), sizeof(T));
            }
    });
}

} // namespace AscendC
