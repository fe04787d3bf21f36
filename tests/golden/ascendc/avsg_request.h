// avsg_request.h: the arguments of Stage One.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, learned lifetimes, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.
#pragma once

#include "avsg_kernel.h"

namespace avsg {

// The arguments of Stage One for one request. Offsets are in words from the start of an array in Gm.
struct Request {
    int32_t tokens;             // The number of tokens in this step.
    int32_t k;                  // The number of ids per token.
    int32_t generation;         // The table is emptied if it belongs to another generation.
    int32_t stable;             // The number of tokens that were final before this step.
    int32_t limit;              // The sequence length; ids are below it.
    int32_t rows;               // The number of rows or blocks of the host pool.
    int32_t idsAt;              // The first word of the ids.
    int32_t idsStride;          // The number of words from one row of ids to the next.
    int32_t blocksAt;           // The first entry of the block table.
    int32_t blocksLen;          // The number of entries of the block table.
    int32_t slotAt;             // The first word of the slots.
    int32_t slotStride;         // The number of words from one row of slots to the next.
    int32_t validAt;            // The first word of the counts of valid ids.
    int32_t missAt;             // The first entry of the miss list.
    int32_t summaryAt;          // The first word of the summary.
    int32_t shared;             // 1 if several cores probe the first token, each one a share of it, else 0.
    int32_t shareAt;            // The first lane of this core's share.
    int32_t shareLen;           // The number of lanes of this core's share.
    int32_t deferred;           // The token, counted from 1, whose hits are refreshed after the step; 0 for none.
    bool owner;                 // Whether this core continues after all parts are probed.
    uint64_t tableAt;           // First word of the table.
};

// Arrays in global memory.
struct Gm {
    GlobalTensor<int32_t> ids, blockTable, slot, valid, missPos, missId, missSlot, missRow, summary, tables;
    GlobalTensor<half> rules;
};

} // namespace avsg
