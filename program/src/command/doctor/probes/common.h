// What the probe kernels of `avsg doctor` share. `behaviour.cpp`, `times.cpp` or `code.cpp` follows in the same file.
// License: Apache-2.0.
//
// Every kernel has the same arguments: `from`, memory to read; `to`, memory to write; and `setting`, four
// words: n (repetitions), depth (operations per repetition), bytes (of an operation), rows (per core).

#include "kernel_operator.h"

// In CANN 8.5 the name of Compares is CompareScalar.
#if defined(ASC_DEVKIT_MAJOR) && ASC_DEVKIT_MAJOR < 9
#define Compares CompareScalar
#endif

using namespace AscendC;

// CANN takes one type for all kernels of a file. This one is for vector cores, and lets them synchronise.
KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);

namespace probes {

// Byte offsets in the unified buffer: the setting, and areas of 32, 8, 8 and 32 KB.
constexpr uint32_t SETTING_AT = 0;
constexpr uint32_t A_AT = 64;
constexpr uint32_t B_AT = A_AT + 32768;
constexpr uint32_t C_AT = B_AT + 8192;
constexpr uint32_t D_AT = C_AT + 8192;

template <typename T> __aicore__ inline GlobalTensor<T> Global(GM_ADDR at)
{
    GlobalTensor<T> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(at));
    return all;
}

// Makes the second pipe of `event` wait for the first.
template <HardEvent event> __aicore__ inline void WaitFor()
{
    SetFlag<event>(EVENT_ID0);
    WaitFlag<event>(EVENT_ID0);
}

struct Setting {
    int32_t n, depth, bytes, rows;
};

__aicore__ inline Setting ReadSetting(GM_ADDR from)
{
    const LocalTensor<int32_t> words(TPosition::VECCALC, SETTING_AT, 8);
    DataCopyPad(words, Global<int32_t>(from), DataCopyExtParams{1, 16, 0, 0, 0},
                DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    WaitFor<HardEvent::MTE2_S>();
    return {words.GetValue(0), words.GetValue(1), words.GetValue(2), words.GetValue(3)};
}

// Returns a tensor of at least `elements` elements: CANN takes lengths of whole blocks of 32 bytes.
template <typename T = int32_t> __aicore__ inline LocalTensor<T> Area(uint32_t at, uint32_t elements)
{
    return LocalTensor<T>(TPosition::VECCALC, at, (elements * sizeof(T) + 31) / 32 * 32 / sizeof(T));
}

// Copies results of the vector unit and of the scalar unit to global memory, and ends the kernel.
__aicore__ inline void Finish(GM_ADDR to, const LocalTensor<int32_t> &words, uint32_t bytes)
{
    WaitFor<HardEvent::V_MTE3>();
    WaitFor<HardEvent::S_MTE3>();
    DataCopyPad(Global<int32_t>(to), words, DataCopyExtParams{1, bytes, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}

} // namespace probes
