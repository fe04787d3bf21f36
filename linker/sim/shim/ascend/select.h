// Select takes src0 where the mask bit is set and src1 where it is clear. It uses UB from 184 KB on as
// scratch space, which is undefined afterwards. The table of calls for kernels without a TPipe lacks Select, but the text
// beside the table names it among those that use the end of UB, and it takes no event. Its public
// implementation writes a block and loads it as the mask, with a barrier after each of its instructions, the
// last one only without a scalar.
#pragma once

#include "lanes.h"

namespace AscendC {
namespace shim {

// Without a second source the other lanes are `scalar`.
template <class T, class U, size_t N>
void select(const CallSite &x, const LocalTensor<U> &mask, const Operand<T> (&operands)[N], T scalar, SELMODE mode,
            uint32_t count) {
    static_assert(one_of<T, half, float>(), "Select takes half or float: reinterpret int32 operands as float");
    static_assert(one_of<U, uint8_t, uint16_t, uint32_t, uint64_t>(), "a Select mask is of an unsigned type");
    constexpr bool SCALAR = N == 2;
    if (SCALAR != (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE))
        fail("dtype", x, "a scalar operand goes with VSEL_TENSOR_SCALAR_MODE and no other mode");
    Core &c = core(x);
    Lanes l = count_of(x, count);
    if (!count) return;
    uint32_t m = mask.addr, mask_end = m + (count + 7) / 8, bytes = count * uint32_t(sizeof(T));
    declare_bytes(c, x, "mask", mask, mask_end - m, false);
    check_disjoint(x, "mask", operands[0].at.addr, operands[0].at.addr + bytes, m, mask_end);
    c.accesses(UB_SCRATCH, UB_BYTES, true, false);
    auto check_scratch = [&](uint32_t lo, uint32_t hi) {
        check_disjoint(x, "Select's scratch space (UB from 184 KB)", lo, hi, UB_SCRATCH, UB_BYTES);
    };
    check_scratch(m, mask_end);
    for (const Operand<T> &o : operands) check_scratch(o.at.addr, o.at.addr + bytes);
    issue_lanes(x, l, operands, [m, scalar](Core &c, const uint32_t (&at)[N], uint32_t n) {
        for (uint32_t i = 0; i < n; ++i) {
            uint32_t byte = i * uint32_t(sizeof(T)), to = at[0] + byte;
            bool is_undefined = c.undefined[m + i / 8] >> (i % 8) & 1;
            bool take = c.ub[m + i / 8] >> (i % 8) & 1;
            if (take || !SCALAR) {
                uint32_t from = at[take ? 1 : N - 1] + byte;
                std::memmove(c.ub + to, c.ub + from, sizeof(T));
                std::memmove(c.undefined + to, c.undefined + from, sizeof(T));
            } else {
                store<T>(c.ub + to, scalar);
                c.define(to, sizeof(T));
            }
            if (is_undefined) c.undefine(to, sizeof(T));
        }
        std::memset(c.ub + UB_SCRATCH, 0xa5, UB_BYTES - UB_SCRATCH);
        c.undefine(UB_SCRATCH, UB_BYTES - UB_SCRATCH);
    });
}

} // namespace shim

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
                              const LocalTensor<T> &src1, SELMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::select(shim::CallSite{"Select", at}, mask,
                 {shim::Operand<T>(dst), shim::Operand<T>(src0), shim::Operand<T>(src1)}, T(0), mode, count);
}

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
                              T src1, SELMODE mode, uint32_t count, AVSG_SHIM_SITE) {
    shim::select(shim::CallSite{"Select", at}, mask, {shim::Operand<T>(dst), shim::Operand<T>(src0)}, src1, mode,
                 count);
}

} // namespace AscendC
