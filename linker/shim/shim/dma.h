// DMA between GM and UB. Each block of a move from GM to UB occupies whole 32-byte blocks of UB,
// and the bytes that it does not fill are undefined. A move from UB to GM must not store undefined
// bytes.
#pragma once

#include "global.h"
#include "lanes.h"

namespace AscendC {
namespace shim {

// The blocks of one move: `count` blocks of `len` bytes, `gm_step` bytes apart in GM and `ub_step`
// bytes apart in UB.
struct DmaBlocks {
    uint32_t count;
    uint64_t len, gm_step, ub_step;
    uint32_t left, right; // Padding bytes in UB before and after each block.
};

inline uint64_t round_up_to_block(uint64_t bytes) { return (bytes + BLOCK - 1) / BLOCK * BLOCK; }

inline void check_blocks(const CallSite &x, const DmaBlocks &m, uint32_t size) {
    if (m.count > 4095) fail("count", x, "blockCount ", m.count, " is above 4095");
    if (m.len > 2097151) fail("count", x, "blockLen ", m.len, " is above 2097151 bytes");
    if (m.len % size) fail("count", x, "blockLen ", m.len, " is no multiple of the element's ", size, " bytes");
}

// The element that fills the padding; without `filled` the padding is undefined.
struct Padding {
    bool filled;
    uint8_t value[8];
};

template <class T>
void copy_gm_to_ub(const CallSite &x, const LocalTensor<T> &d, const GlobalTensor<T> &s, const DmaBlocks &m,
                   const Padding &pad) {
    check_blocks(x, m, sizeof(T));
    if (!m.count || !m.len) return;
    Core &c = core(x);
    uint64_t gm = s.dma_address(x, (m.count - 1) * m.gm_step + m.len);
    check_aligned(x, "dst", d.addr);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    uint64_t used = round_up_to_block(m.left + m.len + m.right);
    uint64_t end = d.addr + (m.count - 1) * m.ub_step + used;
    check_bounds(x, "dst", d.addr, end > UINT32_MAX ? UINT32_MAX : uint32_t(end), d.lo, d.hi);
    for (uint32_t r = 0; r < m.count; ++r) {
        uint64_t from = gm + r * m.gm_step;
        uint32_t to = uint32_t(d.addr + r * m.ub_step);
        c.launch_state.region(x, from, from + m.len, false, false);
        c.gm_reads(from, from + m.len);
        c.writes(to, to + uint32_t(used));
    }
    c.time.takes(&avsg_shim_prices::byte, double(m.count * m.len));
    uint32_t ub = d.addr;
    c.issue(MTE2, x, [&c, ub, gm, m, pad, used] {
        for (uint32_t r = 0; r < m.count; ++r) {
            uint32_t to = uint32_t(ub + r * m.ub_step), data = to + m.left, len = uint32_t(m.len);
            std::memset(c.ub + to, 0xcd, used);
            c.undefine(to, uint32_t(used));
            std::memcpy(c.ub + data, reinterpret_cast<const void *>(gm + r * m.gm_step), len);
            c.define(data, len);
            if (!pad.filled) continue;
            for (uint32_t i = 0; i < m.left; ++i) c.ub[to + i] = pad.value[i % sizeof(T)];
            for (uint32_t i = 0; i < m.right; ++i) c.ub[data + len + i] = pad.value[i % sizeof(T)];
            c.define(to, m.left);
            c.define(data + len, m.right);
        }
    });
}

// Stores bytes, or adds their whole words if an earlier kernel left the core so.
inline void store_bytes(uint8_t *to, const uint8_t *from, uint32_t n, bool add) {
    uint32_t i = 0;
    for (; add && i + 4 <= n; i += 4) store<uint32_t>(to + i, load<uint32_t>(to + i) + load<uint32_t>(from + i));
    std::memcpy(to + i, from + i, n - i);
}

template <class T>
void copy_ub_to_gm(const CallSite &x, const GlobalTensor<T> &d, const LocalTensor<T> &s, const DmaBlocks &m) {
    check_blocks(x, m, sizeof(T));
    if (!m.count || !m.len) return;
    Core &c = core(x);
    uint64_t gm = d.dma_address(x, (m.count - 1) * m.gm_step + m.len);
    check_aligned(x, "src", s.addr);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    uint64_t end = s.addr + (m.count - 1) * m.ub_step + m.len;
    check_bounds(x, "src", s.addr, end > UINT32_MAX ? UINT32_MAX : uint32_t(end), s.lo, s.hi);
    for (uint32_t r = 0; r < m.count; ++r) {
        uint64_t to = gm + r * m.gm_step;
        uint32_t from = uint32_t(s.addr + r * m.ub_step);
        c.launch_state.region(x, to, to + m.len, true, false);
        c.gm_writes(to, to + m.len);
        c.reads(from, from + uint32_t(m.len));
    }
    c.time.takes(&avsg_shim_prices::byte, double(m.count * m.len));
    uint32_t ub = s.addr;
    c.issue(MTE3, x, [&c, x, ub, gm, m] {
        for (uint32_t r = 0; r < m.count; ++r) {
            uint32_t from = uint32_t(ub + r * m.ub_step), len = uint32_t(m.len);
            if (c.checks && c.any_undefined(from, len)) {
                uint32_t i = 0;
                while (!c.undefined[from + i]) ++i;
                fail("undefined", x, "stores byte ", i, " of block ", r, " (UB ", hex(from + i),
                     "), which no instruction has defined");
            }
            store_bytes(reinterpret_cast<uint8_t *>(gm + r * m.gm_step), c.ub + from, len, c.soc.atomic_add);
        }
    });
}

inline DmaBlocks gm_to_ub_blocks(const DataCopyParams &p) {
    uint64_t len = uint64_t(p.blockLen) * BLOCK;
    return DmaBlocks{p.blockCount, len, len + uint64_t(p.srcGap) * BLOCK, len + uint64_t(p.dstGap) * BLOCK, 0, 0};
}

inline DmaBlocks ub_to_gm_blocks(const DataCopyParams &p) {
    uint64_t len = uint64_t(p.blockLen) * BLOCK;
    return DmaBlocks{p.blockCount, len, len + uint64_t(p.dstGap) * BLOCK, len + uint64_t(p.srcGap) * BLOCK, 0, 0};
}

inline void check_count(const CallSite &x, uint64_t count, uint64_t size) {
    if (count * size % BLOCK)
        fail("count", x, count, " elements are ", count * size, " bytes, no multiple of 32: use DataCopyPad");
    // The length field has 16 bits and counts blocks of 32 bytes.
    if (count * size / BLOCK > 65535) fail("count", x, count, " elements are more than 65535 blocks of 32 bytes");
}

} // namespace shim

template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                                   const DataCopyPadExtParams<T> &pad, AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(GM to UB)", at};
    uint32_t left = pad.leftPadding * uint32_t(sizeof(T)), right = pad.rightPadding * uint32_t(sizeof(T));
    if (left > shim::BLOCK || right > shim::BLOCK)
        shim::fail("count", x, "padding of ", left, " and ", right, " bytes; each side may have at most 32");
    shim::Padding fill{pad.isPad, {}};
    shim::store<T>(fill.value, pad.paddingValue);
    uint64_t used = shim::round_up_to_block(uint64_t(left) + p.blockLen + right);
    shim::copy_gm_to_ub(x, dst, src,
                        shim::DmaBlocks{p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.srcStride,
                                        used + uint64_t(p.dstStride) * shim::BLOCK, left, right},
                        fill);
}

