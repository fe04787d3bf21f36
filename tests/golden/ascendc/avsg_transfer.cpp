// avsg_transfer: Stage Two of one layer: a plan's misses from the host pool to their slots.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.

#include "kernel_operator.h"

using namespace AscendC;

namespace avsg {

constexpr int32_t K = 2048;                // row stride of slots and miss lists
constexpr int32_t TOKENS = 1;              // N_q: rows of a request at most
constexpr int32_t SLOTS = 8192;             // S
constexpr int32_t PAGE = 0;                // rows of a host block; 0: no block table
constexpr int32_t PAGE_SHIFT = 0;
constexpr int32_t ID_LIMIT = 4194304;       // ids are below it
constexpr int32_t NO_STABLE_LEN = 4194304;  // no id reaches it
constexpr int32_t RECORD_WORDS = 16;       // a 64-byte line
constexpr int32_t RECORD_TOTAL = 8;        // the request's misses
constexpr uint64_t TABLE_WORDS = 26656;    // header, ids, lifetimes and pad, links
constexpr uint32_t UB_BYTES = 188416;      // Select scribbles above

// Every scalar of a launch, as the host writes it.
struct Tiling {
    int32_t requests;               // Requests of the batch, padded ones included.
    int32_t k;                      // Ids per row, 1..=K of the geometry.
    int32_t idsStride;              // Words from row to row of ids.
    int32_t blockStride;            // Entries of a request in the block table; 0 without one.
    int32_t poolUnits;              // Rows (without block table) or blocks (with one) of the host pool.
    int32_t states;                 // Request states: tables, and S slots each.
    int32_t copyCores;              // Cores that copy; as many as were launched, if that is less.
    int32_t segments;               // Segments of a row: 1 or 2.
    int32_t bytes[2];               // Bytes of each segment.
    int32_t chunkFirst[2];          // Each segment's first pointer in hostChunks.
    int32_t chunkShift[2];          // A chunk of the segment holds 1 << this rows.
    int32_t chunks;                 // Pointers in hostChunks.
    int32_t halfRows;               // Rows staged in one half of the staging area.
    int32_t hostStride[2];          // Bytes from row to row in a host chunk.
    int32_t kvStride[2];            // Bytes from slot to slot in the device buffer.
    int32_t freshStride[2];         // Bytes from row to row of the fresh rows.
};
static_assert(__builtin_offsetof(Tiling, requests) == 0 && __builtin_offsetof(Tiling, k) == 4
    && __builtin_offsetof(Tiling, idsStride) == 8 && __builtin_offsetof(Tiling, blockStride) == 12
    && __builtin_offsetof(Tiling, poolUnits) == 16 && __builtin_offsetof(Tiling, states) == 20
    && __builtin_offsetof(Tiling, copyCores) == 24 && __builtin_offsetof(Tiling, segments) == 28
    && __builtin_offsetof(Tiling, bytes) == 32 && __builtin_offsetof(Tiling, chunkFirst) == 40
    && __builtin_offsetof(Tiling, chunkShift) == 48 && __builtin_offsetof(Tiling, chunks) == 56
    && __builtin_offsetof(Tiling, halfRows) == 60 && __builtin_offsetof(Tiling, hostStride) == 64
    && __builtin_offsetof(Tiling, kvStride) == 72 && __builtin_offsetof(Tiling, freshStride) == 80
    && sizeof(Tiling) == 88, "Tiling");

// ---- moving data ---------------------------------------------------------------------------------

constexpr uint32_t BLOCK = 32;          // bytes; addresses and lengths in UB are multiples of it

// Where share `core` of n things over `cores` cores begins: floor(core * n / cores), in 32 bits.
__aicore__ inline int32_t Cut(int32_t n, int32_t core, int32_t cores)
{
    return core * (n / cores) + core * (n % cores) / cores;
}

__aicore__ inline int32_t Least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

__aicore__ inline int32_t Between(int32_t low, int32_t n, int32_t high)
{
    return n < low ? low : Least(n, high);
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
__aicore__ inline void Pull(const LocalTensor<T> &to, const GlobalTensor<T> &from, int32_t n)
{
    const DataCopyExtParams shape{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0};
    DataCopyPad(to, from, shape, DataCopyPadExtParams<T>{false, 0, 0, 0});
}

// n elements to global memory, and not a byte more.
template <typename T>
__aicore__ inline void Push(const GlobalTensor<T> &to, const LocalTensor<T> &from, int32_t n)
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
    Pull(words, Global<int32_t>(from), sizeof(Tiling) / 4);
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
            n = Least(requests - at, size);
            After<HardEvent::S_MTE2>(EVENT_ID0);
            for (int32_t a = 0; a < arrays; a++) {
                const int32_t words = n * width[a] + (a == CU_Q ? 1 : 0);
                Pull(Local<int32_t>(ub[a], words), from[a][at * width[a]], words);
            }
            After<HardEvent::MTE2_S>(EVENT_ID0);
        }
        const LocalTensor<int32_t> all = Local<int32_t>(ub[array], size * width[array] + 1);
        return all.GetValue((request - at) * width[array] + word);
    }
};

