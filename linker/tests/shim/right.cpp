// Kernels that keep every rule.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void sum(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
    GlobalTensor<int32_t> ga, gb, gc;
    ga.SetGlobalBuffer((__gm__ int32_t *)a);
    gb.SetGlobalBuffer((__gm__ int32_t *)b);
    gc.SetGlobalBuffer((__gm__ int32_t *)c);
    LocalTensor<int32_t> x(TPosition::VECCALC, 0, 2048), y(TPosition::VECCALC, 8192, 2048);
    DataCopy(x, ga, 2048);
    DataCopyPad(y, gb, DataCopyExtParams{1, 8192, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Add(x, x, y, 2048);
    PipeBarrier<PIPE_V>();
    Adds(x, x, 1, 2048);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(gc, x, 2048);
}
