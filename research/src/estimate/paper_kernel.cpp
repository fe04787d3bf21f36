// Stage One of the paper for one token of one request, on one core: Algorithms 1 and 2 as vector
// instructions, and scalar accesses where the vector unit has no scatter. The Hash-State table has S
// entries of two words: the id c of slot j, and the word q with the lifetime of slot j (8 bits) and the link of
// bucket j (an invalid bit, a fingerprint of the id, a slot).
//
// The first lines, which are generated, define K, S, SLOT_BITS, R, LIFETIME, A1 and A2.

#include "kernel_operator.h"

using namespace AscendC;

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

constexpr int32_t LANES = (K + 63) / 64 * 64;
constexpr int32_t FINGERPRINTS = (1 << 23) / S; // F of the paper
constexpr int32_t ONE_LIFE = 1 << 24;
// Lifetimes stay above this one, so that no subtraction overflows.
constexpr int32_t LEAST = -64 * ONE_LIFE;

// Addresses in UB. The scratch memory holds the columns X to OFFSET, and later the words q of all entries and the
// dead slots.
constexpr uint32_t COLUMN = LANES * 4, MASK = (LANES / 8 + 31) / 32 * 32;
constexpr uint32_t TABLE_AT = 0, SLOT_AT = TABLE_AT + S * 8, MISS_ID_AT = SLOT_AT + COLUMN,
    MISS_POS_AT = MISS_ID_AT + COLUMN, VICTIM_AT = MISS_POS_AT + COLUMN, SCRATCH_AT = VICTIM_AT + COLUMN;
constexpr uint32_t X_AT = SCRATCH_AT, BUCKET_AT = X_AT + COLUMN, STRIDE_AT = BUCKET_AT + COLUMN,
    Q_AT = STRIDE_AT + COLUMN, C_AT = Q_AT + COLUMN, OFFSET_AT = C_AT + COLUMN;
constexpr uint32_t ALL_Q_AT = SCRATCH_AT, DEAD_AT = ALL_Q_AT + S * 4;
constexpr uint32_t SCRATCH_BYTES = 6 * COLUMN > S * 6 ? 6 * COLUMN : S * 6;
constexpr uint32_t IOTA_AT = SCRATCH_AT + SCRATCH_BYTES, MASKS_AT = IOTA_AT + S * 2,
    DEAD_MASK_AT = MASKS_AT + 3 * MASK, WORDS_AT = DEAD_MASK_AT + (S / 8 + 31) / 32 * 32,
    SCALARS_AT = WORDS_AT + 7 * 32;
static_assert(SCALARS_AT + 32 <= 184 * 1024, "the paper's table and columns must fit UB");

template <typename T> __aicore__ inline LocalTensor<T> At(uint32_t byte, uint32_t n)
{
    return LocalTensor<T>(TPosition::VECCALC, byte, (n * sizeof(T) + 31) / 32 * 32 / sizeof(T));
}
__aicore__ inline LocalTensor<int32_t> Column(uint32_t byte) { return At<int32_t>(byte, LANES); }
__aicore__ inline LocalTensor<uint8_t> Mask(uint32_t n) { return At<uint8_t>(MASKS_AT + n * MASK, MASK); }
// Blocks with one word eight times.
constexpr uint32_t SLOT_WORD = WORDS_AT, ONE_WORD = WORDS_AT + 32, LINK_WORD = WORDS_AT + 64,
    LIFE_WORD = WORDS_AT + 96, INVALID_WORD = WORDS_AT + 128, FINGERPRINT_WORD = WORDS_AT + 160,
    ID_WORD = WORDS_AT + 192;

template <typename T> __aicore__ inline LocalTensor<uint16_t> U16(const LocalTensor<T> &x)
{
    return x.template ReinterpretCast<uint16_t>();
}
__aicore__ inline LocalTensor<uint32_t> U32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<uint32_t>(); }
__aicore__ inline LocalTensor<float> F32(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<float>(); }
__aicore__ inline LocalTensor<uint64_t> Pairs(const LocalTensor<int32_t> &x) { return x.ReinterpretCast<uint64_t>(); }
__aicore__ inline int32_t Aligned(int32_t n) { return (n + 63) / 64 * 64; }

template <HardEvent event> __aicore__ inline void SetWait()
{
    SetFlag<event>(EVENT_ID0);
    WaitFlag<event>(EVENT_ID0);
}
__aicore__ inline void Barrier() { PipeBarrier<PIPE_V>(); }

