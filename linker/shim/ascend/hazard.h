// The latest access of each pipe to each byte of UB. There is one record per block of 32 bytes and,
// if a part of a block was accessed, one per byte. The latest access of a pipe is enough, because a
// clock that covers it covers the pipe's earlier accesses.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "clock.h"

namespace AscendC {
namespace shim {

constexpr uint32_t UB_BYTES = 192 * 1024;
// Select in modes 1 and 2 uses UB from this byte on as scratch space.
constexpr uint32_t UB_SCRATCH = 184 * 1024;
constexpr uint32_t BLOCK = 32;

struct Conflict {
    Pipe pipe;
    bool wrote;
    uint32_t seq;
    uint64_t at;
};

class UbClocks {
    enum { READ = 0, WRITE = 1 };
    struct Record {
        uint32_t last[2][PIPES];
        // Bit kind * PIPES + pipe is set if the bytes of this block have their own records.
        uint32_t split;
    };
    std::vector<Record> blocks;
    // One record per byte, kind and pipe. calloc maps a page of it only when one of its records is
    // written, which only accesses to parts of blocks do.
    struct Free {
        void operator()(uint32_t *p) const { std::free(p); }
    };
    std::unique_ptr<uint32_t, Free> bytes;

    uint32_t *byte_record(int slot, uint32_t byte) const { return bytes.get() + size_t(slot) * UB_BYTES + byte; }

    bool find_conflict(const Record &r, int kind, int q, uint32_t completed, uint32_t lo, uint32_t hi,
                       Conflict &conflict) const {
        if (r.last[kind][q] <= completed) return false;
        int slot = kind * PIPES + q;
        if (!(r.split >> slot & 1)) {
            conflict = Conflict{Pipe(q), kind == WRITE, r.last[kind][q], lo};
            return true;
        }
        for (uint32_t b = lo; b < hi; ++b)
            if (*byte_record(slot, b) > completed) {
                conflict = Conflict{Pipe(q), kind == WRITE, *byte_record(slot, b), b};
                return true;
            }
        return false;
    }

  public:
    UbClocks()
        : blocks(UB_BYTES / BLOCK),
          bytes(static_cast<uint32_t *>(std::calloc(size_t(2 * PIPES) * UB_BYTES, sizeof(uint32_t)))) {}

    void reset() { std::memset(blocks.data(), 0, blocks.size() * sizeof(Record)); }

    // Finds the earlier accesses to [lo, hi) that conflict with an access of pipe `p` and that the
    // clock `completed` does not cover. It stops at the first block with conflicts, writes at most
    // one per pipe and kind to `conflicts`, and returns their number.
    int find_conflicts(uint32_t lo, uint32_t hi, bool write, Pipe p, const Clock &completed,
                       Conflict (&conflicts)[2 * PIPES]) const {
        Clock k = completed;
        // The scalar unit performs its own accesses in program order.
        if (p == S) k[S] = UINT32_MAX;
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
                n += find_conflict(r, WRITE, q, k[q], from, to, conflicts[n]);
                if (write) n += find_conflict(r, READ, q, k[q], from, to, conflicts[n]);
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
                r.split &= ~(1u << slot);
            } else {
                if (!(r.split >> slot & 1)) {
                    for (uint32_t i = start; i < end; ++i) *byte_record(slot, i) = r.last[kind][p];
                    r.split |= 1u << slot;
                }
                uint32_t to = end < hi ? end : hi;
                for (uint32_t i = start > lo ? start : lo; i < to; ++i) *byte_record(slot, i) = seq;
            }
            r.last[kind][p] = seq;
        }
    }
};

} // namespace shim
} // namespace AscendC
