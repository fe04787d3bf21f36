// What single operations cost. Each kernel repeats them n times, so that the host can subtract the time of a launch
// with fewer repetitions.

extern "C" __global__ __aicore__ void avsg_probe_empty(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: `depth` independent Adds of `bytes` bytes and a barrier.
extern "C" __global__ __aicore__ void avsg_probe_vector(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const int32_t words = s.bytes / 4;
    const LocalTensor<int32_t> sums = probes::Area(probes::A_AT, 8192);
    const LocalTensor<int32_t> ones = probes::Area(probes::B_AT, 2048);
    Duplicate(ones, static_cast<int32_t>(1), 2048);
    PipeBarrier<PIPE_V>();
    for (int32_t i = 0; i < s.n; i++) {
        for (int32_t j = 0; j < s.depth; j++) {
            Adds(sums[j * words], ones, static_cast<int32_t>(1), words);
        }
        PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: `depth` flags that the scalar unit does not wait for.
extern "C" __global__ __aicore__ void avsg_probe_flags(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    for (int32_t i = 0; i < s.n * s.depth; i++) {
        probes::WaitFor<HardEvent::V_MTE3>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: Adds of 4096 bytes, a flag to the scalar unit, and a flag back.
extern "C" __global__ __aicore__ void avsg_probe_round_trip(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 1024);
    Duplicate(words, static_cast<int32_t>(1), 1024);
    PipeBarrier<PIPE_ALL>();
    for (int32_t i = 0; i < s.n; i++) {
        Adds(words, words, static_cast<int32_t>(1), 1024);
        probes::WaitFor<HardEvent::V_S>();
        probes::WaitFor<HardEvent::S_V>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: eight reads and eight writes of UB by the scalar unit, and a barrier, over which no compiler moves
// them.
extern "C" __global__ __aicore__ void avsg_probe_scalar(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 64);
    for (int32_t j = 0; j < 8; j++) {
        words.SetValue(j, 0);
    }
    for (int32_t i = 0; i < s.n; i++) {
        for (int32_t j = 0; j < 8; j++) {
            words.SetValue(j, words.GetValue(j) + 1);
        }
        PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: `depth` copies of `bytes` bytes into UB, and a wait for them. Every core has `rows` runs of bytes of
// its own in `from`.
extern "C" __global__ __aicore__ void avsg_probe_rows(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const uint32_t bytes = static_cast<uint32_t>(s.bytes);
    const GlobalTensor<uint8_t> rows = probes::Global<uint8_t>(from);
    const uint64_t first = static_cast<uint64_t>(GetBlockIdx()) * static_cast<uint64_t>(s.rows);
    int32_t at = 0;
    for (int32_t i = 0; i < s.n; i++) {
        for (int32_t j = 0; j < s.depth; j++) {
            const LocalTensor<uint8_t> row = probes::Area<uint8_t>(probes::A_AT + j * bytes, bytes);
            DataCopyPad(row, rows[(first + at) * bytes], DataCopyExtParams{1, bytes, 0, 0, 0},
                        DataCopyPadExtParams<uint8_t>{false, 0, 0, 0});
            at = at + 1 == s.rows ? 0 : at + 1;
        }
        probes::WaitFor<HardEvent::MTE2_S>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: `depth` copies of `bytes` bytes out of UB, and a wait for them.
extern "C" __global__ __aicore__ void avsg_probe_stores(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const uint32_t bytes = static_cast<uint32_t>(s.bytes);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 2048);
    Duplicate(words, static_cast<int32_t>(1), 2048);
    probes::WaitFor<HardEvent::V_MTE3>();
    for (int32_t i = 0; i < s.n; i++) {
        for (int32_t j = 0; j < s.depth; j++) {
            DataCopyPad(probes::Global<uint8_t>(to)[j * bytes], words.ReinterpretCast<uint8_t>(),
                        DataCopyExtParams{1, bytes, 0, 0, 0});
        }
        probes::WaitFor<HardEvent::MTE3_S>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: a Gather of 2048 words out of 8192, and a barrier.
extern "C" __global__ __aicore__ void avsg_probe_gather(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> table = probes::Area(probes::A_AT, 8192);
    const LocalTensor<int32_t> offsets = probes::Area(probes::B_AT, 2048);
    const LocalTensor<int32_t> gathered = probes::Area(probes::C_AT, 2048);
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
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: a GatherMask of 8192 words, and a barrier.
extern "C" __global__ __aicore__ void avsg_probe_compact(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 8192);
    const LocalTensor<uint16_t> mask = probes::Area<uint16_t>(probes::B_AT, 512);
    const LocalTensor<int32_t> kept = probes::Area(probes::D_AT, 8192);
    Duplicate(words, static_cast<int32_t>(7), 8192);
    Duplicate(mask, static_cast<uint16_t>(0x5555), 512);
    PipeBarrier<PIPE_V>();
    for (int32_t i = 0; i < s.n; i++) {
        uint64_t count = 0;
        GatherMask(kept, words, mask.ReinterpretCast<uint32_t>(), true, 8192, {1, 1, 8, 0}, count);
        PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Per repetition: a SyncAll.
extern "C" __global__ __aicore__ void avsg_probe_sync(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    for (int32_t i = 0; i < s.n; i++) {
        SyncAll<true>();
    }
    PipeBarrier<PIPE_ALL>();
}