__aicore__ inline void AndWord(const LocalTensor<int32_t> &to, const LocalTensor<int32_t> &x, uint32_t word, int32_t n)
{
    And(U16(to), U16(x), U16(At<int32_t>(word, 8)), 128, (n + 63) / 64, {1, 1, 0, 8, 8, 0});
}
__aicore__ inline void OrWord(const LocalTensor<int32_t> &to, const LocalTensor<int32_t> &x, uint32_t word, int32_t n)
{
    Or(U16(to), U16(x), U16(At<int32_t>(word, 8)), 128, (n + 63) / 64, {1, 1, 0, 8, 8, 0});
}
template <typename T, typename U>
__aicore__ inline void Compact(const LocalTensor<T> &to, const LocalTensor<T> &x, const LocalTensor<U> &mask, int32_t n)
{
    uint64_t earlier = 0;
    GatherMask(to, x, mask, true, n, {1, 1, 8, 0}, earlier);
}
__aicore__ inline int32_t Kept()
{
    SetWait<HardEvent::V_S>();
    return static_cast<int32_t>(GetGatherMaskRemainCount());
}
template <typename T> __aicore__ inline void CopyOut(GM_ADDR to, const LocalTensor<T> &x, int32_t n)
{
    GlobalTensor<T> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(to));
    DataCopyPad(all, x, DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0});
}
template <typename T> __aicore__ inline void CopyIn(const LocalTensor<T> &to, GM_ADDR from, int32_t n)
{
    GlobalTensor<T> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(from));
    DataCopyPad(to, all, DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0},
        DataCopyPadExtParams<T>{false, 0, 0, 0});
}

// Subtracts 1 from the lifetime of every slot. The words q have odd numbers.
__aicore__ inline void Decay(const LocalTensor<int32_t> &table)
{
    const uint64_t odd[2] = {0xAAAAAAAAAAAAAAAA, 0};
    constexpr int32_t REPEATS = 2 * S / 64, MOST = 128;
    Barrier();
    for (int32_t r = 0; r < REPEATS; r += MOST) {
        const uint8_t n = static_cast<uint8_t>(REPEATS - r < MOST ? REPEATS - r : MOST);
        Adds(table[r * 64], table[r * 64], -ONE_LIFE, odd, n, {1, 1, 8, 8});
    }
    Barrier();
    for (int32_t r = 0; r < REPEATS; r += MOST) {
        const uint8_t n = static_cast<uint8_t>(REPEATS - r < MOST ? REPEATS - r : MOST);
        Maxs(table[r * 64], table[r * 64], LEAST, odd, n, {1, 1, 8, 8});
    }
    Barrier();
}

// h = a1 x mod S and d = (a2 x mod S) | 1. The low bits of a product depend on the low bits of its factors.
__aicore__ inline void Hash(const LocalTensor<int32_t> &h, const LocalTensor<int32_t> &d,
    const LocalTensor<int32_t> &x, int32_t n)
{
    AndWord(d, x, SLOT_WORD, n);
    Barrier();
    Muls(h, d, A1, n);
    Barrier();
    Muls(d, d, A2, n);
    AndWord(h, h, SLOT_WORD, n);
    Barrier();
    AndWord(d, d, SLOT_WORD, n);
    Barrier();
    OrWord(d, d, ONE_WORD, n);
    Barrier();
}

// h = mask ? h : (h + d) mod S, or the other way round; `next` is overwritten.
__aicore__ inline void Advance(const LocalTensor<int32_t> &h, const LocalTensor<int32_t> &d,
    const LocalTensor<int32_t> &next, const LocalTensor<uint8_t> &mask, bool where, int32_t n)
{
    Add(next, h, d, n);
    Barrier();
    AndWord(next, next, SLOT_WORD, n);
    Barrier();
    Select(F32(h), mask, F32(where ? next : h), F32(where ? h : next), SELMODE::VSEL_TENSOR_TENSOR_MODE, n);
    Barrier();
}

