// Returns the n-th KB of UB as words.
static LocalTensor<int32_t> Words(uint32_t n) { return LocalTensor<int32_t>(TPosition::VECCALC, 1024 * n, 256); }

static GlobalTensor<int32_t> Global(GM_ADDR at)
{
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(at));
    return g;
}

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);

extern "C" __global__ __aicore__ void chain(GM_ADDR)
{
    InitSocState();
    Duplicate(Words(0), 1, 64);
    PipeBarrier<PIPE_V>();
    Adds(Words(0), Words(0), 1, 64);
    PipeBarrier<PIPE_V>();
    Adds(Words(0), Words(0), 1, 65);
    PipeBarrier<PIPE_ALL>();
}

// A copy into one buffer while the vector unit fills another.
extern "C" __global__ __aicore__ void overlap(GM_ADDR in)
{
    InitSocState();
    DataCopy(Words(0), Global(in), 64);
    Duplicate(Words(1), 1, 64);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Adds(Words(2), Words(0), 1, 64);
    PipeBarrier<PIPE_ALL>();
}

// Two copies in one after the other, and one out.
extern "C" __global__ __aicore__ void copies(GM_ADDR in)
{
    InitSocState();
    DataCopy(Words(0), Global(in), 64);
    DataCopy(Words(1), Global(in), 128);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(1);
    DataCopy(Global(in)[512], Words(0), 64);
    PipeBarrier<PIPE_ALL>();
}

// A vector instruction that the scalar unit computes an operand for, and a scalar read of its result.
extern "C" __global__ __aicore__ void scalars(GM_ADDR)
{
    InitSocState();
    for (int32_t i = 0; i < 8; i++) Words(0).SetValue(i, i);
    SetFlag<HardEvent::S_V>(EVENT_ID0);
    WaitFlag<HardEvent::S_V>(EVENT_ID0);
    Adds(Words(0), Words(0), 1, 8);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    Words(1).SetValue(0, Words(0).GetValue(0));
    PipeBarrier<PIPE_ALL>();
}

// A flag that was set long before its wait.
extern "C" __global__ __aicore__ void early_flag(GM_ADDR)
{
    InitSocState();
    Duplicate(Words(0), 1, 8);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    for (int32_t i = 0; i < 600; i++) Words(1).SetValue(0, i);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    Words(0).SetValue(0, 2);
    PipeBarrier<PIPE_ALL>();
}

// Core n accesses UB 5 (n + 1) times before all cores meet, and 5 (blocks - n) times before they meet again.
extern "C" __global__ __aicore__ void meet(GM_ADDR)
{
    InitSocState();
    const int32_t n = GetBlockIdx(), blocks = GetBlockNum();
    for (int32_t i = 0; i < 5 * (n + 1); i++) Words(0).SetValue(0, i);
    SyncAll<true>();
    shim::begin_phase(1);
    for (int32_t i = 0; i < 5 * (blocks - n); i++) Words(0).SetValue(0, i);
    SyncAll<true>();
}

// One instruction of each rate, each in a phase of its own.
extern "C" __global__ __aicore__ void rates(GM_ADDR)
{
    InitSocState();
    const LocalTensor<int32_t> a = Words(0), b = Words(1), c = Words(2);
    const LocalTensor<half> h = Words(3).ReinterpretCast<half>();
    const LocalTensor<uint8_t> mask = Words(4).ReinterpretCast<uint8_t>();
    Duplicate(a, 0, 256);
    Duplicate(b, 4, 256);
    Duplicate(h, static_cast<half>(1.0f), 512);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(1);
    Compares(mask, a, 0, CMPMODE::EQ, 256);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(2);
    Gather(c, a, b.ReinterpretCast<uint32_t>(), 0, 100);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(3);
    uint64_t earlier = 0;
    GatherMask(c, a, mask.ReinterpretCast<uint32_t>(), true, 200, {1, 1, 8, 0}, earlier);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(4);
    Select(c.ReinterpretCast<float>(), mask, a.ReinterpretCast<float>(), b.ReinterpretCast<float>(),
        SELMODE::VSEL_TENSOR_TENSOR_MODE, 128);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(5);
    Cast(c.ReinterpretCast<float>(), h, RoundMode::CAST_NONE, 256);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(6);
    Adds(h, h, static_cast<half>(1.0f), 512);
    PipeBarrier<PIPE_ALL>();
    shim::begin_phase(7);
    const LocalTensor<uint16_t> words = a.ReinterpretCast<uint16_t>();
    And(words, words, b.ReinterpretCast<uint16_t>(), 128, 3, {1, 1, 0, 8, 8, 0});
    PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void phase_16(GM_ADDR)
{
    InitSocState();
    shim::begin_phase(16);
}
