// avsg_kernel.h: what every kernel starts from: its geometry, a launch's scalars, moving data, words of requests.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "kernel_operator.h"

using namespace AscendC;

namespace avsg {

constexpr int32_t K = 2048;  // row stride of slots and miss lists
constexpr int32_t TOKENS = 1;  // N_q: rows of a request at most
constexpr int32_t SLOTS = 8192;  // S
constexpr int32_t PAGE = 0;  // rows of a host block; 0: no block table
constexpr int32_t PAGE_SHIFT = 0;
constexpr int32_t ID_LIMIT = 4194304;  // ids are below it
constexpr int32_t NO_STABLE_LEN = 4194304;  // no id reaches it
constexpr int32_t RECORD_WORDS = 16;  // a 64-byte line
constexpr int32_t RECORD_TOTAL = 8;  // the request's misses; token g's are word g
constexpr int32_t RECORD_STATUS = 9;  // bits: 1 an id out of range, 2 a row outside of the pool
constexpr int32_t HEADER_WORDS = 16;  // a 64-byte line
constexpr int32_t HEADER_GENERATION = 0;  // that the table was built for; 0: none
constexpr int32_t HEADER_TOP = 1;  // one above the largest id that the table may hold
constexpr int32_t HEADER_THRESHOLD = 2;  // the last step's, where the next bisection starts
constexpr uint64_t TABLE_WORDS = 26656;  // header, ids, lifetimes and pad, links
constexpr uint32_t UB_BYTES = 188416;  // Select scribbles above

// Every scalar of a launch, as the host writes it.
struct Tiling {
    int32_t requests;               // The number of requests of the batch, including padded ones.
    int32_t k;                      // The number of ids per row, 1..=K of the geometry.
    int32_t idsStride;              // Words from one row of ids to the next.
    int32_t blockStride;            // The number of entries of a request in the block table; 0 without one.
    int32_t poolUnits;              // The number of rows (without block table) or blocks (with one) of the host pool.
    int32_t states;                 // The number of request states, each of which is a table and S slots.
    int32_t copyCores;              // The number of cores that copy; all launched cores if there are fewer.
    int32_t sharers;                // The number of cores that probe for each request of a step; 1 without sharing.
    int32_t shareLen;               // The number of ids in the share of each sharer but the last.
    int32_t segments;               // The number of segments of a row, 1 or 2.
    int32_t bytes[2];               // Bytes of each segment.
    int32_t chunkFirst[2];          // The index of each segment's first pointer in hostChunks.
    int32_t chunkShift[2];          // The logarithm of the rows per chunk of each segment.
    int32_t chunks;                 // The number of pointers in hostChunks.
    int32_t halfRows;               // The number of rows staged in one half of the staging area.
    int32_t hostStride[2];          // Bytes from one row to the next in a host chunk.
    int32_t kvStride[2];            // Bytes from one slot to the next in the device buffer.
    int32_t freshStride[2];         // Bytes from one row to the next of the fresh rows.
};
static_assert(__builtin_offsetof(Tiling, requests) == 0 && __builtin_offsetof(Tiling, k) == 4
    && __builtin_offsetof(Tiling, idsStride) == 8 && __builtin_offsetof(Tiling, blockStride) == 12
    && __builtin_offsetof(Tiling, poolUnits) == 16 && __builtin_offsetof(Tiling, states) == 20
    && __builtin_offsetof(Tiling, copyCores) == 24 && __builtin_offsetof(Tiling, sharers) == 28
    && __builtin_offsetof(Tiling, shareLen) == 32 && __builtin_offsetof(Tiling, segments) == 36
    && __builtin_offsetof(Tiling, bytes) == 40 && __builtin_offsetof(Tiling, chunkFirst) == 48
    && __builtin_offsetof(Tiling, chunkShift) == 56 && __builtin_offsetof(Tiling, chunks) == 64
    && __builtin_offsetof(Tiling, halfRows) == 68 && __builtin_offsetof(Tiling, hostStride) == 72
    && __builtin_offsetof(Tiling, kvStride) == 80 && __builtin_offsetof(Tiling, freshStride) == 88
    && sizeof(Tiling) == 96, "Tiling");

// ---- moving data ---------------------------------------------------------------------------------

constexpr uint32_t BLOCK = 32;          // bytes; addresses and lengths in UB are multiples of it

// Where share `core` of n things over `cores` cores begins: floor(core * n / cores), in 32 bits.
__aicore__ inline int32_t Cut(int32_t n, int32_t core, int32_t cores)
{
    return core * (n / cores) + core * (n % cores) / cores;
}

__aicore__ inline int32_t ScalarMin(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

__aicore__ inline int32_t Between(int32_t low, int32_t n, int32_t high)
{
    return n < low ? low : ScalarMin(n, high);
}

__aicore__ inline uint64_t Times(int64_t n, int32_t stride)
{
    return static_cast<uint64_t>(n) * static_cast<uint64_t>(stride);
}

__aicore__ inline uint32_t Blocks(uint32_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

template <typename T> __aicore__ inline GlobalTensor<T> Global(GM_ADDR at)
{
    GlobalTensor<T> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(at));
    return all;
}

template <typename T> __aicore__ inline LocalTensor<T> Local(uint32_t at, uint32_t n)
{
    return LocalTensor<T>(TPosition::VECCALC, at, Blocks(n * sizeof(T)) / sizeof(T));
}

// n elements from global memory; UB takes them in whole blocks. None is a no-op.
template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &to, const GlobalTensor<T> &from, int32_t n)
{
    const DataCopyExtParams shape{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0};
    DataCopyPad(to, from, shape, DataCopyPadExtParams<T>{false, 0, 0, 0});
}

// n elements to global memory, and not a byte more.
template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T> &to, const LocalTensor<T> &from, int32_t n)
{
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0});
}

