// avsg_step: Stage One, SyncAll, Stage Two. Launch it with batch scheduling and with no more blocks than
// there are vector cores: all blocks must run at once.
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

// ---- one request, as Stage One takes it --------------------------------------------------------

// Fields that end in At are offsets in elements.
struct Request {
    int32_t tokens, k, generation;
    int32_t stable;                     // tokens that were final before this step
    int32_t limit;                      // ids are below it
    int32_t rows;                       // rows or blocks of the host pool
    int32_t idsAt, idsStride, blocksAt, blocksLen, slotAt, slotStride, validAt, missAt, recordAt;
    uint64_t tableAt;
};

struct Gm {
    GlobalTensor<int32_t> ids, blocks, slot, valid, missPos, missId, missSlot, missRow, record, tables;
    GlobalTensor<half> rules;
};

// ---- Stage One, from its tape -------------------------------------------------------------------

namespace stage_one {

constexpr int32_t TILE = 512;                       // lanes of a tile
constexpr int32_t RUN = 1024;  // slots of a pass over lifetimes
constexpr uint32_t HEADER_AT = 0;
constexpr uint32_t RECORD_AT = 64;
constexpr uint32_t WORD_AT = 128;
constexpr uint32_t WORD_1_AT = 160;
constexpr uint32_t WORD_3F_AT = 192;
constexpr uint32_t WORD_3FF_AT = 224;
constexpr uint32_t WORD_1FFF_AT = 256;
constexpr uint32_t WORD_3FFF_AT = 288;
constexpr uint32_t WORD_FFFF_AT = 320;
constexpr uint32_t WORD_800000_AT = 352;
constexpr uint32_t KEEP_AT = 384;
constexpr uint32_t FOUND_AT = 480;
constexpr uint32_t M0_AT = 608;
constexpr uint32_t M1_AT = 672;
constexpr uint32_t M2_AT = 736;
constexpr uint32_t M3_AT = 800;
constexpr uint32_t IOTA_AT = 864;
constexpr uint32_t STAGE_AT = 2912;
constexpr uint32_t PACKED_AT = 5984;
constexpr uint32_t NUMBERS_AT = 9056;
constexpr uint32_t X0_AT = 11104;
constexpr uint32_t X1_AT = 13152;
constexpr uint32_t X2_AT = 15200;
constexpr uint32_t X3_AT = 17248;
constexpr uint32_t X4_AT = 19296;
constexpr uint32_t X5_AT = 21344;
constexpr uint32_t ID_AT = 23392;
constexpr uint32_t LIFE_AT = 56160;
constexpr uint32_t LINK_AT = 72544;
constexpr uint32_t IDS_AT = 138080;
constexpr uint32_t MISS2_AT = 138080;
constexpr uint32_t DEAD_AT = 138080;
constexpr uint32_t PENDING0_AT = 146272;
constexpr uint32_t MISS0_AT = 146272;
constexpr uint32_t SEEK0_AT = 146272;
constexpr uint32_t PENDING1_AT = 154464;
constexpr uint32_t MISS1_AT = 154464;
constexpr uint32_t SEEK1_AT = 154464;
constexpr uint32_t SLOT_AT = 162656;
constexpr uint32_t CLAIM0_AT = 162656;
constexpr uint32_t VOID0_AT = 170848;
constexpr uint32_t CLAIM1_AT = 170848;
constexpr uint32_t BYTES_AT = 170848;

__aicore__ inline int32_t Most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

// The same bits as another type.
__aicore__ inline LocalTensor<uint32_t> U32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<uint32_t>(); }
__aicore__ inline LocalTensor<float> F32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<float>(); }
__aicore__ inline LocalTensor<half> F16(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<half>(); }
template <typename T> __aicore__ inline LocalTensor<uint16_t> U16(const LocalTensor<T> &x)
{
    return x.template ReinterpretCast<uint16_t>();
}

// Compares leave the tail of a repeat out, so they run over whole ones; what is behind `lanes` is cut later.
__aicore__ inline int32_t Whole(int32_t lanes) { return (lanes + 127) / 128 * 128; }

