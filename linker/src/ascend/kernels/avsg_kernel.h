// avsg_kernel.h: copies, the launch scalars, and words of requests.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.
#pragma once

#include "avsg_geometry.h"

// In CANN 8.5 the name of Compares is CompareScalar.
#if defined(ASC_DEVKIT_MAJOR) && ASC_DEVKIT_MAJOR < 9
#define Compares CompareScalar
#endif

// Marks a function that its callers call. Other functions are copied to where they are called, and the
// instruction cache has no room for many copies of the longer ones. A build may define it otherwise, to compare.
#ifndef AVSG_NOINLINE
#define AVSG_NOINLINE static __aicore__ __attribute__((noinline, unused))
#endif

using namespace AscendC;

namespace avsg {

// ---- copies ---------------------------------------------------------------------------------

constexpr uint32_t BLOCK = 32;          // bytes; the unit of addresses and lengths in UB

// Returns the first of the n items that are the share of `core`: floor(core * n / cores), without
// 32-bit overflow.
__aicore__ inline int32_t ShareBegin(int32_t n, int32_t core, int32_t cores)
{
    return core * (n / cores) + core * (n % cores) / cores;
}

// Returns the smaller of two scalars.
__aicore__ inline int32_t ScalarMin(int32_t a, int32_t b) { return a < b ? a : b; }

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
__aicore__ inline void CopyElementsIn(const LocalTensor<T> &to, const GlobalTensor<T> &from, int32_t n)
{
    const DataCopyExtParams shape{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0};
    DataCopyPad(to, from, shape, DataCopyPadExtParams<T>{false, 0, 0, 0});
}

// Copies n >= 0 elements from UB to global memory, and writes no other byte.
template <typename T>
__aicore__ inline void CopyElementsOut(const GlobalTensor<T> &to, const LocalTensor<T> &from, int32_t n)
{
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0});
}

// CopyElementsIn and CopyElementsOut of words, which many statements call.
AVSG_NOINLINE void CopyIn(const LocalTensor<int32_t> &to, const GlobalTensor<int32_t> &from, int32_t n)
{
    CopyElementsIn(to, from, n);
}

AVSG_NOINLINE void CopyOut(const GlobalTensor<int32_t> &to, const LocalTensor<int32_t> &from, int32_t n)
{
    CopyElementsOut(to, from, n);
}

// Sets and waits for a flag: the second unit of `event` waits until the first one has finished its
// instructions.
template <HardEvent event, typename Id> __aicore__ inline void SetWaitFlag(Id id)
{
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

// Starts the copy of a launch's scalars to UB at `at`, because scalar reads of global memory would go
// through the data cache.
__aicore__ inline void StartLaunchWords(GM_ADDR from, uint32_t at)
{
    const int32_t n = sizeof(Tiling) / 4;
    CopyIn(Local<int32_t>(at, n), Global<int32_t>(from), n);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
}

// Returns the words of which StartLaunchWords has started the copy.
__aicore__ inline LocalTensor<int32_t> LaunchWords(uint32_t at)
{
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    return Local<int32_t>(at, sizeof(Tiling) / 4);
}

// Returns whether a state has more entries in slotBlocks than a core has memory for.
__aicore__ inline bool HasTooManySlotBlocks(const Tiling &t)
{
    return t.kvBlocks > 0 && (SLOTS >> t.kvBlockShift) > MAX_SLOT_BLOCKS;
}

// ---- words of requests -------------------------------------------------------------------------

// Numbers of the arrays of a window. The plan and the transfer add different arrays.
constexpr int32_t CU_Q = 0, STATE = 1, STABLE = 2, SEQ = 3, GENERATION = 4, SUMMARY = 2;

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
    __aicore__ inline int32_t Word(int32_t array, int32_t request, int32_t word = 0);
};

AVSG_NOINLINE int32_t WordOf(Window &w, int32_t array, int32_t request, int32_t word)
{
    if (request < w.first || request >= w.first + w.count) {
        w.first = request;
        w.count = ScalarMin(w.requests - w.first, w.size);
        SetWaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
        for (int32_t a = 0; a < w.arrays; a++) {
            const int32_t words = w.count * w.width[a] + (a == CU_Q ? 1 : 0);
            CopyIn(Local<int32_t>(w.ub[a], words), w.from[a][w.first * w.width[a]], words);
        }
        SetWaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    }
    const LocalTensor<int32_t> all = Local<int32_t>(w.ub[array], w.size * w.width[array] + 1);
    return all.GetValue((request - w.first) * w.width[array] + word);
}

__aicore__ inline int32_t Window::Word(int32_t array, int32_t request, int32_t word)
{
    return WordOf(*this, array, request, word);
}

} // namespace avsg
