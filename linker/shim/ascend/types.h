// The qualifiers, enumerations and parameter structures of AscendC that kernels for dav-c220 use.
#pragma once

#include <cstdint>

#include "half.h"

#define __aicore__
#define __gm__
#define __global__ __attribute__((visibility("default"), used))
#define GM_ADDR __gm__ uint8_t *

enum pipe_t : int32_t { PIPE_S = 0, PIPE_V = 1, PIPE_MTE2 = 4, PIPE_MTE3 = 5, PIPE_ALL = 6 };

enum event_t : int32_t {
    EVENT_ID0 = 0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7,
};

enum KernelMetaType : int32_t { KERNEL_TYPE_AIV_ONLY = 0, KERNEL_TYPE_MIX_AIV_1_0 = 2 };

namespace AscendC {

enum class TPosition : uint8_t { GM, VECIN, VECOUT, VECCALC };

enum class HardEvent : uint8_t {
    MTE2_V,
    MTE2_S,
    MTE2_MTE3,
    V_MTE2,
    V_MTE3,
    V_S,
    MTE3_V,
    MTE3_S,
    MTE3_MTE2,
    S_V,
    S_MTE2,
    S_MTE3,
    MAX,
};

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };

enum class SELMODE : uint8_t { VSEL_TENSOR_SCALAR_MODE = 1, VSEL_TENSOR_TENSOR_MODE = 2 };

enum class RoundMode : uint8_t { CAST_NONE = 0, CAST_RINT = 1 };

// Strides of the repeat forms, in blocks of 32 bytes; the defaults describe contiguous memory.
struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
    uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t db, uint8_t b0, uint8_t b1, uint8_t dr, uint8_t r0, uint8_t r1)
        : dstBlkStride(db), src0BlkStride(b0), src1BlkStride(b1), dstRepStride(dr), src0RepStride(r0),
          src1RepStride(r1) {}
};

struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t db, uint16_t sb, uint8_t dr, uint8_t sr)
        : dstBlkStride(db), srcBlkStride(sb), dstRepStride(dr), srcRepStride(sr) {}
};

struct GatherMaskParams {
    uint8_t src0BlockStride = 1;
    uint16_t repeatTimes = 0, src0RepeatStride = 0;
    uint8_t src1RepeatStride = 0;
    GatherMaskParams() = default;
    GatherMaskParams(uint8_t b, uint16_t n, uint16_t r0, uint8_t r1)
        : src0BlockStride(b), repeatTimes(n), src0RepeatStride(r0), src1RepeatStride(r1) {}
};

// Parameters of DMA in bytes: blockLen and the stride on the GM side count bytes, the stride on the
// UB side counts blocks of 32 bytes.
struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t n, uint32_t len, uint32_t s, uint32_t d, uint32_t r)
        : blockCount(n), blockLen(len), srcStride(s), dstStride(d), rsv(r) {}
};

template <typename T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = T();
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool p, uint8_t l, uint8_t r, T v)
        : isPad(p), leftPadding(l), rightPadding(r), paddingValue(v) {}
};

} // namespace AscendC
