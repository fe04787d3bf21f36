// Select takes src0 where the mask bit is set and src1 where it is clear. It uses UB from 184 KB on as
// scratch space, which is undefined afterwards. The table of calls for kernels without a TPipe lacks Select, but the text
// beside the table names it among those that use the end of UB, and it takes no event. Its public
// implementation writes a block and loads it as the mask, with a barrier after each of its instructions, the
// last one only without a scalar.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

template <class T, bool SCALAR>
void select_lanes(Core &c, uint32_t d, uint32_t m, uint32_t s0, uint32_t s1, T scalar, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t at = i * uint32_t(sizeof(T));
        bool is_undefined = c.undefined[m + i / 8] >> (i % 8) & 1;
        bool take = c.ub[m + i / 8] >> (i % 8) & 1;
        if (take || !SCALAR) {
            uint32_t from = (take ? s0 : s1) + at;
            std::memmove(c.ub + d + at, c.ub + from, sizeof(T));
            std::memmove(c.undefined + d + at, c.undefined + from, sizeof(T));
        } else {
            store<T>(c.ub + d + at, scalar);
            c.define(d + at, sizeof(T));
        }
        if (is_undefined) c.undefine(d + at, sizeof(T));
    }
}

template <bool SCALAR, class T, class U>
void select(const CallSite &x, const LocalTensor<T> &d, const LocalTensor<U> &mask, const LocalTensor<T> &s0,
            const LocalTensor<T> &s1, T scalar, SELMODE mode, uint32_t count) {
    static_assert(one_of<T, half, float>(), "Select takes half or float: reinterpret int32 operands as float");
    static_assert(one_of<U, uint8_t, uint16_t, uint32_t, uint64_t>(), "a Select mask is of an unsigned type");
    if (SCALAR != (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE))
        fail("dtype", x, "a scalar operand goes with VSEL_TENSOR_SCALAR_MODE and no other mode");
    Core &c = core(x);
    Lanes l = count_of(x, count);
    if (!count) return;
    uint32_t mask_end = mask.addr + (count + 7) / 8;
    uint32_t bytes = count * uint32_t(sizeof(T));
    declare_operand<sizeof(T)>(c, x, "src0", s0, l, contiguous(s0), false);
    if (!SCALAR) declare_operand<sizeof(T)>(c, x, "src1", s1, l, contiguous(s1), false);
    check_aligned(x, "mask", mask.addr);
    check_bounds(x, "mask", mask.addr, mask_end, mask.lo, mask.hi);
    c.reads(mask.addr, mask_end);
    declare_operand<sizeof(T)>(c, x, "dst", d, l, contiguous(d), true);
    check_overlap<sizeof(T)>(x, "src0", l, contiguous(d), contiguous(s0));
    if (!SCALAR) check_overlap<sizeof(T)>(x, "src1", l, contiguous(d), contiguous(s1));
    check_disjoint(x, "mask", d.addr, d.addr + bytes, mask.addr, mask_end);
    c.clobbers(UB_SCRATCH, UB_BYTES);
    c.time.takes(&avsg_shim_prices::head, 1);
    c.time.takes(&avsg_shim_prices::repeat, 1);
    c.time.takes(&avsg_shim_prices::barrier, SCALAR ? 2 : 3);
    auto check_scratch = [&](uint32_t lo, uint32_t hi) {
        check_disjoint(x, "Select's scratch space (UB from 184 KB)", lo, hi, UB_SCRATCH, UB_BYTES);
    };
    check_scratch(d.addr, d.addr + bytes);
    check_scratch(s0.addr, s0.addr + bytes);
    check_scratch(mask.addr, mask_end);
    if (!SCALAR) check_scratch(s1.addr, s1.addr + bytes);
    takes_repeats<sizeof(T)>(c, l);
    uint32_t to = d.addr, m = mask.addr, a = s0.addr, b = s1.addr;
    c.issue(V, x, [&c, to, m, a, b, scalar, count] {
        select_lanes<T, SCALAR>(c, to, m, a, b, scalar, count);
        std::memset(c.ub + UB_SCRATCH, 0xa5, UB_BYTES - UB_SCRATCH);
        c.undefine(UB_SCRATCH, UB_BYTES - UB_SCRATCH);
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
                              const LocalTensor<T> &src1, SELMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::select<false>(shim::CallSite{"Select", at}, dst, mask, src0, src1, T(0), mode, count);
}

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
                              T src1, SELMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::select<true>(shim::CallSite{"Select", at}, dst, mask, src0, src0, src1, mode, count);
}

} // namespace AscendC
