// avsg_launch.h: the part that the host code of all operators shares. It computes the launch scalars from
// shapes and attributes.
// From AVSG, and the same for every geometry: the sizes are in avsg_sizes.h. Apache-2.0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <vector>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

#include "avsg_sizes.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AvsgTiling)
    TILING_DATA_FIELD_DEF(int32_t, requests);
    TILING_DATA_FIELD_DEF(int32_t, k);
    TILING_DATA_FIELD_DEF(int32_t, ids_stride);
    TILING_DATA_FIELD_DEF(int32_t, block_stride);
    TILING_DATA_FIELD_DEF(int32_t, pool_units);
    TILING_DATA_FIELD_DEF(int32_t, states);
    TILING_DATA_FIELD_DEF(int32_t, copy_cores);
    TILING_DATA_FIELD_DEF(int32_t, sharers);
    TILING_DATA_FIELD_DEF(int32_t, share_len);
    TILING_DATA_FIELD_DEF(int32_t, segments);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, bytes);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, chunk_first);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, chunk_shift);
    TILING_DATA_FIELD_DEF(int32_t, chunks);
    TILING_DATA_FIELD_DEF(int32_t, half_rows);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, host_stride);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, kv_stride);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, fresh_stride);
    TILING_DATA_FIELD_DEF(int32_t, host_block_shift);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, host_gap);
    TILING_DATA_FIELD_DEF(int32_t, kv_block_shift);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 2, kv_gap);
    TILING_DATA_FIELD_DEF(int32_t, kv_blocks);
    TILING_DATA_FIELD_DEF(int32_t, slot_base);
END_TILING_DATA_DEF;
} // namespace optiling

