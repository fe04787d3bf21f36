// The shared memory of a block and the registered global memory, with a record for each byte: who wrote and who
// read it last, and in which interval between two barriers of a block. Two threads on one byte in one interval, one
// of which writes, are a fault, and so are two blocks on one byte in a launch.
//
// A compiler calls the hooks at the end before each access of a kernel (-fsanitize=thread), so that no kernel is
// changed for it. Threads on a CPU are not checked by them: all fibres run on one.
#pragma once

#include "fibre.h"

extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

// The shared memory of the block that runs, from its start on. A launch gives a part of it.
__attribute__((aligned(128))) unsigned char avsgShared[shim::MAX_SHARED_BYTES];

namespace shim {

// In place of the number of a thread: several have read, an atomic operation has written, a function with which
// threads write alike, or a bulk copy.
constexpr int16_t SEVERAL = -2, ATOMIC = -3, ALIKE = -4, COPY = -5;
constexpr int8_t SEVERAL_WARPS = -1;

// The last accesses to a byte: the intervals, 0 for none, the threads, their warps (SEVERAL_WARPS for more than one),
// and the barriers that these warps had passed.
struct Record {
    uint32_t written, read;
    int16_t writer, reader;
    int8_t writer_warp, reader_warp;
    uint32_t write_step, read_step;
    // Whether a bulk copy writes or reads the byte: in shared memory until a thread has waited for it, in global memory until
    // the kernel ends.
    bool arriving, leaving;
};

struct Region {
    unsigned char *base;
    size_t bytes;
    bool writable;
    Record *records;
    const char *name;
};

constexpr int MAX_REGIONS = 256;
static Region regions[MAX_REGIONS];
static int region_count;

SHIM inline void add_region(void *base, size_t bytes, bool writable, const char *name) {
    if (region_count == MAX_REGIONS) fail("launch: more than %d regions of memory", MAX_REGIONS);
    auto *records = static_cast<Record *>(calloc(bytes + 1, sizeof(Record)));
    regions[region_count++] = Region{static_cast<unsigned char *>(base), bytes, writable, records, name};
}

SHIM inline void drop_regions() {
    while (region_count > 0) free(regions[--region_count].records);
}

// Returns the region with some bytes, or null.
SHIM inline Region *find_region(const void *at, size_t bytes) {
    const auto *first = static_cast<const unsigned char *>(at);
    for (int i = 0; i < region_count; i++)
        if (first >= regions[i].base && first + bytes <= regions[i].base + regions[i].bytes) return &regions[i];
    return nullptr;
}

// The way in which a byte is accessed.
struct Access {
    bool write;
    int16_t by;     // a thread, or ATOMIC or ALIKE
};

SHIM inline void check(const Region &region, size_t at, Access a) {
    Record &r = region.records[at];
    const uint32_t now = block.interval;
    const int self = index_of(block.running);
    const char *what = a.write ? "writes" : "reads";
    if (r.arriving || (r.leaving && a.write)) {
        fail("copy: thread %d %s byte %zu of %s, which a bulk copy has %s", self, what, at, region.name,
             &region == regions ? "that no thread has waited for" : "until the kernel ends");
    }
    const auto warp = int8_t(self / WARP_LANES);
    const uint32_t step = block.warp_steps[warp];
    // A barrier of the warp orders what its threads did before.
    const bool write_ordered = r.writer_warp == warp && r.write_step < step;
    const bool read_ordered = r.reader_warp == warp && r.read_step < step;
    if (r.written == now && r.writer != a.by && !write_ordered) {
        fail("race: thread %d %s byte %zu of %s, which thread %d has written since the last barrier", self, what, at,
             region.name, r.writer);
    }
    if (a.write && r.read == now && r.reader != a.by && !read_ordered) {
        fail("race: thread %d writes byte %zu of %s, which thread %d has read since the last barrier", self, at,
             region.name, r.reader);
    }
    const bool other_wrote = r.written != 0 && r.written < block.first_interval;
    const bool other_read = r.read != 0 && r.read < block.first_interval;
    if (other_wrote || (a.write && other_read))
        fail("race: thread %d %s byte %zu of %s, which another block has accessed", self, what, at, region.name);
    if (a.write) {
        r.writer_warp = r.written == now && r.writer_warp != warp ? SEVERAL_WARPS : warp;
        r.write_step = step;
        r.written = now;
        r.writer = a.by;
    } else {
        r.reader = r.read == now && r.reader != a.by ? SEVERAL : a.by;
        r.reader_warp = r.read == now && r.reader_warp != warp ? SEVERAL_WARPS : warp;
        r.read_step = step;
        r.read = now;
    }
}

// Returns the region with some bytes, which are of memory that a kernel has got as an argument, or of shared memory that the
// launch has given it.
SHIM inline Region *region_of(const void *at, size_t bytes) {
    Region *region = find_region(at, bytes);
    const auto *byte = static_cast<const unsigned char *>(at);
    if (region == nullptr && byte >= avsgShared && byte < avsgShared + MAX_SHARED_BYTES) {
        fail("memory: thread %d accesses %zu bytes at byte %zu of shared memory, of which the launch gives %zu",
             index_of(block.running), bytes, size_t(byte - avsgShared), regions[0].bytes);
    }
    if (region == nullptr)
        fail("memory: thread %d accesses %zu bytes at %p, which no argument has", index_of(block.running), bytes, at);
    return region;
}

// Checks an access to that memory.
SHIM inline void check_bytes(const void *at, size_t bytes, Access a) {
    Region *region = region_of(at, bytes);
    if (a.write && !region->writable)
        fail("memory: thread %d writes %s, which is an input", index_of(block.running), region->name);
    // A copy of a struct is by its members.
    const size_t unit = (bytes & (bytes - 1)) != 0 ? 1 : bytes < 16 ? bytes : 16;
    if (reinterpret_cast<uintptr_t>(at) % unit != 0)
        fail("memory: thread %d accesses %zu bytes at %p, which is misaligned", index_of(block.running), bytes, at);
    const size_t first = static_cast<const unsigned char *>(at) - region->base;
    for (size_t i = first; i < first + bytes; i++) check(*region, i, a);
}

// Returns whether a function with which threads write alike has written a byte since the last barrier.
SHIM inline bool written_alike(const void *at) {
    const Region *region = find_region(at, 1);
    const Record *r = region ? &region->records[static_cast<const unsigned char *>(at) - region->base] : nullptr;
    return r != nullptr && r->written == block.interval && r->writer == ALIKE;
}

// Checks an access of a kernel. Its stack and its constants are not checked.
SHIM inline void hook(const void *at, size_t bytes, bool write) {
    const Thread *self = block.running;
    const auto *byte = static_cast<const char *>(at);
    if (self == nullptr || (byte >= self->stack && byte < self->stack + STACK_BYTES)) return;
    const bool shared = byte >= reinterpret_cast<char *>(avsgShared)
        && byte < reinterpret_cast<char *>(avsgShared) + MAX_SHARED_BYTES;
    if (!shared && !write && byte >= __ehdr_start && byte < _end) return;
    check_bytes(at, bytes, Access{write, int16_t(index_of(self))});
}

} // namespace shim

// Defines the hooks with the size of their access.
#define HOOK(name, bytes, write)                                                                            \
    extern "C" SHIM inline __attribute__((used)) void __tsan_##name##bytes(void *at)                        \
    {                                                                                                       \
        shim::hook(at, bytes, write);                                                                       \
    }
#define HOOKS(bytes)                                                                                        \
    HOOK(read, bytes, false)                                                                                \
    HOOK(write, bytes, true)                                                                                \
    HOOK(unaligned_read, bytes, false)                                                                      \
    HOOK(unaligned_write, bytes, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" SHIM inline __attribute__((used)) void __tsan_read_range(void *at, size_t n) { shim::hook(at, n, false); }
extern "C" SHIM inline __attribute__((used)) void __tsan_write_range(void *at, size_t n) { shim::hook(at, n, true); }
extern "C" SHIM inline __attribute__((used)) void __tsan_func_entry(void *) {}
extern "C" SHIM inline __attribute__((used)) void __tsan_func_exit() {}
extern "C" SHIM inline __attribute__((used)) void __tsan_init() {}
