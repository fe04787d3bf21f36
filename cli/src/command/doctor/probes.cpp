extern "C" __global__ __aicore__ void avsg_probe_empty(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
}

// Computes INT32_MAX + 1 in 64 words. No kernel of the operator computes a sum that overflows.
extern "C" __global__ __aicore__ void avsg_probe_overflow(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const LocalTensor<int32_t> words(TPosition::VECCALC, probes::A_AT, 64);
    Duplicate(words, static_cast<int32_t>(2147483647), 64);
    PipeBarrier<PIPE_V>();
    Adds(words, words, static_cast<int32_t>(1), 64);
    probes::WaitFor<HardEvent::V_MTE3>();
    DataCopyPad(probes::Global<int32_t>(to), words, DataCopyExtParams{1, 256, 0, 0, 0});
}

// Gathers 2048 words out of 8192, n times.
extern "C" __global__ __aicore__ void avsg_probe_gather(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> table(TPosition::VECCALC, probes::A_AT, 8192);
    const LocalTensor<int32_t> offsets(TPosition::VECCALC, probes::B_AT, 2048);
    const LocalTensor<int32_t> gathered(TPosition::VECCALC, probes::C_AT, 2048);
    Duplicate(table, static_cast<int32_t>(7), 8192);
    CreateVecIndex(offsets, static_cast<int32_t>(0), 2048);
    PipeBarrier<PIPE_V>();
    Muls(offsets, offsets, static_cast<int32_t>(16), 2048);
    PipeBarrier<PIPE_V>();
    for (int32_t i = 0; i < s.n; i++) {
        Gather(gathered, table, offsets.ReinterpretCast<uint32_t>(), static_cast<uint32_t>(0),
               static_cast<uint32_t>(2048));
        PipeBarrier<PIPE_V>();
    }
    probes::WaitFor<HardEvent::V_MTE3>();
    if (GetBlockIdx() == 0) {
        DataCopyPad(probes::Global<int32_t>(to), gathered, DataCopyExtParams{1, 256, 0, 0, 0});
    }
}

// Every core reads `rows` rows of its own, and waits after every `depth` rows.
extern "C" __global__ __aicore__ void avsg_probe_rows(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
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
}
