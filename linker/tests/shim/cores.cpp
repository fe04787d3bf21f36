// Kernels on several cores that share memory. `in` and `out` hold 4096 words.
#include "kernel_operator.h"
using namespace AscendC;

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

static void publish(GlobalTensor<int32_t> g) {
    DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(g);
}

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

// Each core stores to a line of its own and publishes it. All cores read the lines after the
// barrier.
KERNEL(scalars) {
    GlobalTensor<int32_t> g = words(out);
    g.SetValue(me() * 16, int32_t(me()) + 100);
    publish(g[me() * 16]);
    SyncAll<true>();
    int32_t sum = 0;
    for (uint32_t c = 0; c < cores(); ++c) sum += g.GetValue(c * 16);
    g.SetValue(2048 + me() * 16, sum);
    publish(g[2048 + me() * 16]);
}
KERNEL(unpublished) {
    words(out).SetValue(me() * 16, 1);
    SyncAll<true>();
}
KERNEL(unpublished_at_end) { words(out).SetValue(me() * 16, 1); }
// Two cores store to different words of one line.
KERNEL(one_line) {
    words(out).SetValue(me(), 1);
    publish(words(out));
}
// A core that has read a line sees its old words after another core has written it.
template <bool INVALIDATE> static void polled(GM_ADDR out) {
    GlobalTensor<int32_t> g = words(out);
    int32_t before = g.GetValue(0);
    SyncAll<true>();
    if (me() == 0) {
        Duplicate(buffer(), before + 7, 64);
        all();
        DataCopy(g, buffer(), 64);
    }
    SyncAll<true>();
    if (INVALIDATE) publish(g);
    int32_t after = g.GetValue(0);
    g.SetValue(2048 + me() * 16, after);
    publish(g[2048 + me() * 16]);
}
KERNEL(invalidated) {
    polled<true>(out);
}
KERNEL(stale) {
    polled<false>(out);
}
// Another core may change the other words of a line that a core has read.
KERNEL(shared_line) {
    GlobalTensor<int32_t> g = words(out);
    int32_t mine = g.GetValue(me() * 8);
    SyncAll<true>();
    if (me() == 1) {
        Duplicate(buffer(), mine + 7, 64);
        all();
        DataCopy(g[8], buffer(), 8);
    }
    SyncAll<true>();
    if (me() == 0) g.GetValue(7);
}
// A store to such a line would write the old words of the other core back.
KERNEL(shared_line_store) {
    shared_line_body(in, out);
    if (me() == 0) words(out).SetValue(7, 1);
    publish(words(out));
}
// DMA bypasses the scalar cache.
template <bool PUBLISH> static void own_store(GM_ADDR out) {
    GlobalTensor<int32_t> g = words(out);
    g.SetValue(0, 5);
    if (PUBLISH) publish(g);
    SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
    DataCopy(buffer(), g, 64);
    all();
    publish(g);
    DataCopy(g[64], buffer(), 64);
}
KERNEL(stored) { own_store<true>(out); }
KERNEL(cached) { own_store<false>(out); }

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
