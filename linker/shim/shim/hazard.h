// Who touched which byte of UB last. One record per block of 32 bytes and, where a block was touched
// in part, one per byte; the last access of a pipe stands for all of its earlier ones, because a clock
// that covers it covers them.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "clock.h"

namespace AscendC {
namespace shim {

constexpr uint32_t UB_BYTES = 192 * 1024;
// Select in modes 1 and 2 uses everything from here on as its own.
constexpr uint32_t UB_SCRATCH = 184 * 1024;
constexpr uint32_t BLOCK = 32;

struct Hit {
    Pipe pipe;
    bool wrote;
    uint32_t seq;
    uint64_t at;
};

class UbClocks {
    enum { READ = 0, WRITE = 1 };
    struct Record {
        uint32_t last[2][PIPES];
        uint32_t fine; // bit kind * PIPES + pipe: the bytes of this block have records of their own
    };
    std::vector<Record> blocks;
    // Pages of it are only ever touched where a scalar unit or an odd tail was.
    struct Free {
        void operator()(uint32_t *p) const { std::free(p); }
    };
    std::unique_ptr<uint32_t, Free> bytes;

    uint32_t *fine(int slot, uint32_t byte) const { return bytes.get() + size_t(slot) * UB_BYTES + byte; }

    bool look(const Record &r, int kind, int q, uint32_t known, uint32_t lo, uint32_t hi, Hit &hit) const {
        if (r.last[kind][q] <= known) return false;
        int slot = kind * PIPES + q;
        if (!(r.fine >> slot & 1)) {
            hit = Hit{Pipe(q), kind == WRITE, r.last[kind][q], lo};
            return true;
        }
        for (uint32_t b = lo; b < hi; ++b)
            if (*fine(slot, b) > known) {
                hit = Hit{Pipe(q), kind == WRITE, *fine(slot, b), b};
                return true;
            }
        return false;
    }

  public:
    UbClocks()
        : blocks(UB_BYTES / BLOCK),
          bytes(static_cast<uint32_t *>(std::calloc(size_t(2 * PIPES) * UB_BYTES, sizeof(uint32_t)))) {}

    void reset() { std::memset(blocks.data(), 0, blocks.size() * sizeof(Record)); }

    // The earlier accesses to [lo, hi), at most one per pipe and kind, that `p`, knowing `known`, is
    // not ordered after; only those of the first such block.
    int conflicts(uint32_t lo, uint32_t hi, bool write, Pipe p, const Clock &known, Hit (&hits)[2 * PIPES]) const {
        Clock k = known;
        if (p == S) k[S] = UINT32_MAX; // the scalar unit sees its own accesses in program order
        for (uint32_t b = lo / BLOCK; b * BLOCK < hi; ++b) {
            const Record &r = blocks[b];
            bool any = false;
            for (int q = 0; q < PIPES; ++q)
                any |= (r.last[WRITE][q] > k[q]) | (write & (r.last[READ][q] > k[q]));
            if (!any) continue;
            uint32_t from = b * BLOCK > lo ? b * BLOCK : lo;
            uint32_t to = (b + 1) * BLOCK < hi ? (b + 1) * BLOCK : hi;
            int n = 0;
            for (int q = 0; q < PIPES; ++q) {
                n += look(r, WRITE, q, k[q], from, to, hits[n]);
                if (write) n += look(r, READ, q, k[q], from, to, hits[n]);
            }
            if (n) return n;
        }
        return 0;
    }

    void record(uint32_t lo, uint32_t hi, bool write, Pipe p, uint32_t seq) {
        int kind = write ? WRITE : READ, slot = kind * PIPES + p;
        for (uint32_t b = lo / BLOCK; b * BLOCK < hi; ++b) {
            Record &r = blocks[b];
            uint32_t start = b * BLOCK, end = start + BLOCK;
            if (lo <= start && end <= hi) {
                r.fine &= ~(1u << slot);
            } else {
                if (!(r.fine >> slot & 1)) {
                    for (uint32_t i = start; i < end; ++i) *fine(slot, i) = r.last[kind][p];
                    r.fine |= 1u << slot;
                }
                uint32_t to = end < hi ? end : hi;
                for (uint32_t i = start > lo ? start : lo; i < to; ++i) *fine(slot, i) = seq;
            }
            r.last[kind][p] = seq;
        }
    }
};

} // namespace shim
} // namespace AscendC
