// Nothing orders two cores between two SyncAlls. If one core writes a byte and another core
// accesses it in the same round, that is a race, in whatever order the threads ran.
#pragma once

#include "launch_state.h"

namespace AscendC {
namespace shim {

// The access with the highest end so far, and the one with the highest end of any other core.
struct HighestEnds {
    const GmAccess *highest = nullptr, *highest_other = nullptr;

    void add(const GmAccess *a) {
        if (!highest || a->core == highest->core) {
            if (!highest || a->hi > highest->hi) highest = a;
            return;
        }
        if (a->hi > highest->hi) {
            highest_other = highest;
            highest = a;
        } else if (!highest_other || a->hi > highest_other->hi) {
            highest_other = a;
        }
    }

    const GmAccess *conflicting(const GmAccess &a) const {
        if (highest && highest->core != a.core && highest->hi > a.lo) return highest;
        if (highest_other && highest_other->core != a.core && highest_other->hi > a.lo) return highest_other;
        return nullptr;
    }
};

inline void LaunchState::find_races(std::vector<GmAccess> &all, const char *unit) {
    std::sort(all.begin(), all.end(), [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
    HighestEnds reads, writes;
    for (const GmAccess &a : all) {
        const GmAccess *o = writes.conflicting(a);
        if (!o && a.write) o = reads.conflicting(a);
        if (o) {
            uint64_t at = a.lo > o->lo ? a.lo : o->lo;
            record_fault_locked(a.core < o->core ? a.core : o->core,
                                Fault{cat("gm-race: core ", o->core, " ", o->write ? "writes" : "reads", " and core ",
                                          a.core, " ", a.write ? "writes" : "reads", " the same ", unit, " at ",
                                          hex(at), " with no SyncAll between: ", where(o->x), " and ", where(a.x)),
                                      false, false});
            return;
        }
        (a.write ? writes : reads).add(&a);
    }
}

inline void LaunchState::mark_stale(const std::vector<GmAccess> &writes) {
    // reach[i] is the highest end of writes 0 to i, so that a search can skip the writes below a
    // line.
    std::vector<uint64_t> reach(writes.size());
    for (size_t i = 0; i < writes.size(); ++i)
        reach[i] = i && reach[i - 1] > writes[i].hi ? reach[i - 1] : writes[i].hi;
    for (uint32_t c = 0; c < blocks; ++c) {
        if (!caches[c]) continue;
        caches[c]->for_each([&](uint64_t line, CachedLine &l) {
            size_t i = size_t(std::upper_bound(reach.begin(), reach.end(), line) - reach.begin());
            for (; i < writes.size() && writes[i].lo < line + LINE; ++i)
                if (writes[i].core != c) l.stale |= line_bits(line, writes[i].lo, writes[i].hi);
        });
    }
}

inline void LaunchState::close_round() {
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
        find_races(all, "bytes");
        if (!stop && scalar && checks()) {
            // The scalar unit writes back whole lines, so two cores must not write to one line.
            std::vector<GmAccess> lines = writes;
            for (auto &a : lines)
                if (a.pipe == S) {
                    a.hi = DataCache::line_of(a.hi - 1) + LINE;
                    a.lo = DataCache::line_of(a.lo);
                }
            find_races(lines, "64-byte line (a scalar store owns the whole line)");
        }
        std::sort(writes.begin(), writes.end(),
                  [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
        mark_stale(writes);
    }
    for (auto &l : log) l.clear();
}

} // namespace shim
} // namespace AscendC