// dst = src & one word. And has 16-bit lanes; its second operand stays on one block.
__aicore__ inline void AndWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    And(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = src | one word.
__aicore__ inline void OrWord(
    const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &src, uint32_t word, int32_t lanes)
{
    Or(U16(dst), U16(src), U16(Local<int32_t>(word, 8)), 128, (lanes + 63) / 64, {1, 1, 0, 8, 8, 0});
}

// dst = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^6) * q, for an x of so many bits: the sum of products that
// hashes are made of. No product overflows; `high` is scratch.
__aicore__ inline void Mix(const LocalTensor<int32_t> &dst, const LocalTensor<int32_t> &x, int32_t bits, int32_t p,
    int32_t q, const LocalTensor<int32_t> &high, int32_t lanes)
{
    AndWord(dst, x, WORD_FFFF_AT, lanes);
    ShiftRight(U32(high), U32(x), static_cast<uint32_t>(16), lanes);
    PipeBarrier<PIPE_V>();
    Adds(dst, dst, -32768, lanes);
    if (bits > 22) {
        AndWord(high, high, WORD_3F_AT, lanes);
    }
    PipeBarrier<PIPE_V>();
    Muls(dst, dst, p, lanes);
    Muls(high, high, q, lanes);
    PipeBarrier<PIPE_V>();
    Add(dst, dst, high, lanes);
}

// The lanes under a mask, closed up; returns how many.
template <typename T, typename U>
__aicore__ inline int32_t Pack(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<U> &mask, int32_t lanes)
{
    uint64_t kept = 0;
    GatherMask(dst, src, mask, true, lanes, {1, 1, 8, 0}, kept);
    return static_cast<int32_t>(kept);
}

// How many lanes are under a mask.
__aicore__ inline int32_t Count(const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    PipeBarrier<PIPE_V>();
    return Pack(Local<int32_t>(PACKED_AT, TILE), Local<int32_t>(IOTA_AT, TILE),
        mask.ReinterpretCast<uint32_t>(), lanes);
}

// The lanes that Append appends to a list of len words. A list ends anywhere, and GatherMask writes from a
// block's start on: so the q words that the list's last block holds go first, under q bits of their own.
__aicore__ inline void Keep(const LocalTensor<uint8_t> &mask, int32_t len)
{
    const LocalTensor<uint16_t> keep = Local<uint16_t>(KEEP_AT, 16 + TILE / 16);
    PipeBarrier<PIPE_V>();
    Duplicate(keep, static_cast<uint16_t>((1 << len % 8) - 1), 1);
    Or(keep[16], U16(mask), U16(mask), TILE / 16);
}

// Appends a value's lanes to one column of a list of len words, `most` at most; returns how many.
__aicore__ inline int32_t Append(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<int32_t> &value,
    int32_t lanes, int32_t most = TILE)
{
    const LocalTensor<int32_t> stage = Local<int32_t>(STAGE_AT, 256 + TILE);
    const LocalTensor<int32_t> packed = Local<int32_t>(PACKED_AT, 256 + TILE);
    const LocalTensor<int32_t> last = list[len / 8 * 8];
    const int32_t skip = len % 8 == 0 ? 256 : 0;    // the list ends with a block: nothing goes first
    PipeBarrier<PIPE_V>();
    if (skip == 0) {
        Adds(stage, last, 0, 8);
        Adds(stage[256], value, 0, lanes);
        PipeBarrier<PIPE_V>();
    }
    const LocalTensor<uint32_t> keep = Local<uint32_t>(KEEP_AT, 8 + TILE / 32);
    const int32_t kept = skip == 0 ? Pack(packed, stage, keep, 256 + lanes) : Pack(packed, value, keep[8], lanes);
    const int32_t n = Least(kept, len % 8 + most);
    PipeBarrier<PIPE_V>();
    Adds(last, packed, 0, n);
    return n - len % 8;
}

// column[index] = value under a mask, lane by lane: a 910B has no scatter.
__aicore__ inline void Scatter(const LocalTensor<int32_t> &column, const LocalTensor<int32_t> &index,
    const LocalTensor<int32_t> &value, const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    const LocalTensor<int32_t> words = Local<int32_t>(STAGE_AT, TILE);
    const LocalTensor<uint32_t> keep = mask.ReinterpretCast<uint32_t>();
    PipeBarrier<PIPE_V>();
    const int32_t n = Pack(at, index, keep, lanes);
    Pack(words, value, keep, lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n; i++) {
        column.SetValue(at.GetValue(i), words.GetValue(i));
    }
    After<HardEvent::S_V>(EVENT_ID0);
}

// life[slot] = one value under a mask.
__aicore__ inline void SetLife(const LocalTensor<half> &life, const LocalTensor<int32_t> &slot, half value,
    const LocalTensor<uint8_t> &mask, int32_t lanes)
{
    const LocalTensor<int32_t> at = Local<int32_t>(PACKED_AT, TILE);
    PipeBarrier<PIPE_V>();
    const int32_t n = Pack(at, slot, mask.ReinterpretCast<uint32_t>(), lanes);
    After<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < n; i++) {
        life.SetValue(at.GetValue(i), value);
    }
    After<HardEvent::S_V>(EVENT_ID0);
}

// life -= by, no lower than -128.
__aicore__ inline void Age(const LocalTensor<half> &life, int32_t by)
{
    PipeBarrier<PIPE_V>();
    Adds(life, life, static_cast<half>(static_cast<float>(-by)), SLOTS);
    PipeBarrier<PIPE_V>();
    Maxs(life, life, static_cast<half>(-128.0f), SLOTS);
}

