// DMA of one run of bytes between GM and UB. A move from GM to UB occupies whole blocks of 32 bytes of
// UB, and the bytes that it does not fill are undefined. A move from UB to GM must not store undefined
// bytes.
#pragma once

#include "global.h"
#include "lanes.h"

namespace AscendC {
namespace shim {

// Checks the length of a move, and returns the global address of its first byte.
template <class T> uint64_t dma_start(const CallSite &x, const GlobalTensor<T> &t, uint64_t bytes) {
    if (bytes > 2097151) fail("count", x, "blockLen ", bytes, " is above 2097151 bytes");
    if (bytes % sizeof(T)) fail("count", x, "blockLen ", bytes, " is no multiple of the element's ", sizeof(T), " bytes");
    uint64_t gm = t.dma_address(x, bytes);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    return gm;
}

template <class T>
void copy_gm_to_ub(const CallSite &x, const LocalTensor<T> &d, const GlobalTensor<T> &s, uint64_t bytes) {
    uint64_t gm = dma_start(x, s, bytes);
    if (!bytes) return;
    Core &c = core(x);
    check_aligned(x, "dst", d.addr);
    uint32_t ub = d.addr, len = uint32_t(bytes), used = (len + BLOCK - 1) / BLOCK * BLOCK;
    check_bounds(x, "dst", ub, ub + used, d.lo, d.hi);
    c.launch_state.check_region(x, gm, gm + len, false);
    c.gm_reads(gm, gm + len);
    c.writes(ub, ub + used);
    c.time.takes(&avsg_shim_prices::byte, len);
    c.issue(MTE2, x, [&c, ub, gm, len, used] {
        std::memset(c.ub + ub, 0xcd, used);
        c.undefine(ub, used);
        std::memcpy(c.ub + ub, reinterpret_cast<const void *>(gm), len);
        c.define(ub, len);
    });
}

// Stores bytes, or adds their whole words if an earlier kernel left the core so.
inline void store_bytes(uint8_t *to, const uint8_t *from, uint32_t n, bool add) {
    uint32_t i = 0;
    for (; add && i + 4 <= n; i += 4) store<uint32_t>(to + i, load<uint32_t>(to + i) + load<uint32_t>(from + i));
    std::memcpy(to + i, from + i, n - i);
}

template <class T>
void copy_ub_to_gm(const CallSite &x, const GlobalTensor<T> &d, const LocalTensor<T> &s, uint64_t bytes) {
    uint64_t gm = dma_start(x, d, bytes);
    if (!bytes) return;
    Core &c = core(x);
    check_aligned(x, "src", s.addr);
    uint32_t ub = s.addr, len = uint32_t(bytes);
    check_bounds(x, "src", ub, ub + len, s.lo, s.hi);
    c.launch_state.check_region(x, gm, gm + len, true);
    c.gm_writes(gm, gm + len);
    c.reads(ub, ub + len);
    c.time.takes(&avsg_shim_prices::byte, len);
    c.issue(MTE3, x, [&c, x, ub, gm, len] {
        if (c.checks && c.any_undefined(ub, len)) {
            uint32_t i = 0;
            while (!c.undefined[ub + i]) ++i;
            fail("undefined", x, "stores byte ", i, " (UB ", hex(ub + i), "), which no instruction has defined");
        }
        store_bytes(reinterpret_cast<uint8_t *>(gm), c.ub + ub, len, c.soc.atomic_add);
    });
}

// Returns the bytes of `count` elements, which are whole blocks.
template <class T> uint64_t block_bytes(const CallSite &x, uint64_t count) {
    uint64_t bytes = count * sizeof(T);
    if (bytes % BLOCK) fail("count", x, count, " elements are ", bytes, " bytes, no multiple of 32: use DataCopyPad");
    return bytes;
}

inline uint64_t pad_bytes(const CallSite &x, const DataCopyExtParams &p) {
    if (p.blockCount != 1) fail("count", x, "blockCount ", p.blockCount, "; one run of bytes is modelled: {1, bytes, 0, 0, 0}");
    return p.blockLen;
}

} // namespace shim

template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                                   const DataCopyPadExtParams<T> &pad, AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(GM to UB)", at};
    if (pad.isPad || pad.leftPadding || pad.rightPadding) shim::fail("count", x, "padding is not modelled: {false, 0, 0, 0}");
    shim::copy_gm_to_ub(x, dst, src, shim::pad_bytes(x, p));
}

template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p,
                                   AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(UB to GM)", at};
    shim::copy_ub_to_gm(x, dst, src, shim::pad_bytes(x, p));
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopy(GM to UB)", at};
    shim::copy_gm_to_ub(x, dst, src, shim::block_bytes<T>(x, count));
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopy(UB to GM)", at};
    shim::copy_ub_to_gm(x, dst, src, shim::block_bytes<T>(x, count));
}

} // namespace AscendC
