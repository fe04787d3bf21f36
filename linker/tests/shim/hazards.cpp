// Each kernel exists with the synchronisation that it needs and without it. `in` and `out` hold 2 *
// N words.

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

constexpr uint32_t N = 1024;
using Words = LocalTensor<int32_t>;

static Words buffer(uint32_t i) { return Words(TPosition::VECCALC, i * N * 4, N); }

static GlobalTensor<int32_t> words(GM_ADDR a) {
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)a, 2 * N);
    return g;
}

template <HardEvent e> static void order() {
    SetFlag<e>(EVENT_ID0);
    WaitFlag<e>(EVENT_ID0);
}

#define KERNEL(NAME)                                                                                \
    template <bool SYNC> static void NAME(GlobalTensor<int32_t>, GlobalTensor<int32_t>);            \
    extern "C" __global__ __aicore__ void NAME##_right(GM_ADDR in, GM_ADDR out) {                   \
        InitSocState();                                                                             \
        NAME<true>(words(in), words(out));                                                          \
        PipeBarrier<PIPE_ALL>();                                                                    \
    }                                                                                               \
    extern "C" __global__ __aicore__ void NAME##_wrong(GM_ADDR in, GM_ADDR out) {                   \
        InitSocState();                                                                             \
        NAME<false>(words(in), words(out));                                                         \
        PipeBarrier<PIPE_ALL>();                                                                    \
    }                                                                                               \
    template <bool SYNC> static void NAME(GlobalTensor<int32_t> in, GlobalTensor<int32_t> out)

KERNEL(v_v) {
    Words x = buffer(0), y = buffer(1), z = buffer(2);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 1, N);
    if (SYNC) PipeBarrier<PIPE_V>();
    Adds(z, y, 2, N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, z, N);
}

KERNEL(v_v_read) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 3, N);
    if (SYNC) PipeBarrier<PIPE_V>();
    Duplicate(x, 7, N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, y, N);
}

KERNEL(mte2_v) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    if (SYNC) order<HardEvent::MTE2_V>();
    Adds(y, x, 3, N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, y, N);
}

KERNEL(v_s) {
    Words x = buffer(0), y = buffer(1), z = buffer(2);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 1, N);
    if (SYNC) order<HardEvent::V_S>();
    Duplicate(z, y.GetValue(5), N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, z, N);
}

KERNEL(s_v) {
    Words x = buffer(0), y = buffer(1);
    for (int i = 0; i < 64; ++i) x.SetValue(i, 3 * i);
    if (SYNC) order<HardEvent::S_V>();
    Adds(y, x, 1, 64);
    order<HardEvent::V_MTE3>();
    DataCopy(out, y, 64);
}

KERNEL(s_mte3) {
    Words x = buffer(0);
    for (int i = 0; i < 64; ++i) x.SetValue(i, 3 * i + 1);
    if (SYNC) order<HardEvent::S_MTE3>();
    DataCopy(out, x, 64);
}

KERNEL(v_mte3) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 3, N);
    if (SYNC) order<HardEvent::V_MTE3>();
    DataCopy(out, y, N);
}

KERNEL(mte3_mte2) {
    Words x = buffer(0);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
    if (SYNC) order<HardEvent::MTE3_MTE2>();
    DataCopy(x, in[N], N);
}

KERNEL(mte3_mte2_global) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
    if (SYNC) order<HardEvent::MTE3_MTE2>();
    DataCopy(y, out, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out[N], y, N);
}

KERNEL(v_mte2) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 3, N);
    if (SYNC) order<HardEvent::V_MTE2>();
    DataCopy(x, in[N], N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, y, N);
}

KERNEL(mte2_mte3) {
    Words x = buffer(0);
    DataCopy(x, in, N);
    if (SYNC) order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
}

KERNEL(mte2_s) {
    Words x = buffer(0), z = buffer(2);
    DataCopy(x, in, N);
    if (SYNC) order<HardEvent::MTE2_S>();
    Duplicate(z, x.GetValue(5) + 1, N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, z, N);
}

KERNEL(mte3_v) {
    Words x = buffer(0);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
    if (SYNC) order<HardEvent::MTE3_V>();
    Duplicate(x, 7, N);
}

KERNEL(mte3_s) {
    Words x = buffer(0);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
    if (SYNC) order<HardEvent::MTE3_S>();
    for (int i = 0; i < 64; ++i) x.SetValue(i, -1);
}

KERNEL(s_mte2) {
    Words x = buffer(0);
    for (int i = 0; i < 64; ++i) x.SetValue(i, -1);
    if (SYNC) order<HardEvent::S_MTE2>();
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
}

KERNEL(mte2_mte2) {
    Words x = buffer(0);
    DataCopy(x, in[N], N);
    if (SYNC) PipeBarrier<PIPE_MTE2>();
    DataCopy(x, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
}

KERNEL(mte3_mte3) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in[N], N);
    DataCopy(y, in, N);
    order<HardEvent::MTE2_MTE3>();
    DataCopy(out, x, N);
    if (SYNC) PipeBarrier<PIPE_MTE3>();
    DataCopy(out, y, N);
}

KERNEL(compacted) {
    Words x = buffer(0), y = buffer(1), z = buffer(2);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    uint64_t earlier = 0;
    GatherMask(y, x, (uint8_t)2, true, N, GatherMaskParams{1, 1, 8, 0}, earlier);
    if (SYNC) order<HardEvent::V_S>();
    Duplicate(z, y.GetValue(N / 2 - 1), N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, z, N);
}

// The second GatherMask keeps N / 2 words, and returns the count of the first.
KERNEL(count) {
    Words x = buffer(0), y = buffer(1), z = buffer(2);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    uint64_t earlier = 0;
    GatherMask(y, x, (uint8_t)7, true, N / 4, GatherMaskParams{1, 1, 8, 0}, earlier);
    order<HardEvent::V_S>();
    GatherMask(z, x, (uint8_t)2, true, N, GatherMaskParams{1, 1, 8, 0}, earlier);
    if (SYNC) order<HardEvent::V_S>();
    const int32_t count = int32_t(GetGatherMaskRemainCount());
    PipeBarrier<PIPE_V>();
    Duplicate(z, count * 1000 + int32_t(earlier), N);
    order<HardEvent::V_MTE3>();
    DataCopy(out, z, N);
}

// Two writes overlap by eight bytes at the edge of two blocks.
KERNEL(edge) {
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, in, N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 3, 66);
    if (SYNC) PipeBarrier<PIPE_V>();
    Adds(y[64], x[64], 3, N - 64);
    order<HardEvent::V_MTE3>();
    DataCopy(out, y, N);
}
