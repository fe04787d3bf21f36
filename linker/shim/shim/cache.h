// The scalar unit's data cache: 64-byte lines, write-back, not coherent with DMA or other cores. What
// is stored here reaches memory only by a clean, and a line once loaded does not see later writers.
#pragma once

#include <cstring>
#include <map>

#include "fault.h"

namespace AscendC {
namespace shim {

constexpr uint64_t LINE = 64;

struct CachedLine {
    uint8_t data[LINE];
    uint64_t dirty = 0; // one bit per byte
    uint64_t stale = 0; // likewise: memory has changed under it
    Ctx by{};           // the store that made it dirty
    uint64_t lo = 0, hi = 0; // the part of the line that the region has
};

// The bytes of the line at `line` that [lo, hi) covers, as bits.
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
        auto found = lines.find(line);
        if (found != lines.end()) return found->second;
        CachedLine &c = lines[line];
        c.lo = line > region_lo ? line : region_lo;
        c.hi = line + LINE < region_hi ? line + LINE : region_hi;
        std::memcpy(c.data + (c.lo - line), reinterpret_cast<const void *>(c.lo), c.hi - c.lo);
        return c;
    }

    CachedLine *find(uint64_t address) {
        auto found = lines.find(line_of(address));
        return found == lines.end() ? nullptr : &found->second;
    }

    // The device writes the whole line back, which clobbers neighbours; with `whole` so do we.
    void write_back(uint64_t address, bool whole) {
        uint64_t line = line_of(address);
        auto found = lines.find(line);
        if (found == lines.end()) return;
        CachedLine &c = found->second;
        for (uint64_t a = c.lo; c.dirty && a < c.hi; ++a)
            if (whole || (c.dirty >> (a - line) & 1)) *reinterpret_cast<uint8_t *>(a) = c.data[a - line];
        lines.erase(found);
    }

    template <class F> void each_over(uint64_t lo, uint64_t hi, F f) {
        if (lines.empty()) return;
        for (auto i = lines.lower_bound(line_of(lo)); i != lines.end() && i->first < hi; ++i)
            f(i->first, i->second);
    }

    template <class F> void each(F f) {
        for (auto &l : lines) f(l.first, l.second);
    }

    void drop() { lines.clear(); }
};

} // namespace shim
} // namespace AscendC
