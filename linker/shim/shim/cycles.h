// The time of one core. The scalar unit issues every instruction in program order. An instruction
// starts when it is issued, its pipe is free, and the flags that its pipe waits for are set. A launch
// is timed under several sets of prices at once. Without AVSG_SHIM_CYCLES nothing is timed, and the
// functions of this header are empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock.h"
#include "instruction_cache.h"

extern "C" {

// Cycles of one unit of work each.
struct avsg_shim_prices {
    double issue;     // The scalar unit issues an instruction, a flag or a barrier.
    double scalar;    // An access of the scalar unit to UB.
    double head;      // The start of a vector instruction.
    double repeat;    // 256 bytes of a vector instruction.
    double compact;   // 256 bytes of a GatherMask.
    double gather;    // An element of a Gather.
    double barrier;   // PipeBarrier, after its pipes are idle.
    double flag;      // From the end of the work before SetFlag to the start of that after WaitFlag.
    double sync_all;  // From the arrival of the last core at SyncAll to the start of all cores.
    double dma;       // The start of a DMA.
    double latency;   // From the end of a DMA on its pipe to its completion.
    double byte;      // A byte of a DMA, from device memory or from the host's.
    double fetch;     // The scalar unit waits for a line that is not in the instruction cache.
    double call;      // A call of a function, and the return from it.
};

// The cycles of a core between two marks.
struct avsg_shim_phase {
    double elapsed;     // The growth of the time at which all pipes are free.
    double spent[4][4]; // Per pipe: at work, in barriers, waiting for flags, waiting for the issue.
    double fetched;     // Lines of instructions that were not in the cache when the scalar unit came to them.
    double called;      // Calls of functions.
};

struct avsg_shim_times {
    double total; // The cycle in which the last core ends.
    avsg_shim_phase phases[16]; // Of core 0.
};

struct avsg_shim_cycles {
    uint32_t sets; // The number of sets of prices, 1..32.
    const avsg_shim_prices *prices;
    avsg_shim_times *times; // Out.
};
}

namespace AscendC {
namespace shim {

enum Spending { WORK = 0, BARRIER = 1, FLAG = 2, ISSUE = 3 };
constexpr uint32_t PRICE_SETS = 32;
constexpr uint32_t PHASES = sizeof(avsg_shim_times::phases) / sizeof(avsg_shim_phase);

#ifdef AVSG_SHIM_CYCLES
constexpr bool IS_TIMED = true;

// A number of cycles for each set of prices.
struct Cycles {
    double of[PRICE_SETS] = {};
};

class CoreTime {
    const avsg_shim_cycles *launch; // Null if this launch is not timed.
    const uint32_t sets;
    Cycles ends[PIPES]; // When the pipe is free.
    Cycles done[PIPES]; // When its instructions have completed; a DMA completes after its pipe is free.
    Cycles next;        // The work of the next instruction.
    Cycles marked;      // When the current phase began.
    InstructionCache<Cycles> cache;
    Cycles preloaded;   // When the last preload ends.
    uint64_t position = 0; // The address behind the statement that runs.
    uint32_t phase = 0;
    avsg_shim_times times[PRICE_SETS] = {};

    void spend(uint32_t set, int pipe, Spending on, double cycles) {
        ends[pipe].of[set] += cycles;
        times[set].phases[phase].spent[pipe][on] += cycles;
    }
    void spend_until(uint32_t set, int pipe, Spending on, double end) {
        if (end > ends[pipe].of[set]) spend(set, pipe, on, end - ends[pipe].of[set]);
    }
    double completed(uint32_t set, int pipe) const {
        return done[pipe].of[set] > ends[pipe].of[set] ? done[pipe].of[set] : ends[pipe].of[set];
    }
    template <class F> void for_each_set(F f) {
        for (uint32_t set = 0; set < sets; ++set) f(set, launch->prices[set]);
    }

  public:
    explicit CoreTime(const avsg_shim_cycles *c) : launch(c), sets(c ? c->sets : 0) {}

    // Adds `n` units of work to the next instruction.
    void takes(double avsg_shim_prices::*price, double n) {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) { next.of[set] += n * p.*price; });
    }

