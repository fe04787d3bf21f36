// What the code itself costs: calls of functions, and more code than the instruction cache holds. A file of its own,
// because a compiler that refuses it must not refuse the other probes.

// A simulator that prices fetches and calls is told where the code is, and that a function was called.
#if __has_include("shim/instruction_cache.h")
#define AVSG_FETCH(at, bytes) AscendC::shim::fetch(at, bytes);
#define AVSG_CALLED AscendC::shim::call();
#else
#define AVSG_CALLED
#endif

namespace probes {

__aicore__ inline void Write(const LocalTensor<int32_t> &words, int32_t i)
{
    words.SetValue(i, i);
}

__attribute__((noinline)) __aicore__ void WriteInCall(const LocalTensor<int32_t> &words, int32_t i)
{
    AVSG_CALLED
    Write(words, i);
}

} // namespace probes

// Per repetition: eight writes of UB by the scalar unit, each in a function that is called if `depth` is 1, and a
// barrier.
extern "C" __global__ __aicore__ void avsg_probe_call(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 64);
    for (int32_t i = 0; i < s.n; i++) {
        for (int32_t j = 0; j < 8; j++) {
            if (s.depth == 1) {
                probes::WriteInCall(words, j);
            } else {
                probes::Write(words, j);
            }
        }
        PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
}

// 512 writes of UB, each of another constant to another word that is no neighbour: straight code of about 8 KB, by four
// instructions for each. A simulator
// runs the same writes in a loop, because only what it is told of the code has a price.
#if __has_include("shim/instruction_cache.h")
#define AVSG_WRITE_512(i)                                                                                            \
    AVSG_FETCH(16 * (i), 8192)                                                                                       \
    for (int32_t j = (i); j < (i) + 512; j++) {                                                                      \
        words.SetValue(2 * j, j);                                                                                    \
    }
#else
#define AVSG_WRITE_1(i) words.SetValue(2 * (i), i);
#define AVSG_WRITE_8(i)                                                                                              \
    AVSG_WRITE_1(i) AVSG_WRITE_1(i + 1) AVSG_WRITE_1(i + 2) AVSG_WRITE_1(i + 3)                                      \
    AVSG_WRITE_1(i + 4) AVSG_WRITE_1(i + 5) AVSG_WRITE_1(i + 6) AVSG_WRITE_1(i + 7)
#define AVSG_WRITE_64(i)                                                                                             \
    AVSG_WRITE_8(i) AVSG_WRITE_8(i + 8) AVSG_WRITE_8(i + 16) AVSG_WRITE_8(i + 24)                                    \
    AVSG_WRITE_8(i + 32) AVSG_WRITE_8(i + 40) AVSG_WRITE_8(i + 48) AVSG_WRITE_8(i + 56)
#define AVSG_WRITE_512(i)                                                                                            \
    AVSG_WRITE_64(i) AVSG_WRITE_64(i + 64) AVSG_WRITE_64(i + 128) AVSG_WRITE_64(i + 192)                             \
    AVSG_WRITE_64(i + 256) AVSG_WRITE_64(i + 320) AVSG_WRITE_64(i + 384) AVSG_WRITE_64(i + 448)
#endif

// Per repetition: the first `depth` of six pieces of straight code, and a barrier.
extern "C" __global__ __aicore__ void avsg_probe_code(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    InitSocState();
    const probes::Setting s = probes::ReadSetting(setting);
    const LocalTensor<int32_t> words = probes::Area(probes::A_AT, 8192);
    for (int32_t i = 0; i < s.n; i++) {
        AVSG_WRITE_512(0)
        if (s.depth > 1) {
            AVSG_WRITE_512(512)
        }
        if (s.depth > 2) {
            AVSG_WRITE_512(1024)
        }
        if (s.depth > 3) {
            AVSG_WRITE_512(1536)
        }
        if (s.depth > 4) {
            AVSG_WRITE_512(2048)
        }
        if (s.depth > 5) {
            AVSG_WRITE_512(2560)
        }
        PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
}
