// What the cores of one launch share: the registered regions of memory, the barrier, and the log of
// global accesses from which races between cores are found.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "cache.h"
#include "clock.h"

extern "C" {

struct avsg_shim_region {
    const void *base;
    uint64_t len;
    uint32_t kind; // 0 device, 1 registered host, 2 read-only device
};

struct avsg_shim_options {
    uint32_t size;  // sizeof of this struct, as the caller knows it
    uint32_t cores; // physical vector cores
    uint64_t seed;  // of uninitialised memory and of the adversarial order
    uint32_t mode;  // 0 in order, 1 adversarial order, 2 adversarial order with the checks off
    uint32_t regions;
    const avsg_shim_region *region;
    int32_t fault_block; // -1 none: raise an AI Core exception there
    uint32_t *peak_ub;   // optional out: highest UB byte touched + 1, Select's scratch excluded
    uint64_t *cycles;    // reserved
};
}

namespace AscendC {
namespace shim {

struct Region {
    uint64_t lo, hi;
    uint32_t kind;
};

struct GmAccess {
    uint64_t lo, hi;
    uint32_t core;
    Pipe pipe;
    bool write;
    Ctx x;
};

class World {
    std::mutex lock;
    std::condition_variable moved;
    uint32_t arrived = 0, ended = 0;
    uint64_t round = 0;
    uint32_t fault_core = UINT32_MAX;
    Fault first{};

  public:
    const uint32_t blocks, cores, mode;
    const uint64_t seed;
    std::vector<Region> regions;
    // Written by their own core, read by whoever closes a round while all the others wait.
    std::vector<std::vector<GmAccess>> log;
    std::vector<DataCache *> caches;
    bool stop = false;

    World(uint32_t n, const avsg_shim_options &o)
        : blocks(n), cores(o.cores), mode(o.mode), seed(o.seed), log(n), caches(n, nullptr) {
        for (uint32_t i = 0; i < o.regions; ++i) {
            uint64_t lo = reinterpret_cast<uint64_t>(o.region[i].base);
            if (o.region[i].len) regions.push_back(Region{lo, lo + o.region[i].len, o.region[i].kind});
        }
        std::sort(regions.begin(), regions.end(),
                  [](const Region &a, const Region &b) { return a.lo < b.lo; });
    }

    bool adversarial() const { return mode != 0; }
    bool checks() const { return mode != 2; }

    const Region &region(const Ctx &x, uint64_t lo, uint64_t hi, bool write, bool scalar) const {
        auto i = std::upper_bound(regions.begin(), regions.end(), lo,
                                  [](uint64_t a, const Region &r) { return a < r.lo; });
        const Region *r = i == regions.begin() ? nullptr : &*std::prev(i);
        if (!r || lo >= r->hi)
            fail("gm-range", x, scalar ? "scalar access" : "DDR address of the MTE instruction",
                 " is out of range: ", hex(lo), "..", hex(hi), " is in no registered region");
        if (hi > r->hi)
            fail("gm-range", x, scalar ? "scalar access" : "DDR address of the MTE instruction",
                 " is out of range: ", hex(lo), "..", hex(hi), " runs past its region, which ends at ",
                 hex(r->hi), " (", hi - r->hi, " bytes too far)");
        if (write && r->kind == 2)
            fail("gm-range", x, "writes ", hex(lo), "..", hex(hi), " in a read-only region");
        return *r;
    }

    void note(uint32_t core, const Fault &f) {
        std::lock_guard<std::mutex> g(lock);
        note_locked(core, f);
    }

    bool fault(Fault &out, uint32_t &core) {
        std::lock_guard<std::mutex> g(lock);
        if (fault_core == UINT32_MAX) return false;
        out = first;
        core = fault_core;
        return true;
    }

    // SyncAll for one core. Everyone leaves together, or with an exception.
    void arrive(const Ctx &x) {
        if (blocks > cores)
            throw Fault{cat("hang: ", where(x), ": ", blocks, " blocks on ", cores,
                            " cores never all reach SyncAll; launch at most one block per core"),
                        true, false};
        std::unique_lock<std::mutex> g(lock);
        if (stop) throw Fault{"", false, true};
        ++arrived;
        if (arrived + ended == blocks) {
            if (ended)
                throw Fault{cat("hang: ", where(x), ": ", ended, " of ", blocks,
                                " cores ended without this SyncAll"),
                            true, false};
            arrived = 0;
            ++round;
            close_round();
            moved.notify_all();
            if (stop) throw Fault{"", false, true};
            return;
        }
        uint64_t mine = round;
        moved.wait(g, [&] { return stop || round != mine; });
        if (stop) throw Fault{"", false, true};
    }

    void end(uint32_t core) {
        std::lock_guard<std::mutex> g(lock);
        ++ended;
        if (!stop && arrived && arrived + ended == blocks)
            note_locked(core, Fault{cat("hang: ", arrived, " of ", blocks,
                                        " cores wait in SyncAll and the others have ended"),
                                    true, false});
    }

    // After the last round; the launcher has joined all threads.
    void finish() {
        std::lock_guard<std::mutex> g(lock);
        if (!stop) close_round();
    }

  private:
    void note_locked(uint32_t core, const Fault &f) {
        stop = true;
        moved.notify_all();
        if (!f.echo && (fault_core == UINT32_MAX || core < fault_core)) {
            fault_core = core;
            first = f;
        }
    }

    void close_round();
    void races(std::vector<GmAccess> &all, const char *unit);
    void mark_stale(const std::vector<GmAccess> &writes);
};

} // namespace shim
} // namespace AscendC
