// What a compiler for GPUs knows without a header, as far as kernels use it.
#pragma once

#include "memory.h"

#define __global__
#define __device__
#define __constant__
#define __shared__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __launch_bounds__(...)

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx, gridDim;

struct __attribute__((aligned(16))) int4 {
    int x, y, z, w;
};

constexpr int min(int a, int b) { return a < b ? a : b; }
constexpr int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }

// Subtracts bytes with sign, saturating.
inline unsigned __vsubss4(unsigned a, unsigned b) {
    unsigned all = 0;
    for (int shift = 0; shift < 32; shift += 8) {
        const int difference = int8_t(a >> shift) - int8_t(b >> shift);
        all |= (unsigned(max(-128, min(127, difference))) & 0xFF) << shift;
    }
    return all;
}

// Returns 0xFF in each byte where a <= b, of bytes with sign.
inline unsigned __vcmples4(unsigned a, unsigned b) {
    unsigned all = 0;
    for (int shift = 0; shift < 32; shift += 8) all |= int8_t(a >> shift) <= int8_t(b >> shift) ? 0xFFu << shift : 0;
    return all;
}

// Returns 0xFF in each byte where a >= b, of bytes with sign.
inline unsigned __vcmpges4(unsigned a, unsigned b) { return __vcmples4(b, a); }

// Reads memory that nothing writes during the launch.
template <typename T> SHIM inline T __ldg(const T *at) { return *at; }

SHIM inline void __syncthreads() { shim::wait_for_block(); }

namespace shim {

SHIM inline void whole_warp(unsigned mask) {
    if (mask != 0xFFFFFFFFu) fail("warp: a mask of %#x; this shim has operations of all 32 threads", mask);
}

// Gives each thread of a warp the word of the thread that `from` names by its own number and its argument.
template <int (*from)(int, int)> SHIM inline void exchange(Thread *lanes) {
    unsigned words[WARP_LANES];
    for (int i = 0; i < WARP_LANES; i++) words[i] = lanes[i].word;
    for (int i = 0; i < WARP_LANES; i++) {
        const int lane = from(i, lanes[i].argument);
        lanes[i].result = words[lane >= 0 && lane < WARP_LANES ? lane : i];
    }
}

SHIM inline int lane_itself(int, int lane) { return lane; }
SHIM inline int lane_below(int own, int by) { return own - by; }
SHIM inline int lane_by_xor(int own, int by) { return own ^ by; }

SHIM inline void finish_warp_barrier(Thread *lanes) { block.warp_steps[index_of(lanes) / WARP_LANES]++; }

SHIM inline void finish_ballot(Thread *lanes) {
    unsigned bits = 0;
    for (int i = 0; i < WARP_LANES; i++) bits |= unsigned(lanes[i].word != 0) << i;
    for (int i = 0; i < WARP_LANES; i++) lanes[i].result = bits;
}

// Replaces a word by what `change` returns for it, and returns the word before.
template <typename T, typename F> SHIM inline T update(T *at, F change) {
    check_bytes(at, sizeof(T), Access{true, ATOMIC});
    const T before = *at;
    *at = change(before);
    return before;
}

} // namespace shim

SHIM inline void __syncwarp() { shim::meet("a barrier of the warp", 0, 0, shim::finish_warp_barrier); }

SHIM inline unsigned __ballot_sync(unsigned mask, bool holds) {
    shim::whole_warp(mask);
    return shim::meet("a ballot", holds, 0, shim::finish_ballot);
}

template <typename T> SHIM inline T __shfl_sync(unsigned mask, T word, int lane) {
    shim::whole_warp(mask);
    return T(shim::meet("a shuffle", unsigned(word), lane, shim::exchange<shim::lane_itself>));
}

template <typename T> SHIM inline T __shfl_up_sync(unsigned mask, T word, int by) {
    shim::whole_warp(mask);
    return T(shim::meet("a shuffle up", unsigned(word), by, shim::exchange<shim::lane_below>));
}

template <typename T> SHIM inline T __shfl_xor_sync(unsigned mask, T word, int by) {
    shim::whole_warp(mask);
    return T(shim::meet("a shuffle by xor", unsigned(word), by, shim::exchange<shim::lane_by_xor>));
}

SHIM inline int atomicMax(int *at, int word) {
    return shim::update(at, [=](int before) __attribute__((no_sanitize("thread"))) { return max(before, word); });
}

SHIM inline int atomicCAS(int *at, int expected, int word) {
    return shim::update(at, [=](int before) __attribute__((no_sanitize("thread"))) {
        return before == expected ? word : before;
    });
}

template <typename T> SHIM inline T atomicAdd(T *at, T word) {
    return shim::update(at, [=](T before) __attribute__((no_sanitize("thread"))) { return before + word; });
}
