// One vector core: its UB with a shadow that marks undefined bits, its pipes, and for each pipe the
// clock of the instructions that it is ordered after. Every instruction passes through `issue` or
// `issue_now`.
#pragma once

#include <memory>
#include <vector>

#include "order.h"
#include "races.h"
#include "spans.h"

namespace AscendC::shim {

struct Event {
    bool set = false;
    Clock token{};
    CallSite by{};
};

constexpr uint32_t UB_BYTES = 192 * 1024;
// Select in modes 1 and 2 uses UB from this byte on as scratch space.
constexpr uint32_t UB_SCRATCH = 184 * 1024;
constexpr uint32_t BLOCK = 32;

struct CoreMemory {
    uint8_t ub[UB_BYTES];
    uint8_t undefined[UB_BYTES]; // A set bit marks this bit of UB as undefined.
};

// What an earlier kernel left in a core, until InitSocState. (Its mask is not here, because every
// vector instruction sets its own.)
struct SocState {
    bool cleared = false;
    bool counter_mode = false; // The masks of repeat forms are numbers of elements.
    bool atomic_add = false;   // Stores to GM add words.
};

class Core {
    struct IssueRecord {
        uint32_t seq;
        uint64_t program_index; // The position in program order over all pipes.
        CallSite x;
    };
    struct Access {
        uint64_t lo, hi;
        bool write;
    };
    // UB or global memory: its clocks, and what the next instruction accesses.
    struct Space {
        const char *unit;
        Spans clocks;
        std::vector<Access> next;
    };
    // The count of a GatherMask.
    struct GatherCount {
        uint32_t seq;
        uint64_t n;
        CallSite x;
    };
    static constexpr uint32_t ISSUE_RECORDS = 4096;

    const std::unique_ptr<CoreMemory> memory{new CoreMemory};
    std::vector<IssueRecord> issued[PIPES];
    Space spaces[2] = {{"UB byte ", {}, {}}, {"GM address ", {}, {}}};
    // The count that the scalar unit sees, and those of later GatherMasks that it has not waited for.
    std::vector<GatherCount> counts;
    Deferred deferred;
    uint64_t program_index = 0;
    Clock issue_count{};      // The number of instructions issued, per pipe.
    Clock completed[PIPES]{}; // Per pipe: what has completed before its next instruction starts.

  public:
    LaunchState &launch_state;
    const uint32_t block;
    uint8_t *const ub, *const undefined;
    Event events[size_t(HardEvent::MAX)][8];
    uint32_t peak = 0;
    int32_t kernel_type = -1;
    SocState soc;
    bool drained = false; // Whether nothing was issued since the last barrier over all pipes.
    const bool checks, adversarial;

    Core(LaunchState &w, uint32_t b)
        : launch_state(w), block(b), ub(memory->ub), undefined(memory->undefined), checks(w.checks()), adversarial(w.options.mode != 0) {
        for (auto &n : issued) n.assign(ISSUE_RECORDS, IssueRecord{0, 0, CallSite{"an earlier instruction"}});
        std::memset(undefined, 0xff, UB_BYTES);
        uint64_t x = (w.options.seed + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t(b) << 32) ^ 0x1234567;
        deferred.seed(x);
        for (uint32_t i = 0; i < UB_BYTES; i += 8) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            std::memcpy(ub + i, &x, 8);
        }
        soc.counter_mode = x & 1;
        soc.atomic_add = x & 6;
        counts.push_back(GatherCount{0, x % UB_BYTES, CallSite{"an earlier kernel"}});
    }

    // Declare what the next instruction accesses, before it is issued. The scratch space of an instruction does not
    // count for the peak of UB.
    void accesses(uint32_t lo, uint32_t hi, bool write, bool counts_for_peak = true) {
        if (lo >= hi) return;
        if (counts_for_peak && hi > peak) peak = hi;
        auto &next = spaces[0].next;
        if (!next.empty() && next.back().write == write && next.back().hi == lo)
            next.back().hi = hi;
        else
            next.push_back(Access{lo, hi, write});
    }
    void accesses_gm(uint64_t lo, uint64_t hi, bool write) { spaces[1].next.push_back(Access{lo, hi, write}); }

    // Issues an instruction. It runs after the instructions that its pipe is ordered after, and
    // before any instruction that is ordered after it.
    template <class F> void issue(Pipe p, const CallSite &x, F &&run) {
        Clock required;
        uint32_t seq = begin(p, x, required);
        if (adversarial)
            deferred.add(p, seq, required, std::forward<F>(run));
        else
            run();
    }

    // Issues an instruction whose result the scalar unit uses at once, and returns its sequence
    // number.
    template <class F> uint32_t issue_now(Pipe p, const CallSite &x, F &&run) {
        Clock required;
        uint32_t seq = begin(p, x, required);
        if (adversarial) deferred.run_covered(required);
        run();
        return seq;
    }

    // Adds a part to instruction `seq` of `issue_now` that runs when other pipes may see its
    // effect.
    template <class F> void defer(Pipe p, uint32_t seq, F &&run) {
        if (adversarial)
            deferred.add(p, seq, completed[p], std::forward<F>(run));
        else
            run();
    }

    // GatherMask leaves its count in a register of the vector unit. The scalar unit that reads the
    // register sees the count of the last GatherMask that it has waited for, because no document says that
    // the read waits by itself.
    void set_count(uint32_t seq, uint64_t n, const CallSite &x) {
        read_count();
        counts.push_back(GatherCount{seq, n, x});
    }

    uint64_t read_count() {
        while (counts.size() > 1 && counts[1].seq <= completed[S][V]) counts.erase(counts.begin());
        return counts.front().n;
    }

