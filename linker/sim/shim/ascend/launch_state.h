// The state that the cores of one launch share: the registered regions of memory, the barrier of
// SyncAll, and the log of GM accesses in which races between cores are found.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "fault.h"

extern "C" {

struct avsg_shim_region {
    const void *base;
    uint64_t len;
    uint32_t kind; // 0: device memory, 1: registered host memory, 2: read-only device memory.
};

struct avsg_shim_options {
    uint32_t size;  // sizeof(avsg_shim_options) in the caller.
    uint32_t cores; // The number of physical vector cores.
    uint64_t seed;  // The seed of uninitialised memory and of the adversarial order.
    uint32_t mode;  // 0: program order, 1: adversarial order, 2: adversarial order without checks.
    uint32_t regions;
    const avsg_shim_region *region;
    int32_t fault_block; // The block that raises an AI Core exception, or -1.
    uint32_t *peak_ub;   // Out: highest accessed UB byte + 1 without Select's scratch.
    void *entry;         // The kernel, or null if the library has none of its name.
};
}

namespace AscendC::shim {

struct Region {
    uint64_t hi;
    uint32_t kind;
};

struct GmAccess {
    uint64_t lo, hi;
    uint32_t core;
    bool write;
    CallSite x;
};

class LaunchState {
    std::mutex lock;
    std::condition_variable state_changed;
    uint32_t arrived = 0, ended = 0;
    uint64_t round = 0;

  public:
    uint32_t fault_core = UINT32_MAX; // The lowest core that broke a rule, with its fault.
    Fault first{};
    const uint32_t blocks;
    const avsg_shim_options &options;
    std::map<uint64_t, Region> regions; // By their first bytes.
    // One log per core. Each core writes its own; the core that closes a round reads all of them
    // while the other cores wait.
    std::vector<std::vector<GmAccess>> log;
    bool stop = false;

    LaunchState(uint32_t n, const avsg_shim_options &o)
        : blocks(n), options(o), log(n) {
        for (uint32_t i = 0; i < o.regions; ++i) {
            uint64_t lo = reinterpret_cast<uint64_t>(o.region[i].base);
            if (o.region[i].len) regions[lo] = Region{lo + o.region[i].len, o.region[i].kind};
        }
    }

    bool checks() const { return options.mode != 2; }

    // Checks that a DMA move stays within one region.
    void check_region(const CallSite &x, uint64_t lo, uint64_t hi, bool write) const {
        auto after = regions.upper_bound(lo);
        const Region r = after == regions.begin() ? Region{0, 0} : std::prev(after)->second;
        if (lo >= r.hi)
            fail("gm-range", x, "DDR address of the MTE instruction is out of range: ", hex(lo), "..", hex(hi),
                 " is in no registered region");
        if (hi > r.hi)
            fail("gm-range", x, "DDR address of the MTE instruction is out of range: ", hex(lo), "..", hex(hi),
                 " runs past its region, which ends at ", hex(r.hi), " (", hi - r.hi, " bytes too far)");
        if (write && r.kind == 2)
            fail("gm-range", x, "writes ", hex(lo), "..", hex(hi), " in a read-only region");
    }

    void record_fault(uint32_t core, const Fault &f) {
        std::lock_guard<std::mutex> g(lock);
        record_fault_locked(core, f);
    }

    // Waits until all cores have called SyncAll. All cores return together, or all of them throw.
    void sync_all(const CallSite &x) {
        if (blocks > options.cores)
            hang(x, blocks, " blocks on ", options.cores,
                 " cores never all reach SyncAll; launch at most one block per core");
        std::unique_lock<std::mutex> g(lock);
        if (stop) throw Fault{"", false, true};
        ++arrived;
        const uint64_t arrival_round = round;
        if (arrived + ended == blocks) {
            if (ended) hang(x, ended, " of ", blocks, " cores ended without this SyncAll");
            arrived = 0;
            ++round;
            close_round();
            state_changed.notify_all();
        }
        state_changed.wait(g, [&] { return stop || round != arrival_round; });
        if (stop) throw Fault{"", false, true};
    }

    void end(uint32_t core, uint32_t peak) {
        std::lock_guard<std::mutex> g(lock);
        ++ended;
        *options.peak_ub = std::max(*options.peak_ub, peak);
        if (!stop && arrived && arrived + ended == blocks)
            record_fault_locked(
                core, Fault{cat("hang: ", arrived, " of ", blocks, " cores wait in SyncAll and the others have ended"),
                            true, false});
    }

    // Closes the last round. The launcher calls this after it has joined all threads.
    void finish() {
        std::lock_guard<std::mutex> g(lock);
        if (!stop) close_round();
    }

  private:
    void record_fault_locked(uint32_t core, const Fault &f) {
        stop = true;
        state_changed.notify_all();
        if (!f.secondary && (fault_core == UINT32_MAX || core < fault_core)) {
            fault_core = core;
            first = f;
        }
    }

    void close_round();
    void find_races(std::vector<GmAccess> &all);
};

} // namespace AscendC::shim
