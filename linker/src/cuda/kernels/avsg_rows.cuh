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

// The rows of a request in the batch, and its state; -1 for a padded one.
struct Rows {
    int first, tokens, state;
};

// Returns the offset of row n in blocks of 1 << shift rows, each followed by `gap` more bytes.
__device__ __forceinline__ long long BlockOffset(long long n, int stride, int shift, int gap)
{
    return n * stride + (n >> shift) * gap;
}

// Returns the address of segment s of a row: a host row, or fresh row -1 - row of the request.
__device__ __forceinline__ const unsigned char *RowAt(
    const Tiling &t, const Layer &layer, const Rows &rows, int row, int s)
{
    if (row < 0) {
        return layer.Fresh(s) + static_cast<long long>(rows.first - 1 - row) * t.freshStride[s];
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
    const Tiling &t, const Layer &layer, const Rows &rows, int slot, int s)
{
    const long long at = SlotOfAll(t, layer.slotBlocks, rows.state, slot);
    return at < 0 ? nullptr : layer.Kv(s) + BlockOffset(at, t.kvStride[s], t.kvBlockShift, t.kvGap[s]);
}

// Copies bytes by the threads of a warp, in pieces of type T.
template <typename T> __device__ __forceinline__ void CopyPieces(unsigned char *to, const unsigned char *from, int bytes)
{
    const int n = bytes / static_cast<int>(sizeof(T));
    CopyStrided<WARP, 4>(reinterpret_cast<T *>(to), reinterpret_cast<const T *>(from), LaneOfWarp(), n);
}

// Returns the bits in which addresses or a length differ from a multiple of 16.
__device__ __forceinline__ unsigned Misaligned(const void *to, const void *from, int bytes)
{
    const unsigned long long bits = reinterpret_cast<unsigned long long>(to)
        | reinterpret_cast<unsigned long long>(from) | static_cast<unsigned long long>(bytes);
    return static_cast<unsigned>(bits & 15);
}

// Copies a segment of a row by the threads of a warp.
__device__ __forceinline__ void CopySegment(unsigned char *to, const unsigned char *from, int bytes)
{
    const unsigned misaligned = Misaligned(to, from, bytes);
    if (misaligned == 0) {
        CopyPieces<int4>(to, from, bytes);
    } else if (misaligned % 4 == 0) {
        CopyPieces<int>(to, from, bytes);
    } else {
        CopyPieces<unsigned char>(to, from, bytes);
    }
}

} // namespace avsg
