// Who touched which byte of global memory last, within one core: interval maps, because addresses are
// real pointers and rows are scattered.
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
    Spans spans[2][PIPES]; // [0] read, [1] written

    static Spans::iterator first_over(Spans &m, uint64_t lo) {
        auto i = m.upper_bound(lo);
        if (i != m.begin()) {
            auto before = std::prev(i);
            if (before->second.hi > lo) return before;
        }
        return i;
    }

    bool look(int kind, int q, uint64_t lo, uint64_t hi, uint32_t known, Hit &hit) {
        Spans &m = spans[kind][q];
        for (auto i = first_over(m, lo); i != m.end() && i->first < hi; ++i)
            if (i->second.seq > known) {
                hit = Hit{Pipe(q), kind == 1, i->second.seq, i->first > lo ? i->first : lo};
                return true;
            }
        return false;
    }

  public:
    int conflicts(uint64_t lo, uint64_t hi, bool write, Pipe p, const Clock &known, Hit (&hits)[2 * PIPES]) {
        int n = 0;
        for (int q = 0; q < PIPES; ++q) {
            if (p == S && q == S) continue;
            n += look(1, q, lo, hi, known[q], hits[n]);
            if (write) n += look(0, q, lo, hi, known[q], hits[n]);
        }
        return n;
    }

    // The newest access takes the bytes; what sticks out of older spans stays theirs.
    void record(uint64_t lo, uint64_t hi, bool write, Pipe p, uint32_t seq) {
        Spans &m = spans[write ? 1 : 0][p];
        auto i = first_over(m, lo);
        while (i != m.end() && i->first < hi) {
            uint64_t start = i->first;
            Span old = i->second;
            i = m.erase(i);
            if (start < lo) m[start] = Span{lo, old.seq};
            if (old.hi > hi) i = m.insert({hi, Span{old.hi, old.seq}}).first;
        }
        m[lo] = Span{hi, seq};
    }

    // Everything so far is ordered before everything to come.
    void clear() {
        for (auto &kind : spans)
            for (auto &m : kind) m.clear();
    }
};

} // namespace shim
} // namespace AscendC
