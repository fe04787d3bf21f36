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

inline void LaunchState::find_races(std::vector<GmAccess> &all) {
    std::sort(all.begin(), all.end(), [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
    HighestEnds reads, writes;
    for (const GmAccess &a : all) {
        const GmAccess *o = writes.conflicting(a);
        if (!o && a.write) o = reads.conflicting(a);
        if (o) {
            uint64_t at = a.lo > o->lo ? a.lo : o->lo;
            record_fault_locked(a.core < o->core ? a.core : o->core,
                                Fault{cat("gm-race: core ", o->core, " ", o->write ? "writes" : "reads", " and core ",
                                          a.core, " ", a.write ? "writes" : "reads", " the same bytes at ",
                                          hex(at), " with no SyncAll between: ", where(o->x), " and ", where(a.x)),
                                      false, false});
            return;
        }
        (a.write ? writes : reads).add(&a);
    }
}

inline void LaunchState::close_round() {
    if (blocks > 1 && checks()) {
        std::vector<GmAccess> all;
        for (auto &l : log) all.insert(all.end(), l.begin(), l.end());
        find_races(all);
    }
    for (auto &l : log) l.clear();
}

} // namespace shim
} // namespace AscendC