    void issue(Pipe pipe) {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            double work = next.of[set];
            next.of[set] = 0;
            if (pipe == S) return spend(set, S, WORK, p.scalar + work);
            spend(set, S, ISSUE, p.issue);
            spend_until(set, pipe, ISSUE, ends[S].of[set]);
            spend(set, pipe, WORK, work + (pipe == V ? p.head : p.dma));
            if (pipe == V) return;
            done[pipe].of[set] = completed(set, pipe);
            double end = ends[pipe].of[set] + p.latency;
            if (end > done[pipe].of[set]) done[pipe].of[set] = end;
        });
    }

    void barrier(Pipe pipe) {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            spend(set, S, ISSUE, p.issue);
            spend_until(set, pipe, ISSUE, ends[S].of[set]);
            spend_until(set, pipe, BARRIER, completed(set, pipe));
            spend(set, pipe, BARRIER, p.barrier);
        });
    }

    void barrier_all() {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            spend(set, S, ISSUE, p.issue);
            double end = 0;
            for (int pipe = 0; pipe < PIPES; ++pipe)
                if (completed(set, pipe) > end) end = completed(set, pipe);
            for (int pipe = 0; pipe < PIPES; ++pipe) spend_until(set, pipe, BARRIER, end + p.barrier);
        });
    }

    // Returns when a flag of this pipe is set.
    Cycles set_flag(Pipe pipe) {
        Cycles flag;
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            spend(set, S, ISSUE, p.issue);
            double end = completed(set, pipe);
            flag.of[set] = end > ends[S].of[set] ? end : ends[S].of[set];
        });
        return flag;
    }

    void wait_flag(Pipe pipe, const Cycles &flag) {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            spend(set, S, ISSUE, p.issue);
            spend_until(set, pipe, FLAG, flag.of[set] + p.flag);
        });
    }

    // Runs a statement of `bytes` bytes of instructions from an address of the code on.
    void fetch(uint64_t from, uint64_t bytes) {
        position = from + bytes;
        for (uint64_t line = from / CODE_LINE; line * CODE_LINE < position; ++line) {
            Cycles *arrival = cache.find(line);
            for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
                times[set].phases[phase].fetched += arrival == nullptr;
                arrival ? spend_until(set, S, ISSUE, arrival->of[set]) : spend(set, S, ISSUE, p.fetch);
            });
            if (!arrival) cache.insert(line) = ends[S];
        }
    }

    // Loads units of 2 KB of code behind this statement while others run, one after the other. A unit takes as long as
    // a line does that is loaded when it is needed.
    void preload(uint64_t units) {
        uint64_t line = position / CODE_LINE;
        for (uint64_t unit = 0; unit < units; ++unit) {
            for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
                double start = ends[S].of[set] > preloaded.of[set] ? ends[S].of[set] : preloaded.of[set];
                preloaded.of[set] = start + p.fetch;
            });
            for (uint64_t end = line + PRELOAD_LINES; line < end; ++line)
                if (!cache.find(line)) cache.insert(line) = preloaded;
        }
    }

    void call() {
        for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            times[set].phases[phase].called += 1;
            spend(set, S, ISSUE, p.call);
        });
    }

    void begin_phase(uint32_t n) {
        for_each_set([&](uint32_t set, const avsg_shim_prices &) {
            double now = 0;
            for (int pipe = 0; pipe < PIPES; ++pipe)
                if (ends[pipe].of[set] > now) now = ends[pipe].of[set];
            times[set].phases[phase].elapsed += now - marked.of[set];
            marked.of[set] = now;
        });
        phase = n;
    }

    // Writes the times of the launch. All cores call it, one at a time.
    void end(uint32_t block) {
        begin_phase(phase);
        for_each_set([&](uint32_t set, const avsg_shim_prices &) {
            avsg_shim_times &all = launch->times[set];
            if (marked.of[set] > all.total) all.total = marked.of[set];
            if (block == 0)
                for (uint32_t n = 0; n < PHASES; ++n) all.phases[n] = times[set].phases[n];
        });
    }

    friend class Meeting;
};

// The times of the cores at SyncAll.
class Meeting {
    Cycles last; // The latest arrival so far.
    Cycles open; // The latest arrival of the last round that has ended.

  public:
    void arrive(const CoreTime &core) {
        for (uint32_t set = 0; set < core.sets; ++set)
            if (core.ends[S].of[set] > last.of[set]) last.of[set] = core.ends[S].of[set];
    }
    void close() { open = last; }
    void leave(CoreTime &core) const {
        core.for_each_set([&](uint32_t set, const avsg_shim_prices &p) {
            for (int pipe = 0; pipe < PIPES; ++pipe)
                core.spend_until(set, pipe, BARRIER, open.of[set] + p.sync_all);
        });
    }
};
#else
constexpr bool IS_TIMED = false;

struct Cycles {};

struct CoreTime {
    explicit CoreTime(const avsg_shim_cycles *) {}
    void takes(double avsg_shim_prices::*, double) {}
    void issue(Pipe) {}
    void barrier(Pipe) {}
    void barrier_all() {}
    Cycles set_flag(Pipe) { return Cycles{}; }
    void wait_flag(Pipe, const Cycles &) {}
    void fetch(uint64_t, uint64_t) {}
    void preload(uint64_t) {}
    void call() {}
    void begin_phase(uint32_t) {}
    void end(uint32_t) {}
};

struct Meeting {
    void arrive(const CoreTime &) {}
    void close() {}
    void leave(CoreTime &) {}
};
#endif

} // namespace shim
} // namespace AscendC