    // Reads the count for a kernel that uses it.
    uint64_t use_count(const CallSite &x) {
        uint64_t n = read_count();
        if (checks && counts.size() > 1)
            fail("hazard", x, "reads the count of ", where(counts.back().x), ", and nothing orders the two: missing ",
                 "SetFlag/WaitFlag<HardEvent::V_S>");
        return n;
    }

    void init_soc_state() { soc = SocState{true, false, false}; }

    void barrier(Pipe p) {
        join(completed[p], completed[S]);
        completed[p][p] = issue_count[p];
    }

    void barrier_all() {
        for (auto &k : completed) k = issue_count;
        drained = true;
        if (adversarial) deferred.run_covered(issue_count);
        for (Space &m : spaces) m.clocks.clear();
    }

    void set(HardEvent e, int32_t id, const CallSite &x) {
        const Edge &edge = EDGES[size_t(e)];
        Event &ev = event(e, id, x);
        if (ev.set)
            fail("sync", x, "event id ", id, " of ", edge.name, " is set a second time before its wait; ",
                 "the first set was ", where(ev.by));
        join(completed[edge.from], completed[S]);
        ev.set = true;
        ev.by = x;
        ev.token = completed[edge.from];
        ev.token[edge.from] = issue_count[edge.from];
    }

    void wait(HardEvent e, int32_t id, const CallSite &x) {
        const Edge &edge = EDGES[size_t(e)];
        Event &ev = event(e, id, x);
        if (!ev.set) fail("sync", x, "waits for event id ", id, " of ", edge.name, ", which nothing has set");
        ev.set = false;
        join(completed[edge.to], completed[S]);
        join(completed[edge.to], ev.token);
    }

    // Checks at the end of the kernel that no event is still set and no instruction may still run.
    // Instructions that wait at the end are lost.
    void check_ended(const CallSite &x) {
        if (!checks) return;
        for (size_t e = 0; e < size_t(HardEvent::MAX); ++e)
            for (int id = 0; id < 8; ++id)
                if (events[e][id].set)
                    fail("sync", events[e][id].by, "event id ", id, " of ", EDGES[e].name,
                         " is still set when the kernel ends; every set needs its wait");
        if (!drained)
            fail("drain", x, "is not preceded by PipeBarrier<PIPE_ALL>, so stores and other instructions may be lost");
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
    Event &event(HardEvent e, int32_t id, const CallSite &x) {
        if (id < 0 || id > 5)
            fail("sync", x, "event id ", id, " is not free: a kernel without TPipe has 0..5 (6 and 7 are reserved)");
        return events[size_t(e)][id];
    }

    IssueRecord issue_record(const Conflict &h) const {
        const IssueRecord &n = issued[h.pipe][h.seq % ISSUE_RECORDS];
        return n.seq == h.seq ? n : IssueRecord{h.seq, 0, CallSite{"an earlier instruction"}};
    }

    uint32_t begin(Pipe p, const CallSite &x, Clock &required) {
        // The scalar unit issues all instructions in program order, so an instruction is ordered
        // after everything that the scalar unit has waited for.
        join(completed[p], completed[S]);
        required = completed[p];
        if (checks && !soc.cleared)
            fail("state", x, "runs before InitSocState: an earlier kernel may have left the core with masks that count ",
                 "elements and stores that add; call InitSocState first");
        if (p != S) drained = false;
        if (p == S) required[S] = issue_count[S];
        uint32_t seq = ++issue_count[p];
        issued[p][seq % ISSUE_RECORDS] = IssueRecord{seq, ++program_index, x};
        Conflict conflicts[2 * PIPES];
        for (Space &m : spaces)
            for (const Access &a : m.next)
                if (int n = checks ? m.clocks.find_conflicts(a.lo, a.hi, a.write, p, completed[p], conflicts) : 0)
                    hazard(p, x, conflicts, n, a.write, m.unit);
        auto &log = launch_state.log[block];
        for (const Access &a : spaces[1].next)
            if (launch_state.blocks > 1) log.push_back(GmAccess{a.lo, a.hi, block, a.write, x});
        for (Space &m : spaces) {
            for (const Access &a : m.next) m.clocks.record(a.lo, a.hi, a.write, p, seq);
            m.next.clear();
        }
        return seq;
    }

    // Reports the latest conflicting access in program order: synchronisation after that access
    // often covers the other conflicts.
    [[noreturn]] void hazard(Pipe p, const CallSite &x, const Conflict *conflicts, int n, bool write,
                             const char *what) {
        const Conflict *h = conflicts;
        for (const Conflict *o = conflicts; o < conflicts + n; ++o)
            if (issue_record(*o).program_index > issue_record(*h).program_index) h = o;
        std::string remedy = p == h->pipe
                                 ? cat("PipeBarrier<PIPE_", pipe_name(p), ">")
                                 : cat("SetFlag/WaitFlag<HardEvent::", pipe_name(h->pipe), "_", pipe_name(p), ">");
        fail("hazard", x, write ? "writes " : "reads ", what, hex(h->at), ", which ", where(issue_record(*h).x),
             h->wrote ? " writes" : " reads", ", and nothing orders the two: missing ", remedy);
    }
};

AVSG_SHIM_STATE Core *&current() {
    static thread_local Core *core = nullptr;
    return core;
}

inline Core &core(const CallSite &x) {
    Core *c = current();
    if (!c) throw Fault{cat("launch: ", where(x), ": is called outside of a kernel"), false, false};
    return *c;
}

} // namespace AscendC::shim
