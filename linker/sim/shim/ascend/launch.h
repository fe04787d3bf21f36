// The launcher that every compiled kernel library exports. It runs one thread per core; each thread
// takes the next block until none is left. Faults are reported as one line of text.
#pragma once

#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

#include "sync.h"

namespace AscendC::shim {

constexpr uint32_t MAX_ARGS = 40;

template <size_t... I> void call_with(void *f, void *const *a, std::index_sequence<I...>) {
    using Arg = GM_ADDR;
    using Kernel = void (*)(decltype((void)I, Arg())...);
    reinterpret_cast<Kernel>(f)(static_cast<Arg>(a[I])...);
}

template <size_t N> void call(void *f, void *const *a, uint32_t n) {
    if (n == N) return call_with(f, a, std::make_index_sequence<N>());
    if constexpr (N > 0) call<N - 1>(f, a, n);
}

inline void run_block(LaunchState &w, uint32_t block, const char *kernel, void *const *args, uint32_t nargs,
                      const avsg_shim_options &o) {
    Core core(w, block);
    current() = &core;
    try {
        if (o.fault_block == int32_t(block))
            throw Fault{"aicore-exception: raised because the launch options asked for it", false, false};
        core.kernel_type = file_kernel_type(kernel);
        call<MAX_ARGS>(o.entry, args, nargs);
        core.check_ended(CallSite{"the kernel's end"});
    } catch (const Fault &fault) {
        w.record_fault(block, fault);
    }
    current() = nullptr;
    w.end(block, core.peak);
}

inline int report(char *error, size_t len, int code, const std::string &text) {
    std::snprintf(error, len, "%s", text.c_str());
    return code;
}

} // namespace AscendC::shim

extern "C" __attribute__((used, visibility("default"))) inline int
avsg_shim_launch(const char *kernel, uint32_t blocks, void *const *args, uint32_t nargs, const avsg_shim_options *o,
                 char *error, size_t len) {
    using namespace AscendC::shim;
    if (o->size != sizeof(avsg_shim_options))
        return report(error, len, 2,
                      cat("launch: the options have ", o->size, " bytes and this shim expects ", sizeof(*o)));
    if (blocks == 0 || blocks > 65535)
        return report(error, len, 2, cat("launch: ", blocks, " blocks; a launch takes 1..65535"));
    if (o->cores == 0) return report(error, len, 2, "launch: 0 cores; give at least 1");
    if (nargs > MAX_ARGS) return report(error, len, 2, cat("launch: ", nargs, " arguments; at most ", MAX_ARGS));
    if (!o->entry) return report(error, len, 2, cat("launch: no kernel named ", kernel));
    *o->peak_ub = 0;

    LaunchState w(blocks, *o);
    std::atomic<uint32_t> next{0};
    auto work = [&] {
        for (uint32_t block = next++; block < blocks; block = next++) run_block(w, block, kernel, args, nargs, *o);
    };
    uint32_t workers = blocks < o->cores ? blocks : o->cores;
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (auto &t : threads) t.join();
    w.finish();

    if (w.fault_core == UINT32_MAX) return report(error, len, 0, "");
    return report(error, len, w.first.hang ? 3 : 1, cat(w.first.text, " [core ", w.fault_core, "]"));
}
