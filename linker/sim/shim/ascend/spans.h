// The latest access of each pipe of one core to each byte of UB or of global memory, as interval maps. It is enough,
// because a clock that covers it covers the pipe's earlier accesses.
#pragma once

#include <cstring>
#include <map>

#include "clock.h"

namespace AscendC::shim {

struct Conflict {
    Pipe pipe;
    bool wrote;
    uint32_t seq;
    uint64_t at;
};

class Spans {
    struct Span {
        uint64_t hi;
        uint32_t seq;
    };
    using Map = std::map<uint64_t, Span>;
    Map spans[2][PIPES]; // [0] holds reads, [1] holds writes.
    uint32_t newest[2][PIPES] = {};

    static Map::iterator first_overlapping(Map &m, uint64_t lo) {
        auto i = m.upper_bound(lo);
        if (i != m.begin()) {
            auto before = std::prev(i);
            if (before->second.hi > lo) return before;
        }
        return i;
    }

    bool find_conflict(int kind, int q, uint64_t lo, uint64_t hi, uint32_t completed, Conflict &conflict) {
        Map &m = spans[kind][q];
        if (newest[kind][q] <= completed) return false;
        for (auto i = first_overlapping(m, lo); i != m.end() && i->first < hi; ++i)
            if (i->second.seq > completed) {
                conflict = Conflict{Pipe(q), kind == 1, i->second.seq, i->first > lo ? i->first : lo};
                return true;
            }
        return false;
    }

  public:
    // Finds the earlier accesses to [lo, hi) that conflict with an access of pipe `p` and that the clock `completed`
    // does not cover. Writes at most one per pipe and kind to `conflicts`, and returns their number.
    int find_conflicts(uint64_t lo, uint64_t hi, bool write, Pipe p, const Clock &completed,
                       Conflict (&conflicts)[2 * PIPES]) {
        int n = 0;
        for (int q = 0; q < PIPES; ++q) {
            if (p == S && q == S) continue; // The scalar unit performs its own accesses in program order.
            n += find_conflict(1, q, lo, hi, completed[q], conflicts[n]);
            if (write) n += find_conflict(0, q, lo, hi, completed[q], conflicts[n]);
        }
        return n;
    }

    // Records an access. It replaces older spans in [lo, hi) and keeps their parts outside of it.
    void record(uint64_t lo, uint64_t hi, bool write, Pipe p, uint32_t seq) {
        Map &m = spans[write][p];
        newest[write][p] = seq;
        auto i = first_overlapping(m, lo);
        if (i != m.end() && i->first == lo && i->second.hi == hi) {
            i->second.seq = seq;
            return;
        }
        while (i != m.end() && i->first < hi) {
            uint64_t start = i->first;
            Span old = i->second;
            i = m.erase(i);
            if (start < lo) m[start] = Span{lo, old.seq};
            if (old.hi > hi) i = m.insert({hi, Span{old.hi, old.seq}}).first;
        }
        m[lo] = Span{hi, seq};
    }

    // Forgets all accesses, after a barrier that orders them before all later ones.
    void clear() {
        for (auto &kind : spans)
            for (auto &m : kind) m.clear();
    }
};

} // namespace AscendC::shim
