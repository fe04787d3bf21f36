// CANN takes one kernel type per file, and these kernels have two.

extern "C" __global__ __aicore__ void one() {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    PipeBarrier<PIPE_ALL>();
}
extern "C" __global__ __aicore__ void two() {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    InitSocState();
    PipeBarrier<PIPE_ALL>();
}
