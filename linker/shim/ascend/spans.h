// The latest access of each pipe of one core to each byte of GM, as interval maps: addresses are
// real pointers, and the accessed rows are scattered.
#pragma once

#include <map>

#include "hazard.h"

namespace AscendC {
namespace shim {

class GmClocks {
    struct Span {
        uint64_t hi;
        uint32_t seq;
    };
    using Spans = std::map<uint64_t, Span>;
    Spans spans[2][PIPES]; // [0] holds reads, [1] holds writes.

    static Spans::iterator first_overlapping(Spans &m, uint64_t lo) {
        auto i = m.upper_bound(lo);
        if (i != m.begin()) {
            auto before = std::prev(i);
            if (before->second.hi > lo) return before;
        }
        return i;
    }

    bool find_conflict(int kind, int q, uint64_t lo, uint64_t hi, uint32_t completed, Conflict &conflict) {
        Spans &m = spans[kind][q];
        for (auto i = first_overlapping(m, lo); i != m.end() && i->first < hi; ++i)
            if (i->second.seq > completed) {
                conflict = Conflict{Pipe(q), kind == 1, i->second.seq, i->first > lo ? i->first : lo};
                return true;
            }
        return false;
    }

  public:
    int find_conflicts(uint64_t lo, uint64_t hi, bool write, Pipe p, const Clock &completed,
                       Conflict (&conflicts)[2 * PIPES]) {
        int n = 0;
        for (int q = 0; q < PIPES; ++q) {
            if (p == S && q == S) continue;
            n += find_conflict(1, q, lo, hi, completed[q], conflicts[n]);
            if (write) n += find_conflict(0, q, lo, hi, completed[q], conflicts[n]);
        }
        return n;
    }

    // Records an access. It replaces older spans in [lo, hi) and keeps their parts outside of it.
    void record(uint64_t lo, uint64_t hi, bool write, Pipe p, uint32_t seq) {
        Spans &m = spans[write ? 1 : 0][p];
        auto i = first_overlapping(m, lo);
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

} // namespace shim
} // namespace AscendC
