// avsg_kernel.h: the geometry, the launch scalars, copies, and words of requests.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "kernel_operator.h"

// In CANN 8.5 the name of Compares is CompareScalar.
#if defined(ASC_DEVKIT_MAJOR) && ASC_DEVKIT_MAJOR < 9
#define Compares CompareScalar
#endif

using namespace AscendC;

namespace avsg {

constexpr int32_t K = 2048;  // ids per row at most; the row stride of slots and miss lists
constexpr int32_t TOKENS = 1;  // N_q, rows of a request at most
constexpr int32_t SLOTS = 8192;  // S, slots of a request
constexpr int32_t MAX_SLOT_BLOCKS = 512;  // entries of a state at most in slotBlocks
constexpr int32_t PAGE = 0;  // rows of a host block, a power of two; 0: no block table
constexpr int32_t PAGE_SHIFT = 0;  // log2 PAGE; 0 without a block table
constexpr int32_t ID_LIMIT = 4194304;  // every id is below it
constexpr int32_t NO_STABLE_LEN = 4194304;  // above every id: nothing is invalidated
constexpr int32_t RECORD_WORDS = 16;  // words of a request's record, 64 bytes
constexpr int32_t RECORD_MISSES = 0;  // word of the misses of token 0; one word for each token
constexpr int32_t RECORD_TOTAL = 8;  // word of the misses of all tokens
constexpr int32_t RECORD_STATUS = 9;  // word of status bits: 1 bad id, 2 row outside of the pool, 4 too many slotBlocks
constexpr int32_t TOO_MANY_SLOT_BLOCKS = 4;  // the last of these bits
constexpr int32_t HEADER_WORDS = 16;  // words of a table's header, 64 bytes
constexpr int32_t HEADER_GENERATION = 0;  // word of the generation that the table was built for; 0: none
constexpr int32_t HEADER_TOP = 1;  // word of the bound that all ids in the table are below
constexpr int32_t HEADER_THRESHOLD = 2;  // word of the last eviction threshold, where the next bisection starts
constexpr uint64_t TABLE_WORDS = 26656;  // words of a table: header, ids, lifetimes and padding, links
constexpr uint32_t UB_BYTES = 188416;  // bytes of UB that kernels use; Select overwrites the memory above

// The scalars of a launch, as the host writes them.
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
    int32_t hostBlockShift;         // The logarithm of the rows of a block in a host chunk.
    int32_t hostGap[2];             // Bytes between two blocks of a host chunk, in addition to their rows.
    int32_t kvBlockShift;           // The logarithm of the slots of a block in the device buffer.
    int32_t kvGap[2];               // Bytes between two blocks of the device buffer, in addition to their slots.
    int32_t kvBlocks;               // The number of blocks of the device buffer, of which slotBlocks names those of each state; 0 without that table.
    int32_t slotBase;               // The index of slot 0 of state 0, if returned slots are indices among the slots of all states; -1 if they are not.
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
    && __builtin_offsetof(Tiling, hostBlockShift) == 96 && __builtin_offsetof(Tiling, hostGap) == 100
    && __builtin_offsetof(Tiling, kvBlockShift) == 108 && __builtin_offsetof(Tiling, kvGap) == 112
    && __builtin_offsetof(Tiling, kvBlocks) == 120 && __builtin_offsetof(Tiling, slotBase) == 124
    && sizeof(Tiling) == 128, "Tiling");

// ---- copies ---------------------------------------------------------------------------------

constexpr uint32_t BLOCK = 32;          // bytes; the unit of addresses and lengths in UB

// Returns the first of the n items that are the share of `core`: floor(core * n / cores), without
// 32-bit overflow.
__aicore__ inline int32_t ShareBegin(int32_t n, int32_t core, int32_t cores)
{
    return core * (n / cores) + core * (n % cores) / cores;
}

// Returns the smaller of two scalars.
__aicore__ inline int32_t ScalarMin(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// Returns n limited to low..high.
__aicore__ inline int32_t ScalarClamp(int32_t n, int32_t low, int32_t high)
{
    return n < low ? low : ScalarMin(n, high);
}

// Returns the 64-bit offset of item n at a stride.
__aicore__ inline uint64_t StrideOffset(int64_t n, int32_t stride)
{
    return static_cast<uint64_t>(n) * static_cast<uint64_t>(stride);
}

// Rounds a number of bytes up to whole blocks.
__aicore__ inline uint32_t AlignToBlock(uint32_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

// Returns global memory from `at` on as a tensor of any length.
template <typename T> __aicore__ inline GlobalTensor<T> Global(GM_ADDR at)
{
    GlobalTensor<T> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(at));
    return all;
}

// Returns n elements of UB from byte `at` on, rounded up to whole blocks, as a tensor.
template <typename T> __aicore__ inline LocalTensor<T> Local(uint32_t at, uint32_t n)
{
    return LocalTensor<T>(TPosition::VECCALC, at, AlignToBlock(n * sizeof(T)) / sizeof(T));
}

// Copies n >= 0 elements from global memory to UB, and overwrites the rest of the last block.
template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &to, const GlobalTensor<T> &from, int32_t n)
{
    const DataCopyExtParams shape{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0};
    DataCopyPad(to, from, shape, DataCopyPadExtParams<T>{false, 0, 0, 0});
}

