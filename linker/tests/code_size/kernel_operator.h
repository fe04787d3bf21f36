// Declarations of the part of AscendC that kernels use, for the size of their code alone: an instruction is a
// call of a function that is not in the file, a vector instruction over a count sets the mask and its mode before
// and resets them after, and a tensor is an address.
#pragma once

#include <cstdint>

#define __aicore__
#define __gm__
#define __global__ __attribute__((used))
#define GM_ADDR uint8_t *
#define KERNEL_TASK_TYPE_DEFAULT(type)

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };
enum event_t : int32_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5 };
using half = _Float16;

extern "C" {
void instruction(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void synchronisation(uint64_t, uint64_t);
int64_t special_register(uint64_t);
extern uint8_t unified_buffer[];
extern volatile uint64_t mask_mode, mask[2];
}

namespace AscendC {

enum class TPosition { VECCALC };
enum class HardEvent { MTE2_V, MTE2_S, MTE2_MTE3, V_MTE2, V_MTE3, V_S, MTE3_V, MTE3_S, MTE3_MTE2, S_V, S_MTE2, S_MTE3 };
enum class CMPMODE { LT, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_TENSOR_SCALAR_MODE = 1, VSEL_TENSOR_TENSOR_MODE };
enum class RoundMode { CAST_NONE, CAST_RINT };

struct BinaryRepeatParams {
    uint8_t a, b, c, d, e, f;
};
struct GatherMaskParams {
    uint16_t a, b, c, d;
};
struct DataCopyExtParams {
    uint16_t count;
    uint32_t bytes, a, b, c;
};
template <typename T> struct DataCopyPadExtParams {
    bool a;
    uint8_t b, c;
    T d;
};

template <typename T> struct LocalTensor {
    uint32_t at;
    LocalTensor(TPosition, uint32_t byte, uint32_t) : at(byte) {}
    explicit LocalTensor(uint32_t byte) : at(byte) {}
    LocalTensor operator[](uint32_t n) const { return LocalTensor(at + n * uint32_t(sizeof(T))); }
    template <typename U> LocalTensor<U> ReinterpretCast() const { return LocalTensor<U>(at); }
    volatile T &Element(uint32_t n) const { return reinterpret_cast<volatile T *>(unified_buffer + at)[n]; }
    T GetValue(uint32_t n) const { return Element(n); }
    template <typename V> void SetValue(uint32_t n, V value) const { Element(n) = T(value); }
};

template <typename T> struct GlobalTensor {
    uint64_t at = 0;
    void SetGlobalBuffer(T *from) { at = reinterpret_cast<uint64_t>(from); }
    GlobalTensor operator[](uint64_t n) const
    {
        GlobalTensor to;
        to.at = at + n * sizeof(T);
        return to;
    }
};

template <typename T> uint64_t operand(const T &x) { return uint64_t(x); }
template <typename T> uint64_t operand(const LocalTensor<T> &x) { return x.at; }
template <typename T> uint64_t operand(const GlobalTensor<T> &x) { return x.at; }

__attribute__((always_inline)) inline void over_count(uint64_t code, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    mask_mode = 1;
    mask[0] = d, mask[1] = 0;
    instruction(code, a, b, c, d, e);
    mask_mode = 0;
    mask[0] = mask[1] = UINT64_MAX;
}

#define INSTRUCTION(NAME, CODE)                                                                                      \
    template <typename A, typename B, typename... More>                                                              \
    __attribute__((always_inline)) inline void NAME(const A &a, const B &b, const More &...more)       \
    {                                                                                                                \
        const uint64_t all[8] = {operand(a), operand(b), operand(more)...};                                          \
        over_count(CODE, all[0], all[1], all[2], all[3], all[4]);                                                   \
    }
INSTRUCTION(Add, 1)
INSTRUCTION(Sub, 2)
INSTRUCTION(Mul, 3)
INSTRUCTION(Max, 4)
INSTRUCTION(Adds, 5)
INSTRUCTION(Muls, 6)
INSTRUCTION(Maxs, 7)
INSTRUCTION(Not, 8)
INSTRUCTION(ShiftLeft, 9)
INSTRUCTION(ShiftRight, 10)
INSTRUCTION(Duplicate, 11)
INSTRUCTION(Gather, 12)
INSTRUCTION(Cast, 13)
INSTRUCTION(Compare, 14)
INSTRUCTION(Compares, 15)
INSTRUCTION(Select, 16)

template <typename T> void And(LocalTensor<T> a, LocalTensor<T> b, LocalTensor<T> c, int32_t n) 
{
    over_count(17, a.at, b.at, c.at, n, 0);
}
template <typename T> void Or(LocalTensor<T> a, LocalTensor<T> b, LocalTensor<T> c, int32_t n) 
{
    over_count(18, a.at, b.at, c.at, n, 0);
}
template <typename T>
void And(LocalTensor<T> a, LocalTensor<T> b, LocalTensor<T> c, uint64_t, int32_t n, BinaryRepeatParams)
{
    over_count(19, a.at, b.at, c.at, n, 0);
}
template <typename T>
void Or(LocalTensor<T> a, LocalTensor<T> b, LocalTensor<T> c, uint64_t, int32_t n, BinaryRepeatParams)
{
    over_count(20, a.at, b.at, c.at, n, 0);
}
template <typename T, typename M>
void GatherMask(LocalTensor<T> a, LocalTensor<T> b, LocalTensor<M> c, bool, uint32_t n, GatherMaskParams, uint64_t &)
{
    instruction(21, a.at, b.at, c.at, n, 0);
}
template <typename T>
void DataCopyPad(LocalTensor<T> a, GlobalTensor<T> b, DataCopyExtParams n, DataCopyPadExtParams<T>)
{
    instruction(22, a.at, b.at, n.bytes, 0, 0);
}
template <typename T> void DataCopyPad(GlobalTensor<T> a, LocalTensor<T> b, DataCopyExtParams n) 
{
    instruction(23, a.at, b.at, n.bytes, 0, 0);
}

template <HardEvent event> void SetFlag(int32_t id) { synchronisation(uint64_t(event), id); }
template <HardEvent event> void WaitFlag(int32_t id) { synchronisation(uint64_t(event) + 16, id); }
template <pipe_t pipe> void PipeBarrier() { synchronisation(32, pipe); }
template <bool> void SyncAll() { synchronisation(33, 0); }
inline void InitSocState() { synchronisation(34, 0); }
inline void ICachePreLoad(int64_t n) { synchronisation(35, n); }
inline int64_t GetBlockIdx() { return special_register(0); }
inline int64_t GetBlockNum() { return special_register(1); }
inline int64_t GetGatherMaskRemainCount() { return special_register(2); }

} // namespace AscendC
