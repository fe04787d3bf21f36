// Sums of half and float. Lanes are added pairwise in a tree, as on the device.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

template <class T> T tree_sum(std::vector<T> v) {
    while (v.size() > 1) {
        std::vector<T> next;
        for (size_t i = 0; i + 1 < v.size(); i += 2) next.push_back(T(float(v[i]) + float(v[i + 1])));
        if (v.size() % 2) next.push_back(v.back());
        v.swap(next);
    }
    return v.empty() ? T(0) : v[0];
}

template <class T> void store_sum(Core &c, uint32_t to, const std::vector<T> &v, bool is_undefined) {
    store<T>(c.ub + to, tree_sum(v));
    is_undefined ? c.undefine(to, sizeof(T)) : c.define(to, sizeof(T));
}

} // namespace shim

// WholeReduceSum gives one sum per repeat; dstRepStride counts elements.
template <typename T, typename M>
__aicore__ inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask,
                                      const int32_t repeatTime, const int32_t dstRepStride,
                                      const int32_t srcBlkStride, const int32_t srcRepStride, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, half, float>(), "sums take half or float; count a mask with GatherMask");
    shim::CallSite x{"WholeReduceSum", at};
    shim::Core &c = shim::core(x);
    if (repeatTime < 0 || dstRepStride < 0 || srcBlkStride < 0 || srcRepStride < 0)
        shim::fail("count", x, "a negative repeat or stride");
    shim::Lanes l = shim::mask_of<T>(x, mask, uint32_t(repeatTime));
    shim::OperandLayout ws = shim::strided(src, uint32_t(srcBlkStride), uint32_t(srcRepStride));
    shim::declare_operand<sizeof(T)>(c, x, "src", src, l, ws, false);
    shim::check_aligned(x, "dst", dst.addr, sizeof(T));
    uint32_t step = uint32_t(dstRepStride) * uint32_t(sizeof(T)), to = dst.addr;
    for (uint32_t r = 0; r < l.repeats; ++r) {
        uint32_t lo = to + r * step, hi = lo + uint32_t(sizeof(T));
        shim::check_bounds(x, "dst", lo, hi, dst.lo, dst.hi);
        c.writes(lo, hi);
        for (const shim::Range &s : shim::ranges<sizeof(T)>(l, ws)) shim::check_disjoint(x, "src", lo, hi, s.lo, s.hi);
    }
    shim::takes_repeats<sizeof(T)>(c, l);
    c.issue(shim::V, x, [&c, l, ws, to, step] {
        for (uint32_t r = 0; r < l.repeats; ++r) {
            std::vector<T> v;
            bool is_undefined = false;
            shim::Lanes one{false, 0, 1, {l.bits[0], l.bits[1]}};
            const shim::OperandLayout w[1] = {{ws.addr + r * ws.repeat, ws.block, 0}};
            shim::for_each_run<sizeof(T)>(one, w, [&](const uint32_t (&a)[1], uint32_t n) {
                is_undefined |= c.any_undefined(a[0], n * uint32_t(sizeof(T)));
                for (uint32_t i = 0; i < n; ++i) v.push_back(shim::load<T>(c.ub + a[0] + i * sizeof(T)));
            });
            shim::store_sum(c, to + r * step, v, is_undefined);
        }
    });
}

// ReduceSum is refused like CreateVecIndex.
template <typename T>
__aicore__ inline void ReduceSum(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<T> &, const int32_t) {
    static_assert(shim::one_of<T, half, float>(), "sums take half or float; count a mask with GatherMask");
    static_assert(shim::never<T>(), "ReduceSum takes an event from a TPipe, and these kernels have none: use WholeReduceSum");
}

} // namespace AscendC