// Copies n >= 0 elements from UB to global memory, and writes no other byte.
template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T> &to, const LocalTensor<T> &from, int32_t n)
{
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0});
}

// Sets and waits for a flag: the second unit of `event` waits until the first one has finished its
// instructions.
template <HardEvent event, typename Id> __aicore__ inline void SetWaitFlag(Id id)
{
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

// Returns the launch scalars, copied through UB at `at`, because scalar reads of global memory would
// go through the data cache.
__aicore__ inline Tiling ReadTiling(GM_ADDR from, uint32_t at)
{
    const LocalTensor<int32_t> words = Local<int32_t>(at, sizeof(Tiling) / 4);
    CopyIn(words, Global<int32_t>(from), sizeof(Tiling) / 4);
    SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    Tiling t;
    t.requests = words.GetValue(0);
    t.k = words.GetValue(1);
    t.idsStride = words.GetValue(2);
    t.blockStride = words.GetValue(3);
    t.poolUnits = words.GetValue(4);
    t.states = words.GetValue(5);
    t.copyCores = words.GetValue(6);
    t.sharers = words.GetValue(7);
    t.shareLen = words.GetValue(8);
    t.segments = words.GetValue(9);
    t.bytes[0] = words.GetValue(10);
    t.bytes[1] = words.GetValue(11);
    t.chunkFirst[0] = words.GetValue(12);
    t.chunkFirst[1] = words.GetValue(13);
    t.chunkShift[0] = words.GetValue(14);
    t.chunkShift[1] = words.GetValue(15);
    t.chunks = words.GetValue(16);
    t.halfRows = words.GetValue(17);
    t.hostStride[0] = words.GetValue(18);
    t.hostStride[1] = words.GetValue(19);
    t.kvStride[0] = words.GetValue(20);
    t.kvStride[1] = words.GetValue(21);
    t.freshStride[0] = words.GetValue(22);
    t.freshStride[1] = words.GetValue(23);
    t.hostBlockShift = words.GetValue(24);
    t.hostGap[0] = words.GetValue(25);
    t.hostGap[1] = words.GetValue(26);
    t.kvBlockShift = words.GetValue(27);
    t.kvGap[0] = words.GetValue(28);
    t.kvGap[1] = words.GetValue(29);
    t.kvBlocks = words.GetValue(30);
    t.slotBase = words.GetValue(31);
    return t;
}

// Returns whether a state has more entries in slotBlocks than a core has memory for.
__aicore__ inline bool HasTooManySlotBlocks(const Tiling &t)
{
    return t.kvBlocks > 0 && (SLOTS >> t.kvBlockShift) > MAX_SLOT_BLOCKS;
}

// ---- words of requests -------------------------------------------------------------------------

// Numbers of the arrays of a window. The plan and the transfer add different arrays.
constexpr int32_t CU_Q = 0, STATE = 1, STABLE = 2, SEQ = 3, GENERATION = 4, RECORD = 2;

// A copy of the words of up to `size` adjacent requests, in UB from `base` on. Word() copies the
// words of other requests when it needs one that is not in the copy.
struct Window {
    GlobalTensor<int32_t> from[5];
    int32_t width[5];                   // words per request of each array
    uint32_t ub[6];                     // UB address of each array, and the end of the last one
    int32_t arrays, requests, size;
    int32_t first, count;               // the requests in the copy

    __aicore__ inline Window(uint32_t base, int32_t size, const Tiling &t, GM_ADDR cuQ)
        : arrays(0), requests(t.requests), size(size), first(0), count(0)
    {
        ub[0] = base;
        Add(cuQ, 1);
        ub[1] += BLOCK;                 // cuQ has one more word than requests
    }

    // Adds an array with `perRequest` words for each request.
    __aicore__ inline void Add(GM_ADDR words, int32_t perRequest)
    {
        from[arrays] = Global<int32_t>(words);
        width[arrays] = perRequest;
        ub[arrays + 1] = ub[arrays] + size * perRequest * 4;
        arrays++;
    }

    // Returns word `word` of a request in an array.
    __aicore__ inline int32_t Word(int32_t array, int32_t request, int32_t word = 0)
    {
        if (request < first || request >= first + count) {
            first = request;
            count = ScalarMin(requests - first, size);
            SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
            for (int32_t a = 0; a < arrays; a++) {
                const int32_t words = count * width[a] + (a == CU_Q ? 1 : 0);
                CopyIn(Local<int32_t>(ub[a], words), from[a][first * width[a]], words);
            }
            SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
        }
        const LocalTensor<int32_t> all = Local<int32_t>(ub[array], size * width[array] + 1);
        return all.GetValue((request - first) * width[array] + word);
    }
};

} // namespace avsg
