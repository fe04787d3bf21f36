// The instructions that make vectors from scalars: Duplicate and CreateVecIndex.
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

template <typename T, typename M>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &value, M mask, const uint8_t repeatTime,
                                 const uint16_t dstBlkStride, const uint8_t dstRepStride, AVSG_SHIM_SITE) {
    shim::CallSite x{"Duplicate", at};
    if (!dstBlkStride) shim::fail("count", x, "dstBlkStride 0 writes one block eight times");
    shim::duplicate<T>(x, dst, value, shim::mask_of<T>(x, mask, repeatTime),
                       shim::strided(dst, dstBlkStride, dstRepStride));
}

// CreateVecIndex is a library function: the scalar unit stores the first block, and vector
// additions make the other blocks from it. A kernel must therefore wait (V_S) for earlier vector
// instructions that use the first block, and needs a barrier of the vector pipe before it uses the
// result.
template <typename T>
__aicore__ inline void CreateVecIndex(const LocalTensor<T> &dst, const T &first, uint32_t count, AVSG_SHIM_SITE) {
    static_assert(shim::one_of<T, half, int16_t, int32_t, float>(),
                  "CreateVecIndex takes half, int16_t, int32_t or float");
    shim::CallSite x{"CreateVecIndex", at};
    shim::Core &c = shim::core(x);
    shim::Lanes l = shim::count_of(x, count);
    uint32_t bytes = count * uint32_t(sizeof(T)), head = bytes < shim::BLOCK ? bytes : shim::BLOCK;
    shim::check_aligned(x, "dst", dst.addr);
    shim::check_bounds(x, "dst", dst.addr, dst.addr + bytes, dst.lo, dst.hi);
    if (!count) return;
    c.writes(dst.addr, dst.addr + head);
    c.issue(shim::S, x, [] {});
    c.set(HardEvent::S_V, EVENT_ID0, x);
    c.wait(HardEvent::S_V, EVENT_ID0, x);
    shim::declare_operand<sizeof(T)>(c, x, "dst", dst, l, shim::contiguous(dst), true);
    uint32_t to = dst.addr;
    c.issue(shim::V, x, [&c, x, to, count, bytes, first] {
        bool over = false;
        for (uint32_t i = 0; i < count; ++i) {
            T step = T(int32_t(i));
            shim::store<T>(c.ub + to + i * sizeof(T), shim::Number<T>::add(first, step, over));
            if (over && c.checks) shim::overflowed(x, i);
        }
        c.define(to, bytes);
    });
}

} // namespace AscendC
