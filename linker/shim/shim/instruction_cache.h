// The lines of code that a core's instruction cache contains. Its size and its lines are documented. It replaces
// the line that was used longest ago, and any line may be anywhere, because no document says otherwise.
#pragma once

#include <cstdint>
#include <vector>

namespace AscendC {
namespace shim {

constexpr uint64_t CODE_LINE = 128;                     // Bytes of a line.
constexpr uint64_t CODE_LINES = 16 * 1024 / CODE_LINE;  // Lines of the cache of a vector core.
constexpr uint64_t PRELOAD_LINES = 2048 / CODE_LINE;    // Lines of the unit in which ICachePreLoad counts.

// A cache whose lines arrive at some time.
template <class Time> class InstructionCache {
    struct Line {
        uint64_t number, used;
        Time arrival;
    };
    std::vector<Line> lines;
    uint64_t uses = 0;

  public:
    // Returns when a line arrives or has arrived, or null if it is not in the cache.
    Time *find(uint64_t number) {
        for (Line &line : lines)
            if (line.number == number) {
                line.used = ++uses;
                return &line.arrival;
            }
        return nullptr;
    }

    // Replaces the line that was used longest ago by one that is not in the cache, and returns its arrival.
    Time &insert(uint64_t number) {
        Line *to = nullptr;
        if (lines.size() < CODE_LINES) {
            lines.emplace_back();
            to = &lines.back();
        } else {
            for (Line &line : lines)
                if (!to || line.used < to->used) to = &line;
        }
        to->number = number;
        to->used = ++uses;
        return to->arrival;
    }
};

} // namespace shim
} // namespace AscendC