template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p,
                                   AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(UB to GM)", at};
    shim::copy_ub_to_gm(x, dst, src,
                        shim::DmaBlocks{p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.dstStride,
                                        shim::round_up_to_block(p.blockLen) + uint64_t(p.srcStride) * shim::BLOCK, 0,
                                        0});
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p,
                                AVSG_SHIM_SITE) {
    shim::copy_gm_to_ub(shim::CallSite{"DataCopy(GM to UB)", at}, dst, src, shim::gm_to_ub_blocks(p), shim::Padding{});
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p,
                                AVSG_SHIM_SITE) {
    shim::copy_ub_to_gm(shim::CallSite{"DataCopy(UB to GM)", at}, dst, src, shim::ub_to_gm_blocks(p));
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopy(GM to UB)", at};
    shim::check_count(x, count, sizeof(T));
    uint64_t len = uint64_t(count) * sizeof(T);
    shim::copy_gm_to_ub(x, dst, src, shim::DmaBlocks{1, len, len, len, 0, 0}, shim::Padding{});
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopy(UB to GM)", at};
    shim::check_count(x, count, sizeof(T));
    uint64_t len = uint64_t(count) * sizeof(T);
    shim::copy_ub_to_gm(x, dst, src, shim::DmaBlocks{1, len, len, len, 0, 0});
}

} // namespace AscendC
