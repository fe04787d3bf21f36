// The adversarial order. Instructions wait in queues and run when an instruction that is ordered
// after them runs, or at random. Only the order that the clocks guarantee is kept, so an
// instruction with missing synchronisation really reads or overwrites wrong bytes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "clock.h"

namespace AscendC {
namespace shim {

class Deferred {
    struct Pending {
        uint32_t seq;
        Clock required;
        std::function<void()> run;
    };
    // The most instructions that wait; a longer delay shows no other defects.
    static constexpr size_t LIMIT = 48;
    std::vector<Pending> queue[PIPES];
    uint64_t state = 1;

    uint32_t random_below(uint32_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return uint32_t((state >> 33) % n);
    }

    size_t waiting_count() const {
        size_t n = 0;
        for (auto &q : queue) n += q.size();
        return n;
    }

    void run(int pipe, size_t i) {
        Pending x = std::move(queue[pipe][i]);
        queue[pipe].erase(queue[pipe].begin() + long(i));
        run_covered(x.required);
        x.run();
    }

    // Runs one waiting instruction that the clock `c` covers, if there is one. Later instructions
    // are preferred, because running them early is furthest from program order.
    bool run_one(const Clock &c) {
        std::pair<int, size_t> candidates[PIPES * 64];
        uint32_t n = 0;
        for (int p = 0; p < PIPES; ++p)
            for (size_t i = 0; i < queue[p].size() && n < PIPES * 64; ++i)
                if (queue[p][i].seq <= c[p]) candidates[n++] = {p, i};
        if (!n) return false;
        uint32_t k = random_below(n);
        if (random_below(2)) k = random_below(2) ? n - 1 : k | (n > 1 ? random_below(n) : 0);
        if (k >= n) k = n - 1;
        run(candidates[k].first, candidates[k].second);
        return true;
    }

  public:
    void seed(uint64_t s) { state = s * 0x9e3779b97f4a7c15u | 1; }

    void run_covered(const Clock &c) {
        while (run_one(c)) {}
    }

    template <class F> void add(Pipe p, uint32_t seq, const Clock &required, F &&f) {
        queue[p].push_back(Pending{seq, required, std::forward<F>(f)});
        Clock all;
        all.fill(UINT32_MAX);
        if (random_below(8) == 0) run_one(all);
        while (waiting_count() > LIMIT) run_one(all);
    }
};

} // namespace shim
} // namespace AscendC
