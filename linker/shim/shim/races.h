// Between two SyncAlls nothing orders one core against another: any byte that one core writes and
// another touches in the same round is a race, whatever order the threads happened to run in.
#pragma once

#include "world.h"

namespace AscendC {
namespace shim {

// The furthest-reaching access so far, and the furthest of any other core.
struct Reach {
    const GmAccess *best = nullptr, *other = nullptr;

    void add(const GmAccess *a) {
        if (!best || a->core == best->core) {
            if (!best || a->hi > best->hi) best = a;
            return;
        }
        if (a->hi > best->hi) {
            other = best;
            best = a;
        } else if (!other || a->hi > other->hi) {
            other = a;
        }
    }

    const GmAccess *over(const GmAccess &a) const {
        if (best && best->core != a.core && best->hi > a.lo) return best;
        if (other && other->core != a.core && other->hi > a.lo) return other;
        return nullptr;
    }
};

inline void World::races(std::vector<GmAccess> &all, const char *unit) {
    std::sort(all.begin(), all.end(), [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
    Reach reads, writes;
    for (const GmAccess &a : all) {
        const GmAccess *o = writes.over(a);
        if (!o && a.write) o = reads.over(a);
        if (o) {
            uint64_t at = a.lo > o->lo ? a.lo : o->lo;
            note_locked(a.core < o->core ? a.core : o->core,
                        Fault{cat("gm-race: core ", o->core, " ", o->write ? "writes" : "reads", " and core ",
                                  a.core, " ", a.write ? "writes" : "reads", " the same ", unit, " at ", hex(at),
                                  " with no SyncAll between: ", where(o->x), " and ", where(a.x)),
                              false, false});
            return;
        }
        (a.write ? writes : reads).add(&a);
    }
}

inline void World::mark_stale(const std::vector<GmAccess> &writes) {
    // The furthest end of any write up to here, so that a search can skip what lies below a line.
    std::vector<uint64_t> reach(writes.size());
    for (size_t i = 0; i < writes.size(); ++i)
        reach[i] = i && reach[i - 1] > writes[i].hi ? reach[i - 1] : writes[i].hi;
    for (uint32_t c = 0; c < blocks; ++c) {
        if (!caches[c]) continue;
        caches[c]->each([&](uint64_t line, CachedLine &l) {
            size_t i = size_t(std::upper_bound(reach.begin(), reach.end(), line) - reach.begin());
            for (; i < writes.size() && writes[i].lo < line + LINE; ++i)
                if (writes[i].core != c) l.stale |= line_bits(line, writes[i].lo, writes[i].hi);
        });
    }
}

inline void World::close_round() {
    if (blocks > 1) {
        std::vector<GmAccess> all, writes;
        bool scalar = false;
        for (auto &l : log)
            for (auto &a : l) {
                if (checks()) all.push_back(a);
                if (!a.write) continue;
                writes.push_back(a);
                scalar |= a.pipe == S;
            }
        races(all, "bytes");
        if (!stop && scalar && checks()) {
            // A line that the scalar unit writes back takes its neighbours with it.
            std::vector<GmAccess> lines = writes;
            for (auto &a : lines)
                if (a.pipe == S) {
                    a.hi = DataCache::line_of(a.hi - 1) + LINE;
                    a.lo = DataCache::line_of(a.lo);
                }
            races(lines, "64-byte line (a scalar store owns the whole line)");
        }
        std::sort(writes.begin(), writes.end(),
                  [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
        mark_stale(writes);
    }
    for (auto &l : log) l.clear();
}

} // namespace shim
} // namespace AscendC
