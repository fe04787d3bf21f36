// The adversarial order: instructions wait in a queue and run when something known to come after them
// needs them, or by lot. Only the order that clocks guarantee is kept, so an instruction that lacks
// its synchronisation really reads or overwrites the wrong bytes.
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
        Clock needs;
        std::function<void()> run;
    };
    // More than this and the oldest orders are all the same anyway.
    static constexpr size_t LIMIT = 48;
    std::vector<Pending> queue[PIPES];
    uint64_t state = 1;

    uint32_t lot(uint32_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return uint32_t((state >> 33) % n);
    }

    size_t waiting() const {
        size_t n = 0;
        for (auto &q : queue) n += q.size();
        return n;
    }

    void run(int pipe, size_t i) {
        Pending x = std::move(queue[pipe][i]);
        queue[pipe].erase(queue[pipe].begin() + long(i));
        force(x.needs);
        x.run();
    }

    // One of those that `c` covers: the youngest more often than not, as a machine with no order left
    // would surprise most.
    bool run_one(const Clock &c) {
        std::pair<int, size_t> open[PIPES * 64];
        uint32_t n = 0;
        for (int p = 0; p < PIPES; ++p)
            for (size_t i = 0; i < queue[p].size() && n < PIPES * 64; ++i)
                if (queue[p][i].seq <= c[p]) open[n++] = {p, i};
        if (!n) return false;
        uint32_t k = lot(n);
        if (lot(2)) k = lot(2) ? n - 1 : k | (n > 1 ? lot(n) : 0);
        if (k >= n) k = n - 1;
        run(open[k].first, open[k].second);
        return true;
    }

  public:
    void seed(uint64_t s) { state = s * 0x9e3779b97f4a7c15u | 1; }

    void force(const Clock &c) {
        while (run_one(c)) {}
    }

    template <class F> void add(Pipe p, uint32_t seq, const Clock &needs, F &&f) {
        queue[p].push_back(Pending{seq, needs, std::forward<F>(f)});
        Clock all;
        all.fill(UINT32_MAX);
        if (lot(8) == 0) run_one(all);
        while (waiting() > LIMIT) run_one(all);
    }

    void clear() {
        for (auto &q : queue) q.clear();
    }
};

} // namespace shim
} // namespace AscendC
