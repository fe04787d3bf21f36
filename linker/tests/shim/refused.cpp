// Statements that must not compile, each with a part of the message of the compiler. Above them is a tensor of each type.

#include "kernel_operator.h"
using namespace AscendC;
[[maybe_unused]] static LocalTensor<int32_t> i;
[[maybe_unused]] static LocalTensor<uint32_t> u;
[[maybe_unused]] static LocalTensor<uint16_t> s;
[[maybe_unused]] static LocalTensor<uint8_t> m;
[[maybe_unused]] static LocalTensor<int64_t> l;
[[maybe_unused]] static LocalTensor<half> h;
[[maybe_unused]] static LocalTensor<float> f;
[[maybe_unused]] static GatherMaskParams p;
[[maybe_unused]] static uint64_t n;
[[maybe_unused]] static GlobalTensor<int32_t> g;

void f0() { And(i, i, i, 64); } // twice the count
void f1() { Or(u, u, u, 64); } // twice the count
void f2() { Not(i, i, 64); } // twice the count
void f3() { Ands(i, i, 1, 64); } // 'Ands' was not declared
void f4() { Neg(i, i, 64); } // 'Neg' was not declared
// These two and the form of SyncAll with arguments take events from a TPipe.
void f5() { ReduceSum(f, f, f, 64); } // ReduceSum takes an event from a TPipe
void f6() { CreateVecIndex(i, 0, 64); } // CreateVecIndex takes an event from a TPipe
void f7() { SyncAll(g, i); } // no matching function for call to 'SyncAll
// Only the compiler of the ASC language would take the type of a kernel from these.
void f8() { } __vector__ void q() { } // '__vector__' does not name a type
void f9() { } __mix__(0, 1) void r() { } // error: expected
void f10() { Select(i, m, i, i, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64); } // reinterpret int32 operands
void f11() { g.GetValue(0); } // no member named 'GetValue'
void f12() { Scatter(i, i, u, 0, 64); } // 'Scatter' was not declared
void f13() { AtomicAdd(nullptr, 1); } // 'AtomicAdd' was not declared
void f14() { Gather(l, l, u, 0, 8); } // gathered as two halves
void f15() { GatherMask(i, i, s, true, 64, p, n); } // a 32-bit one uint32_t
void f16() { Compares(s, f, 0.0f, CMPMODE::LT, 64); } // is a LocalTensor<uint8_t>
void f17() { Compares(m, u, 0u, CMPMODE::EQ, 64); } // half, float or (EQ only) int32_t
void f18() { CompareScalar(m, f, 0.0f, CMPMODE::LT, 64); } // 'CompareScalar' was not declared
void f19() { Add(u, u, u, 64); } // reinterpret unsigned data
void f20() { Adds(i, i, 1.0f, 64); } // no matching function for call to 'Adds
void f21() { Subs(i, i, 1, 64); } // 'Subs' was not declared
void f22() { Div(i, i, i, 64); } // 'Div' was not declared
void f23() { i.SetValue(0, 1.5f); } // cast it to the tensor's element type
void f24() { ShiftLeft(i, i, 3, 64); } // reinterpret it as unsigned
void f25() { ShiftLeft(i, i, i, 64); } // no matching function for call to 'ShiftLeft
void f26() { Cast(h, i, RoundMode::CAST_NONE, 64); } // int32 to half needs a scale
void f27() { PipeBarrier<PIPE_S>(); } // the scalar unit needs no barrier
void f28() { SyncAll<false>(); } // only vector cores are modelled
void f29() { SetFlag<HardEvent::V_V>(0); } // 'V_V' is not a member of
void f30() { TPipe pipe; } // 'TPipe' was not declared
void f31() { LocalTensor<double> d; } // does not exist on dav-c220
void f32() { SetAtomicAdd<int32_t>(); } // 'SetAtomicAdd' was not declared
