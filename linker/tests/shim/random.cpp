// Interprets a program in memory, so that thousands of programs need one compilation. An
// instruction has four words: the operation, a, b, n. UB has 40 blocks. `mem` has 1024 words, of
// which the last 512 receive the contents of UB at the end.

KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

using Words = LocalTensor<int32_t>;
constexpr uint32_t UB = 320;

static Words at(int32_t block) { return Words(TPosition::VECCALC, 0, UB)[uint32_t(block) * 8]; }

template <HardEvent e> static void flag(int32_t action) {
    if (action != 1) SetFlag<e>(EVENT_ID0);
    if (action != 2) WaitFlag<e>(EVENT_ID0);
}

// `action` is 0 to set and wait, 1 to wait only, and 2 to set only.
static void flag(int32_t edge, int32_t action) {
    switch (edge) {
    case 0: return flag<HardEvent::MTE2_V>(action);
    case 1: return flag<HardEvent::MTE2_S>(action);
    case 2: return flag<HardEvent::MTE2_MTE3>(action);
    case 3: return flag<HardEvent::V_MTE2>(action);
    case 4: return flag<HardEvent::V_MTE3>(action);
    case 5: return flag<HardEvent::V_S>(action);
    case 6: return flag<HardEvent::MTE3_V>(action);
    case 7: return flag<HardEvent::MTE3_S>(action);
    case 8: return flag<HardEvent::MTE3_MTE2>(action);
    case 9: return flag<HardEvent::S_V>(action);
    case 10: return flag<HardEvent::S_MTE2>(action);
    default: return flag<HardEvent::S_MTE3>(action);
    }
}

extern "C" __global__ __aicore__ void interpret(GM_ADDR program, GM_ADDR mem) {
    InitSocState();
    GlobalTensor<int32_t> g;
    const auto *code = (const int32_t *)program;
    g.SetGlobalBuffer((__gm__ int32_t *)mem, 1024);
    DataCopy(at(0), g, UB);
    PipeBarrier<PIPE_ALL>();
    int32_t carried = 1;
    int32_t length = code[0];
    for (int32_t i = 0; i < length; ++i) {
        int32_t operation = code[4 * i + 4], a = code[4 * i + 5], b = code[4 * i + 6], n = code[4 * i + 7];
        switch (operation) {
        case 0: DataCopy(at(a), g[b * 8], n); break;
        case 1: DataCopy(g[b * 8], at(a), n); break;
        case 2: Adds(at(a), at(b), n, n); break;
        case 3: Duplicate(at(a), carried, n); break;
        case 4: at(a).SetValue(b, carried + n); break;
        case 5: carried = (carried + at(a).GetValue(b)) % 1000; break;
        case 6: Max(at(a), at(a), at(b), n); break;
        case 7: PipeBarrier<PIPE_V>(); break;
        case 8: PipeBarrier<PIPE_MTE2>(); break;
        case 9: PipeBarrier<PIPE_MTE3>(); break;
        case 10: flag(a, b); break;
        default: PipeBarrier<PIPE_ALL>();
        }
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(g[512], at(0), UB);
    PipeBarrier<PIPE_ALL>();
}
