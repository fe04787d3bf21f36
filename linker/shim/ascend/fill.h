// Duplicate, which makes a vector from a scalar; and CreateVecIndex and ReduceSum, which are refused.
#pragma once

#include "arithmetic.h"

namespace AscendC {
namespace shim {

template <class T>
void duplicate(const CallSite &x, const LocalTensor<T> &d, T v, const Lanes &l, const OperandLayout &wd) {
    static_assert(one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "Duplicate takes 16-bit and 32-bit elements");
    Core &c = core(x);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, wd, true);
    takes_repeats<sizeof(T)>(c, l);
    c.issue(V, x, [&c, l, wd, v] {
        const OperandLayout w[1] = {wd};
        for_each_run<sizeof(T)>(l, w, [&](const uint32_t (&a)[1], uint32_t n) {
            for (uint32_t i = 0; i < n; ++i) store<T>(c.ub + a[0] + i * sizeof(T), v);
            c.define(a[0], n * uint32_t(sizeof(T)));
        });
    });
}

} // namespace shim

template <typename T>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &value, const int32_t &count, AVSG_SHIM_SITE) {
    shim::CallSite x{"Duplicate", at};
    shim::duplicate<T>(x, dst, value, shim::count_of(x, count), shim::contiguous(dst));
}

// Calls that are missing from the list of calls for kernels without a TPipe, because they take an
// event from it.
template <typename T, typename... More> __aicore__ inline void CreateVecIndex(const LocalTensor<T> &, const More &...) {
    static_assert(shim::never<T>(), "CreateVecIndex takes an event from a TPipe, and these kernels have none: write the "
                                    "first block with SetValue and double it with Adds");
}

template <typename T, typename... More> __aicore__ inline void ReduceSum(const LocalTensor<T> &, const More &...) {
    static_assert(shim::never<T>(), "ReduceSum takes an event from a TPipe, and these kernels have none: count a mask with "
                                    "GatherMask");
}

} // namespace AscendC