namespace avsg {

constexpr size_t SEGMENTS = 2;

// Each list has one entry for each type that rows may have. The kernels copy bytes.
static const std::vector<ge::DataType> ROWS = {ge::DT_BF16, ge::DT_FLOAT16, ge::DT_INT8, ge::DT_UINT8};
static const std::vector<ge::DataType> WORDS(ROWS.size(), ge::DT_INT32);
static const std::vector<ge::DataType> POINTERS(ROWS.size(), ge::DT_INT64);
static const std::vector<ge::DataType> HALVES(ROWS.size(), ge::DT_FLOAT16);
static const std::vector<ge::Format> ND(ROWS.size(), ge::FORMAT_ND);

// Numbers of the inputs that the launch scalars depend on; -1 if an operator does not have the
// input.
struct InputNumbers {
    int ids, state, blockTable, tables, hostChunks, slotBlocks;
};

// Returns whether a value is in low..high, and reports it otherwise.
inline bool Within(const char *what, int64_t value, int64_t low, int64_t high)
{
    const bool within = value >= low && value <= high;
    if (!within) {
        std::fprintf(stderr, "AVSG: %s is %lld, but the limit is %lld\n", what, static_cast<long long>(value),
                     static_cast<long long>(value < low ? low : high));
    }
    return within;
}

// Returns a dimension of an input; 0 if the input is absent.
inline int64_t Axis(const gert::Shape *shape, size_t axis)
{
    return shape == nullptr || axis >= shape->GetDimNum() ? 0 : shape->GetDim(axis);
}

// Returns the shape {times * n, columns}, without `columns` if it is 0, for the n rows of an input. An
// unknown n (-1) stays unknown, and so does an unknown rank, whose only dimension is -2.
inline gert::Shape RowsOf(const gert::InferShapeContext *context, int input, int64_t times, int64_t columns)
{
    const int64_t n = Axis(context->GetOptionalInputShape(input), 0);
    const int64_t rows = n < 0 ? n : n * times;
    return columns == 0 || n == -2 ? gert::Shape{rows} : gert::Shape{rows, columns};
}

inline int64_t Dim(const gert::TilingContext *context, int input, size_t axis)
{
    const auto *shape = input < 0 ? nullptr : context->GetOptionalInputShape(input);
    return shape == nullptr ? 0 : Axis(&shape->GetStorageShape(), axis);
}

// Returns an entry of a list attribute, or `otherwise` if the list is absent or too short.
inline int64_t Entry(const gert::RuntimeAttrs *attrs, size_t attr, size_t i, int64_t otherwise)
{
    const auto *list = attrs->GetListInt(attr);
    return list != nullptr && i < list->GetSize() ? list->GetData()[i] : otherwise;
}

// Numbers of the attributes, in the order in which the operators declare them. An operator with
// slotBlocks has two more behind its last one: the blocks of kv and the base of slots.
enum Attr : size_t { POOL_UNITS, BYTES, HOST_STRIDE, KV_STRIDE, FRESH_STRIDE, CHUNKS, CHUNK_SHIFT, COPY_CORES };

// Checks the segments of a row and writes their scalars. `given` is the number of chunk addresses. Returns whether
// all values are within their limits.
inline bool Segments(const gert::RuntimeAttrs *attrs, int64_t given, optiling::AvsgTiling &t)
{
    const auto *list = attrs->GetListInt(BYTES);
    const int64_t segments = list == nullptr ? 0 : list->GetSize();
    if (!Within("the number of segments", segments, 1, SEGMENTS)) {
        return false;
    }
    int32_t bytes[SEGMENTS] = {}, first[SEGMENTS] = {}, shift[SEGMENTS] = {};
    int32_t host[SEGMENTS] = {}, kv[SEGMENTS] = {}, fresh[SEGMENTS] = {};
    int64_t staged = 0, chunks = 0;
    for (int64_t s = 0; s < segments; s++) {
        const int64_t size = Entry(attrs, BYTES, s, 0);
        const int64_t hostStride = Entry(attrs, HOST_STRIDE, s, size);
        const int64_t kvStride = Entry(attrs, KV_STRIDE, s, size);
        const int64_t freshStride = Entry(attrs, FRESH_STRIDE, s, size);
        const auto [least, most] = std::minmax({hostStride, kvStride, freshStride});
        const int64_t by = Entry(attrs, CHUNK_SHIFT, s, 0);
        const int64_t count = Entry(attrs, CHUNKS, s, 0);
        if (!Within("the bytes of a segment", size, 1, std::min(least, HALF_BYTES))
            || !Within("a stride of a segment", most, 0, INT32_MAX) || !Within("chunk_shift", by, 0, 30)
            || !Within("the number of chunks of a segment", count, 1, std::min(given, MAX_CHUNKS) - chunks)) {
            return false;
        }
        bytes[s] = size;
        host[s] = hostStride;
        kv[s] = kvStride;
        fresh[s] = freshStride;
        shift[s] = by;
        first[s] = chunks;
        chunks += count;
        staged += (size + 31) / 32 * 32;
    }
    t.set_segments(segments);
    t.set_bytes(bytes);
    t.set_chunk_first(first);
    t.set_chunk_shift(shift);
    t.set_chunks(chunks);
    t.set_half_rows(std::min(HALF_ROWS, HALF_BYTES / staged));
    t.set_host_stride(host);
    t.set_kv_stride(kv);
    t.set_fresh_stride(fresh);
    // The operator's chunks and slots have no blocks with gaps.
    const int32_t gaps[SEGMENTS] = {};
    t.set_host_block_shift(0);
    t.set_host_gap(gaps);
    t.set_kv_gap(gaps);
    return Within("the bytes of a row", staged, 0, HALF_BYTES);
}

// Checks slotBlocks, which has `entries` entries for each of the states or is absent, and the base of
// slots, and writes their scalars. `first` is the number of the attribute kv_blocks. Returns whether all values are
// within their limits.
inline bool Places(
    const gert::RuntimeAttrs *attrs, size_t first, int64_t states, int64_t entries, optiling::AvsgTiling &t)
{
    const int64_t blocks = entries > 0 ? *attrs->GetInt(first) : 0;
    const int64_t base = *attrs->GetInt(first + 1);
    int32_t shift = 0;
    while (entries > 0 && (entries << shift) < SLOTS) {
        shift++;
    }
    // Blocks of 1 << shift slots are the smallest that so many entries need, and these must be the slots of a state.
    const int64_t most = entries > 0 ? std::min(MAX_SLOT_BLOCKS, SLOTS >> shift) : 0;
    const int64_t indices = entries > 0 ? blocks << shift : states * SLOTS;
    if (!Within("the entries of a state in slot_blocks", entries, 0, most)
        || (entries > 0 && !Within("kv_blocks", blocks, 1, INT32_MAX))
        || (base >= 0 && !Within("slot_base", base, 0, INT32_MAX - indices))) {
        return false;
    }
    t.set_kv_block_shift(shift);
    t.set_kv_blocks(blocks);
    t.set_slot_base(base < 0 ? -1 : base);
    return true;
}

// Computes the launch scalars and the launch: one block for each vector core, all of them at the
// same time.
inline ge::graphStatus Tile(gert::TilingContext *context, const InputNumbers &at)
{
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = platform.GetCoreNumAiv();
    const int64_t k = Dim(context, at.ids, 1);
    if (!Within("k", k, at.ids >= 0 ? 1 : 0, K)) {
        return ge::GRAPH_FAILED;
    }
    optiling::AvsgTiling t;
    t.set_requests(Dim(context, at.state, 0));
    t.set_k(k);
    t.set_ids_stride(k);
    t.set_block_stride(Dim(context, at.blockTable, 1));
    t.set_states(Dim(context, at.tables, 0));
    t.set_copy_cores(cores);
    // Cores that share the probe of a request: an equal number for each, or one if that number is
    // below SHARERS.
    const int64_t requests = std::max<int64_t>(Dim(context, at.state, 0), 1);
    const int64_t each = std::min(cores / requests, (k + MIN_SHARE - 1) / MIN_SHARE);
    const int64_t sharers = each < MIN_SHARERS ? 1 : each;
    t.set_sharers(sharers);
    t.set_share_len((k + sharers * 8 - 1) / (sharers * 8) * 8);
    const auto *attrs = context->GetAttrs();
    if (at.state >= 0) {
        const int64_t units = *attrs->GetInt(POOL_UNITS);
        if (!Within("pool_units", units, 1, INT32_MAX)) {
            return ge::GRAPH_FAILED;
        }
        t.set_pool_units(units);
    }
    t.set_kv_block_shift(0);
    t.set_kv_blocks(0);
    t.set_slot_base(-1);
    const size_t first = at.hostChunks >= 0 ? COPY_CORES + 1 : POOL_UNITS + 1;
    if (at.slotBlocks >= 0
        && !Places(attrs, first, Dim(context, at.tables, 0), Dim(context, at.slotBlocks, 1), t)) {
        return ge::GRAPH_FAILED;
    }
    if (at.hostChunks >= 0) {
        const int64_t copy = *attrs->GetInt(COPY_CORES);
        t.set_copy_cores(copy > 0 ? std::min(copy, cores) : cores);
        if (!Segments(attrs, Dim(context, at.hostChunks, 0), t)) {
            return ge::GRAPH_FAILED;
        }
    }
    t.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(t.GetDataSize());
    context->SetBlockDim(cores);
    context->SetTilingKey(0);
    // In batch mode all blocks of a kernel start together, so the SyncAll of two streams cannot
    // block each other.
    context->SetScheduleMode(1);
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}

} // namespace avsg
