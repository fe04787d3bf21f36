// Nothing orders two cores between two SyncAlls. If one core writes a byte and another core
// accesses it in the same round, that is a race, in whatever order the threads ran.
#pragma once

#include "launch_state.h"

namespace AscendC::shim {

inline void LaunchState::find_races(std::vector<GmAccess> &all) {
    std::sort(all.begin(), all.end(), [](const GmAccess &a, const GmAccess &b) { return a.lo < b.lo; });
    // The read and the write of each core with the highest end so far.
    std::vector<const GmAccess *> ends[2] = {{blocks, nullptr}, {blocks, nullptr}};
    for (const GmAccess &a : all) {
        for (int write = 1; write >= (a.write ? 0 : 1); --write)
            for (const GmAccess *o : ends[write]) {
                if (!o || o->core == a.core || o->hi <= a.lo) continue;
                uint64_t at = std::max(a.lo, o->lo);
                return record_fault_locked(
                    std::min(a.core, o->core),
                    Fault{cat("gm-race: core ", o->core, " ", o->write ? "writes" : "reads", " and core ", a.core, " ",
                              a.write ? "writes" : "reads", " the same bytes at ", hex(at),
                              " with no SyncAll between: ", where(o->x), " and ", where(a.x)),
                          false, false});
            }
        const GmAccess *&last = ends[a.write][a.core];
        if (!last || a.hi > last->hi) last = &a;
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

} // namespace AscendC::shim
