// In place of avsg_instructions.cuh: bytes that threads write alike, and bulk copies. A copy is done at any time after
// its start, and its bytes are taken until a thread has waited for them.
#pragma once

#include "device.h"

namespace shim {

// A barrier of bulk copies: its memory holds its number here.
struct Arrivals {
    void *at;
    int owner, expected, arrived, phase;
    bool fenced;
};

struct BulkCopy {
    unsigned char *to;
    const unsigned char *from;
    int bytes, thread, group;   // the group of a store
    Arrivals *arrivals;         // of a load
    bool done;
};

constexpr int MAX_COPIES = 4096;
static BulkCopy copies[MAX_COPIES];
static int copy_count;
static Arrivals arrivals[MAX_COPIES];
static int arrivals_count;
static int groups[MAX_THREADS];         // the groups that a thread has ended

SHIM inline void finish_copy(BulkCopy &copy) {
    if (!copy.done) {
        copy.done = true;
        memcpy(copy.to, copy.from, copy.bytes);
        if (copy.arrivals != nullptr) copy.arrivals->arrived += copy.bytes;
    }
}

// Finishes some copy, or none.
SHIM inline void finish_any_copy() {
    if (copy_count > 0) finish_copy(copies[random_below(copy_count)]);
}

// Marks shared memory as that of a copy, or as free.
SHIM inline void mark(const void *at, int bytes, bool load, bool taken) {
    const size_t first = static_cast<const unsigned char *>(at) - avsgShared;
    for (size_t i = first; i < first + bytes; i++) {
        Record &r = regions[0].records[i];
        (load ? r.arriving : r.leaving) = taken;
        if (load && !taken) {
            r.written = block.interval;
            r.writer = COPY;
        }
    }
}

SHIM inline void remove_copy(int i) { copies[i] = copies[--copy_count]; }

// Refuses a copy of shared memory that a thread has used and not fenced, or that it still uses.
SHIM inline void check_fenced(const void *at, int bytes) {
    region_of(at, bytes);
    const size_t first = static_cast<const unsigned char *>(at) - avsgShared;
    for (size_t i = first; i < first + bytes; i++) {
        const Record &r = regions[0].records[i];
        const uint32_t last = r.written > r.read ? r.written : r.read;
        // Most bytes were used by the threads that used the byte before.
        const bool again = i > first && r.written == (&r)[-1].written && r.read == (&r)[-1].read
            && r.writer == (&r)[-1].writer && r.reader == (&r)[-1].reader;
        if (again || last < block.first_interval) continue;
        for (int t = 0; t < block.count; t++) {
            const bool own = (r.written == last && (r.writer == t || (r.writer < 0 && r.writer != COPY)))
                || (r.read == last && (r.reader == t || (r.reader < 0 && r.reader != COPY)));
            if (own && block.threads[t].fenced < last)
                fail("copy: a bulk copy takes byte %zu of shared memory, which thread %d has used without a fence", i, t);
        }
    }
}

// Starts a copy: a load with its barrier, or a store.
SHIM inline void start_copy(void *to, const void *from, int bytes, Arrivals *barrier) {
    const bool load = barrier != nullptr;
    const int thread = index_of(block.running);
    const void *const shared = load ? to : from;
    const void *const global = load ? from : to;
    if (copy_count == MAX_COPIES) fail("copy: more than %d bulk copies at once", MAX_COPIES);
    if (bytes <= 0 || bytes % 16 != 0 || reinterpret_cast<uintptr_t>(to) % 16 != 0
        || reinterpret_cast<uintptr_t>(from) % 16 != 0)
        fail("copy: a bulk copy of %d bytes from %p to %p, which are no multiples of 16", bytes, from, to);
    // The start of a copy is ordered like an access.
    check_bytes(shared, bytes, Access{load, COPY});
    for (int i = 0; i < bytes; i += 16) check_bytes(static_cast<const char *>(global) + i, 16, Access{!load, int16_t(thread)});
    mark(shared, bytes, load, true);
    auto *const target = static_cast<unsigned char *>(to);
    if (!load) {
        const Region &region = *region_of(to, bytes);
        for (int i = 0; i < bytes; i++) region.records[target - region.base + i].arriving = true;
    }
    copies[copy_count++] = {target, static_cast<const unsigned char *>(from), bytes, thread, groups[thread], barrier, false};
    if (!block.in_order) finish_any_copy();
}

} // namespace shim

