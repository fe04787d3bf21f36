// Kernels whose synchronisation is sufficient in ways that are not obvious.

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

constexpr uint32_t N = 1024;
using Words = LocalTensor<int32_t>;

static Words buffer(uint32_t i) { return Words(TPosition::VECCALC, i * N * 4, N); }

static GlobalTensor<int32_t> words(GM_ADDR a) {
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)a);
    return g;
}

template <HardEvent e> static void order(int id = EVENT_ID0) {
    SetFlag<e>(id);
    WaitFlag<e>(id);
}

// The order of the load and MTE3 follows from the vector unit's flags.
extern "C" __global__ __aicore__ void transitive(GM_ADDR in, GM_ADDR out) {
    InitSocState();
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, words(in), N);
    order<HardEvent::MTE2_V>();
    Adds(y, x, 3, N);
    order<HardEvent::V_MTE3>();
    DataCopy(words(out)[N], x, N);
    DataCopy(words(out), y, N);
    PipeBarrier<PIPE_ALL>();
}

// The scalar unit issues instructions in order, so all instructions after its wait are ordered.
extern "C" __global__ __aicore__ void through_scalar(GM_ADDR in, GM_ADDR out) {
    InitSocState();
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, words(in), N);
    order<HardEvent::MTE2_S>();
    Adds(y, x, 3, N);
    order<HardEvent::V_S>();
    DataCopy(words(out), y, N);
    DataCopy(words(out)[N], x, N);
    PipeBarrier<PIPE_ALL>();
}

// PIPE_ALL replaces every flag and barrier.
extern "C" __global__ __aicore__ void all(GM_ADDR in, GM_ADDR out) {
    InitSocState();
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, words(in), N);
    PipeBarrier<PIPE_ALL>();
    Adds(y, x, 1, N);
    PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; i < N; ++i) y.SetValue(i, y.GetValue(i) + 2);
    PipeBarrier<PIPE_ALL>();
    DataCopy(words(out), y, N);
    DataCopy(words(out)[N], x, N);
    PipeBarrier<PIPE_ALL>();
}

// Accesses to different bytes of one block need no synchronisation.
extern "C" __global__ __aicore__ void bytes(GM_ADDR in, GM_ADDR out) {
    InitSocState();
    Words x = buffer(0), y = buffer(1);
    DataCopy(x, words(in), N);
    order<HardEvent::MTE2_V>();
    for (uint32_t i = 4; i < 8; ++i) y.SetValue(i, int32_t(i));
    Adds(y, x, 3, 4);
    PipeBarrier<PIPE_ALL>();
    Adds(y, x, 3, N);
    order<HardEvent::V_MTE3>();
    DataCopy(words(out), y, N);
    DataCopy(words(out)[N], x, N);
    PipeBarrier<PIPE_ALL>();
}

// Two buffers are in flight, each with its own event.
extern "C" __global__ __aicore__ void double_buffer(GM_ADDR in, GM_ADDR out) {
    InitSocState();
    constexpr uint32_t T = 128, TILES = 8;
    GlobalTensor<int32_t> from = words(in), to = words(out);
    for (int i = 0; i < 2; ++i) {
        SetFlag<HardEvent::MTE3_MTE2>(i);
        SetFlag<HardEvent::V_MTE2>(i);
    }
    for (uint32_t t = 0; t < TILES; ++t) {
        int id = int(t % 2);
        Words x(TPosition::VECIN, id * 2 * T * 4, T), y(TPosition::VECOUT, (id * 2 + 1) * T * 4, T);
        WaitFlag<HardEvent::V_MTE2>(id);
        WaitFlag<HardEvent::MTE3_MTE2>(id);
        DataCopy(x, from[t * T], T);
        order<HardEvent::MTE2_V>(id);
        order<HardEvent::MTE2_MTE3>(id);
        Adds(y, x, 3, T);
        SetFlag<HardEvent::V_MTE2>(id);
        order<HardEvent::V_MTE3>(id);
        DataCopy(to[t * T], y, T);
        DataCopy(to[N + t * T], x, T);
        SetFlag<HardEvent::MTE3_MTE2>(id);
    }
    for (int i = 0; i < 2; ++i) {
        WaitFlag<HardEvent::MTE3_MTE2>(i);
        WaitFlag<HardEvent::V_MTE2>(i);
    }
    PipeBarrier<PIPE_ALL>();
}
