// The part that all probe kernels of `avsg doctor` share. Each kernel measures one property of the device.
// License: Apache-2.0.
//
// Every kernel has the same arguments: `from`, memory to read; `to`, memory to write; and `setting`, four
// words: n (repetitions), depth (rows in flight per core), bytes (bytes per row), rows (rows per core).

#include "kernel_operator.h"

using namespace AscendC;

namespace probes {

// Byte offsets in the unified buffer: the setting, and three areas.
constexpr uint32_t SETTING_AT = 0;
constexpr uint32_t A_AT = 64;
constexpr uint32_t B_AT = A_AT + 32768;
constexpr uint32_t C_AT = B_AT + 8192;

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

} // namespace probes

