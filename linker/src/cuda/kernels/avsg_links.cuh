// avsg_links.cuh: searches for the links of an id. A thread ends at the first link that matches.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_block.cuh"

namespace avsg {

// The links of a table: see avsg_device::machine::links.
template <int RETRIES_, int POSITION_BITS, int SLOT_BITS_, int P, int Q, int FINGERPRINT_SHIFT, int FINGERPRINT_BITS>
struct Links {
    static constexpr int RETRIES = RETRIES_;

    // Returns the position of link r of a probe sequence.
    __device__ static __forceinline__ int Position(int sequence, int r)
    {
        constexpr int mask = (1 << POSITION_BITS) - 1;
        return ((sequence & mask) + (sequence >> POSITION_BITS) * r) & mask;
    }

    __device__ static __forceinline__ int Slot(int link) { return link & ((1 << SLOT_BITS_) - 1); }

    // Returns whether an earlier occupant of a slot left the link behind. A link that was never used has a bit
    // above its fingerprint.
    __device__ static __forceinline__ bool IsLeft(int link, int held)
    {
        constexpr int mask = (1 << FINGERPRINT_BITS) - 1;
        return link >> SLOT_BITS_ != (ShiftRight(MultiplyAdd(held, P, Q), FINGERPRINT_SHIFT) & mask);
    }
};

// Returns the slot that the first link of a probe sequence names which holds the id, or -1.
template <typename L> __device__ __forceinline__ int Find(int sequence, int x, const int *link, const int *id)
{
    for (int r = 0; r <= L::RETRIES; r++) {
        const int slot = L::Slot(link[L::Position(sequence, r)]);
        if (id[slot] == x) {
            return slot;
        }
    }
    return -1;
}

// Returns the position of the first link of a probe sequence that was left behind, or -1.
template <typename L> __device__ __forceinline__ int FindFree(int sequence, const int *link, const int *id)
{
    for (int r = 0; r <= L::RETRIES; r++) {
        const int at = L::Position(sequence, r);
        if (L::IsLeft(link[at], id[L::Slot(link[at])])) {
            return at;
        }
    }
    return -1;
}

} // namespace avsg