namespace avsg {

typedef unsigned long long CopyBarrier;

SHIM inline void SetLife(signed char *life, signed char value) {
    const bool first = !shim::written_alike(life);
    shim::check_bytes(life, 1, shim::Access{true, shim::ALIKE});
    if (!first && *life != value)
        shim::fail("race: threads set a lifetime to %d and %d at the same time", *life, value);
    *life = value;
}

SHIM inline void StepLife(signed char *life, const signed char *rule) { SetLife(life, rule[*life + 128]); }

SHIM inline shim::Arrivals *ArrivalsOf(CopyBarrier *barrier) {
    for (int i = 0; i < shim::arrivals_count; i++)
        if (shim::arrivals[i].at == barrier) return &shim::arrivals[i];
    shim::fail("copy: thread %d uses a barrier of copies that is not prepared", shim::index_of(shim::block.running));
}

SHIM inline void InitCopyBarrier(CopyBarrier *barrier) {
    const int thread = shim::index_of(shim::block.running);
    shim::check_bytes(barrier, sizeof *barrier, shim::Access{true, int16_t(thread)});
    for (int i = 0; i < shim::arrivals_count; i++)
        if (shim::arrivals[i].at == barrier) shim::fail("copy: thread %d prepares a barrier twice", thread);
    if (shim::arrivals_count == shim::MAX_COPIES) shim::fail("copy: more than %d barriers", shim::MAX_COPIES);
    shim::arrivals[shim::arrivals_count++] = shim::Arrivals{barrier, thread, 0, 0, 0, false};
}

SHIM inline void FenceBulkCopies() {
    const int thread = shim::index_of(shim::block.running);
    shim::block.threads[thread].fenced = shim::block.interval;
    for (int i = 0; i < shim::arrivals_count; i++) shim::arrivals[i].fenced |= shim::arrivals[i].owner == thread;
}

SHIM inline void ExpectBytes(CopyBarrier *barrier, int bytes) {
    shim::Arrivals *arrivals = ArrivalsOf(barrier);
    if (!arrivals->fenced) shim::fail("copy: a barrier is used without a fence behind its preparation");
    if (arrivals->expected != 0) shim::fail("copy: a barrier expects bytes before those of its last phase are there");
    arrivals->expected = bytes;
}

SHIM inline void StartLoad(void *to, const void *from, int bytes, CopyBarrier *barrier) {
    shim::check_fenced(to, bytes);
    shim::start_copy(to, from, bytes, ArrivalsOf(barrier));
}

// Returns whether the bytes are there. If they are not, other threads run first.
SHIM inline bool HasBytes(CopyBarrier *barrier, int phase) {
    if (!shim::block.in_order) shim::let_others_run();
    shim::Arrivals *arrivals = ArrivalsOf(barrier);
    if (arrivals->phase != phase) shim::fail("copy: a thread waits for phase %d of a barrier in the other phase", phase);
    bool under_way = false;
    for (int i = 0; i < shim::copy_count; i++) {
        if (shim::copies[i].arrivals != arrivals) continue;
        if (shim::block.in_order) shim::finish_copy(shim::copies[i]);
        under_way |= !shim::copies[i].done;
    }
    if (under_way) return false;
    if (arrivals->expected == 0 || arrivals->arrived != arrivals->expected)
        shim::fail("copy: a barrier expects %d bytes, and %d arrive", arrivals->expected, arrivals->arrived);
    for (int i = shim::copy_count - 1; i >= 0; i--) {
        if (shim::copies[i].arrivals == arrivals) {
            shim::mark(shim::copies[i].to, shim::copies[i].bytes, true, false);
            shim::remove_copy(i);
        }
    }
    arrivals->expected = arrivals->arrived = 0;
    arrivals->phase ^= 1;
    return true;
}

SHIM inline void StartStore(void *to, const void *from, int bytes) { shim::start_copy(to, from, bytes, nullptr); }

SHIM inline void EndGroup() { shim::groups[shim::index_of(shim::block.running)]++; }

// Waits until the stores of this thread in all groups have read shared memory. Their bytes may be written later.
SHIM inline void WaitForReads() {
    const int thread = shim::index_of(shim::block.running);
    for (int i = shim::copy_count - 1; i >= 0; i--) {
        shim::BulkCopy &copy = shim::copies[i];
        if (copy.arrivals == nullptr && copy.thread == thread && copy.group < shim::groups[thread]) {
            shim::finish_copy(copy);
            shim::mark(copy.from, copy.bytes, false, false);
            shim::remove_copy(i);
        }
    }
}

} // namespace avsg
