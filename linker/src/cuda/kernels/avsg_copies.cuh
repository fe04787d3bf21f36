// avsg_copies.cuh: copies of the rows of misses, which begin while Stage One is still running.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.cuh. Apache-2.0.
#pragma once

#include "avsg_rows.cuh"

namespace avsg {

constexpr int COPY_WARPS = WARPS < 8 ? WARPS : 8;   // warps that start bulk copies
constexpr int ENTRIES = COPY_WARPS * WARP;          // rows that are under way at once, at most

// What the threads that copy in bulk share. Each of them has an entry of shared memory: a row arrives there from
// the host, and leaves for its slot. Early entries are in memory that has no other use, and late ones in memory
// that Stage One uses.
struct CopyPlan {
    CopyBarrier barriers[ENTRIES];
    Tiling t;
    Layer layer;
    const int *missSlot, *missRow;
    Rows rows;                          // of the request whose misses are copied
    // In a transfer, the numbers of misses up to the end of each request of a window, in shared memory.
    const int *ends, *cuQ, *states;
    int windowFirst, windowLen;
    int bytes, early, late, lateAt;     // of an entry; entries, none without bulk copies; the address of a late one
    int next;                           // the first miss that no thread has taken
};

static_assert(sizeof(CopyPlan) <= COPY_PLAN_BYTES, "copies");

constexpr int ENTRIES_AT = COPIES_AT + COPY_PLAN_BYTES;
// Late entries begin behind the lifetimes, which are stored while rows arrive.
constexpr int LATE_AT = (LIFE_AT + LIFE_WORDS * 4 + 127) / 128 * 128;

__device__ __forceinline__ CopyPlan &SharedCopyPlan() { return *Shared<CopyPlan>(COPIES_AT); }

// Returns whether bulk copies can copy all rows: addresses and lengths are multiples of 16 bytes. All threads of a
// warp call it.
__device__ __forceinline__ bool CopiesInBulk(const Tiling &t, const Layer &layer)
{
#if __CUDA_ARCH__ >= 900
    unsigned misaligned = 0;
    for (int s = 0; s < t.segments; s++) {
        const int strides = t.hostStride[s] | t.hostGap[s] | t.kvStride[s] | t.kvGap[s] | t.freshStride[s];
        misaligned |= Misaligned(layer.Kv(s), layer.Fresh(s), t.bytes[s] | strides);
    }
    for (int chunk = LaneOfWarp(); chunk < t.chunks; chunk += WARP) {
        misaligned |= static_cast<unsigned>(layer.hostChunks[chunk] & 15);
    }
    return Ballot(misaligned != 0) == 0;
#else
    return false;
#endif
}

// Writes the plan of copies of a block. A barrier follows.
__device__ __forceinline__ void PrepareCopies(
    const Tiling &t, const Layer &layer, const int *missSlot, const int *missRow, const Rows &rows, int lateAt)
{
    if (WarpOfBlock() > 0) {
        return;
    }
    CopyPlan &c = SharedCopyPlan();
    for (int i = LaneOfWarp(); i < static_cast<int>(sizeof(Tiling)) / 4; i += WARP) {
        reinterpret_cast<int *>(&c.t)[i] = reinterpret_cast<const int *>(&t)[i];
    }
    const bool inBulk = CopiesInBulk(t, layer);
    if (LaneOfWarp() == 0) {
        c.layer = layer;
        c.missSlot = missSlot;
        c.missRow = missRow;
        c.rows = rows;
        c.bytes = t.bytes[0] + (t.segments > 1 ? t.bytes[1] : 0);
        c.early = inBulk ? min(ENTRIES, max(0, SHARED_BYTES - ENTRIES_AT) / c.bytes) : 0;
        c.late = inBulk ? min(ENTRIES - c.early, max(0, COPIES_AT - lateAt) / c.bytes) : 0;
        c.lateAt = lateAt;
        c.next = 0;
    }
}

// A miss: its place in the lists, and the rows of its request.
struct Miss {
    int at;
    Rows rows;
};

// Returns miss i of the request, or in a transfer of the window.
template <bool BATCH> __device__ __forceinline__ Miss MissAt(const CopyPlan &c, int i)
{
    if (!BATCH) {
        return Miss{c.rows.first * K + i, c.rows};
    }
    int low = 0;
    for (int high = c.windowLen - 1; low < high;) {
        const int middle = (low + high) / 2;
        if (c.ends[middle] > i) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    const int before = low > 0 ? c.ends[low - 1] : 0;
    const Rows rows = {c.cuQ[c.windowFirst + low], 0, c.states[c.windowFirst + low]};
    return Miss{rows.first * K + i - before, rows};
}

// Copies the misses from..to - 1 by loads: a warp copies a row.
template <bool BATCH> __device__ __forceinline__ void CopyByLoads(int from, int to)
{
    const CopyPlan &c = SharedCopyPlan();
    for (int i = from + WarpOfBlock(); i < to; i += WARPS) {
        const Miss miss = MissAt<BATCH>(c, i);
        for (int s = 0; s < c.t.segments; s++) {
            unsigned char *const slot = SlotAt(c.t, c.layer, miss.rows, c.missSlot[miss.at], s);
            if (slot != nullptr) {
                CopySegment(slot, RowAt(c.t, c.layer, miss.rows, c.missRow[miss.at], s), c.t.bytes[s]);
            }
        }
    }
}

// In a step this is a function of its own, so that it takes no registers from Stage One.
__device__ __noinline__ void CopyStepByLoads(int n) { CopyByLoads<false>(0, n); }

// The turn of a thread that copies: four times the miss that it has taken, 2 in every second phase of its barrier,
// and 1 while the row arrives. NO_TURN: it has not taken a miss.
constexpr int NO_TURN = -1;

__device__ __forceinline__ int TakeMiss(CopyPlan &c) { return 4 * atomicAdd(&c.next, 1); }

#if __CUDA_ARCH__ >= 900

// Continues the copies of one thread and returns its turn. It starts the load of its miss if it is one of the first
// `rows`, whose rows are known, and its store if it is one of the first `slots` and the row has arrived. `late`
// says whether late entries may be used. It waits for no row.
template <bool BATCH> __device__ __forceinline__ int ContinueCopies(int turn, int rows, int slots, bool late)
{
    CopyPlan &c = SharedCopyPlan();
    const int own = LaneOfWarp() * COPY_WARPS + WarpOfBlock();
    CopyBarrier *const barrier = &c.barriers[own];
    if (turn == NO_TURN) {
        if (own >= c.early + (late ? c.late : 0)) {
            return turn;
        }
        InitCopyBarrier(barrier);
        FenceBulkCopies();
        turn = TakeMiss(c);
    }
    if (turn / 4 >= rows) {
        return turn;
    }
    const Miss miss = MissAt<BATCH>(c, turn / 4);
    unsigned char *const entry = Shared<unsigned char>(
        own < c.early ? ENTRIES_AT + own * c.bytes : c.lateAt + (own - c.early) * c.bytes);
    if ((turn & 1) == 0) {
        // The last row has left the entry.
        WaitForReads();
        const int row = c.missRow[miss.at];
        ExpectBytes(barrier, c.bytes);
#pragma unroll 1
        for (int s = 0; s < c.t.segments; s++) {
            StartLoad(entry + s * c.t.bytes[0], RowAt(c.t, c.layer, miss.rows, row, s), c.t.bytes[s], barrier);
        }
        turn++;
    }
    if (turn / 4 >= slots || !HasBytes(barrier, turn / 2 & 1)) {
        return turn;
    }
    const int slot = c.missSlot[miss.at];
#pragma unroll 1
    for (int s = 0; s < c.t.segments; s++) {
        unsigned char *const to = SlotAt(c.t, c.layer, miss.rows, slot, s);
        if (to != nullptr) {
            StartStore(to, entry + s * c.t.bytes[0], c.t.bytes[s]);
        }
    }
    EndGroup();
    return TakeMiss(c) + (2 - (turn & 2));
}

#endif

// Copies the misses from..to - 1, of which bulk copies may be under way. Returns the turn of the thread.
template <bool BATCH> __device__ __forceinline__ int FinishCopies(int turn, int from, int to)
{
#if __CUDA_ARCH__ >= 900
    const CopyPlan &c = SharedCopyPlan();
    if (c.early + c.late > 0) {
        if (WarpOfBlock() < COPY_WARPS) {
            do {
                turn = ContinueCopies<BATCH>(turn, to, to, true);
            } while (turn != NO_TURN && turn / 4 < to);
            WaitForReads();
        }
        return turn;
    }
#endif
    if (BATCH) {
        CopyByLoads<BATCH>(from, to);
    } else {
        CopyStepByLoads(to);
    }
    return turn;
}

// The copies of a block that only plans a request: none.
struct NoCopies {
    int rows, slots;

    __device__ __forceinline__ void Continue() const {}
    __device__ __forceinline__ void Release() const {}
};

// The copies of a block that plans a request and copies its misses. `rows` and `slots` are the ends of the entries
// of the miss lists whose rows and slots are written.
struct StepCopies {
    int rows, slots, begin, turn;

    __device__ __forceinline__ explicit StepCopies(int from) : rows(from), slots(from), begin(from), turn(NO_TURN) {}

    // Continues bulk copies. A barrier of the block is behind what `rows` and `slots` count.
    __device__ __forceinline__ void Continue()
    {
#if __CUDA_ARCH__ >= 900
        if (rows > begin && WarpOfBlock() < COPY_WARPS) {
            turn = ContinueCopies<false>(turn, rows - begin, slots - begin, false);
        }
#endif
    }

    // Gives the memory of Stage One to the copies. A barrier of the block follows.
    __device__ __forceinline__ void Release() const
    {
#if __CUDA_ARCH__ >= 900
        if (rows > begin) {
            FenceBulkCopies();
        }
#endif
    }

    // Ends the copies, also to this memory.
    __device__ __forceinline__ void Finish() const
    {
        if (rows > begin) {
            FinishCopies<false>(turn, 0, rows - begin);
        }
    }
};

} // namespace avsg
