// avsg_block.cuh: the shared memory of a block, and words that all of its threads keep in registers.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_geometry.cuh"
#include "avsg_instructions.cuh"

// All shared memory of a block. Addresses in it are bytes.
extern __shared__ __align__(128) unsigned char avsgShared[];

namespace avsg {

constexpr unsigned ALL_LANES = 0xFFFFFFFFu;     // the threads of a warp
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
// The mark of a lane that asks for a word. It is above every word that lanes may ask for.
constexpr int TAG = 1 << 30;

// Returns shared memory from an address on.
template <typename T> __device__ __forceinline__ T *Shared(int at) { return reinterpret_cast<T *>(avsgShared + at); }

__device__ __forceinline__ int LaneOfWarp() { return static_cast<int>(threadIdx.x) % WARP; }
__device__ __forceinline__ int WarpOfBlock() { return static_cast<int>(threadIdx.x) / WARP; }

// Words that every warp of the block keeps, with the same values: lane i has word i. All threads read and change
// them together.
template <int WORDS> struct Line {
    static_assert(WORDS <= WARP, "a word for each lane");
    int own;

    __device__ __forceinline__ int Get(int at) const { return __shfl_sync(ALL_LANES, own, at); }

    __device__ __forceinline__ void Set(int at, int word) { own = LaneOfWarp() == at ? word : own; }

    // Reads the words, or fills them with zeros.
    __device__ __forceinline__ void Load(const int *from)
    {
        own = from != nullptr && LaneOfWarp() < WORDS ? from[LaneOfWarp()] : 0;
    }

    // Writes the words, each by one thread.
    __device__ __forceinline__ void Store(int *to) const
    {
        if (threadIdx.x < WORDS) {
            to[threadIdx.x] = own;
        }
    }
};

typedef Line<HEADER_USED> Header;
typedef Line<RECORD_WORDS> Record;

// Arrays in global memory, the table of the request, and what its lifetimes have learned.
struct Gm {
    const int *ids, *blockTable;
    int *slot, *valid, *missPos, *missId, *missSlot, *missRow, *record, *table, *learned;
};

// Copies the elements first, first + STRIDE, .. of n ones, with a number of loads under way at once.
template <int STRIDE, int LOADS, typename T>
__device__ __forceinline__ void CopyStrided(T *to, const T *from, int first, int n)
{
    for (; first < n; first += LOADS * STRIDE) {
        T elements[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            if (first + i * STRIDE < n) {
                elements[i] = from[first + i * STRIDE];
            }
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            if (first + i * STRIDE < n) {
                to[first + i * STRIDE] = elements[i];
            }
        }
    }
}

// Copies words from one memory to another, by all threads. The addresses are multiples of 16 bytes, and
// `words` is a multiple of 4.
template <int LOADS> __device__ __forceinline__ void CopyWords(int *to, const int *from, int words)
{
    CopyStrided<THREADS, LOADS>(
        reinterpret_cast<int4 *>(to), reinterpret_cast<const int4 *>(from), static_cast<int>(threadIdx.x), words / 4);
}

__device__ __forceinline__ void Exchange(int *&a, int *&b)
{
    int *const c = a;
    a = b;
    b = c;
}

// Shifts a word right and fills it with zeros.
__device__ __forceinline__ int ShiftRight(int word, int bits)
{
    return static_cast<int>(static_cast<unsigned>(word) >> bits);
}

// Returns the sum of products of a hash.
__device__ __forceinline__ int MultiplyAdd(int x, int p, int q)
{
    return ((x & 0xFFFF) - 0x8000) * p + ((x >> 16) & 0xFF) * q;
}

// Returns from[index] if the lane asks for it and the index is in 0..n - 1, else -1.
__device__ __forceinline__ int LookUp(const int *from, int n, int index, bool asks)
{
    return asks && index >= 0 && index < n ? from[index] : -1;
}

} // namespace avsg
