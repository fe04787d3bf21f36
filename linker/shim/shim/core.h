// One vector core: its UB with a shadow of undefined bits, its pipes, and what each of them knows to
// have completed. Every instruction goes through `issue`.
#pragma once

#include <memory>
#include <vector>

#include "hazard.h"
#include "order.h"
#include "races.h"
#include "spans.h"

namespace AscendC {
namespace shim {

struct Event {
    bool set = false;
    Clock token{};
    Ctx by{};
};

// What outlives a launch, because allocating it is dearer than running a small kernel.
struct CoreMemory {
    alignas(64) uint8_t ub[UB_BYTES];
    alignas(64) uint8_t undefined[UB_BYTES]; // a set bit: this bit of UB holds no meaning
    UbClocks clocks;
};

class Core {
    struct Name {
        uint32_t seq;
        uint64_t turn; // in program order over all pipes
        Ctx x;
    };
    struct UbAccess {
        uint32_t lo, hi;
        bool write;
    };
    struct GmRange {
        uint64_t lo, hi;
        bool write;
    };
    static constexpr uint32_t NAMES = 4096;

    std::unique_ptr<CoreMemory> memory;
    std::vector<Name> names[PIPES];
    std::vector<UbAccess> ub_now;
    std::vector<GmRange> gm_now;
    GmClocks gm;
    Deferred deferred;
    uint64_t turn = 0;
    Clock count{};        // instructions issued per pipe
    Clock known[PIPES]{}; // what each pipe knows to be complete

  public:
    World &world;
    const uint32_t block;
    uint8_t *const ub, *const undefined;
    DataCache cache;
    Event events[size_t(HardEvent::MAX)][8];
    uint32_t peak = 0;
    int32_t kernel_type = -1;
    const bool checks, adversarial;

    Core(World &w, uint32_t b, std::unique_ptr<CoreMemory> m)
        : memory(std::move(m)), world(w), block(b), ub(memory->ub), undefined(memory->undefined),
          checks(w.checks()), adversarial(w.adversarial()) {
        for (auto &n : names) n.assign(NAMES, Name{0, 0, Ctx{"an earlier instruction"}});
        memory->clocks.reset();
        std::memset(undefined, 0xff, UB_BYTES);
        uint64_t x = (w.seed + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t(b) << 32) ^ 0x1234567;
        deferred.seed(x);
        for (uint32_t i = 0; i < UB_BYTES; i += 8) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            std::memcpy(ub + i, &x, 8);
        }
        w.caches[b] = &cache;
    }

    std::unique_ptr<CoreMemory> release() {
        world.caches[block] = nullptr;
        return std::move(memory);
    }

    // The footprint of the next instruction.
    void reads(uint32_t lo, uint32_t hi) { touches(lo, hi, false, true); }
    void writes(uint32_t lo, uint32_t hi) { touches(lo, hi, true, true); }
    void scribbles(uint32_t lo, uint32_t hi) { touches(lo, hi, true, false); }
    void gm_reads(uint64_t lo, uint64_t hi) { gm_touches(lo, hi, false); }
    void gm_writes(uint64_t lo, uint64_t hi) { gm_touches(lo, hi, true); }

    // An instruction that runs some time between its predecessors and whatever waits for it.
    template <class F> void issue(Pipe p, const Ctx &x, F &&run) {
        Clock needs;
        uint32_t seq = begin(p, x, needs);
        if (adversarial)
            deferred.add(p, seq, needs, std::forward<F>(run));
        else
            run();
    }

    // An instruction whose result the scalar unit has at once.
    template <class F> uint32_t issue_now(Pipe p, const Ctx &x, F &&run) {
        Clock needs;
        uint32_t seq = begin(p, x, needs);
        if (adversarial) deferred.force(needs);
        run();
        return seq;
    }

    // The late half of an instruction that was issued with `issue_now`.
    template <class F> void later(Pipe p, uint32_t seq, F &&run) {
        if (adversarial)
            deferred.add(p, seq, known[p], std::forward<F>(run));
        else
            run();
    }

    void barrier(Pipe p) {
        join(known[p], known[S]);
        known[p][p] = count[p];
    }

    void barrier_all() {
        for (auto &k : known) k = count;
        if (adversarial) deferred.force(count);
        gm.clear();
    }

    void set(HardEvent e, int32_t id, const Ctx &x) {
        const Edge &edge = EDGES[size_t(e)];
        Event &ev = event(e, id, x);
        if (ev.set)
            fail("sync", x, "event id ", id, " of ", edge.name, " is set a second time before its wait; ",
                 "the first set was ", where(ev.by));
        join(known[edge.from], known[S]);
        ev.set = true;
        ev.by = x;
        ev.token = known[edge.from];
        ev.token[edge.from] = count[edge.from];
    }

    void wait(HardEvent e, int32_t id, const Ctx &x) {
        const Edge &edge = EDGES[size_t(e)];
        Event &ev = event(e, id, x);
        if (!ev.set) fail("sync", x, "waits for event id ", id, " of ", edge.name, ", which nothing has set");
        ev.set = false;
        join(known[edge.to], known[S]);
        join(known[edge.to], ev.token);
    }

    // What must hold where cores meet and where the kernel ends.
    void settled(const Ctx &x, bool end) {
        if (adversarial) deferred.force(count);
        if (!checks) return;
        cache.each([&](uint64_t line, CachedLine &l) {
            if (l.dirty)
                fail("cache", l.by, "the scalar store to line ", hex(line), " was never published: call ",
                     "DataCacheCleanAndInvalid before ", end ? "the kernel ends" : where(x));
        });
        if (!end) return;
        for (size_t e = 0; e < size_t(HardEvent::MAX); ++e)
            for (int id = 0; id < 8; ++id)
                if (events[e][id].set)
                    fail("sync", events[e][id].by, "event id ", id, " of ", EDGES[e].name,
                         " is still set when the kernel ends; every set needs its wait");
    }

