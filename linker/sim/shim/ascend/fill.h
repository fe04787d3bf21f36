// Duplicate, which makes a vector from a scalar; and CreateVecIndex and ReduceSum, which are refused.
#pragma once

#include "lanes.h"

namespace AscendC {

template <typename T>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &value, const int32_t &count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, half, int16_t, uint16_t, int32_t, uint32_t, float>(),
                  "Duplicate takes 16-bit and 32-bit elements");
    shim::CallSite x{"Duplicate", at};
    T v = value;
    shim::issue_lanes(x, shim::count_of(x, count), {shim::Operand<T>(dst)},
                      [v](shim::Core &c, const uint32_t (&to)[1], uint32_t n) {
        for (uint32_t i = 0; i < n * sizeof(T); i += sizeof(T)) shim::store<T>(c.ub + to[0] + i, v);
        c.define(to[0], n * uint32_t(sizeof(T)));
    });
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
