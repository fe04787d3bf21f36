// Runs a kernel for GPUs on this machine: its blocks one after the other, in random order.
#pragma once

#include "instructions.h"

// As sim/src/shim.rs has them. The peak is the largest number of barriers that a block has passed.
struct avsg_shim_region {
    void *base;
    uint64_t len;
    uint32_t kind;
};

struct avsg_shim_options {
    uint32_t size, cores;
    uint64_t seed;
    uint32_t mode, regions;
    const avsg_shim_region *region;
    int32_t fault_block;
    uint32_t shared_bytes;
    uint32_t *peak;
    const void *cycles, *entry;
};

namespace shim {

// A kernel whose parameters are the elements of an array.
struct Kernel {
    const char *name;
    int threads, parameters;
    void (*call)(void *const *args);
};

static const Kernel *kernels[64];
static int kernel_count;
static const Kernel *kernel;
inline void *const *arguments;

template <typename P> struct Parameter {
    SHIM static P of(void *at) { return *static_cast<const P *>(at); }
};
template <typename P> struct Parameter<P *> {
    SHIM static P *of(void *at) { return static_cast<P *>(at); }
};

template <int... I> struct Numbers {};
template <int N, int... I> struct First : First<N - 1, N - 1, I...> {};
template <int... I> struct First<0, I...> {
    using All = Numbers<I...>;
};

template <typename... P, int... I> SHIM void call(void (*f)(P...), void *const *args, Numbers<I...>) {
    f(Parameter<P>::of(args[I])...);
}

template <typename... P> SHIM void call(void (*f)(P...), void *const *args) {
    call(f, args, typename First<sizeof...(P)>::All());
}

template <typename... P> constexpr int count(void (*)(P...)) { return sizeof...(P); }

SHIM inline void run_body() { kernel->call(arguments); }

// Runs the next thread until it waits.
SHIM inline void run_thread(int at) {
    Thread &thread = block.threads[at];
    block.running = &thread;
    threadIdx.x = unsigned(at);
    if (thread.operation == nullptr) {
        // It has not started.
        thread.operation = "no operation";
        getcontext(&block.first);
        block.first.uc_stack.ss_sp = thread.stack;
        block.first.uc_stack.ss_size = STACK_BYTES;
        block.first.uc_link = nullptr;
        makecontext(&block.first, start_fibre, 0);
        setcontext(&block.first);
    }
    _longjmp(thread.context, 1);
}

SHIM inline void run_block(unsigned index) {
    blockIdx.x = index;
    block.first_interval = ++block.interval;
    block.count = kernel->threads;
    block.barriers = block.ready = block.at_barrier = block.ended = 0;
    copy_count = arrivals_count = 0;
    memset(block.at_warp, 0, sizeof block.at_warp);
    memset(groups, 0, sizeof groups);
    memset(regions[0].records, 0, regions[0].bytes * sizeof(Record));
    for (size_t i = 0; i < regions[0].bytes; i += 4) {
        const uint32_t word = random_below(0xFFFFFFFFu);
        memcpy(avsgShared + i, &word, 4);
    }
    for (int i = block.count - 1; i >= 0; i--) {
        block.threads[i].operation = nullptr;
        block.threads[i].fenced = 0;
        make_ready(i);
    }
    // A thread that waits comes back here.
    if (_setjmp(block.scheduler) == 2) return;
    block.running = nullptr;
    if (block.ready == 0) {
        if (block.ended < block.count) {
            snprintf(block.fault, sizeof block.fault,
                     "hang: %d of %d threads have ended, %d are at a barrier of the block, and the others wait in an "
                     "operation of their warps",
                     block.ended, block.count, block.at_barrier);
        } else if (copy_count > 0) {
            snprintf(block.fault, sizeof block.fault, "copy: a block ends before a thread has waited for %d bulk copies",
                     copy_count);
        }
        return;
    }
    if (!block.in_order) finish_any_copy();
    const int chosen = block.in_order ? block.ready - 1 : int(random_below(unsigned(block.ready)));
    const int thread = block.order[chosen];
    block.order[chosen] = block.order[--block.ready];
    run_thread(thread);
}

} // namespace shim

extern "C" SHIM inline __attribute__((used, visibility("default"))) int
avsg_shim_launch(const char *name, uint32_t blocks, void *const *args, uint32_t nargs, const avsg_shim_options *o,
                 char *error, size_t error_len) {
    using namespace shim;
    block.fault[0] = 0;
    block.in_order = o->mode == 0;
    block.random = o->seed * 0x9E3779B97F4A7C15u + 77;
    block.interval = 0;
    kernel = nullptr;
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i]->name, name) == 0) kernel = kernels[i];
    if (kernel == nullptr || kernel->parameters != int(nargs)) {
        snprintf(error, error_len, "launch: no kernel %s with %u parameters", name, nargs);
        return 2;
    }
    if (o->shared_bytes > MAX_SHARED_BYTES) {
        snprintf(error, error_len, "launch: a block asks for %u bytes of shared memory, and has at most %zu",
                 o->shared_bytes, MAX_SHARED_BYTES);
        return 2;
    }
    arguments = args;
    block.body = run_body;
    gridDim.x = blocks;
    if (_setjmp(block.scheduler) == 0) {
        allocate_stacks();
        add_region(avsgShared, o->shared_bytes, true, "shared memory");
        for (uint32_t i = 0; i < o->regions; i++) {
            // Kernels write device memory, and not host memory.
            add_region(o->region[i].base, o->region[i].len, o->region[i].kind == 0, "global memory");
        }
    }
    uint32_t most = 0;
    const uint32_t first = blocks > 0 ? random_below(blocks) : 0;
    for (uint32_t i = 0; i < blocks && block.fault[0] == 0; i++) {
        run_block((first + i) % blocks);
        most = block.barriers > most ? block.barriers : most;
    }
    block.running = nullptr;
    drop_regions();
    if (o->peak != nullptr) *o->peak = most;
    snprintf(error, error_len, "%s", block.fault);
    return block.fault[0] == 0 ? 0 : 1;
}

// Makes a kernel one that can be launched. It stands behind the text.
#define AVSG_SHIM_KERNEL(kernel, threads)                                                                   \
    SHIM static void kernel##_call(void *const *args) { shim::call(kernel, args); }                         \
    static const shim::Kernel kernel##_of_shim = {#kernel, threads, shim::count(kernel), kernel##_call};    \
    __attribute__((constructor)) SHIM static void kernel##_register()                                       \
    {                                                                                                       \
        shim::kernels[shim::kernel_count++] = &kernel##_of_shim;                                            \
    }
