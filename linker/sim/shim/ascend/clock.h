// The happens-before relation between the pipes of one core. A clock holds one number per pipe: all
// of that pipe's instructions up to this sequence number have completed.
#pragma once

#include <array>
#include <cstdint>

#include "types.h"

namespace AscendC::shim {

enum Pipe : uint8_t { S = 0, V = 1, MTE2 = 2, MTE3 = 3 };
constexpr int PIPES = 4;

using Clock = std::array<uint32_t, PIPES>;

inline void join(Clock &into, const Clock &from) {
    for (int q = 0; q < PIPES; ++q)
        if (from[q] > into[q]) into[q] = from[q];
}

constexpr const char *pipe_name(int p) { return p == S ? "S" : p == V ? "V" : p == MTE2 ? "MTE2" : "MTE3"; }

struct Edge {
    Pipe from, to;
    const char *name;
};

constexpr Edge EDGES[] = {
    {MTE2, V, "MTE2_V"},       {MTE2, S, "MTE2_S"}, {MTE2, MTE3, "MTE2_MTE3"}, {V, MTE2, "V_MTE2"},
    {V, MTE3, "V_MTE3"},       {V, S, "V_S"},       {MTE3, V, "MTE3_V"},       {MTE3, S, "MTE3_S"},
    {MTE3, MTE2, "MTE3_MTE2"}, {S, V, "S_V"},       {S, MTE2, "S_MTE2"},       {S, MTE3, "S_MTE3"},
};
static_assert(sizeof(EDGES) / sizeof(EDGES[0]) == size_t(HardEvent::MAX), "one edge per event");

} // namespace AscendC::shim
