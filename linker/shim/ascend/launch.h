// The launcher that every compiled kernel library exports. It runs one thread per core; each thread
// takes the next block until none is left. Faults are reported as one line of text.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "sync.h"

namespace AscendC {
namespace shim {

constexpr uint32_t MAX_ARGS = 40;

struct CoreMemoryPool {
    std::mutex lock;
    std::vector<std::unique_ptr<CoreMemory>> list;
};

AVSG_SHIM_STATE CoreMemoryPool &core_memory_pool() {
    static CoreMemoryPool s;
    return s;
}

inline std::unique_ptr<CoreMemory> acquire_memory() {
    CoreMemoryPool &s = core_memory_pool();
    std::lock_guard<std::mutex> g(s.lock);
    if (s.list.empty()) return std::make_unique<CoreMemory>();
    auto m = std::move(s.list.back());
    s.list.pop_back();
    return m;
}

inline void return_memory(std::unique_ptr<CoreMemory> m) {
    CoreMemoryPool &s = core_memory_pool();
    std::lock_guard<std::mutex> g(s.lock);
    if (s.list.size() < 64) s.list.push_back(std::move(m));
}

template <size_t... I> void call_with(void *f, void *const *a, std::index_sequence<I...>) {
    using Arg = GM_ADDR;
    using Kernel = void (*)(decltype((void)I, Arg())...);
    reinterpret_cast<Kernel>(f)(static_cast<Arg>(a[I])...);
}

template <size_t N> void call(void *f, void *const *a, uint32_t n) {
    if (n == N) return call_with(f, a, std::make_index_sequence<N>());
    if constexpr (N > 0) call<N - 1>(f, a, n);
}

// Finds a kernel in the library that contains this code: several kernel libraries of one process
// may export the same name.
AVSG_SHIM_STATE void *find_kernel(const char *name) {
    Dl_info here;
    if (dladdr(reinterpret_cast<void *>(&find_kernel), &here) && here.dli_fname)
        if (void *self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
            void *f = dlsym(self, name);
            dlclose(self);
            if (f) return f;
        }
    return dlsym(RTLD_DEFAULT, name);
}

inline void run_block(LaunchState &w, uint32_t block, const char *kernel, void *f, void *const *args, uint32_t nargs,
                      const avsg_shim_options &o, std::mutex &peak_lock) {
    Core core(w, block, acquire_memory());
    current() = &core;
    CallSite end{"the kernel's end"};
    try {
        if (o.fault_block == int32_t(block))
            throw Fault{"aicore-exception: raised because the launch options asked for it", false, false};
        core.kernel_type = file_kernel_type(kernel);
        call<MAX_ARGS>(f, args, nargs);
        core.check_ended(end);
    } catch (const Fault &fault) {
        w.record_fault(block, fault);
    }
    current() = nullptr;
    w.end(block);
    {
        std::lock_guard<std::mutex> g(peak_lock);
        core.time.end(block);
        if (o.peak_ub && core.peak > *o.peak_ub) *o.peak_ub = core.peak;
    }
    return_memory(core.release());
}

inline int report(char *error, size_t len, int code, const std::string &text) {
    if (error && len) std::snprintf(error, len, "%s", text.c_str());
    return code;
}

inline int launch(const char *kernel, uint32_t blocks, void *const *args, uint32_t nargs, const avsg_shim_options *o,
                  char *error, size_t len) {
    if (!kernel || !o || (nargs && !args))
        return report(error, len, 2, "launch: the kernel's name, the options or the arguments are a null pointer");
    if (o->size != sizeof(avsg_shim_options))
        return report(error, len, 2,
                      cat("launch: the options have ", o->size, " bytes and this shim expects ", sizeof(*o)));
    if (blocks == 0 || blocks > 65535)
        return report(error, len, 2, cat("launch: ", blocks, " blocks; a launch takes 1..65535"));
    if (o->cores == 0) return report(error, len, 2, "launch: 0 cores; give at least 1");
    if (o->mode > 2) return report(error, len, 2, cat("launch: mode ", o->mode, " is not 0, 1 or 2"));
    if (nargs > MAX_ARGS) return report(error, len, 2, cat("launch: ", nargs, " arguments; at most ", MAX_ARGS));
    if (o->regions && !o->region) return report(error, len, 2, "launch: `region` is null and `regions` is not 0");
    void *f = find_kernel(kernel);
    if (!f) return report(error, len, 2, cat("launch: no kernel named ", kernel));
    if (o->peak_ub) *o->peak_ub = 0;

    LaunchState w(blocks, *o);
    std::mutex next_lock, peak_lock;
    uint32_t next = 0;
    auto work = [&] {
        for (;;) {
            uint32_t block;
            {
                std::lock_guard<std::mutex> g(next_lock);
                if (next == blocks) return;
                block = next++;
            }
            run_block(w, block, kernel, f, args, nargs, *o, peak_lock);
        }
    };
    uint32_t workers = blocks < o->cores ? blocks : o->cores;
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (auto &t : threads) t.join();
    w.finish();

    Fault fault;
    uint32_t core = 0;
    if (!w.fault(fault, core)) return report(error, len, 0, "");
    return report(error, len, fault.hang ? 3 : 1, cat(fault.text, " [core ", core, "]"));
}

} // namespace shim
} // namespace AscendC

extern "C" __attribute__((used, visibility("default"))) inline int
avsg_shim_launch(const char *kernel, uint32_t blocks, void *const *args, uint32_t nargs, const avsg_shim_options *o,
                 char *error, size_t error_len) {
    return AscendC::shim::launch(kernel, blocks, args, nargs, o, error, error_len);
}
