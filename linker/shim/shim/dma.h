// Moves between global memory and UB. Every block of a GM to UB move occupies whole 32-byte blocks of
// UB; what it does not fill there is rubbish. Undefined bytes must not leave UB.
#pragma once

#include "global.h"
#include "lanes.h"

namespace AscendC {
namespace shim {

// A rectangle: `rows` rows of `len` bytes, one every `gm_step` bytes and every `ub_step` bytes.
struct Rows {
    uint32_t rows;
    uint64_t len, gm_step, ub_step;
    uint32_t left, right; // padding bytes in UB around each row
};

inline uint64_t whole_blocks(uint64_t bytes) { return (bytes + BLOCK - 1) / BLOCK * BLOCK; }

inline void check_rows(const Ctx &x, const Rows &m, uint32_t size) {
    if (m.rows > 4095) fail("count", x, "blockCount ", m.rows, " is above 4095");
    if (m.len > 2097151) fail("count", x, "blockLen ", m.len, " is above 2097151 bytes");
    if (m.len % size) fail("count", x, "blockLen ", m.len, " is no multiple of the element's ", size, " bytes");
}

// The value that fills the padding, or nothing, and then the padding is rubbish.
struct Padding {
    bool filled;
    uint8_t value[8];
};

template <class T>
void load_rows(const Ctx &x, const LocalTensor<T> &d, const GlobalTensor<T> &s, const Rows &m, const Padding &pad) {
    check_rows(x, m, sizeof(T));
    if (!m.rows || !m.len) return;
    Core &c = core(x);
    uint64_t gm = s.window(x, (m.rows - 1) * m.gm_step + m.len);
    check_aligned(x, "dst", d.addr);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    uint64_t used = whole_blocks(m.left + m.len + m.right);
    uint64_t end = d.addr + (m.rows - 1) * m.ub_step + used;
    check_bounds(x, "dst", d.addr, end > UINT32_MAX ? UINT32_MAX : uint32_t(end), d.lo, d.hi);
    for (uint32_t r = 0; r < m.rows; ++r) {
        uint64_t from = gm + r * m.gm_step;
        uint32_t to = uint32_t(d.addr + r * m.ub_step);
        c.world.region(x, from, from + m.len, false, false);
        c.gm_reads(from, from + m.len);
        c.writes(to, to + uint32_t(used));
    }
    uint32_t ub = d.addr;
    c.issue(MTE2, x, [&c, ub, gm, m, pad, used] {
        for (uint32_t r = 0; r < m.rows; ++r) {
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

template <class T>
void store_rows(const Ctx &x, const GlobalTensor<T> &d, const LocalTensor<T> &s, const Rows &m) {
    check_rows(x, m, sizeof(T));
    if (!m.rows || !m.len) return;
    Core &c = core(x);
    uint64_t gm = d.window(x, (m.rows - 1) * m.gm_step + m.len);
    check_aligned(x, "src", s.addr);
    if (gm % sizeof(T)) fail("alignment", x, "GM address ", hex(gm), " is no multiple of ", sizeof(T));
    uint64_t end = s.addr + (m.rows - 1) * m.ub_step + m.len;
    check_bounds(x, "src", s.addr, end > UINT32_MAX ? UINT32_MAX : uint32_t(end), s.lo, s.hi);
    for (uint32_t r = 0; r < m.rows; ++r) {
        uint64_t to = gm + r * m.gm_step;
        uint32_t from = uint32_t(s.addr + r * m.ub_step);
        c.world.region(x, to, to + m.len, true, false);
        c.gm_writes(to, to + m.len);
        c.reads(from, from + uint32_t(m.len));
    }
    uint32_t ub = s.addr;
    c.issue(MTE3, x, [&c, x, ub, gm, m] {
        for (uint32_t r = 0; r < m.rows; ++r) {
            uint32_t from = uint32_t(ub + r * m.ub_step), len = uint32_t(m.len);
            if (c.checks && c.any_undefined(from, len)) {
                uint32_t i = 0;
                while (!c.undefined[from + i]) ++i;
                fail("undefined", x, "stores byte ", i, " of row ", r, " (UB ", hex(from + i),
                     "), which no instruction has defined");
            }
            std::memcpy(reinterpret_cast<void *>(gm + r * m.gm_step), c.ub + from, len);
        }
    });
}

inline Rows blocks_in(const DataCopyParams &p) {
    uint64_t len = uint64_t(p.blockLen) * BLOCK;
    return Rows{p.blockCount, len, len + uint64_t(p.srcGap) * BLOCK, len + uint64_t(p.dstGap) * BLOCK, 0, 0};
}

inline Rows blocks_out(const DataCopyParams &p) {
    uint64_t len = uint64_t(p.blockLen) * BLOCK;
    return Rows{p.blockCount, len, len + uint64_t(p.dstGap) * BLOCK, len + uint64_t(p.srcGap) * BLOCK, 0, 0};
}

inline void check_count(const Ctx &x, uint64_t count, uint64_t size) {
    if (count * size % BLOCK)
        fail("count", x, count, " elements are ", count * size, " bytes, no multiple of 32: use DataCopyPad");
    // One block of up to 65535 units is what its 16-bit length field can say.
    if (count * size / BLOCK > 65535) fail("count", x, count, " elements are more than 65535 blocks of 32 bytes");
}

} // namespace shim

template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                                   const DataCopyPadExtParams<T> &pad, AVSG_SHIM_SITE) {
    shim::Ctx x{"DataCopyPad(GM to UB)", at};
    uint32_t left = pad.leftPadding * uint32_t(sizeof(T)), right = pad.rightPadding * uint32_t(sizeof(T));
    if (left > shim::BLOCK || right > shim::BLOCK)
        shim::fail("count", x, "padding of ", left, " and ", right, " bytes; each side has at most 32");
    shim::Padding fill{pad.isPad, {}};
    shim::store<T>(fill.value, pad.paddingValue);
    uint64_t used = shim::whole_blocks(uint64_t(left) + p.blockLen + right);
    shim::load_rows(x, dst, src,
                    shim::Rows{p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.srcStride,
                               used + uint64_t(p.dstStride) * shim::BLOCK, left, right},
                    fill);
}

template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p,
                                   AVSG_SHIM_SITE) {
    shim::Ctx x{"DataCopyPad(UB to GM)", at};
    shim::store_rows(x, dst, src,
                     shim::Rows{p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.dstStride,
                                shim::whole_blocks(p.blockLen) + uint64_t(p.srcStride) * shim::BLOCK, 0, 0});
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p,
                                AVSG_SHIM_SITE) {
    shim::load_rows(shim::Ctx{"DataCopy(GM to UB)", at}, dst, src, shim::blocks_in(p), shim::Padding{});
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p,
                                AVSG_SHIM_SITE) {
    shim::store_rows(shim::Ctx{"DataCopy(UB to GM)", at}, dst, src, shim::blocks_out(p));
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::Ctx x{"DataCopy(GM to UB)", at};
    shim::check_count(x, count, sizeof(T));
    uint64_t len = uint64_t(count) * sizeof(T);
    shim::load_rows(x, dst, src, shim::Rows{1, len, len, len, 0, 0}, shim::Padding{});
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                                AVSG_SHIM_SITE) {
    shim::Ctx x{"DataCopy(UB to GM)", at};
    shim::check_count(x, count, sizeof(T));
    uint64_t len = uint64_t(count) * sizeof(T);
    shim::store_rows(x, dst, src, shim::Rows{1, len, len, len, 0, 0});
}

} // namespace AscendC
