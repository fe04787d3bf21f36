// Flags, barriers, SyncAll, the state of a core at its start, and the index of this core.
#pragma once

#include "kernel_type.h"

namespace AscendC {
// Clears what an earlier kernel may have left in the core. It is the first call of every kernel
// without a TPipe, whose constructor would make it.
__aicore__ inline void InitSocState(AVSG_SHIM_SITE) { shim::core(shim::CallSite{"InitSocState", at}).init_soc_state(); }

template <HardEvent event> __aicore__ inline void SetFlag(int32_t id, AVSG_SHIM_SITE) {
    static_assert(event != HardEvent::MAX, "no such event");
    shim::CallSite x{"SetFlag", at};
    shim::core(x).set(event, id, x);
}

template <HardEvent event> __aicore__ inline void WaitFlag(int32_t id, AVSG_SHIM_SITE) {
    static_assert(event != HardEvent::MAX, "no such event");
    shim::CallSite x{"WaitFlag", at};
    shim::core(x).wait(event, id, x);
}

template <pipe_t pipe> __aicore__ inline void PipeBarrier(AVSG_SHIM_SITE) {
    static_assert(pipe != PIPE_S, "the scalar unit needs no barrier, and PipeBarrier<PIPE_S> is an error on the device");
    shim::Core &c = shim::core(shim::CallSite{"PipeBarrier", at});
    if (pipe == PIPE_ALL)
        c.barrier_all();
    else
        c.barrier(pipe == PIPE_V ? shim::V : pipe == PIPE_MTE2 ? shim::MTE2 : shim::MTE3);
}

// The form of SyncAll without arguments. The other form takes events from a TPipe. The list of calls
// for kernels without a TPipe names the calls that this form is made of, a barrier over all pipes and
// a flag between cores, but not SyncAll.
template <bool isAIVOnly = true> __aicore__ inline void SyncAll(AVSG_SHIM_SITE) {
    static_assert(isAIVOnly, "only vector cores are modelled: SyncAll<true>()");
    shim::CallSite x{"SyncAll", at};
    shim::Core &c = shim::core(x);
    if (c.kernel_type != KERNEL_TYPE_MIX_AIV_1_0)
        shim::fail("sync", x, "needs KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0): ",
                   c.kernel_type < 0 ? "no kernel type is set" : "AIV_ONLY does not start the scheduler");
    c.barrier_all();
    c.launch_state.sync_all(x);
}

__aicore__ inline int64_t GetBlockIdx(AVSG_SHIM_SITE) { return shim::core(shim::CallSite{"GetBlockIdx", at}).block; }
__aicore__ inline int64_t GetBlockNum(AVSG_SHIM_SITE) {
    return shim::core(shim::CallSite{"GetBlockNum", at}).launch_state.blocks;
}

} // namespace AscendC