    bool any_undefined(uint32_t lo, uint32_t bytes) const {
        const uint8_t *u = undefined + lo;
        uint64_t any = 0, w;
        uint32_t i = 0;
        for (; i + 8 <= bytes; i += 8) {
            std::memcpy(&w, u + i, 8);
            any |= w;
        }
        for (; i < bytes; ++i) any |= u[i];
        return any != 0;
    }

    void define(uint32_t lo, uint32_t bytes) { std::memset(undefined + lo, 0, bytes); }
    void undefine(uint32_t lo, uint32_t bytes) { std::memset(undefined + lo, 0xff, bytes); }

  private:
    void touches(uint32_t lo, uint32_t hi, bool write, bool counts) {
        if (lo >= hi) return;
        if (counts && hi > peak) peak = hi;
        if (!ub_now.empty()) {
            UbAccess &last = ub_now.back();
            if (last.write == write && last.hi == lo) {
                last.hi = hi;
                return;
            }
        }
        ub_now.push_back(UbAccess{lo, hi, write});
    }

    void gm_touches(uint64_t lo, uint64_t hi, bool write) {
        if (lo >= hi) return;
        if (!gm_now.empty()) {
            GmRange &last = gm_now.back();
            if (last.write == write && last.hi == lo) {
                last.hi = hi;
                return;
            }
        }
        gm_now.push_back(GmRange{lo, hi, write});
    }

    Event &event(HardEvent e, int32_t id, const Ctx &x) {
        if (id < 0 || id > 5)
            fail("sync", x, "event id ", id, " is not free: a kernel without TPipe has 0..5 (6 and 7 are reserved)");
        return events[size_t(e)][id];
    }

    Name named(const Hit &h) const {
        const Name &n = names[h.pipe][h.seq % NAMES];
        return n.seq == h.seq ? n : Name{h.seq, 0, Ctx{"an earlier instruction"}};
    }

    uint32_t begin(Pipe p, const Ctx &x, Clock &needs) {
        // The scalar unit hands instructions out in order, so a pipe starts after all that the scalar
        // unit itself has waited for.
        join(known[p], known[S]);
        needs = known[p];
        if (p == S) needs[S] = count[S];
        uint32_t seq = ++count[p];
        names[p][seq % NAMES] = Name{seq, ++turn, x};
        if (checks) check(p, x);
        for (const UbAccess &a : ub_now) memory->clocks.record(a.lo, a.hi, a.write, p, seq);
        for (const GmRange &a : gm_now) {
            gm.record(a.lo, a.hi, a.write, p, seq);
            auto &log = world.log[block];
            if (world.blocks > 1) log.push_back(GmAccess{a.lo, a.hi, block, p, a.write, x});
            if (p != S) meet_cache(a, x);
        }
        ub_now.clear();
        gm_now.clear();
        return seq;
    }

    void check(Pipe p, const Ctx &x) {
        Hit hits[2 * PIPES];
        for (const UbAccess &a : ub_now)
            if (int n = memory->clocks.conflicts(a.lo, a.hi, a.write, p, known[p], hits))
                hazard(p, x, hits, n, a.write, "UB byte ");
        for (const GmRange &a : gm_now)
            if (int n = gm.conflicts(a.lo, a.hi, a.write, p, known[p], hits))
                hazard(p, x, hits, n, a.write, "GM address ");
    }

    // The latest of them is the one that the author forgot; order after it often covers the others.
    [[noreturn]] void hazard(Pipe p, const Ctx &x, const Hit *hits, int n, bool write, const char *what) {
        const Hit *h = hits;
        for (const Hit *o = hits; o < hits + n; ++o)
            if (named(*o).turn > named(*h).turn) h = o;
        std::string remedy = p == h->pipe
                                 ? cat("PipeBarrier<PIPE_", pipe_name(p), ">")
                                 : cat("SetFlag/WaitFlag<HardEvent::", pipe_name(h->pipe), "_", pipe_name(p), ">");
        fail("hazard", x, write ? "writes " : "reads ", what, hex(h->at), ", which ", where(named(*h).x),
             h->wrote ? " writes" : " reads", ", and nothing orders the two: missing ", remedy);
    }

    // DMA goes past the scalar cache. A store to a line with unpublished bytes will be overwritten when
    // the whole line is written back; a load misses only those bytes.
    void meet_cache(const GmRange &a, const Ctx &x) {
        cache.each_over(a.lo, a.hi, [&](uint64_t line, CachedLine &l) {
            uint64_t bytes = line_bits(line, a.lo, a.hi);
            if (checks && (a.write ? l.dirty : l.dirty & bytes))
                fail("cache", x, a.write ? "writes" : "reads", " line ", hex(line), " while ", where(l.by),
                     " is still only in the scalar cache: missing DataCacheCleanAndInvalid");
            if (a.write) l.stale |= bytes;
        });
    }
};

AVSG_SHIM_STATE Core *&current() {
    static thread_local Core *core = nullptr;
    return core;
}

inline Core &core(const Ctx &x) {
    Core *c = current();
    if (!c) throw Fault{cat("launch: ", where(x), ": called outside of a kernel"), false, false};
    return *c;
}

} // namespace shim
} // namespace AscendC
