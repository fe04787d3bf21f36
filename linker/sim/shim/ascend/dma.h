// DMA of one run of bytes between GM and UB. A move from GM to UB occupies whole blocks of 32 bytes of
// UB, and the bytes that it does not fill are undefined. A move from UB to GM must not store undefined
// bytes.
#pragma once

#include "global.h"
#include "lanes.h"

namespace AscendC {
namespace shim {

// A move of `len` bytes between global memory at `gm` and UB at `ub`, where it occupies `used` bytes.
struct Move {
    uint64_t gm;
    uint32_t ub, len, used;
};

// Checks a move, and declares what it accesses if it moves anything.
template <class T>
Move declare_move(const CallSite &x, const char *operand, const LocalTensor<T> &local, const GlobalTensor<T> &global,
                  const DataCopyExtParams &p, bool in) {
    if (p.blockCount != 1) fail("count", x, "blockCount ", p.blockCount, "; one run of bytes is modelled: {1, bytes, 0, 0, 0}");
    uint32_t len = p.blockLen;
    if (len > 2097151) fail("count", x, "blockLen ", len, " is above 2097151 bytes");
    if (len % sizeof(T)) fail("count", x, "blockLen ", len, " is no multiple of the element's ", sizeof(T), " bytes");
    uint64_t gm = global.dma_address(x, len);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    Move move{gm, local.addr, len, in ? (len + BLOCK - 1) / BLOCK * BLOCK : len};
    if (!len) return move;
    Core &c = core(x);
    declare_bytes(c, x, operand, local, move.used, in);
    c.launch_state.check_region(x, gm, gm + len, !in);
    c.accesses_gm(gm, gm + len, !in);
    return move;
}

// Stores bytes, or adds their whole words if an earlier kernel left the core so.
inline void store_bytes(uint8_t *to, const uint8_t *from, uint32_t n, bool add) {
    uint32_t i = 0;
    for (; add && i + 4 <= n; i += 4) store<uint32_t>(to + i, load<uint32_t>(to + i) + load<uint32_t>(from + i));
    std::memcpy(to + i, from + i, n - i);
}

} // namespace shim

template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                                   const DataCopyPadExtParams<T> &pad, AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(GM to UB)", at};
    if (pad.isPad || pad.leftPadding || pad.rightPadding) shim::fail("count", x, "padding is not modelled: {false, 0, 0, 0}");
    shim::Move m = shim::declare_move(x, "dst", dst, src, p, true);
    if (!m.len) return;
    shim::Core &c = shim::core(x);
    c.issue(shim::MTE2, x, [&c, m] {
        std::memset(c.ub + m.ub, 0xcd, m.used);
        c.undefine(m.ub, m.used);
        std::memcpy(c.ub + m.ub, reinterpret_cast<const void *>(m.gm), m.len);
        c.define(m.ub, m.len);
    });
}

template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p,
                                   AVSG_SHIM_SITE) {
    shim::CallSite x{"DataCopyPad(UB to GM)", at};
    shim::Move m = shim::declare_move(x, "src", src, dst, p, false);
    if (!m.len) return;
    shim::Core &c = shim::core(x);
    c.issue(shim::MTE3, x, [&c, x, m] {
        if (c.checks && c.any_undefined(m.ub, m.len)) {
            uint32_t i = 0;
            while (!c.undefined[m.ub + i]) ++i;
            shim::fail("undefined", x, "stores byte ", i, " (UB ", shim::hex(m.ub + i), "), which no instruction has defined");
        }
        shim::store_bytes(reinterpret_cast<uint8_t *>(m.gm), c.ub + m.ub, m.len, c.soc.atomic_add);
    });
}

} // namespace AscendC