// What one unit has done so far is done before the other goes on.
template <HardEvent event, typename Id> __aicore__ inline void After(Id id)
{
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

// The launch's scalars, through UB at `at`: scalar reads of global memory would go through a cache.
__aicore__ inline Tiling ReadTiling(GM_ADDR from, uint32_t at)
{
    const LocalTensor<int32_t> words = Local<int32_t>(at, sizeof(Tiling) / 4);
    CopyIn(words, Global<int32_t>(from), sizeof(Tiling) / 4);
    After<HardEvent::MTE2_S>(EVENT_ID0);
    Tiling t;
    int32_t *to = &t.requests;
    for (uint32_t i = 0; i < sizeof(Tiling) / 4; i++) {
        to[i] = words.GetValue(i);
    }
    return t;
}

// ---- words of requests -------------------------------------------------------------------------

// Arrays of a window, by number.
constexpr int32_t CU_Q = 0, STATE = 1, STABLE = 2, SEQ = 3, GENERATION = 4, RECORD = 2;

// The words of some requests, in UB from `base` on; more are read when one outside is asked for.
struct Window {
    GlobalTensor<int32_t> from[5];
    int32_t width[5];                   // words of a request
    uint32_t ub[6];
    int32_t arrays, requests, size, at, n;

    __aicore__ inline Window(uint32_t base, int32_t size, const Tiling &t, GM_ADDR cuQ)
        : arrays(0), requests(t.requests), size(size), at(0), n(0)
    {
        ub[0] = base;
        Add(cuQ, 1);
        ub[1] += BLOCK;                 // cuQ has one word more
    }

    __aicore__ inline void Add(GM_ADDR words, int32_t perRequest)
    {
        from[arrays] = Global<int32_t>(words);
        width[arrays] = perRequest;
        ub[arrays + 1] = ub[arrays] + size * perRequest * 4;
        arrays++;
    }

    __aicore__ inline int32_t Word(int32_t array, int32_t request, int32_t word = 0)
    {
        if (request < at || request >= at + n) {
            at = request;
            n = ScalarMin(requests - at, size);
            After<HardEvent::S_MTE2>(EVENT_ID0);
            for (int32_t a = 0; a < arrays; a++) {
                const int32_t words = n * width[a] + (a == CU_Q ? 1 : 0);
                CopyIn(Local<int32_t>(ub[a], words), from[a][at * width[a]], words);
            }
            After<HardEvent::MTE2_S>(EVENT_ID0);
        }
        const LocalTensor<int32_t> all = Local<int32_t>(ub[array], size * width[array] + 1);
        return all.GetValue((request - at) * width[array] + word);
    }
};

} // namespace avsg
