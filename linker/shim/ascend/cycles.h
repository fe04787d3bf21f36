// The time of one core. The scalar unit issues every instruction in program order. An instruction
// starts when it is issued, its pipe is free, and the flags that its pipe waits for are set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "clock.h"

extern "C" {

// Cycles of one unit of work each.
struct avsg_shim_prices {
    double issue;    // The scalar unit issues an instruction, a flag or a barrier.
    double scalar;   // An access of the scalar unit to UB.
    double head;     // The start of a vector instruction.
    double repeat;   // 256 bytes of a vector instruction.
    double compact;  // 256 bytes of a GatherMask.
    double gather;   // An element of a Gather.
    double barrier;  // PipeBarrier, after its pipes are idle.
    double flag;     // From the end of the work before SetFlag to the start of that after WaitFlag.
    double sync_all; // From the arrival of the last core at SyncAll to the start of all cores.
    double dma;      // The start of a DMA.
    double latency;  // From the end of a DMA on its pipe to its completion.
    double byte;     // A byte of a DMA, from device memory or from the host's.
};

// What a launch costs by its prices, in cycles.
struct avsg_shim_cycles {
    avsg_shim_prices prices;
    double total;      // Out: the cycle in which the last core ends.
    double phases[16]; // Out, of core 0: how much the time at which all pipes are free grows in each phase.
};
}

namespace AscendC::shim {

constexpr uint32_t PHASES = sizeof(avsg_shim_cycles::phases) / sizeof(double);

class CoreTime {
    avsg_shim_cycles *const launch; // Null if nobody asks for the times of this launch.
    const avsg_shim_prices p;
    double ends[PIPES] = {}; // When the pipe is free.
    double done[PIPES] = {}; // When its instructions have completed; a DMA completes after its pipe is free.
    double next = 0;         // The work of the next instruction.
    double marked = 0;       // When the current phase began.
    uint32_t phase = 0;
    double phases[PHASES] = {};

    double completed(int pipe) const { return std::max(done[pipe], ends[pipe]); }
    double all_free() const { return *std::max_element(ends, ends + PIPES); }

  public:
    explicit CoreTime(avsg_shim_cycles *c) : launch(c), p(c ? c->prices : avsg_shim_prices{}) {}

    // Adds `n` units of work to the next instruction.
    void takes(double avsg_shim_prices::*price, double n) { next += n * p.*price; }

    void issue(Pipe pipe) {
        const double work = next;
        next = 0;
        if (pipe == S) {
            ends[S] += p.scalar + work;
            return;
        }
        ends[S] += p.issue;
        ends[pipe] = std::max(ends[pipe], ends[S]) + work + (pipe == V ? p.head : p.dma);
        if (pipe != V) done[pipe] = std::max(done[pipe], ends[pipe] + p.latency);
    }

    void barrier(Pipe pipe) {
        ends[S] += p.issue;
        ends[pipe] = std::max(completed(pipe), ends[S]) + p.barrier;
    }

    void barrier_all() {
        ends[S] += p.issue;
        double end = 0;
        for (int pipe = 0; pipe < PIPES; ++pipe) end = std::max(end, completed(pipe));
        for (double &free : ends) free = end + p.barrier;
    }

    // Returns when a flag of this pipe is set.
    double set_flag(Pipe pipe) {
        ends[S] += p.issue;
        return std::max(completed(pipe), ends[S]);
    }

    void wait_flag(Pipe pipe, double flag) {
        ends[S] += p.issue;
        ends[pipe] = std::max(ends[pipe], flag + p.flag);
    }

    void begin_phase(uint32_t n) {
        phases[phase] += all_free() - marked;
        marked = all_free();
        phase = n;
    }

    // Writes the times of the launch. All cores call it, one at a time.
    void end(uint32_t block) {
        begin_phase(phase);
        if (!launch) return;
        launch->total = std::max(launch->total, marked);
        if (block == 0) std::copy(phases, phases + PHASES, launch->phases);
    }

    friend class Meeting;
};

// The times of the cores at SyncAll.
class Meeting {
    double last = 0; // The latest arrival so far.
    double open = 0; // The latest arrival of the last round that has ended.

  public:
    void arrive(const CoreTime &core) { last = std::max(last, core.ends[S]); }
    void close() { open = last; }
    void leave(CoreTime &core) const {
        for (double &free : core.ends) free = std::max(free, open + core.p.sync_all);
    }
};

} // namespace AscendC::shim