// How many slots have life <= t.
__aicore__ inline int32_t CountLe(const LocalTensor<half> &life, int32_t t)
{
    const LocalTensor<uint8_t> found = Local<uint8_t>(FOUND_AT, RUN / 8);
    int32_t n = 0;
    for (int32_t base = 0; base < SLOTS; base += RUN) {
        PipeBarrier<PIPE_V>();
        CompareScalar(found, life[base], static_cast<half>(static_cast<float>(t)), CMPMODE::LE, RUN);
        PipeBarrier<PIPE_V>();
        n += Pack(Local<half>(PACKED_AT, RUN), life[base], U16(found), RUN);
    }
    return n;
}

// The least t in -128..127 with CountLe(t) >= need, or 127. Looks beside the hint first.
__aicore__ inline int32_t LeastLife(const LocalTensor<half> &life, int32_t hint, int32_t need)
{
    int32_t low = -128;
    int32_t high = need > 0 ? 127 : -128;
    int32_t t = Between(-128, hint, 126);
    for (bool first = true; low < high; first = false) {
        const bool enough = CountLe(life, t) >= need;
        if (enough) {
            high = t;
        } else {
            low = t + 1;
        }
        t = first ? Between(low, enough ? high - 1 : low, high) : low + (high - low) / 2;
    }
    return low;
}

// Appends the slots whose life is `mode` t to a list of len words, in order, until it has `limit`.
__aicore__ inline int32_t AppendSlots(const LocalTensor<int32_t> &list, int32_t len, const LocalTensor<half> &life,
    CMPMODE mode, int32_t t, int32_t limit)
{
    const LocalTensor<uint8_t> found = Local<uint8_t>(FOUND_AT, TILE / 8);
    const LocalTensor<int32_t> slot = Local<int32_t>(NUMBERS_AT, TILE);
    for (int32_t base = 0; base < SLOTS && len < limit; base += TILE) {
        const int32_t lanes = Least(SLOTS - base, TILE);
        PipeBarrier<PIPE_V>();
        CompareScalar(found, life[base], static_cast<half>(static_cast<float>(t)), mode, lanes);
        Adds(slot, Local<int32_t>(IOTA_AT, TILE), base, lanes);
        Keep(found, len);
        len += Append(list, len, slot, lanes, limit - len);
    }
    return len;
}

// Once per core: what every request needs and none changes.
__aicore__ inline void Setup(const Gm &gm)
{
    CreateVecIndex(Local<int32_t>(IOTA_AT, TILE), 0, TILE);
    Duplicate(Local<uint16_t>(KEEP_AT, 16), static_cast<uint16_t>(0), 16);
    Duplicate(Local<int32_t>(WORD_1_AT, 8), 1, 8);
    Duplicate(Local<int32_t>(WORD_3F_AT, 8), 63, 8);
    Duplicate(Local<int32_t>(WORD_3FF_AT, 8), 1023, 8);
    Duplicate(Local<int32_t>(WORD_1FFF_AT, 8), 8191, 8);
    Duplicate(Local<int32_t>(WORD_3FFF_AT, 8), 16383, 8);
    Duplicate(Local<int32_t>(WORD_FFFF_AT, 8), 65535, 8);
    Duplicate(Local<int32_t>(WORD_800000_AT, 8), 8388608, 8);
}