// ---- copying rows ------------------------------------------------------------------------------

constexpr int32_t WINDOW = 128;                     // requests whose words are read at once
constexpr uint32_t HALF_ROWS = 32;                  // rows in half of the staging area at most
constexpr uint32_t HALF_BYTES = 77824;
constexpr uint32_t MAX_CHUNKS = 2048;               // host chunks of a layer
constexpr uint32_t COPY_TILING_AT = 0;
constexpr uint32_t WINDOW_AT = COPY_TILING_AT + 128;
constexpr uint32_t LIST_AT = WINDOW_AT + WINDOW * (2 + RECORD_WORDS) * 4 + BLOCK;
constexpr uint32_t LIST_BYTES = HALF_ROWS * BLOCK;  // every row may be alone in its block
constexpr uint32_t CHUNKS_AT = LIST_AT + 2 * LIST_BYTES;
constexpr uint32_t STAGING_AT = CHUNKS_AT + MAX_CHUNKS * 8;
static_assert(STAGING_AT + 2 * HALF_BYTES == 183456 && 183456 <= UB_BYTES, "both halves fit");

// A row's way: where each segment comes from and goes to.
struct Move {
    uint64_t from[2];
    uint64_t to[2];
};

__aicore__ inline GlobalTensor<uint8_t> Bytes(uint64_t at)
{
    return Global<uint8_t>(reinterpret_cast<GM_ADDR>(at));
}

// Rows pass through two halves in turn: while one is written out the other is filled. A half is free
// when its MTE3_MTE2 flag is set. Between OpenHalves and CloseHalves the vector unit has nothing to do
// and CopyRows writes no UB below STAGING_AT: work may be put between two calls.
__aicore__ inline void OpenHalves()
{
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

__aicore__ inline void CloseHalves()
{
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
}

// Copies n rows: all of them are on their way before the one wait.
__aicore__ inline void CopyRows(const Tiling &t, const Move *moves, int32_t n, int32_t half)
{
    const auto event = half == 0 ? EVENT_ID0 : EVENT_ID1;
    const uint32_t staging = STAGING_AT + half * HALF_BYTES;
    WaitFlag<HardEvent::MTE3_MTE2>(event);
    uint32_t at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            Pull(Local<uint8_t>(at, t.bytes[s]), Bytes(moves[i].from[s]), t.bytes[s]);
            at += Blocks(t.bytes[s]);
        }
    }
    After<HardEvent::MTE2_MTE3>(event);
    at = staging;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t s = 0; s < t.segments; s++) {
            Push(Bytes(moves[i].to[s]), Local<uint8_t>(at, t.bytes[s]), t.bytes[s]);
            at += Blocks(t.bytes[s]);
        }
    }
    SetFlag<HardEvent::MTE3_MTE2>(event);
}

// The address of a host row's segment: rows do not cross chunks.
__aicore__ inline uint64_t HostRow(const Tiling &t, int32_t row, int32_t s)
{
    const LocalTensor<uint64_t> chunks = Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS);
    const int32_t chunk = row >> t.chunkShift[s];
    const int32_t within = row - (chunk << t.chunkShift[s]);
    return chunks.GetValue(t.chunkFirst[s] + chunk) + Times(within, t.hostStride[s]);
}

// This core's share of n things.
struct Share {
    int32_t begin, end;
};

__aicore__ inline Share ShareOf(const Tiling &t, int32_t n)
{
    const int32_t core = GetBlockIdx();
    const int32_t cores = Least(t.copyCores, GetBlockNum());
    return core < cores ? Share{Cut(n, core, cores), Cut(n, core + 1, cores)} : Share{0, 0};
}

// ---- Stage Two ---------------------------------------------------------------------------------

// A run of one request's miss list, its words in the list buffers at `at`.
struct Piece {
    int32_t n, at, first, state;
};

// A core's place in the concatenated miss lists.
struct Place {
    int32_t request, taken, left;
};

