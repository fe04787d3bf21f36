// Kernels on several cores that share memory. `in` and `out` hold 4096 words.

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);

using Words = LocalTensor<int32_t>;

static GlobalTensor<int32_t> words(GM_ADDR a) {
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)a, 4096);
    return g;
}

static Words buffer() { return Words(TPosition::VECCALC, 0, 64); }
static uint32_t me() { return uint32_t(GetBlockIdx()); }
static uint32_t cores() { return uint32_t(GetBlockNum()); }
static void all() { PipeBarrier<PIPE_ALL>(); }

#define KERNEL(NAME)                                                                                            \
    static void NAME##_body([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out);                         \
    extern "C" __global__ __aicore__ void NAME([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out) {     \
        InitSocState();                                                                                         \
        NAME##_body(in, out);                                                                                   \
        all();                                                                                                  \
    }                                                                                                           \
    static void NAME##_body([[maybe_unused]] GM_ADDR in, [[maybe_unused]] GM_ADDR out)

// Each core passes 64 words to the next core by DMA.
template <bool SYNC> static void pass_on(GM_ADDR in, GM_ADDR out) {
    Words x = buffer();
    uint32_t next = (me() + 1) % cores();
    DataCopy(x, words(in)[me() * 64], 64);
    all();
    DataCopy(words(out)[me() * 64], x, 64);
    if (SYNC) SyncAll<true>();
    all();
    DataCopy(x, words(out)[next * 64], 64);
    all();
    DataCopy(words(out)[2048 + me() * 64], x, 64);
}
KERNEL(passed) {
    pass_on<true>(in, out);
}
KERNEL(race) {
    pass_on<false>(in, out);
}
KERNEL(both_write) {
    Duplicate(buffer(), int32_t(me()), 64);
    all();
    DataCopy(words(out), buffer(), 64);
}
// Each core overlaps the next one by one word.
KERNEL(edge_race) {
    Duplicate(buffer(), int32_t(me()), 64);
    all();
    DataCopyPad(words(out)[me() * 15], buffer(), DataCopyExtParams{1, 64, 0, 0, 0});
}

// One core returns before the barrier.
KERNEL(early_return) {
    if (me() == 1) return;
    SyncAll<true>();
}
KERNEL(unequal) {
    SyncAll<true>();
    if (me() == 0) SyncAll<true>();
}
// Without a barrier, blocks run in waves.
KERNEL(waves) {
    Duplicate(buffer(), int32_t(me()), 8);
    all();
    DataCopy(words(out)[me() * 8], buffer(), 8);
}
// One core breaks a rule while the others wait at the barrier.
KERNEL(one_fails) {
    if (me() == 2) buffer().GetValue(0);
    SyncAll<true>();
}