// One request: Algorithm 1 for each of its tokens, on one table.
__aicore__ inline void StageOne(const Gm &gm, const Request &q)
{
    const LocalTensor<int32_t> header = Local<int32_t>(HEADER_AT, 16);
    const LocalTensor<int32_t> record = Local<int32_t>(RECORD_AT, 16);
    const LocalTensor<int32_t> word = Local<int32_t>(WORD_AT, 8);
    const LocalTensor<uint8_t> m0 = Local<uint8_t>(M0_AT, 64);
    const LocalTensor<uint8_t> m1 = Local<uint8_t>(M1_AT, 64);
    const LocalTensor<uint8_t> m2 = Local<uint8_t>(M2_AT, 64);
    const LocalTensor<uint8_t> m3 = Local<uint8_t>(M3_AT, 64);
    const LocalTensor<int32_t> iota = Local<int32_t>(IOTA_AT, 512);
    const LocalTensor<int32_t> x0 = Local<int32_t>(X0_AT, 512);
    const LocalTensor<int32_t> x1 = Local<int32_t>(X1_AT, 512);
    const LocalTensor<int32_t> x2 = Local<int32_t>(X2_AT, 512);
    const LocalTensor<int32_t> x3 = Local<int32_t>(X3_AT, 512);
    const LocalTensor<int32_t> x4 = Local<int32_t>(X4_AT, 512);
    const LocalTensor<int32_t> x5 = Local<int32_t>(X5_AT, 512);
    const LocalTensor<int32_t> id = Local<int32_t>(ID_AT, 8192);
    const LocalTensor<half> life = Local<half>(LIFE_AT, 8192);
    const LocalTensor<int32_t> link = Local<int32_t>(LINK_AT, 16384);
    const LocalTensor<int32_t> ids = Local<int32_t>(IDS_AT, 2048);
    const LocalTensor<int32_t> miss2 = Local<int32_t>(MISS2_AT, 2048);
    const LocalTensor<int32_t> dead = Local<int32_t>(DEAD_AT, 2048);
    const LocalTensor<int32_t> pending0 = Local<int32_t>(PENDING0_AT, 2048);
    const LocalTensor<int32_t> miss0 = Local<int32_t>(MISS0_AT, 2048);
    const LocalTensor<int32_t> seek0 = Local<int32_t>(SEEK0_AT, 2048);
    const LocalTensor<int32_t> pending1 = Local<int32_t>(PENDING1_AT, 2048);
    const LocalTensor<int32_t> miss1 = Local<int32_t>(MISS1_AT, 2048);
    const LocalTensor<int32_t> seek1 = Local<int32_t>(SEEK1_AT, 2048);
    const LocalTensor<int32_t> slot = Local<int32_t>(SLOT_AT, 2048);
    const LocalTensor<int32_t> claim0 = Local<int32_t>(CLAIM0_AT, 2048);
    const LocalTensor<int32_t> void0 = Local<int32_t>(VOID0_AT, 2048);
    const LocalTensor<int32_t> claim1 = Local<int32_t>(CLAIM1_AT, 2048);
    const LocalTensor<int8_t> bytes = Local<int8_t>(BYTES_AT, 8192);
    int32_t pendingLen = 0, nextLen = 0, missLen = 0, deadLen = 0, seekLen = 0, seekNextLen = 0, claimLen = 0, voidLen = 0, farLen = 0, outsideLen = 0;
    // The table, and a clear record.
    Pull(header, gm.tables[q.tableAt + 0], 16);
    Pull(id, gm.tables[q.tableAt + 16], 8192);
    Pull(bytes.ReinterpretCast<int32_t>(), gm.tables[q.tableAt + 8208], 2048);
    Pull(link, gm.tables[q.tableAt + 10272], 16384);
    Duplicate(record, 0, 16);
    After<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);
    After<HardEvent::MTE2_S>(EVENT_ID0);
    const int32_t s16 = header.GetValue(0);
    // Reset, if the generation is another one.
    for (int32_t base = 0; base < (s16 != q.generation ? 8192 : 0); base += TILE) {
        const int32_t lanes = Least((s16 != q.generation ? 8192 : 0) - base, TILE);
        const int32_t whole = Whole(lanes);
        Adds(x0, iota, base, lanes);
        Duplicate(id[base], -1, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(F16(x1), static_cast<half>(-128.0f), lanes);
        ShiftRight(x2, x0, 31, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(m0, x2, 0, CMPMODE::EQ, whole);
        PipeBarrier<PIPE_V>();
        Select(life[base], m0, F16(x1), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
    }
    for (int32_t base = 0; base < (s16 != q.generation ? 16384 : 0); base += TILE) {
        const int32_t lanes = Least((s16 != q.generation ? 16384 : 0) - base, TILE);
        Duplicate(link[base], 8388608, lanes);
    }
    header.SetValue(0, q.generation);
    const int32_t s27 = header.GetValue(1);
    // Invalidate: rows that were not final before this step.
    for (int32_t base = 0; base < (s27 > q.stable ? 8192 : 0); base += TILE) {
        const int32_t lanes = Least((s27 > q.stable ? 8192 : 0) - base, TILE);
        const int32_t whole = Whole(lanes);
        Adds(x0, id[base], -q.stable, lanes);
        PipeBarrier<PIPE_V>();
        Duplicate(x1, -1, lanes);
        Duplicate(F16(x2), static_cast<half>(-128.0f), lanes);
        ShiftRight(x3, x0, 31, lanes);
        PipeBarrier<PIPE_V>();
        CompareScalar(m0, x3, 0, CMPMODE::EQ, whole);
        PipeBarrier<PIPE_V>();
        Select(F32(id[base]), m0, F32(x1), F32(id[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        PipeBarrier<PIPE_V>();
        Select(life[base], m0, F16(x2), life[base], SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
    }
    header.SetValue(1, Most(Least(s27, q.stable), q.limit));
    // Decay: one step older.
    Age(life, 1);
    farLen = 0;
    outsideLen = 0;
    After<HardEvent::V_S>(EVENT_ID0);
    record.SetValue(8, 0);
    for (int32_t token = 0; token < q.tokens; token++) {
        // Probe, first round: which ids does the Hash-State hold?
        After<HardEvent::V_MTE2>(EVENT_ID0);
        Pull(ids, gm.ids[q.idsAt + (q.idsStride * token)], q.k);
        pendingLen = 0;
        nextLen = 0;
        voidLen = 0;
        After<HardEvent::MTE2_V>(EVENT_ID0);
        for (int32_t base = 0; base < q.k; base += TILE) {
            const int32_t lanes = Least(q.k - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(x0, ids[base], 31, lanes);
            Maxs(x1, ids[base], 0, lanes);
            Duplicate(x2, -1, lanes);
            Adds(x3, iota, base, lanes);
            PipeBarrier<PIPE_V>();
            Adds(x4, x1, -q.limit, lanes);
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Mix(x0, x1, 32, 27381, 2305, x5, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x5, x4, 31, lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(U32(x4), U32(x0), static_cast<uint32_t>(6), lanes);
            CompareScalar(m1, x5, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            AndWord(x0, x4, WORD_3FFF_AT, lanes);
            And(U16(m2), U16(m1), U16(m0), whole / 16);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(x4), U32(x0), static_cast<uint32_t>(2), lanes);
            PipeBarrier<PIPE_V>();
            Gather(x0, link, U32(x4), 0, lanes);
            Not(U16(m0), U16(m2), whole / 16);
            PipeBarrier<PIPE_V>();
            AndWord(x4, x0, WORD_1FFF_AT, lanes);
            PipeBarrier<PIPE_V>();
            ShiftLeft(U32(x0), U32(x4), static_cast<uint32_t>(2), lanes);
            PipeBarrier<PIPE_V>();
            Gather(x5, id, U32(x0), 0, lanes);
            PipeBarrier<PIPE_V>();
            Compare(m1, x5, x1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            And(U16(m3), U16(m1), U16(m2), whole / 16);
            PipeBarrier<PIPE_V>();
            Select(F32(slot[base]), m3, F32(x4), F32(x2), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Not(U16(m1), U16(m3), whole / 16);
            PipeBarrier<PIPE_V>();
            And(U16(m3), U16(m2), U16(m1), whole / 16);
            Keep(m3, pendingLen);
            Append(pending0, pendingLen, x1, lanes);
            pendingLen += Append(pending1, pendingLen, x3, lanes);
            Keep(m0, voidLen);
            voidLen += Append(void0, voidLen, ids[base], lanes);
        }
        for (int32_t base = 0; base < voidLen; base += TILE) {
            const int32_t lanes = Least(voidLen - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x0, void0[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            farLen += Count(m0, lanes);
        }
        // Probe, later rounds: what is still pending is the miss list.
        for (int32_t round = 0; round < 7; round++) {
            for (int32_t base = 0; base < pendingLen; base += TILE) {
                const int32_t lanes = Least(pendingLen - base, TILE);
                const int32_t whole = Whole(lanes);
                Mix(x0, pending0[base], 22, 27381, 2305, x1, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(x1), U32(x0), static_cast<uint32_t>(6), lanes);
                Mix(x2, x0, 32, 15605, 3809, x3, lanes);
                AndWord(x0, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(U32(x1), U32(x2), static_cast<uint32_t>(6), lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x2, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                OrWord(x1, x2, WORD_1_AT, lanes);
                PipeBarrier<PIPE_V>();
                Muls(x2, x1, (round + 1), lanes);
                PipeBarrier<PIPE_V>();
                Add(x1, x0, x2, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x0, x1, WORD_3FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(x1), U32(x0), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x0, link, U32(x1), 0, lanes);
                PipeBarrier<PIPE_V>();
                AndWord(x1, x0, WORD_1FFF_AT, lanes);
                PipeBarrier<PIPE_V>();
                ShiftLeft(U32(x0), U32(x1), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x2, id, U32(x0), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(m0, x2, pending0[base], CMPMODE::EQ, whole);
                Scatter(slot, pending1[base], x1, m0, lanes);
                Not(U16(m1), U16(m0), whole / 16);
                Keep(m1, nextLen);
                Append(pending0, nextLen, pending0[base], lanes);
                nextLen += Append(pending1, nextLen, pending1[base], lanes);
            }
            pendingLen = nextLen;
            nextLen = 0;
        }
        // Refresh: hits live on.
        for (int32_t base = 0; base < q.k; base += TILE) {
            const int32_t lanes = Least(q.k - base, TILE);
            const int32_t whole = Whole(lanes);
            ShiftRight(x0, slot[base], 31, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            SetLife(life, slot[base], static_cast<half>(127.0f), m0, lanes);
        }
        const int32_t s99 = outsideLen;
        missLen = 0;
        const int32_t s101 = token * 2048;
        // Locate: the host row of each miss.
        for (int32_t base = 0; base < pendingLen; base += TILE) {
            const int32_t lanes = Least(pendingLen - base, TILE);
            const int32_t whole = Whole(lanes);
            Adds(x0, pending0[base], -q.stable, lanes);
            Adds(x1, pending0[base], -q.rows, lanes);
            PipeBarrier<PIPE_V>();
            Adds(x2, pending1[base], s101, lanes);
            ShiftRight(x3, x0, 31, lanes);
            ShiftRight(x4, x1, 31, lanes);
            PipeBarrier<PIPE_V>();
            Muls(x1, x0, -1, lanes);
            CompareScalar(m0, x3, 0, CMPMODE::EQ, whole);
            CompareScalar(m1, x4, -1, CMPMODE::EQ, whole);
            PipeBarrier<PIPE_V>();
            Adds(x0, x1, -1, lanes);
            PipeBarrier<PIPE_V>();
            Select(F32(x1), m0, F32(x0), F32(pending0[base]), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
            Or(U16(m2), U16(m0), U16(m1), whole / 16);
            Keep(m2, missLen);
            Not(U16(m0), U16(m2), whole / 16);
            Append(miss0, missLen, pending0[base], lanes);
            Append(miss1, missLen, x2, lanes);
            missLen += Append(miss2, missLen, x1, lanes);
            outsideLen += Count(m0, lanes);
        }
        After<HardEvent::MTE3_S>(EVENT_ID0);
        word.SetValue(0, (((q.k - voidLen) + s99) - outsideLen));
        After<HardEvent::S_MTE3>(EVENT_ID0);
        Push(gm.valid[(q.validAt + token)], word, 1);
        const int32_t s123 = missLen;
        const int32_t s124 = record.GetValue(8);
        const int32_t s125 = q.missAt + s124;
        // The token's misses.
        After<HardEvent::V_MTE3>(EVENT_ID0);
        Push(gm.missId[s125], miss0, missLen);
        Push(gm.missPos[s125], miss1, missLen);
        Push(gm.missRow[s125], miss2, missLen);
        record.SetValue(token, s123);
        record.SetValue(8, (s124 + s123));
        const int32_t s128 = missLen;
        const int32_t s130 = header.GetValue(2);
        // CollectDead: the slots that live least, as many as there are misses.
        const int32_t s133 = LeastLife(life, s130, s128);
        header.SetValue(2, s133);
        deadLen = 0;
        After<HardEvent::MTE3_V>(EVENT_ID0);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::LT, s133, s128);
        deadLen = AppendSlots(dead, deadLen, life, CMPMODE::EQ, s133, s128);
        After<HardEvent::V_MTE3>(EVENT_ID0);
        Push(gm.missSlot[s125], dead, deadLen);
        seekLen = 0;
        // UpdateState: victims take the misses.
        for (int32_t base = 0; base < missLen; base += TILE) {
            const int32_t lanes = Least(missLen - base, TILE);
            const int32_t whole = Whole(lanes);
            PipeBarrier<PIPE_V>();
            ShiftRight(x0, dead[base], 31, lanes);
            Adds(x1, miss1[base], -s101, lanes);
            PipeBarrier<PIPE_V>();
            CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
            SetLife(life, dead[base], static_cast<half>(127.0f), m0, lanes);
            Keep(m0, seekLen);
            Scatter(id, dead[base], miss0[base], m0, lanes);
            Scatter(slot, x1, dead[base], m0, lanes);
            Append(seek0, seekLen, miss0[base], lanes);
            seekLen += Append(seek1, seekLen, dead[base], lanes);
        }
        // The token's slots.
        After<HardEvent::S_MTE3>(EVENT_ID0);
        Push(gm.slot[q.slotAt + (q.slotStride * token)], slot, q.k);
        // UpdateState: a link for every miss; once more for those that lost theirs.
        for (int32_t round = 0; round < 2; round++) {
            claimLen = 0;
            seekNextLen = 0;
            for (int32_t probe = 0; probe < 8; probe++) {
                After<HardEvent::MTE3_V>(EVENT_ID0);
                for (int32_t base = 0; base < seekLen; base += TILE) {
                    const int32_t lanes = Least(seekLen - base, TILE);
                    const int32_t whole = Whole(lanes);
                    Mix(x0, seek0[base], 32, 27381, 2305, x1, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x1), U32(x0), static_cast<uint32_t>(6), lanes);
                    Mix(x2, x0, 32, 15605, 3809, x3, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x3), U32(x0), static_cast<uint32_t>(10), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x0, x1, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x1), U32(x2), static_cast<uint32_t>(6), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x2, x3, WORD_3FF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x3, x1, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Muls(x1, x2, 8192, lanes);
                    PipeBarrier<PIPE_V>();
                    OrWord(x2, x3, WORD_1_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Or(U16(x3), U16(x1), U16(seek1[base]), 2 * lanes);
                    PipeBarrier<PIPE_V>();
                    Muls(x1, x2, probe, lanes);
                    PipeBarrier<PIPE_V>();
                    Add(x2, x0, x1, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x0, x2, WORD_3FFF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftLeft(U32(x1), U32(x0), static_cast<uint32_t>(2), lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(x2, link, U32(x1), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x1, x2, WORD_800000_AT, lanes);
                    AndWord(x4, x2, WORD_1FFF_AT, lanes);
                    ShiftRight(U32(x5), U32(x2), static_cast<uint32_t>(13), lanes);
                    PipeBarrier<PIPE_V>();
                    CompareScalar(m0, x1, 8388608, CMPMODE::EQ, whole);
                    PipeBarrier<PIPE_V>();
                    AndWord(x1, x5, WORD_3FF_AT, lanes);
                    ShiftLeft(U32(x2), U32(x4), static_cast<uint32_t>(2), lanes);
                    PipeBarrier<PIPE_V>();
                    Gather(x4, id, U32(x2), 0, lanes);
                    PipeBarrier<PIPE_V>();
                    Mix(x2, x4, 32, 27381, 2305, x5, lanes);
                    PipeBarrier<PIPE_V>();
                    ShiftRight(U32(x4), U32(x2), static_cast<uint32_t>(10), lanes);
                    PipeBarrier<PIPE_V>();
                    AndWord(x2, x4, WORD_3FF_AT, lanes);
                    PipeBarrier<PIPE_V>();
                    Compare(m1, x1, x2, CMPMODE::EQ, whole);
                    PipeBarrier<PIPE_V>();
                    Not(U16(m2), U16(m1), whole / 16);
                    PipeBarrier<PIPE_V>();
                    Or(U16(m1), U16(m0), U16(m2), whole / 16);
                    Keep(m1, claimLen);
                    Not(U16(m0), U16(m1), whole / 16);
                    Append(claim0, claimLen, x0, lanes);
                    claimLen += Append(claim1, claimLen, x3, lanes);
                    Keep(m0, seekNextLen);
                    Append(seek0, seekNextLen, seek0[base], lanes);
                    seekNextLen += Append(seek1, seekNextLen, seek1[base], lanes);
                }
                seekLen = seekNextLen;
                seekNextLen = 0;
            }
            for (int32_t base = 0; base < claimLen; base += TILE) {
                const int32_t lanes = Least(claimLen - base, TILE);
                const int32_t whole = Whole(lanes);
                ShiftRight(x0, claim1[base], 31, lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
                Scatter(link, claim0[base], claim1[base], m0, lanes);
            }
            seekLen = 0;
            deadLen = 0;
            for (int32_t base = 0; base < claimLen; base += TILE) {
                const int32_t lanes = Least(claimLen - base, TILE);
                const int32_t whole = Whole(lanes);
                AndWord(x0, claim1[base], WORD_1FFF_AT, lanes);
                ShiftLeft(U32(x1), U32(claim0[base]), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                Gather(x2, link, U32(x1), 0, lanes);
                PipeBarrier<PIPE_V>();
                Compare(m0, x2, claim1[base], CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Not(U16(m1), U16(m0), whole / 16);
                Keep(m1, deadLen);
                deadLen += Append(dead, deadLen, x0, lanes);
            }
            for (int32_t base = 0; base < deadLen; base += TILE) {
                const int32_t lanes = Least(deadLen - base, TILE);
                const int32_t whole = Whole(lanes);
                PipeBarrier<PIPE_V>();
                ShiftRight(x0, dead[base], 31, lanes);
                ShiftLeft(U32(x1), U32(dead[base]), static_cast<uint32_t>(2), lanes);
                PipeBarrier<PIPE_V>();
                CompareScalar(m0, x0, 0, CMPMODE::EQ, whole);
                PipeBarrier<PIPE_V>();
                Gather(x0, id, U32(x1), 0, lanes);
                Keep(m0, seekLen);
                Append(seek0, seekLen, x0, lanes);
                seekLen += Append(seek1, seekLen, dead[base], lanes);
            }
        }
    }
    record.SetValue(9, (farLen > 0 ? 1 : 0) + (outsideLen > 0 ? 2 : 0));
    // The record, and the table as the next step finds it.
    After<HardEvent::S_MTE3>(EVENT_ID0);
    Push(gm.record[q.recordAt], record, 16);
    Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);
    Push(gm.tables[q.tableAt + 0], header, 16);
    Push(gm.tables[q.tableAt + 16], id, 8192);
    After<HardEvent::V_MTE3>(EVENT_ID0);
    Push(gm.tables[q.tableAt + 8208], bytes.ReinterpretCast<int32_t>(), 2048);
    Push(gm.tables[q.tableAt + 10272], link, 16384);
}

} // namespace stage_one

// ---- Stage One of a batch ----------------------------------------------------------------------

constexpr int32_t TILE = 16;            // requests whose words are read at once
constexpr int32_t MINUS = 128;          // words of -1
constexpr uint32_t FRAME = 179040;       // behind Stage One's memory, kept while it runs
constexpr uint32_t FRAME_BYTES = 1056;
constexpr uint32_t TILING_AT = FRAME;
constexpr uint32_t WORDS_AT = TILING_AT + 128;
constexpr uint32_t ZERO_AT = WORDS_AT + 5 * TILE * 4 + BLOCK;
constexpr uint32_t MINUS_AT = ZERO_AT + RECORD_WORDS * 4;
static_assert(MINUS_AT + MINUS * 4 == FRAME + FRAME_BYTES && FRAME + FRAME_BYTES <= UB_BYTES, "frame");

// Slots `from..K` of a row: -1.
__aicore__ inline void PadSlots(const Gm &gm, int32_t row, int32_t from)
{
    for (int32_t at = from; at < K; at += MINUS) {
        Push(gm.slot[row * K + at], Local<int32_t>(MINUS_AT, MINUS), Least(K - at, MINUS));
    }
}

// Every core takes a run of requests; no two runs differ by more than one. Nothing returns early: a
// core without requests still has to reach SyncAll.
__aicore__ inline void PlanBatch(const Gm &gm, Window &w, const Tiling &t)
{
    const int32_t core = GetBlockIdx();
    const int32_t cores = GetBlockNum();
    const int32_t begin = Cut(t.requests, core, cores);
    const int32_t end = Cut(t.requests, core + 1, cores);
    const LocalTensor<int32_t> zero = Local<int32_t>(ZERO_AT, RECORD_WORDS);
    if (begin < end) {
        Duplicate(zero, 0, RECORD_WORDS);
        Duplicate(Local<int32_t>(MINUS_AT, MINUS), -1, MINUS);
        stage_one::Setup(gm);
        PipeBarrier<PIPE_ALL>();
    }
    for (int32_t request = begin; request < end; request++) {
        // What the host promises is kept here once more: a bad word must not become an address.
        const int32_t first = w.Word(CU_Q, request);
        const int32_t tokens = Between(0, w.Word(CU_Q, request, 1) - first, TOKENS);
        const int32_t state = w.Word(STATE, request);
        const bool padded = state < 0 || state >= t.states;
        if (padded) {
            Push(gm.valid[first], zero, tokens);
            Push(gm.record[request * RECORD_WORDS], zero, RECORD_WORDS);
        } else {
            const int32_t stable = w.Word(STABLE, request);
            Request q;
            q.tokens = tokens;
            q.k = t.k;
            q.generation = w.Word(GENERATION, request);
            q.stable = stable < 0 ? NO_STABLE_LEN : Least(stable, NO_STABLE_LEN);
            q.limit = Between(0, w.Word(SEQ, request), ID_LIMIT);
            q.rows = t.poolUnits;
            q.idsAt = first * t.idsStride;
            q.idsStride = t.idsStride;
            q.blocksAt = request * t.blockStride;
            q.blocksLen = t.blockStride;
            q.slotAt = q.missAt = first * K;
            q.slotStride = K;
            q.validAt = first;
            q.recordAt = request * RECORD_WORDS;
            q.tableAt = static_cast<uint64_t>(state) * TABLE_WORDS;
            stage_one::StageOne(gm, q);
        }
        for (int32_t row = first; row < first + tokens; row++) {
            PadSlots(gm, row, padded ? 0 : t.k);
        }
        PipeBarrier<PIPE_ALL>();
    }
}

// The kernel's arrays; batch arrays become the window's.
__aicore__ inline Window BatchWindow(
    const Tiling &t, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen, GM_ADDR seqLen)
{
    Window w(WORDS_AT, TILE, t, cuQ);
    w.Add(state, 1);
    w.Add(stableLen, 1);
    w.Add(seqLen, 1);
    w.Add(generation, 1);
    return w;
}

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

extern "C" __global__ __aicore__ void avsg_step(
    GM_ADDR ids, GM_ADDR cuQ, GM_ADDR state, GM_ADDR generation, GM_ADDR stableLen,
    GM_ADDR seqLen, GM_ADDR blockTable, GM_ADDR tables, GM_ADDR rules, GM_ADDR hostChunks,
    GM_ADDR kv0, GM_ADDR kv1, GM_ADDR fresh0, GM_ADDR fresh1, GM_ADDR slot, GM_ADDR valid,
    GM_ADDR missPos, GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record,
    GM_ADDR workspace, GM_ADDR tiling)
{
    // Vector cores only, with the scheduler that the hard SyncAll needs.
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    const avsg::Tiling t = avsg::ReadTiling(tiling, avsg::TILING_AT);
    const avsg::Gm gm{
        avsg::Global<int32_t>(ids), avsg::Global<int32_t>(blockTable), avsg::Global<int32_t>(slot),
        avsg::Global<int32_t>(valid), avsg::Global<int32_t>(missPos), avsg::Global<int32_t>(missId),
        avsg::Global<int32_t>(missSlot), avsg::Global<int32_t>(missRow), avsg::Global<int32_t>(record),
        avsg::Global<int32_t>(tables), avsg::Global<half>(rules)};
    avsg::Window words = avsg::BatchWindow(t, cuQ, state, generation, stableLen, seqLen);
    // Every request ends with a barrier over all pipes, so nothing is on its way here.
    avsg::PlanBatch(gm, words, t);
    SyncAll<true>();
    avsg::Transfer(t, cuQ, state, missSlot, missRow, record, hostChunks, kv0, kv1, fresh0, fresh1);
}
