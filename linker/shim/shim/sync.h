// Flags, barriers, SyncAll, the type of a kernel, and the index of this core.
#pragma once

#include "core.h"

namespace AscendC {
namespace shim {

AVSG_SHIM_STATE int32_t &file_kernel_type() {
    static int32_t type = -1;
    return type;
}

// At file scope this sets the type of every kernel of the file; inside a kernel it sets the type of
// that kernel.
struct KernelType {
    explicit KernelType(KernelMetaType t) {
        if (current())
            current()->kernel_type = t;
        else
            file_kernel_type() = t;
    }
};

} // namespace shim

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

template <bool isAIVOnly = true> __aicore__ inline void SyncAll(AVSG_SHIM_SITE) {
    static_assert(isAIVOnly, "only vector cores are modelled: SyncAll<true>()");
    shim::CallSite x{"SyncAll", at};
    shim::Core &c = shim::core(x);
    int32_t type = c.kernel_type < 0 ? shim::file_kernel_type() : c.kernel_type;
    if (type != KERNEL_TYPE_MIX_AIV_1_0)
        shim::fail("sync", x, "needs KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0): ",
                   type < 0 ? "no kernel type is set" : "AIV_ONLY does not start the scheduler");
    c.barrier_all();
    c.check_settled(x, false);
    c.launch_state.sync_all(x);
}

__aicore__ inline int64_t GetBlockIdx(AVSG_SHIM_SITE) { return shim::core(shim::CallSite{"GetBlockIdx", at}).block; }
__aicore__ inline int64_t GetBlockNum(AVSG_SHIM_SITE) {
    return shim::core(shim::CallSite{"GetBlockNum", at}).launch_state.blocks;
}
__aicore__ inline int64_t GetSubBlockIdx() { return 0; }
__aicore__ inline int64_t GetSubBlockNum() { return 1; }

} // namespace AscendC

#define AVSG_SHIM_JOIN2(a, b) a##b
#define AVSG_SHIM_JOIN(a, b) AVSG_SHIM_JOIN2(a, b)
#define KERNEL_TASK_TYPE_DEFAULT(type) \
    [[maybe_unused]] const ::AscendC::shim::KernelType AVSG_SHIM_JOIN(avsg_shim_kernel_type_, __LINE__)(type)