extern "C" __global__ __aicore__ void paper_stage_one(GM_ADDR launch, GM_ADDR ids, GM_ADDR state, GM_ADDR slots,
    GM_ADDR missId, GM_ADDR missPos, GM_ADDR missSlot, GM_ADDR count)
{
    InitSocState();
    const LocalTensor<int32_t> table = At<int32_t>(TABLE_AT, 2 * S), slot = Column(SLOT_AT), t = Column(MISS_ID_AT),
        position = Column(MISS_POS_AT), victim = Column(VICTIM_AT), x = Column(X_AT), h = Column(BUCKET_AT),
        d = Column(STRIDE_AT), q = Column(Q_AT), c = Column(C_AT), offset = Column(OFFSET_AT),
        scalars = At<int32_t>(SCALARS_AT, 8);
    const LocalTensor<int16_t> iota = At<int16_t>(IOTA_AT, S), dead = At<int16_t>(DEAD_AT, S);
    const LocalTensor<uint8_t> hit = Mask(0), miss = Mask(1), valid = Mask(2);

    // Preparation: the launch scalars, of which a kernel reads at least one block, and constants.
    CopyIn(scalars, launch, 8);
    SetWait<HardEvent::MTE2_S>();
    const uint64_t request = scalars.GetValue(0);
    Duplicate(x, -1, LANES);
    SetWait<HardEvent::V_MTE2>();
    shim::begin_phase(1); // The table
    CopyIn(table, state + request * S * 8, 2 * S);
    CopyIn(x, ids + request * K * 4, K);
    Duplicate(At<int32_t>(SLOT_WORD, 8), S - 1, 8);
    Duplicate(At<int32_t>(ONE_WORD, 8), 1, 8);
    Duplicate(At<int32_t>(LINK_WORD, 8), ONE_LIFE - 1, 8);
    Duplicate(At<int32_t>(LIFE_WORD, 8), LIFETIME * ONE_LIFE, 8);
    Duplicate(At<int32_t>(INVALID_WORD, 8), 1 << 23, 8);
    Duplicate(At<int32_t>(FINGERPRINT_WORD, 8), (FINGERPRINTS - 1) * S, 8);
    Duplicate(At<int32_t>(ID_WORD, 8), FINGERPRINTS - 1, 8);
    for (int32_t i = 0; i < 16; i++) {
        iota.SetValue(i, i);
    }
    SetWait<HardEvent::S_V>();
    for (int32_t done = 16; done < S; done *= 2) {
        Adds(iota[done], iota, static_cast<int16_t>(done), done);
        Barrier();
    }
    SetWait<HardEvent::MTE2_V>();

    // Algorithm 1, pass 1: decay, Probe, refresh.
    shim::begin_phase(2);
    Decay(table);
    shim::begin_phase(3); // The first link of each id
    Hash(h, d, x, LANES);
    for (int32_t r = 0; r <= R; r++) {
        ShiftLeft(U32(offset), U32(h), 3u, LANES);
        Barrier();
        Gather(q, table, U32(offset), 4, LANES);
        Barrier();
        AndWord(slot, q, SLOT_WORD, LANES);
        Barrier();
        ShiftLeft(U32(offset), U32(slot), 3u, LANES);
        Barrier();
        Gather(c, table, U32(offset), 0, LANES);
        Barrier();
        Compare(hit, c, x, CMPMODE::EQ, LANES);
        Barrier();
        if (r < R) {
            Advance(h, d, offset, hit, false, LANES);
        }
        shim::begin_phase(5); // The other links
    }
    ShiftRight(c, x, 31, LANES);
    Barrier();
    Compares(valid, c, 0, CMPMODE::EQ, LANES);
    Barrier();
    And(U16(hit), U16(hit), U16(valid), LANES / 16);
    Barrier();
    Not(U16(miss), U16(hit), LANES / 16);
    Barrier();
    And(U16(miss), U16(miss), U16(valid), LANES / 16);
    shim::begin_phase(7); // Refresh: the words of the hits, updated as vectors and written one by one
    Gather(q, table, U32(offset), 4, LANES);
    Barrier();
    AndWord(q, q, LINK_WORD, LANES);
    Barrier();
    OrWord(q, q, LIFE_WORD, LANES);
    Barrier();
    Compact(h, slot, hit.ReinterpretCast<uint32_t>(), LANES);
    Compact(d, q, hit.ReinterpretCast<uint32_t>(), LANES);
    const int32_t hits = Kept();
    // Pass 2: the misses. The vector unit lists them while the scalar unit writes.
    Compact(t, x, miss.ReinterpretCast<uint32_t>(), LANES);
    const LocalTensor<int16_t> place = c.ReinterpretCast<int16_t>();
    Compact(place, iota, U16(miss), LANES);
    for (int32_t i = 0; i < hits / 2; i++) {
        const uint64_t at = Pairs(h).GetValue(i), word = Pairs(d).GetValue(i);
        table.SetValue(2 * static_cast<uint32_t>(at) + 1, static_cast<int32_t>(word));
        table.SetValue(2 * static_cast<uint32_t>(at >> 32) + 1, static_cast<int32_t>(word >> 32));
    }
    if (hits % 2 != 0) {
        table.SetValue(2 * h.GetValue(hits - 1) + 1, d.GetValue(hits - 1));
    }
    const int32_t n = Kept();
    SetWait<HardEvent::S_V>();
    Cast(F32(offset), place, RoundMode::CAST_NONE, n);
    Barrier();
    Cast(position, F32(offset), RoundMode::CAST_RINT, n);

    // Pass 3: CollectDead, and UpdateState (Algorithm 2).
    shim::begin_phase(8);
    const LocalTensor<int32_t> all = At<int32_t>(ALL_Q_AT, S);
    const LocalTensor<uint8_t> deadMask = At<uint8_t>(DEAD_MASK_AT, S / 8);
    for (;;) {
        uint64_t earlier = 0;
        Barrier();
        GatherMask(all, table, 2, true, 2 * S, {1, 1, 8, 0}, earlier);
        Barrier();
        ShiftRight(all, all, 31, S);
        Barrier();
        Compares(deadMask, all, -1, CMPMODE::EQ, S);
        Barrier();
        Compact(dead, iota, U16(deadMask), S);
        if (Kept() >= n) {
            break;
        }
        Decay(table);
    }
    Cast(F32(all), dead, RoundMode::CAST_NONE, n);
    Barrier();
    Cast(victim, F32(all), RoundMode::CAST_RINT, n);
    Barrier();
    shim::begin_phase(9);
    if (n > 0) {
        const LocalTensor<int32_t> owner = x;
        Hash(h, d, t, n);
        for (int32_t r = 0; r <= R; r++) {
            ShiftLeft(U32(offset), U32(h), 3u, n);
            Barrier();
            Gather(q, table, U32(offset), 4, n);
            Barrier();
            AndWord(c, q, SLOT_WORD, n);
            Barrier();
            ShiftLeft(U32(offset), U32(c), 3u, n);
            Barrier();
            Gather(c, table, U32(offset), 0, n);
            Gather(owner, table, U32(offset), 4, n);
            Barrier();
            // A link may be overwritten unless it is valid, its slot is active and the fingerprints agree.
            AndWord(offset, q, INVALID_WORD, n);
            AndWord(c, c, ID_WORD, n);
            ShiftRight(owner, owner, 31, n);
            Barrier();
            ShiftLeft(U32(c), U32(c), static_cast<uint32_t>(SLOT_BITS), n);
            AndWord(q, q, FINGERPRINT_WORD, n);
            Compares(valid, offset, 0, CMPMODE::EQ, Aligned(n));
            Compares(hit, owner, 0, CMPMODE::EQ, Aligned(n));
            Barrier();
            Compare(miss, c, q, CMPMODE::EQ, Aligned(n));
            And(U16(hit), U16(hit), U16(valid), Aligned(n) / 16);
            Barrier();
            And(U16(hit), U16(hit), U16(miss), Aligned(n) / 16);
            Barrier();
            if (r < R) {
                Advance(h, d, offset, hit, true, n);
            }
        }
        Not(U16(hit), U16(hit), Aligned(n) / 16);
        AndWord(q, t, ID_WORD, n);
        Barrier();
        ShiftLeft(U32(q), U32(q), static_cast<uint32_t>(SLOT_BITS), n);
        Barrier();
        Or(U16(q), U16(q), U16(victim), 2 * n);
        Barrier();
        Compact(c, h, hit.ReinterpretCast<uint32_t>(), n);
        Compact(offset, q, hit.ReinterpretCast<uint32_t>(), n);
        const int32_t links = Kept();
        const LocalTensor<int8_t> bytes = table.ReinterpretCast<int8_t>();
        for (int32_t i = 0; i < (n + 1) / 2; i++) {
            uint64_t id, to, lane;
            if (2 * i + 1 < n) {
                id = Pairs(t).GetValue(i), to = Pairs(victim).GetValue(i), lane = Pairs(position).GetValue(i);
            } else {
                id = static_cast<uint32_t>(t.GetValue(2 * i)), to = victim.GetValue(2 * i), lane = position.GetValue(2 * i);
            }
            for (int32_t j = 2 * i; j < n && j < 2 * i + 2; j++, id >>= 32, to >>= 32, lane >>= 32) {
                const uint32_t at = static_cast<uint32_t>(to);
                table.SetValue(2 * at, static_cast<int32_t>(id));
                bytes.SetValue(8 * at + 7, LIFETIME);
                slot.SetValue(static_cast<uint32_t>(lane), static_cast<int32_t>(at));
            }
        }
        // The lifetime in the word of a bucket is that of another slot, and stays.
        for (int32_t i = 0; i < links; i++) {
            const uint32_t at = c.GetValue(i), word = offset.GetValue(i);
            table.ReinterpretCast<uint16_t>().SetValue(4 * at + 2, static_cast<uint16_t>(word));
            bytes.SetValue(8 * at + 6, static_cast<int8_t>(word >> 16));
        }
    }
    shim::begin_phase(10); // The results and the table
    scalars.SetValue(0, n);
    SetWait<HardEvent::S_MTE3>();
    SetWait<HardEvent::V_MTE3>();
    CopyOut(slots + request * K * 4, slot, K);
    CopyOut(missId, t, n);
    CopyOut(missPos, position, n);
    CopyOut(missSlot, victim, n);
    CopyOut(count, scalars, 1);
    CopyOut(state + request * S * 8, table, 2 * S);
    PipeBarrier<PIPE_ALL>();
}
