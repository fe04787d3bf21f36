// What the device does where its documents leave it open. Each kernel writes words that the host compares.

// Computes INT32_MAX + 1 in 64 words. No kernel of the operator computes a sum that overflows.
extern "C" __global__ __aicore__ void avsg_probe_overflow(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 64);
    Duplicate(words, static_cast<int32_t>(2147483647), 64);
    PipeBarrier<PIPE_V>();
    Adds(words, words, static_cast<int32_t>(1), 64);
    probes::Finish(to, words, 256);
}

// Compacts 8192 words n times, each time with another number of them. Writes how many
// of the counts that GatherMask returns at once were wrong, and how many of those that are read after a wait.
extern "C" __global__ __aicore__ void avsg_probe_count(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 8192);
    const LocalTensor<uint16_t> mask = probes::Area<uint16_t>(probes::B_AT, 512);
    const LocalTensor<int32_t> wrong = probes::Area(probes::C_AT, 8);
    const LocalTensor<int32_t> kept = probes::Area(probes::D_AT, 8192);
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
    probes::Finish(to, wrong, 8);
}

// In each of n rounds every core stores one word beside those of the cores before and after it, so that eight
// cores write one block of 32 bytes at about the same time. Word i becomes i + 1.
extern "C" __global__ __aicore__ void avsg_probe_neighbours(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> word = probes::Area(probes::A_AT, 8);
    const int32_t cores = static_cast<int32_t>(GetBlockNum());
    for (int32_t i = 0; i < s.n; i++) {
        const int32_t at = i * cores + static_cast<int32_t>(GetBlockIdx());
        word.SetValue(0, at + 1);
        probes::WaitFor<HardEvent::S_MTE3>();
        DataCopyPad(probes::Global<int32_t>(to)[at], word, DataCopyExtParams{1, 4, 0, 0, 0});
        probes::WaitFor<HardEvent::MTE3_S>();
    }
    PipeBarrier<PIPE_ALL>();
}

// Every core passes the word in `from` on to its neighbour twice, each time after a SyncAll, and adds its own number
// to it first. The words of core c are those from 8 c on in three areas of 512 words.
extern "C" __global__ __aicore__ void avsg_probe_sync_twice(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> word = probes::Area(probes::A_AT, 8);
    const int32_t cores = static_cast<int32_t>(GetBlockNum());
    const int32_t core = static_cast<int32_t>(GetBlockIdx());
    const GlobalTensor<int32_t> words = probes::Global<int32_t>(to);
    GlobalTensor<int32_t> source = probes::Global<int32_t>(from);
    for (int32_t round = 0; round < 3; round++) {
        DataCopyPad(word, source, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
        probes::WaitFor<HardEvent::MTE2_S>();
        word.SetValue(0, word.GetValue(0) + core);
        probes::WaitFor<HardEvent::S_MTE3>();
        DataCopyPad(words[512 * round + 8 * core], word, DataCopyExtParams{1, 4, 0, 0, 0});
        if (round < 2) {
            SyncAll<true>();
        }
        source = words[512 * round + 8 * ((core + 1) % cores)];
    }
    PipeBarrier<PIPE_ALL>();
}

// Runs Select, and then Compares, after a GatherMask of 100 of 128 words. Writes the 128 selected words and the 128 bits.
extern "C" __global__ __aicore__ void avsg_probe_select(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 128);
    const LocalTensor<int32_t> others = probes::Area(probes::A_AT + 512, 128);
    const LocalTensor<int32_t> fives = probes::Area(probes::A_AT + 1024, 128);
    const LocalTensor<uint16_t> mask = probes::Area<uint16_t>(probes::B_AT, 16);
    const LocalTensor<int32_t> results = probes::Area(probes::C_AT, 136);
    const LocalTensor<int32_t> kept = probes::Area(probes::D_AT, 128);
    for (int32_t i = 0; i < 128; i++) {
        words.SetValue(i, i);
        fives.SetValue(i, i % 5);
    }
    probes::WaitFor<HardEvent::S_V>();
    Adds(others, words, static_cast<int32_t>(1000), 128);
    Duplicate(mask, static_cast<uint16_t>(255), 16);
    PipeBarrier<PIPE_V>();
    uint64_t count = 0;
    GatherMask(kept, words, mask.ReinterpretCast<uint32_t>(), true, 100, {1, 1, 8, 0}, count);
    PipeBarrier<PIPE_V>();
    Select(results.ReinterpretCast<float>(), mask, words.ReinterpretCast<float>(), others.ReinterpretCast<float>(),
           SELMODE::VSEL_TENSOR_TENSOR_MODE, 128);
    PipeBarrier<PIPE_V>();
    GatherMask(kept, words, mask.ReinterpretCast<uint32_t>(), true, 100, {1, 1, 8, 0}, count);
    PipeBarrier<PIPE_V>();
    Compares(results[128].ReinterpretCast<uint8_t>(), fives, static_cast<int32_t>(3), CMPMODE::EQ, 128);
    probes::Finish(to, results, 528);
}

// Gathers 200 of 256 16-bit elements.
extern "C" __global__ __aicore__ void avsg_probe_gather_16(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<uint16_t> table = probes::Area<uint16_t>(probes::A_AT, 256);
    const LocalTensor<int32_t> offsets = probes::Area(probes::B_AT, 200);
    const LocalTensor<int32_t> gathered = probes::Area(probes::C_AT, 100);
    for (int32_t i = 0; i < 256; i++) {
        table.SetValue(i, static_cast<uint16_t>(3 * i + 1));
    }
    for (int32_t i = 0; i < 200; i++) {
        offsets.SetValue(i, 2 * ((7 * i + 1) % 256));
    }
    probes::WaitFor<HardEvent::S_V>();
    Gather(gathered.ReinterpretCast<uint16_t>(), table, offsets.ReinterpretCast<uint32_t>(),
           static_cast<uint32_t>(0), static_cast<uint32_t>(200));
    probes::Finish(to, gathered, 400);
}

// Casts the int16 from -256 on to halfs: word i has the numbers 2 i - 256 and 2 i - 255.
extern "C" __global__ __aicore__ void avsg_probe_cast_16(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> numbers = probes::Area(probes::A_AT, 256);
    const LocalTensor<int32_t> halves = probes::Area(probes::B_AT, 256);
    for (int32_t i = 0; i < 256; i++) {
        numbers.SetValue(i, ((2 * i - 255) * 65536) | ((2 * i - 256) & 0xFFFF));
    }
    probes::WaitFor<HardEvent::S_V>();
    Cast(halves.ReinterpretCast<half>(), numbers.ReinterpretCast<int16_t>(), RoundMode::CAST_NONE,
         static_cast<uint32_t>(512));
    probes::Finish(to, halves, 1024);
}

// Casts every int8 to a half: word i has the bytes 4 i to 4 i + 3.
extern "C" __global__ __aicore__ void avsg_probe_cast_8(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const LocalTensor<int32_t> bytes = probes::Area(probes::A_AT, 64);
    const LocalTensor<int32_t> halves = probes::Area(probes::B_AT, 128);
    for (int32_t i = 0; i < 64; i++) {
        bytes.SetValue(i, static_cast<int32_t>(0x03020100u + 0x04040404u * static_cast<uint32_t>(i)));
    }
    probes::WaitFor<HardEvent::S_V>();
    Cast(halves.ReinterpretCast<half>(), bytes.ReinterpretCast<int8_t>(), RoundMode::CAST_NONE,
         static_cast<uint32_t>(256));
    probes::Finish(to, halves, 512);
}
