// avsg_rows.cuh: copies of rows from the host pool and the fresh rows to the slots of the device buffer.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_scan.cuh"

namespace avsg {

// The memory of a layer, and where its rows are.
struct Layer {
    const unsigned long long *hostChunks;
    unsigned char *kv0, *kv1;
    const unsigned char *fresh0, *fresh1;
    const int *slotBlocks;

    // Return the memory of segment s.
    __device__ __forceinline__ unsigned char *Kv(int s) const { return s == 0 ? kv0 : kv1; }
    __device__ __forceinline__ const unsigned char *Fresh(int s) const { return s == 0 ? fresh0 : fresh1; }
};

// Some misses of one request: n entries of its miss list, the first row of the request in the batch, and
// its state.
struct Misses {
    const int *slot, *row;
    int n, first, state;
};

// Returns the offset of row n in blocks of 1 << shift rows, each followed by `gap` more bytes.
__device__ __forceinline__ long long BlockOffset(long long n, int stride, int shift, int gap)
{
    return n * stride + (n >> shift) * gap;
}

// Returns the address of segment s of a row: a host row, or fresh row -1 - row of the request.
__device__ __forceinline__ const unsigned char *RowAt(
    const Tiling &t, const Layer &layer, const Misses &misses, int row, int s)
{
    if (row < 0) {
        return layer.Fresh(s) + static_cast<long long>(misses.first - 1 - row) * t.freshStride[s];
    }
    const int chunk = row >> t.chunkShift[s];
    const int within = row - (chunk << t.chunkShift[s]);
    const unsigned long long base = layer.hostChunks[t.chunkFirst[s] + chunk];
    return reinterpret_cast<const unsigned char *>(base)
        + BlockOffset(within, t.hostStride[s], t.hostBlockShift, t.hostGap[s]);
}

// Returns the index of a slot among those of all states; -1 if its block is not in the device buffer.
__device__ __forceinline__ long long SlotOfAll(const Tiling &t, const int *slotBlocks, int state, int slot)
{
    if (t.kvBlocks == 0) {
        return static_cast<long long>(state) * SLOTS + slot;
    }
    const int block = slotBlocks[state * (SLOTS >> t.kvBlockShift) + (slot >> t.kvBlockShift)];
    const int within = slot & ((1 << t.kvBlockShift) - 1);
    return block < 0 || block >= t.kvBlocks ? -1 : (static_cast<long long>(block) << t.kvBlockShift) + within;
}

// Returns the address of segment s of a slot; null if the slot is not in the device buffer.
__device__ __forceinline__ unsigned char *SlotAt(
    const Tiling &t, const Layer &layer, const Misses &misses, int slot, int s)
{
    const long long at = SlotOfAll(t, layer.slotBlocks, misses.state, slot);
    return at < 0 ? nullptr : layer.Kv(s) + BlockOffset(at, t.kvStride[s], t.kvBlockShift, t.kvGap[s]);
}

// Copies bytes by the threads of a warp, in pieces of type T.
template <typename T> __device__ __forceinline__ void CopyPieces(unsigned char *to, const unsigned char *from, int bytes)
{
    for (int i = LaneOfWarp(); i < bytes / static_cast<int>(sizeof(T)); i += WARP) {
        reinterpret_cast<T *>(to)[i] = reinterpret_cast<const T *>(from)[i];
    }
}

// Returns the bits in which addresses or a length differ from a multiple of 16.
__device__ __forceinline__ unsigned Misaligned(const void *to, const void *from, int bytes)
{
    const unsigned long long bits = reinterpret_cast<unsigned long long>(to)
        | reinterpret_cast<unsigned long long>(from) | static_cast<unsigned long long>(bytes);
    return static_cast<unsigned>(bits & 15);
}

// Copies the rows of misses by loads: a warp copies a row.
__device__ __forceinline__ void CopyByLoads(const Tiling &t, const Layer &layer, const Misses &misses)
{
    for (int i = WarpOfBlock(); i < misses.n; i += WARPS) {
        for (int s = 0; s < t.segments; s++) {
            unsigned char *const to = SlotAt(t, layer, misses, misses.slot[i], s);
            const unsigned char *const from = RowAt(t, layer, misses, misses.row[i], s);
            const unsigned misaligned = Misaligned(to, from, t.bytes[s]);
            if (to == nullptr) {
                continue;
            }
            if (misaligned == 0) {
                CopyPieces<int4>(to, from, t.bytes[s]);
            } else if (misaligned % 4 == 0) {
                CopyPieces<int>(to, from, t.bytes[s]);
            } else {
                CopyPieces<unsigned char>(to, from, t.bytes[s]);
            }
        }
    }
}

#if __CUDA_ARCH__ >= 900

constexpr int RING_WARPS = 8;                   // warps of which one thread starts copies
constexpr int RING_BYTES = (RING_END - RING_AT) / RING_WARPS / 128 * 128;
constexpr int RING_ENTRIES = 32;                // entries of a warp's ring at most

// Returns whether bulk copies can copy all rows: addresses and lengths are multiples of 16 bytes. It is the
// same for all threads.
__device__ __forceinline__ bool CopiesInBulk(const Tiling &t, const Layer &layer)
{
    unsigned misaligned = 0;
    for (int s = 0; s < t.segments; s++) {
        const int strides = t.hostStride[s] | t.hostGap[s] | t.kvStride[s] | t.kvGap[s] | t.freshStride[s];
        misaligned |= Misaligned(layer.Kv(s), layer.Fresh(s), t.bytes[s] | strides);
        const int end = s + 1 < t.segments ? t.chunkFirst[s + 1] : t.chunks;
        for (int chunk = t.chunkFirst[s]; chunk < end; chunk++) {
            misaligned |= static_cast<unsigned>(layer.hostChunks[chunk] & 15);
        }
    }
    return misaligned == 0;
}

// Copies the rows of misses in bulk, through a ring in shared memory for each of a few warps, whose other uses
// are over. One thread of such a warp starts all its copies: while a row arrives in one entry of the ring,
// others leave. A piece is a segment of a row.
__device__ __forceinline__ void CopyInBulk(const Tiling &t, const Layer &layer, const Misses &misses)
{
    // The memory had other contents until now.
    FenceBulkCopies();
    __syncthreads();
    if (LaneOfWarp() != 0 || WarpOfBlock() >= RING_WARPS) {
        return;
    }
    unsigned char *const ring = Shared<unsigned char>(RING_AT + WarpOfBlock() * RING_BYTES);
    CopyBarrier *const barriers = reinterpret_cast<CopyBarrier *>(ring);
    unsigned char *const entries = ring + RING_ENTRIES * 8;
    const int bytes = max(t.bytes[0], t.segments > 1 ? t.bytes[1] : 0);
    const int depth = min(RING_ENTRIES, (RING_BYTES - RING_ENTRIES * 8) / bytes);
    for (int i = 0; i < depth; i++) {
        InitCopyBarrier(&barriers[i]);
    }
    FenceBulkCopies();
    const int rows = (misses.n + RING_WARPS - 1 - WarpOfBlock()) / RING_WARPS;
    const int n = rows * t.segments;
    int started = 0;
    for (int done = 0; done < n; done++) {
        // The entry before the last one may still be read by its store.
        for (; started < n && started < done + depth - 1; started++) {
            const int s = started % t.segments;
            const int row = misses.row[WarpOfBlock() + started / t.segments * RING_WARPS];
            const int entry = started % depth;
            if (started >= depth) {
                WaitForReadsButOne();
            }
            ExpectBytes(&barriers[entry], t.bytes[s]);
            StartLoad(entries + entry * bytes, RowAt(t, layer, misses, row, s), t.bytes[s], &barriers[entry]);
        }
        const int s = done % t.segments;
        const int entry = done % depth;
        WaitForBytes(&barriers[entry], done / depth % 2);
        const int slot = misses.slot[WarpOfBlock() + done / t.segments * RING_WARPS];
        unsigned char *const to = SlotAt(t, layer, misses, slot, s);
        if (to != nullptr) {
            StartStore(to, entries + entry * bytes, t.bytes[s]);
        }
        EndGroup();
    }
    WaitForStores();
    for (int i = 0; i < depth; i++) {
        DropCopyBarrier(&barriers[i]);
    }
}

#endif

// Copies the rows of misses, by all threads of the block.
__device__ __forceinline__ void CopyRows(const Tiling &t, const Layer &layer, const Misses &misses)
{
#if __CUDA_ARCH__ >= 900
    if (CopiesInBulk(t, layer) && 2 * max(t.bytes[0], t.bytes[1]) <= RING_BYTES - RING_ENTRIES * 8) {
        CopyInBulk(t, layer, misses);
        return;
    }
#endif
    CopyByLoads(t, layer, misses);
}

} // namespace avsg
