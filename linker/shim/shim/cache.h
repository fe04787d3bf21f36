// The scalar unit's data cache has lines of 64 bytes and is write-back. It is not coherent with DMA
// or with other cores: a store reaches memory only when its line is cleaned, and a loaded line does
// not show what is written to memory after the load.
#pragma once

#include <cstring>
#include <map>

#include "fault.h"

namespace AscendC {
namespace shim {

constexpr uint64_t LINE = 64;

struct CachedLine {
    uint8_t data[LINE];
    uint64_t dirty = 0;      // One bit per byte: the byte was stored and not yet cleaned.
    uint64_t stale = 0;      // One bit per byte: memory was written after the line was loaded.
    CallSite by{};           // The latest store to the line.
    uint64_t lo = 0, hi = 0; // The addresses of the line that belong to its region.
};

// Returns the bytes of the line at address `line` that [lo, hi) covers, one bit per byte.
inline uint64_t line_bits(uint64_t line, uint64_t lo, uint64_t hi) {
    uint64_t from = lo > line ? lo - line : 0, to = hi < line + LINE ? hi - line : LINE;
    if (from >= to) return 0;
    return (~uint64_t(0) >> (LINE - (to - from))) << from;
}

class DataCache {
    std::map<uint64_t, CachedLine> lines;

  public:
    static uint64_t line_of(uint64_t address) { return address & ~(LINE - 1); }

    CachedLine &load(uint64_t address, uint64_t region_lo, uint64_t region_hi) {
        uint64_t line = line_of(address);
        auto it = lines.find(line);
        if (it != lines.end()) return it->second;
        CachedLine &c = lines[line];
        c.lo = line > region_lo ? line : region_lo;
        c.hi = line + LINE < region_hi ? line + LINE : region_hi;
        std::memcpy(c.data + (c.lo - line), reinterpret_cast<const void *>(c.lo), c.hi - c.lo);
        return c;
    }

    CachedLine *find(uint64_t address) {
        auto it = lines.find(line_of(address));
        return it == lines.end() ? nullptr : &it->second;
    }

    // Writes a line back and removes it. With `whole` all its bytes are written, as on the device,
    // which overwrites what others wrote to the line; otherwise only the dirty bytes are written.
    void write_back(uint64_t address, bool whole) {
        uint64_t line = line_of(address);
        auto it = lines.find(line);
        if (it == lines.end()) return;
        CachedLine &c = it->second;
        for (uint64_t a = c.lo; c.dirty && a < c.hi; ++a)
            if (whole || (c.dirty >> (a - line) & 1)) *reinterpret_cast<uint8_t *>(a) = c.data[a - line];
        lines.erase(it);
    }

    template <class F> void for_each_overlapping(uint64_t lo, uint64_t hi, F f) {
        if (lines.empty()) return;
        for (auto i = lines.lower_bound(line_of(lo)); i != lines.end() && i->first < hi; ++i)
            f(i->first, i->second);
    }

    template <class F> void for_each(F f) {
        for (auto &l : lines) f(l.first, l.second);
    }
};

} // namespace shim
} // namespace AscendC