// Has the next rows' slots and host rows read; returns how many pieces they come in.
__aicore__ inline int32_t NextPieces(
    const Tiling &t, Window &w, const GlobalTensor<int32_t> &missSlot,
    const GlobalTensor<int32_t> &missRow, Place &place, Piece *pieces)
{
    int32_t count = 0;
    int32_t at = 0;
    int32_t room = Least(t.halfRows, place.left);
    place.left -= room;
    After<HardEvent::S_MTE2>(EVENT_ID1);
    while (room > 0) {
        const int32_t misses = w.Word(RECORD, place.request, RECORD_TOTAL);
        const int32_t n = Least(misses - place.taken, room);
        if (n > 0) {
            Piece &piece = pieces[count++];
            piece = {n, at, w.Word(CU_Q, place.request), w.Word(STATE, place.request)};
            const int32_t from = piece.first * K + place.taken;
            Pull(Local<int32_t>(LIST_AT + at * 4, n), missSlot[from], n);
            Pull(Local<int32_t>(LIST_AT + LIST_BYTES + at * 4, n), missRow[from], n);
            at += Blocks(n * 4) / 4;
            place.taken += n;
            room -= n;
        } else {
            place.request++;
            place.taken = 0;
        }
    }
    return count;
}

// Where the pieces' rows come from and go to; returns how many rows there are.
__aicore__ inline int32_t MovesOf(
    const Tiling &t, const uint64_t *kv, const uint64_t *fresh, const Piece *pieces, int32_t count,
    Move *moves)
{
    const LocalTensor<int32_t> slots = Local<int32_t>(LIST_AT, LIST_BYTES / 4);
    const LocalTensor<int32_t> rows = Local<int32_t>(LIST_AT + LIST_BYTES, LIST_BYTES / 4);
    int32_t n = 0;
    for (int32_t p = 0; p < count; p++) {
        const Piece &piece = pieces[p];
        for (int32_t i = piece.at; i < piece.at + piece.n; i++) {
            const int32_t row = rows.GetValue(i);
            const int64_t slot = static_cast<int64_t>(piece.state) * SLOTS + slots.GetValue(i);
            Move &move = moves[n++];
            for (int32_t s = 0; s < t.segments; s++) {
                // -1 - g is the request's fresh row g.
                move.from[s] = row >= 0 ? HostRow(t, row, s)
                    : fresh[s] + Times(piece.first - 1 - row, t.freshStride[s]);
                move.to[s] = kv[s] + Times(slot, t.kvStride[s]);
            }
        }
    }
    return n;
}

// Misses in token order, request after request: core c copies [cut(n, c), cut(n, c + 1)) of them.
__aicore__ inline void Transfer(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR fresh0, GM_ADDR fresh1)
{
    const uint64_t kv[2] = {reinterpret_cast<uint64_t>(kv0), reinterpret_cast<uint64_t>(kv1)};
    const uint64_t fresh[2] = {reinterpret_cast<uint64_t>(fresh0), reinterpret_cast<uint64_t>(fresh1)};
    const GlobalTensor<int32_t> gmSlot = Global<int32_t>(missSlot);
    const GlobalTensor<int32_t> gmRow = Global<int32_t>(missRow);
    Pull(Local<uint64_t>(CHUNKS_AT, MAX_CHUNKS), Global<uint64_t>(hostChunks), t.chunks);
    Window w(WINDOW_AT, WINDOW, t, cuQ);
    w.Add(state, 1);
    w.Add(record, RECORD_WORDS);
    int32_t total = 0;
    for (int32_t request = 0; request < t.requests; request++) {
        total += w.Word(RECORD, request, RECORD_TOTAL);
    }
    const Share share = ShareOf(t, total);
    Place place{0, share.begin, share.end - share.begin};
    while (place.left > 0 && place.taken >= w.Word(RECORD, place.request, RECORD_TOTAL)) {
        place.taken -= w.Word(RECORD, place.request++, RECORD_TOTAL);
    }

    Piece pieces[HALF_ROWS];
    Move moves[HALF_ROWS];
    OpenHalves();
    int32_t count = NextPieces(t, w, gmSlot, gmRow, place, pieces);
    for (int32_t half = 0; count > 0; half = 1 - half) {
        After<HardEvent::MTE2_S>(EVENT_ID1);
        const int32_t n = MovesOf(t, kv, fresh, pieces, count, moves);
        // The next lists are asked for before these rows, so that they do not wait behind them.
        count = NextPieces(t, w, gmSlot, gmRow, place, pieces);
        CopyRows(t, moves, n, half);
    }
    CloseHalves();
}

} // namespace avsg

extern "C" __global__ __aicore__ void avsg_transfer(
    GM_ADDR cuQ, GM_ADDR state, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR hostChunks, GM_ADDR kv0, GM_ADDR kv1, GM_ADDR fresh0, GM_ADDR fresh1,
    GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const avsg::Tiling t = avsg::ReadTiling(tiling, avsg::COPY_TILING_AT);
    avsg::Transfer(t, cuQ, state, missSlot, missRow, record, hostChunks, kv0, kv1, fresh0, fresh1);
}
