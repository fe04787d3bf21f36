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
    EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7,
};

enum KernelMetaType : int32_t { KERNEL_TYPE_AIV_ONLY = 0, KERNEL_TYPE_MIX_AIV_1_0 = 2 };

namespace AscendC {

enum class TPosition : uint8_t { GM, VECIN, VECOUT, VECCALC };

enum class HardEvent : uint8_t {
    MTE2_V, MTE2_S, MTE2_MTE3, V_MTE2, V_MTE3, V_S, MTE3_V, MTE3_S, MTE3_MTE2, S_V, S_MTE2, S_MTE3, MAX,
};

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };

enum class SELMODE : uint8_t { VSEL_TENSOR_SCALAR_MODE = 1, VSEL_TENSOR_TENSOR_MODE = 2 };

enum class RoundMode : uint8_t { CAST_NONE = 0, CAST_RINT = 1 };

// The structures of AscendC have constructors with all values, so a list that is too short is an error.
#pragma GCC diagnostic error "-Wmissing-field-initializers"

// Strides of the repeat forms, in blocks of 32 bytes.
struct BinaryRepeatParams {
    uint8_t dstBlkStride, src0BlkStride, src1BlkStride, dstRepStride, src0RepStride, src1RepStride;
};

struct UnaryRepeatParams {
    uint16_t dstBlkStride, srcBlkStride;
    uint8_t dstRepStride, srcRepStride;
};

struct GatherMaskParams {
    uint8_t src0BlockStride;
    uint16_t repeatTimes, src0RepeatStride;
    uint8_t src1RepeatStride;
};

// Parameters of DMA in bytes: blockLen and the stride on the GM side count bytes, the stride on the
// UB side counts blocks of 32 bytes.
struct DataCopyExtParams {
    uint16_t blockCount;
    uint32_t blockLen, srcStride, dstStride, rsv;
};

template <typename T> struct DataCopyPadExtParams {
    bool isPad;
    uint8_t leftPadding, rightPadding;
    T paddingValue;
};

} // namespace AscendC
