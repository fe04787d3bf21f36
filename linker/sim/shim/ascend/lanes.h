// How a vector instruction accesses UB: the count forms access `n` contiguous elements, the other
// forms access repeats of eight blocks with strides and a lane mask. One description gives the
// accessed ranges, the checks of bounds and overlap, and the loop over the lanes.
#pragma once

#include "tensor.h"

namespace AscendC::shim {

struct Lanes {
    bool counted;
    uint32_t n;       // The number of elements of a count form.
    uint32_t repeats; // The number of repeats of the other forms.
    uint64_t bits[2]; // The active lanes of a repeat, for the other forms.
};

// The place of one operand: its UB address, and its strides between blocks and repeats in bytes.
struct OperandLayout {
    uint32_t addr, block, repeat;
};

inline Lanes count_of(const CallSite &x, int64_t n) {
    if (n < 0 || n > int64_t(UB_BYTES))
        fail("count", x, "count ", n, " is not in 0..", UB_BYTES);
    core(x).soc.counter_mode = false; // A count form sets the mode of the mask, and sets it to normal at its end.
    return Lanes{true, uint32_t(n), 0, {0, 0}};
}

// Returns the active lanes of a repeat form. If an earlier kernel left the mask counting elements,
// its bits are their number.
inline Lanes repeat_lanes(const CallSite &x, const Lanes &l) {
    if (!core(x).soc.counter_mode) return l;
    Lanes counted = count_of(x, int64_t(l.bits[0] & 0x7fffffff));
    core(x).soc.counter_mode = true; // A repeat form does not set the mode.
    return counted;
}

template <class T> Lanes mask_of(const CallSite &x, uint64_t mask, uint8_t repeats) {
    constexpr uint64_t lanes = 256 / sizeof(T);
    if (mask == 0 || mask > lanes)
        fail("count", x, "mask ", mask, " is not in 1..", lanes, " for elements of ", sizeof(T), " bytes");
    Lanes l{false, 0, repeats, {0, 0}};
    l.bits[0] = mask >= 64 ? ~uint64_t(0) : (uint64_t(1) << mask) - 1;
    if (mask > 64) l.bits[1] = mask == 128 ? ~uint64_t(0) : (uint64_t(1) << (mask - 64)) - 1;
    return repeat_lanes(x, l);
}

template <class T> Lanes mask_of(const CallSite &x, const uint64_t *mask, uint8_t repeats) {
    if (sizeof(T) == 4 && mask[1])
        fail("count", x, "mask[1] must be 0 for elements of 4 bytes: a repeat has only 64 lanes");
    if (!mask[0] && !mask[1]) fail("count", x, "the mask has no active lane");
    return repeat_lanes(x, Lanes{false, 0, repeats, {mask[0], mask[1]}});
}

// An operand whose lanes are those of the instruction.
template <class T> struct Operand {
    const LocalTensor<T> &tensor;
    OperandLayout at;
    Operand(const LocalTensor<T> &t, uint32_t block = 1, uint32_t repeat = 8)
        : tensor(t), at{t.addr, block * BLOCK, repeat * BLOCK} {}
};

// Calls f(addresses, n) for each run of `n` active lanes that is contiguous in all operands.
template <uint32_t SIZE, size_t N, class F> void for_each_run(const Lanes &l, const OperandLayout (&w)[N], F f) {
    uint32_t a[N];
    if (l.counted) {
        for (size_t k = 0; k < N; ++k) a[k] = w[k].addr;
        if (l.n) f(a, l.n);
        return;
    }
    constexpr uint32_t per_block = BLOCK / SIZE;
    static_assert(per_block < 32, "elements of a repeat form have at least two bytes");
    for (uint32_t r = 0; r < l.repeats; ++r)
        for (uint32_t b = 0; b < 8; ++b) {
            uint32_t first = b * per_block;
            uint32_t m = uint32_t(l.bits[first / 64] >> (first % 64)) & ((1u << per_block) - 1);
            for (uint32_t i = 0, n; m >> i; i += n + 1) {
                for (n = 0; m >> (i + n) & 1;) ++n;
                for (size_t k = 0; k < N; ++k) a[k] = w[k].addr + r * w[k].repeat + b * w[k].block + i * SIZE;
                if (n) f(a, n);
            }
        }
}

struct Range {
    uint32_t lo, hi;
};

template <uint32_t SIZE> std::vector<Range> ranges(const Lanes &l, const OperandLayout &w) {
    std::vector<Range> out;
    const OperandLayout one[1] = {w};
    for_each_run<SIZE>(l, one, [&](const uint32_t (&a)[1], uint32_t n) {
        uint32_t hi = a[0] + n * SIZE;
        if (!out.empty() && out.back().hi == a[0])
            out.back().hi = hi;
        else
            out.push_back(Range{a[0], hi});
    });
    return out;
}

inline void check_aligned(const CallSite &x, const char *operand, uint32_t addr, uint32_t to = BLOCK) {
    if (addr % to) fail("alignment", x, operand, " starts at UB byte ", hex(addr), ", which is no multiple of ", to);
}

inline void check_bounds(const CallSite &x, const char *operand, uint32_t lo, uint32_t hi, uint32_t from, uint32_t to) {
    if (lo < from || hi > to)
        fail("bounds", x, operand, " needs UB ", hex(lo), "..", hex(hi), " and its tensor is ", hex(from), "..",
             hex(to));
}

// Declares that the next instruction accesses `bytes` of a tensor from its start on.
template <class T>
void declare_bytes(Core &c, const CallSite &x, const char *operand, const LocalTensor<T> &t, uint32_t bytes, bool write) {
    check_aligned(x, operand, t.addr);
    check_bounds(x, operand, t.addr, t.addr + bytes, t.lo, t.hi);
    c.accesses(t.addr, t.addr + bytes, write);
}

template <class T>
void declare_operand(Core &c, const CallSite &x, const char *operand, const Operand<T> &o, const Lanes &l, bool write) {
    const LocalTensor<T> &t = o.tensor;
    check_aligned(x, operand, t.addr);
    for (const Range &r : ranges<sizeof(T)>(l, o.at)) {
        check_bounds(x, operand, r.lo, r.hi, t.lo, t.hi);
        c.accesses(r.lo, r.hi, write);
    }
}

inline bool intersects(uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end) { return a < b_end && b < a_end; }

// Checks that the destination either is exactly the source or does not overlap it; the result of
// any other overlap depends on how the unit is pipelined.
template <uint32_t SIZE>
void check_overlap(const CallSite &x, const char *operand, const Lanes &l, const OperandLayout &d,
                   const OperandLayout &s) {
    if (d.addr == s.addr && (l.counted || (d.block == s.block && (d.repeat == s.repeat || l.repeats == 1)))) return;
    std::vector<Range> from = ranges<SIZE>(l, s);
    for (const Range &a : ranges<SIZE>(l, d))
        for (const Range &b : from)
            if (intersects(a.lo, a.hi, b.lo, b.hi))
                fail("overlap", x, "dst at UB ", hex(a.lo), " partly overlaps ", operand, " at ", hex(b.lo));
}

// Checks that dst [d, d_end) and an operand [s, s_end) do not overlap, for instructions whose
// operands differ in shape.
inline void check_disjoint(const CallSite &x, const char *operand, uint32_t d, uint32_t d_end, uint32_t s,
                           uint32_t s_end) {
    if (intersects(d, d_end, s, s_end))
        fail("overlap", x, "dst ", hex(d), "..", hex(d_end), " overlaps ", operand, " ", hex(s), "..", hex(s_end));
}

// Issues an instruction of the vector unit that computes the lanes of the first operand from the same lanes of
// the others. `run(core, addresses, n)` computes n lanes that are contiguous in all of them.
template <class T, size_t N, class F>
void issue_lanes(const CallSite &x, const Lanes &l, const Operand<T> (&operands)[N], F run) {
    constexpr const char *names[] = {"dst", N == 2 ? "src" : "src0", "src1"};
    Core &c = core(x);
    if (!operands[0].at.block) fail("count", x, "dstBlkStride 0 writes one block eight times");
    OperandLayout at[N] = {operands[0].at};
    for (size_t i = 1; i < N; ++i) {
        at[i] = operands[i].at;
        declare_operand(c, x, names[i], operands[i], l, false);
    }
    declare_operand(c, x, names[0], operands[0], l, true);
    for (size_t i = 1; i < N; ++i) check_overlap<sizeof(T)>(x, names[i], l, at[0], at[i]);
    c.issue(V, x, [&c, l, at, run] {
        for_each_run<sizeof(T)>(l, at, [&](const uint32_t (&a)[N], uint32_t n) { run(c, a, n); });
    });
}

} // namespace AscendC::shim
