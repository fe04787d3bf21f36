// Kernels of which none sets its type.

extern "C" __global__ __aicore__ void one() { InitSocState(); PipeBarrier<PIPE_ALL>(); }
extern "C" __global__ __aicore__ void two() { InitSocState(); PipeBarrier<PIPE_ALL>(); }
