// avsg_reset: empty tables.
// Wide table, K 2048, N_q 1, S 8192, spread 2, R 7, constant lifetime 127, page 0
// Written by AVSG's linker; do not edit. Apache-2.0.

#include "avsg_kernel.h"

namespace avsg {

constexpr int32_t LIFE_WORDS = 2064;               // lifetimes and their pad
constexpr int32_t PARTS = 8;                        // of a table, each one core's work
constexpr int32_t FILL = 2048;                      // words of one store
constexpr uint32_t HEADER_AT = 128;
constexpr uint32_t FILL_AT = HEADER_AT + 64;
static_assert(FILL_AT + 3 * FILL * 4 == 24768, "the plan");

// Words `from..from + n` of a table that all hold one value, as far as this part goes.
__aicore__ inline void ClearRun(
    const GlobalTensor<int32_t> &table, int32_t from, int32_t n, int32_t part, uint32_t fill)
{
    const int32_t end = from + Cut(n, part + 1, PARTS);
    for (int32_t at = from + Cut(n, part, PARTS); at < end; at += FILL) {
        CopyOut(table[at], Local<int32_t>(fill, FILL), ScalarMin(end - at, FILL));
    }
}

__aicore__ inline void Reset(const Tiling &t, GM_ADDR tables)
{
    const LocalTensor<int32_t> header = Local<int32_t>(HEADER_AT, HEADER_WORDS);
    Duplicate(header, 0, HEADER_WORDS);
    Duplicate(Local<int32_t>(FILL_AT, FILL), -1, FILL);
    Duplicate(Local<int32_t>(FILL_AT + FILL * 4, FILL), -2139062144, FILL);
    Duplicate(Local<int32_t>(FILL_AT + 2 * FILL * 4, FILL), 8388608, FILL);
    After<HardEvent::V_S>(EVENT_ID0);
    header.SetValue(HEADER_THRESHOLD, -128);
    After<HardEvent::S_MTE3>(EVENT_ID0);
    const int32_t core = GetBlockIdx();
    const int32_t cores = GetBlockNum();
    const int32_t end = Cut(t.states * PARTS, core + 1, cores);
    for (int32_t at = Cut(t.states * PARTS, core, cores); at < end; at++) {
        const uint64_t words = static_cast<uint64_t>(at / PARTS) * TABLE_WORDS;
        const GlobalTensor<int32_t> table = Global<int32_t>(tables + words * 4);
        const int32_t part = at % PARTS;
        if (part == 0) {
            CopyOut(table, header, HEADER_WORDS);
        }
        ClearRun(table, HEADER_WORDS, SLOTS, part, FILL_AT);
        ClearRun(table, HEADER_WORDS + SLOTS, LIFE_WORDS, part, FILL_AT + FILL * 4);
        ClearRun(table, HEADER_WORDS + SLOTS + LIFE_WORDS, 16384, part, FILL_AT + 2 * FILL * 4);
    }
}

} // namespace avsg

extern "C" __global__ __aicore__ void avsg_reset(
    GM_ADDR tables, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    avsg::Reset(avsg::ReadTiling(tiling, 0), tables);
}
