// avsg_geometry.h: the geometry, the limits and the launch scalars.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, learned lifetimes, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "kernel_operator.h"

namespace avsg {

constexpr int32_t K = 2048;  // ids per row at most; the row stride of slots and miss lists
constexpr int32_t TOKENS = 1;  // N_q, rows of a request at most
constexpr int32_t SLOTS = 8192;  // S, slots of a request
constexpr int32_t SLOT_BITS = 13;  // log2 of the least power of two that is not below S
constexpr int32_t PAGE = 0;  // rows of a host block, a power of two; 0: no block table
constexpr int32_t PAGE_SHIFT = 0;  // log2 PAGE; 0 without a block table
constexpr int32_t LIFETIME = -1;  // lifetime of a slot after a hit; -1: by the rule of its lifetime before
constexpr int32_t ID_LIMIT = 16777216;  // every id is below it
constexpr int32_t NO_STABLE_LEN = 16777216;  // above every id: nothing is invalidated
constexpr int32_t SUMMARY_WORDS = 16;  // words of a request's summary, 64 bytes
constexpr int32_t SUMMARY_MISSES = 0;  // word of the misses of token 0; one word for each token
constexpr int32_t SUMMARY_TOTAL = 8;  // word of the misses of all tokens
constexpr int32_t SUMMARY_STATUS = 9;  // word of status bits: 1 bad id, 2 row outside of the pool, 4 too many slotBlocks
constexpr int32_t TOO_MANY_SLOT_BLOCKS = 4;  // the last of these bits
constexpr int32_t HEADER_WORDS = 16;  // words of a table's header, 64 bytes
constexpr int32_t HEADER_GENERATION = 0;  // word of the generation that the table was built for; 0: none
constexpr int32_t HEADER_TOP = 1;  // word of the bound that all ids in the table are below
constexpr int32_t HEADER_THRESHOLD = 2;  // word of the last eviction threshold, where the next bisection starts
constexpr int32_t ID_WORDS = 8192;  // words of a table's ids: S, rounded up to a power of two
constexpr int32_t LIFE_WORDS = 2064;  // words of a table's lifetimes and their padding
constexpr int32_t TABLE_LINKS = 16384;  // links of a table
constexpr int32_t EMPTY_THRESHOLD = -128;  // eviction threshold of an empty table
constexpr int32_t NO_ID = -1;  // id of an empty slot
constexpr int32_t EMPTY_LIFETIMES = -2139062144;  // lifetimes of four empty slots
constexpr int32_t EMPTY_LINK = 8388608;  // a link without a slot
constexpr int32_t MAX_SLOT_BLOCKS = 512;  // entries of a state at most in slotBlocks
constexpr int32_t LATE_LANES = 2048;  // slots of a row of deferred refreshes, rounded up to 256
constexpr int32_t LATE_SHIFT = 13;  // log2 of the slots of a part of deferred refreshes at most
constexpr uint32_t HALF_ROWS = 32;  // rows at most in one half of the staging area
constexpr uint32_t HALF_BYTES = 65536;  // bytes of one half
constexpr uint32_t MAX_CHUNKS = 2048;  // chunks of the host pool per layer
constexpr uint32_t UB_BYTES = 188416;  // bytes of UB that kernels use; Select overwrites the memory above
constexpr uint32_t FRAME_AT = 185184;  // memory behind that of Stage One, which does not change it
constexpr uint32_t FRAME_BYTES = 1056;  // bytes of that memory
constexpr uint32_t COPY_BYTES = 162464;  // bytes of UB that copies of rows use
constexpr uint32_t GLOBAL_BYTES = 28864;  // bytes of UB that global slots use
constexpr uint32_t RESET_BYTES = 32960;  // bytes of UB that a reset uses
constexpr uint32_t STEP_BYTES = 187808;  // bytes of UB that Stage Two of a step uses
constexpr uint32_t LEARN_BYTES = 6848;  // bytes of UB that learning from a step uses
constexpr uint64_t TABLE_WORDS = 28704;  // words of a table: header, ids, lifetimes and padding, links, what lifetimes learn
constexpr bool DEFERS = true;  // whether a step leaves the refreshes of each request's last token to LateRefresh
constexpr int32_t LIFETIMES = 256;  // different lifetimes
constexpr int32_t LEARNED_AT = 26656;  // first word of what lifetimes learn in a table
constexpr int32_t LEARNED_WORDS = 2048;  // these words and padding; 0: lifetimes learn nothing
constexpr int32_t LEARN_SLOTS = 512;  // slots of a sample
constexpr int32_t LEARN_RESULT = 1024;  // word of the last sample, behind four tables
constexpr int32_t HEADER_LEARN = 3;  // first of a header's words for learned lifetimes
constexpr int32_t LEARN_STEP = 0;  // among them the number of the step
constexpr int32_t LEARN_MOVES_FROM = 1;  // the lowest lifetime that it ages
constexpr int32_t LEARN_SAMPLE = 2;  // the first slot of its sample
constexpr int32_t LEARN_LAST_SAMPLE = 3;  // that of the last step's sample
constexpr int32_t LEARN_WAS_USED = 256;  // bit of a sampled slot that was used
constexpr int32_t LEARN_MAX_VALUE = 254;  // largest value
constexpr int32_t LEARN_LEVELS = 16;  // levels of a class
constexpr int32_t LEARN_SLOT = 16;  // weight of a sampled slot
constexpr int32_t LEARN_SWEEP = 16;  // steps in which each class is estimated once
constexpr int32_t LEARN_START = 64;  // steps before the first values
constexpr int64_t LEARN_ONE = 65536;  // the number 1
constexpr int64_t LEARN_BETA = 62259;  // what a use in the next step counts
constexpr int64_t LEARN_PRIOR = 512;  // weight of the prior probability of a use
constexpr uint64_t LEARN_LOG_STEPS = 0x1112233560;  // by age, oldest lowest: log2 of steps
constexpr uint64_t LEARN_YOUNG_AGES = 0x102030405060709;  // mean ages of the classes 7..0
constexpr uint64_t LEARN_OLD_AGES = 0xB0E1218203464C8;  // mean ages of the classes 15..8
static_assert(K >= 1 && TOKENS >= 1 && TOKENS * K <= SLOTS && SLOTS <= ID_WORDS && ID_WORDS == 1 << SLOT_BITS, "ids and slots");
static_assert(PAGE == 0 || PAGE == 1 << PAGE_SHIFT, "pages");
static_assert(TABLE_WORDS == HEADER_WORDS + ID_WORDS + LIFE_WORDS + TABLE_LINKS + LEARNED_WORDS, "tables");

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

// Returns the launch scalars from their words.
__aicore__ inline Tiling TilingOf(const AscendC::LocalTensor<int32_t> &words)
{
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

// AVSG's host library launches the kernels: AVSG_TILING defines t, the scalars of a launch, which are
// read through UB at an address from AVSG_START_TILING on.
#define AVSG_UPDATED(...)
#define AVSG_START_TILING(at) avsg::StartLaunchWords(tiling, at)
#define AVSG_TILING(t, at) const avsg::Tiling t = avsg::TilingOf(avsg::LaunchWords(at))

} // namespace avsg
