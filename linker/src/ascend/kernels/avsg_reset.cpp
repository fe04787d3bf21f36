// avsg_reset: writes empty tables.
// From AVSG, and the same for every geometry: the numbers are in avsg_geometry.h. Apache-2.0.

#include "avsg_kernel.h"

namespace avsg {

constexpr int32_t PARTS = 8;                        // parts of a table, which cores write independently
constexpr int32_t FILL = 2048;                      // words of one copy
// Buffers behind the launch scalars. No two share bytes.
constexpr uint32_t HEADER_AT = 128;
constexpr uint32_t FILL_AT = HEADER_AT + 64;
static_assert(FILL_AT + 4 * FILL * 4 == RESET_BYTES && RESET_BYTES <= UB_BYTES, "the layout of UB");

// Writes one value to this part's share of the words from..from+n-1 of a table. `fill` is the UB
// address of FILL words with the value.
__aicore__ inline void FillWords(
    const GlobalTensor<int32_t> &table, int32_t from, int32_t n, int32_t part, uint32_t fill)
{
    const int32_t end = from + ShareBegin(n, part + 1, PARTS);
    for (int32_t at = from + ShareBegin(n, part, PARTS); at < end; at += FILL) {
        CopyOut(table[at], Local<int32_t>(fill, FILL), ScalarMin(end - at, FILL));
    }
}

// Writes this core's share of the parts of all tables.
__aicore__ inline void Reset(const Tiling &t, GM_ADDR tables)
{
    const LocalTensor<int32_t> header = Local<int32_t>(HEADER_AT, HEADER_WORDS);
    Duplicate(header, 0, HEADER_WORDS);
    Duplicate(Local<int32_t>(FILL_AT, FILL), NO_ID, FILL);
    Duplicate(Local<int32_t>(FILL_AT + FILL * 4, FILL), EMPTY_LIFETIMES, FILL);
    Duplicate(Local<int32_t>(FILL_AT + 2 * FILL * 4, FILL), EMPTY_LINK, FILL);
    Duplicate(Local<int32_t>(FILL_AT + 3 * FILL * 4, FILL), 0, FILL);
    SetWaitFlag<HardEvent::V_S>(EVENT_ID0);
    header.SetValue(HEADER_THRESHOLD, EMPTY_THRESHOLD);
    SetWaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    const int32_t core = GetBlockIdx();
    const int32_t cores = GetBlockNum();
    const int32_t end = ShareBegin(t.states * PARTS, core + 1, cores);
    for (int32_t at = ShareBegin(t.states * PARTS, core, cores); at < end; at++) {
        const uint64_t words = static_cast<uint64_t>(at / PARTS) * TABLE_WORDS;
        const GlobalTensor<int32_t> table = Global<int32_t>(tables + words * 4);
        const int32_t part = at % PARTS;
        if (part == 0) {
            CopyOut(table, header, HEADER_WORDS);
        }
        FillWords(table, HEADER_WORDS, ID_WORDS, part, FILL_AT);
        FillWords(table, HEADER_WORDS + ID_WORDS, LIFE_WORDS, part, FILL_AT + FILL * 4);
        FillWords(table, HEADER_WORDS + ID_WORDS + LIFE_WORDS, TABLE_LINKS, part, FILL_AT + 2 * FILL * 4);
        FillWords(table, LEARNED_AT, LEARNED_WORDS, part, FILL_AT + 3 * FILL * 4);
    }
}

} // namespace avsg

extern "C" __global__ __aicore__ void avsg_reset(
    GM_ADDR tables, AVSG_UPDATED(GM_ADDR tablesOut) GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    AVSG_START_TILING(0);
    AVSG_TILING(t, 0);
    avsg::Reset(t, tables);
    PipeBarrier<PIPE_ALL>();
}
