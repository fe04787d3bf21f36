// The probe kernels of `avsg doctor`: each kernel measures one property of the device.
// License: Apache-2.0.
//
// Every kernel has the same arguments: `from`, memory to read; `to`, memory to write; and `setting`, four
// words: n (repetitions), depth (rows in flight per core), bytes (bytes per row), rows (rows per core).

#include "kernel_operator.h"

using namespace AscendC;

// CANN takes one type for all kernels of a file. This one is for vector cores, and lets them synchronise.
KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);

namespace probes {

// Byte offsets in the unified buffer: the setting, and four areas.
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

} // namespace probes

extern "C" __global__ __aicore__ void avsg_probe_empty(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    PipeBarrier<PIPE_ALL>();
}

// Computes INT32_MAX + 1 in 64 words. No kernel of the operator computes a sum that overflows.
extern "C" __global__ __aicore__ void avsg_probe_overflow(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> words(TPosition::VECCALC, probes::A_AT, 64);
    Duplicate(words, static_cast<int32_t>(2147483647), 64);
    PipeBarrier<PIPE_V>();
    Adds(words, words, static_cast<int32_t>(1), 64);
    probes::WaitFor<HardEvent::V_MTE3>();
    DataCopyPad(probes::Global<int32_t>(to), words, DataCopyExtParams{1, 256, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}

// Compacts 8192 words n times, each time with another number of them. Writes how many
// of the counts that GatherMask returns at once were wrong, and how many of those that are read after a wait.
extern "C" __global__ __aicore__ void avsg_probe_count(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words(TPosition::VECCALC, probes::A_AT, 8192);
    const LocalTensor<uint16_t> mask(TPosition::VECCALC, probes::B_AT, 512);
    const LocalTensor<int32_t> wrong(TPosition::VECCALC, probes::C_AT, 8);
    const LocalTensor<int32_t> kept(TPosition::VECCALC, probes::D_AT, 8192);
    Duplicate(words, static_cast<int32_t>(7), 8192);
    int32_t atOnce = 0;
    int32_t afterWait = 0;
    for (int32_t i = 0; i < s.n; i++) {
        const int32_t bits = i % 16 + 1;    // of 16 in the mask
        Duplicate(mask, static_cast<uint16_t>((1 << bits) - 1), 512);
        PipeBarrier<PIPE_V>();
        uint64_t count = 0;
        GatherMask(kept, words, mask.ReinterpretCast<uint32_t>(), true, 8192, {1, 1, 8, 0}, count);
        atOnce += static_cast<int32_t>(count) == 512 * bits ? 0 : 1;
        probes::WaitFor<HardEvent::V_S>();
        afterWait += static_cast<int32_t>(GetGatherMaskRemainCount()) == 512 * bits ? 0 : 1;
    }
    wrong.SetValue(0, atOnce);
    wrong.SetValue(1, afterWait);
    probes::WaitFor<HardEvent::S_MTE3>();
    DataCopyPad(probes::Global<int32_t>(to), wrong, DataCopyExtParams{1, 8, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}

// Gathers 2048 words out of 8192, n times.
extern "C" __global__ __aicore__ void avsg_probe_gather(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> table(TPosition::VECCALC, probes::A_AT, 8192);
    const LocalTensor<int32_t> offsets(TPosition::VECCALC, probes::B_AT, 2048);
    const LocalTensor<int32_t> gathered(TPosition::VECCALC, probes::C_AT, 2048);
    Duplicate(table, static_cast<int32_t>(7), 8192);
    for (int32_t i = 0; i < 8; i++) {
        offsets.SetValue(i, 16 * i);
    }
    probes::WaitFor<HardEvent::S_V>();
    for (int32_t done = 8; done < 2048; done *= 2) {
        Adds(offsets[done], offsets, 16 * done, done);
        PipeBarrier<PIPE_V>();
    }
    for (int32_t i = 0; i < s.n; i++) {
        Gather(gathered, table, offsets.ReinterpretCast<uint32_t>(), static_cast<uint32_t>(0),
               static_cast<uint32_t>(2048));
        PipeBarrier<PIPE_V>();
    }
    probes::WaitFor<HardEvent::V_MTE3>();
    if (GetBlockIdx() == 0) {
        DataCopyPad(probes::Global<int32_t>(to), gathered, DataCopyExtParams{1, 256, 0, 0, 0});
    }
    PipeBarrier<PIPE_ALL>();
}

// Synchronises all cores n times.
extern "C" __global__ __aicore__ void avsg_probe_sync(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    for (int32_t i = 0; i < s.n; i++) {
        SyncAll<true>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Every core reads `rows` rows of its own, and waits after every `depth` rows.
extern "C" __global__ __aicore__ void avsg_probe_rows(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const uint32_t bytes = static_cast<uint32_t>(s.bytes);
    const GlobalTensor<uint8_t> rows = probes::Global<uint8_t>(from);
    const uint64_t first = static_cast<uint64_t>(GetBlockIdx()) * static_cast<uint64_t>(s.rows);
    for (int32_t at = 0; at < s.rows; at += s.depth) {
        for (int32_t i = 0; i < s.depth && at + i < s.rows; i++) {
            const LocalTensor<uint8_t> row(TPosition::VECCALC, probes::A_AT + i * bytes, bytes);
            DataCopyPad(row, rows[(first + at + i) * bytes], DataCopyExtParams{1, bytes, 0, 0, 0},
                        DataCopyPadExtParams<uint8_t>{false, 0, 0, 0});
        }
        probes::WaitFor<HardEvent::MTE2_S>();
    }
    PipeBarrier<PIPE_ALL>();
}
