// The adversarial order. Instructions wait in queues and run when an instruction that is ordered
// after them runs, or at random. Only the order that the clocks guarantee is kept, so an
// instruction with missing synchronisation really reads or overwrites wrong bytes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "clock.h"

namespace AscendC::shim {

class Deferred {
    struct Pending {
        Pipe pipe;
        uint32_t seq;
        Clock required;
        std::function<void()> run;
    };
    // The most instructions that wait; a longer delay shows no other defects.
    static constexpr size_t LIMIT = 48;
    std::vector<Pending> queue;
    uint64_t state = 1;

    uint32_t random_below(uint32_t n) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return uint32_t((state >> 33) % n);
    }

    // Runs one waiting instruction that the clock `c` covers, if there is one. Later instructions
    // are preferred, because running them early is furthest from program order.
    bool run_one(const Clock &c) {
        uint32_t candidates[LIMIT + 1], n = 0;
        for (uint32_t i = 0; i < queue.size(); ++i)
            if (queue[i].seq <= c[queue[i].pipe]) candidates[n++] = i;
        if (!n) return false;
        uint32_t chosen = candidates[random_below(2) ? n - 1 : random_below(n)];
        Pending x = std::move(queue[chosen]);
        queue.erase(queue.begin() + chosen);
        run_covered(x.required);
        x.run();
        return true;
    }

  public:
    void seed(uint64_t s) { state = s * 0x9e3779b97f4a7c15u | 1; }

    void run_covered(const Clock &c) {
        while (run_one(c)) {}
    }

    template <class F> void add(Pipe p, uint32_t seq, const Clock &required, F &&f) {
        queue.push_back(Pending{p, seq, required, std::forward<F>(f)});
        Clock all;
        all.fill(UINT32_MAX);
        if (random_below(8) == 0) run_one(all);
        while (queue.size() > LIMIT) run_one(all);
    }
};

} // namespace AscendC::shim
