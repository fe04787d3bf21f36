// The threads of a block, each a fibre that runs until it waits for others: at a barrier of the block, or in an
// operation of its warp. Which one runs next is random. Nothing in this folder needs the library of C++, because
// the hooks of memory.h take the place of a sanitizer's, with which that library would come.
#pragma once

#undef _FORTIFY_SOURCE
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

// A function of the shim: what it accesses is not checked.
#define SHIM __attribute__((no_sanitize("thread"), noinline))

namespace shim {

constexpr int MAX_THREADS = 1024;
constexpr int WARP_LANES = 32;
constexpr size_t STACK_BYTES = 64 * 1024;
constexpr size_t MAX_SHARED_BYTES = 227 * 1024; // of a block of a GPU

struct Thread {
    jmp_buf context;
    char *stack;
    bool at_barrier;
    const char *operation;  // of its warp
    unsigned word, result;
    int argument;
    uint32_t fenced;        // the interval of its last fence before bulk copies
};

struct Block {
    Thread threads[MAX_THREADS];
    int count, ready, at_barrier, ended;
    int order[MAX_THREADS]; // the threads that can run, `ready` of them
    int at_warp[MAX_THREADS / WARP_LANES];
    uint32_t warp_steps[MAX_THREADS / WARP_LANES];  // barriers that a warp has passed
    Thread *running;
    jmp_buf scheduler;
    ucontext_t first;
    void (*body)();
    uint64_t random;
    bool in_order;
    uint32_t interval, first_interval, barriers;
    char fault[512];
};

static Block block;

SHIM inline uint32_t random_below(uint32_t n) {
    block.random = block.random * 6364136223846793005u + 1442695040888963407u;
    return n == 0 ? 0 : uint32_t((block.random >> 33) % n);
}

SHIM inline int index_of(const Thread *thread) { return int(thread - block.threads); }

// Ends the launch with a fault; the first one counts.
template <typename... A> [[noreturn]] SHIM inline void fail(const char *format, A... a) {
    if (block.fault[0] == 0) snprintf(block.fault, sizeof block.fault, format, a...);
    _longjmp(block.scheduler, 2);
}

SHIM inline void make_ready(int thread) {
    block.threads[thread].at_barrier = false;
    block.order[block.ready++] = thread;
}

// Lets other threads run until this one is ready again and has its turn.
SHIM inline void suspend() {
    if (_setjmp(block.running->context) == 0) _longjmp(block.scheduler, 1);
}

// Lets a thread run that is ready, this one or another.
SHIM inline void let_others_run() {
    make_ready(index_of(block.running));
    suspend();
}

// Frees the threads at the barrier of the block if all have come that have not ended.
SHIM inline void release_block() {
    if (block.at_barrier == 0 || block.at_barrier + block.ended < block.count) return;
    block.at_barrier = 0;
    block.interval++;
    block.barriers++;
    for (int i = 0; i < block.count; i++)
        if (block.threads[i].at_barrier) make_ready(i);
}

SHIM inline void wait_for_block() {
    block.at_barrier++;
    block.running->at_barrier = true;
    // If this thread is the last one, it is ready, and another one may run first.
    release_block();
    suspend();
}

// Meets the other threads of the warp in an operation; `finish` gives each of the 32 its result.
SHIM inline unsigned meet(const char *operation, unsigned word, int argument, void (*finish)(Thread *)) {
    const int self = index_of(block.running);
    const int warp = self / WARP_LANES;
    Thread *const lanes = block.threads + warp * WARP_LANES;
    Thread &own = *block.running;
    own.operation = operation;
    own.word = word;
    own.argument = argument;
    if (++block.at_warp[warp] < WARP_LANES) {
        suspend();
        return own.result;
    }
    block.at_warp[warp] = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        if (lanes[i].operation != operation) {
            fail("warp: thread %d is in %s and thread %d in %s", self, operation, warp * WARP_LANES + i,
                 lanes[i].operation);
        }
    }
    finish(lanes);
    for (int i = 0; i < WARP_LANES; i++)
        if (&lanes[i] != &own) make_ready(warp * WARP_LANES + i);
    return own.result;
}

SHIM inline void start_fibre() {
    block.body();
    block.ended++;
    release_block();
    _longjmp(block.scheduler, 1);
}

// Allocates the stacks of all threads, once.
SHIM inline void allocate_stacks() {
    if (block.threads[0].stack != nullptr) return;
    const size_t bytes = STACK_BYTES * MAX_THREADS;
    void *all = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) fail("no memory for the stacks of %d threads", MAX_THREADS);
    for (int i = 0; i < MAX_THREADS; i++) block.threads[i].stack = static_cast<char *>(all) + STACK_BYTES * i;
}

} // namespace shim
