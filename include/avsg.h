/* AVSG: exact sparse gather of the top-K selected KV rows from host memory into a small device buffer.
 *
 * Generated from capi/src by cbindgen (BLESS=1 cargo test -p avsg-capi --test header): do not edit.
 *
 * Use:
 *   avsg_pool_create      allocates host memory for every row of every layer
 *   avsg_engine_create    allocates the tables and the device buffer of one device, on that pool
 *   avsg_plan_create      allocates the outputs of a step
 *   each decode step:     avsg_engine_step, or avsg_engine_plan for each indexer and then
 *                         avsg_engine_transfer for each of its layers; attention reads avsg_engine_buffer at the plan's slots;
 *                         avsg_engine_append writes the step's fresh rows to the pool
 *   avsg_..._destroy      in any order
 *
 * Terms:
 *   row          in a pool or a buffer, the KV data of one token in one layer, in 1 to 4 segments; in a
 *                batch, one token of a request with the ids that it selects
 *   id           the position of a token in its request's sequence
 *   fresh row    the row of a token of the current step, which is not in the pool yet
 *   indexer      the part of a model that selects the ids of one or more layers
 *   state        the tables, one per indexer, and the S slots per layer that one resident request uses
 *   link         an entry of a table, which can point to a slot; an id is searched in up to R + 1 links
 *   lifetime     the value of a slot, which a hit sets and every step lowers by one; misses replace the
 *                slots of the smallest lifetimes
 *   hit, miss    a selected id that has a slot already, or that gets one and whose row is copied
 *
 * Rules that hold for every function:
 *
 * Status. A function returns an avsg_status, unless it returns a string or a version. After a
 * failure avsg_last_error has a message that names the value, the limit and the remedy. A failed
 * call has changed nothing, unless the status is AVSG_OS, AVSG_INTERNAL or AVSG_DEVICE. No function
 * aborts or unwinds.
 *
 * Pointers. A pointer must be aligned and not NULL, unless its comment allows NULL; an array of
 * length 0 may be NULL. An array has as many elements as the length beside it (bytes for void and
 * uint8_t), and must not change during a call that reads it. A call that fails sets the handle or
 * address that it would return to NULL, a file descriptor to -1 and a count to 0.
 *
 * Structs. A struct with a field `size` needs it set to sizeof by the caller, also where the
 * library fills the struct. Zero a struct before you fill it: 0 is the default of every field, and
 * reserved fields must be 0. In C, `avsg_batch batch = AVSG_INIT(avsg_batch);` does both; in C++,
 * avsg::init<avsg_batch>() of avsg.hpp. Structs grow only at the end, so that programs and libraries of
 * different versions work together; a later field that this library lacks must be 0 (AVSG_SIZE
 * otherwise).
 *
 * Handles. The caller owns a handle until its destroy function, which accepts NULL. Handles are
 * looked up and never dereferenced: a handle that was destroyed, never created or is of another
 * kind is AVSG_HANDLE. A pool's memory is freed when its handle and every engine on it are
 * destroyed, and until then every address in it is valid.
 *
 * Threads. Any thread may call. Calls with the same handle may overlap if each of them takes it as
 * a const pointer. Any other overlap is refused at once with AVSG_BUSY; no call waits for another.
 * On "cpu" a call takes at most 16 KiB of its thread's stack, the least that a thread can have.
 * The library starts only the threads of avsg_workers_create, or of an engine without workers, and,
 * while it allocates 512 MiB and more at once, threads that touch the memory. It installs no signal
 * handler and prints nothing; what it has to say goes to avsg_set_log.
 *
 * Processes. In a forked child, every call on a handle of the parent is AVSG_FORKED at once and
 * changes nothing, the destroy functions included, and the memory of the handles stays mapped until
 * the child ends or calls exec. A child that needs the pool imports it by the descriptor that the
 * parent exported (avsg_pool_export before the fork, or avsg_pool_send), and makes engines of its
 * own. While such a child lives, it keeps the parent's lock as the pool's writer.
 *
 * Memory. avsg_memory_bytes tells what is going to be taken, and an avsg_allocator can give it. Where
 * an allocation grows with a configuration or a batch, its failure is AVSG_NO_MEMORY, and nothing
 * leaks. A few allocations of at most 1 KiB each, for example those of a starting thread, end the
 * process as in any program with Rust's standard library; docs/c-api.md lists them.
 *
 * Generations. When a request takes a state, and when its rows have changed, give it a generation that
 * the state has not had, for example by counting. Each table of a state has the generation of the
 * request that it was last planned for, and is empty for every other one. What a call does with a
 * generation:
 *   avsg_engine_plan, _step, _load       apply it: a table that has another one is emptied first
 *   avsg_engine_append                   ignores it: the rows go to the pool, and tables do not change
 *   avsg_engine_fork                     checks `from_generation`: for a table of `from` that has another
 *                                        one, the copy is empty; the copy gets `to_generation`
 *   avsg_engine_transfer, _discard       take none: the number of the plan tells whether it is too old
 *   avsg_engine_invalidate               takes none: it costs misses, but no wrong row, if the state has
 *                                        another request by now
 *   avsg_engine_table, _indexer_table    take none: word 0 of the table is its generation
 *   avsg_engine_buffer, _block_table     take none: the places of slots never change
 *
 * Streams. The functions of a step (avsg_engine_plan, _transfer, _step, _append) take a stream:
 * - NULL: the arrays are host memory, the call waits until its work is done, and the plan can be
 *   read on the host. The device "cpu" takes nothing else (AVSG_UNSUPPORTED). An Ascend device
 *   copies the arrays, and allocates when a batch is larger than every earlier one.
 * - an aclrtStream of the engine's Ascend device: the arrays are device memory, and the call adds
 *   its work to the stream and returns. The arrays must stay allocated until that work and every
 *   replay of it are done. The host reads no array, so that a captured call can be replayed, and
 *   their contents are not checked: `cu_q` must ascend from 0 by at most N_q, and each state must
 *   be -1 or a distinct one in range. The plan's outputs are in device memory only
 *   (avsg_plan_get_device_arrays): avsg_plan_get_counters, avsg_plan_get_request and a transfer
 *   with a NULL stream are AVSG_UNSUPPORTED.
 *
 * Units. Sizes are bytes, except that lengths and strides of int32_t arrays are elements.
 */

#ifndef AVSG_H
#define AVSG_H

#include <stddef.h>
#include <stdint.h>

/**
 * A struct of this type with its `size` set and every other field 0.
 */
#ifndef __cplusplus
#define AVSG_INIT(type) ((type){.size = sizeof(type)})
#endif

/**
 * The version of this interface. It changes only if programs that were built with an older header
 * would break; new functions, constants, and fields at the end of structs do not change it.
 */
#define AVSG_ABI_VERSION 1

/**
 * The largest number of segments of a row.
 */
#define AVSG_MAX_SEGMENTS 4

/**
 * Bytes of a pool's descriptor, which is its geometry and can be sent, stored and compared.
 */
#define AVSG_POOL_DESC_BYTES 112

/**
 * The status that a function returns. The numbers never change. Later versions may add some: treat
 * an unknown number as a failure.
 */
enum avsg_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The call succeeded.
   */
  AVSG_OK = 0,
  /**
   * A value is outside its range, a pointer is misaligned, or an array is too short.
   */
  AVSG_INVALID = 1,
  /**
   * A pointer that must not be NULL is NULL.
   */
  AVSG_NULL = 2,
  /**
   * A handle was destroyed, never created, or is of another kind.
   */
  AVSG_HANDLE = 3,
  /**
   * The `size` of a struct is wrong, or a field that this library lacks is not 0.
   */
  AVSG_SIZE = 4,
  /**
   * Another thread's call uses the same handle. Call again when it has returned.
   */
  AVSG_BUSY = 5,
  /**
   * The library or the device lacks the requested feature.
   */
  AVSG_UNSUPPORTED = 6,
  /**
   * The machine or an allocator cannot give that much memory, and nothing was allocated.
   */
  AVSG_NO_MEMORY = 7,
  /**
   * A call of the operating system failed.
   */
  AVSG_OS = 8,
  /**
   * The library has a defect. Every later call on the handle fails likewise: destroy it, and
   * report the message.
   */
  AVSG_INTERNAL = 9,
  /**
   * A call of the device's runtime failed, and the message names the call and its code. Or the
   * device wrote a value that no correct kernel writes.
   */
  AVSG_DEVICE = 10,
  /**
   * The handle belongs to the process that this one was forked from. Nothing was changed; the
   * rule Processes says what a child can do.
   */
  AVSG_FORKED = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_status avsg_status;
#else
typedef int32_t avsg_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The table that maps ids to slots.
 */
enum avsg_table
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Several links per slot, with the least valuable slots as victims. Hit rates are those of
   * exact LRU or better.
   */
  AVSG_TABLE_WIDE = 0,
  /**
   * The paper's table, bit for bit.
   */
  AVSG_TABLE_PAPER = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_table avsg_table;
#else
typedef int32_t avsg_table;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The lifetime that a hit gives to a slot.
 */
enum avsg_lifetime
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * AVSG_LIFETIME_FREQUENCY for a wide table of K to 4 K slots, else AVSG_LIFETIME_CONSTANT.
   */
  AVSG_LIFETIME_AUTO = 0,
  /**
   * The constant `life`, which evicts the least recently used slot.
   */
  AVSG_LIFETIME_CONSTANT = 1,
  /**
   * A count of uses that decays by the factor `lambda` per step. Only for a wide table.
   */
  AVSG_LIFETIME_FREQUENCY = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_lifetime avsg_lifetime;
#else
typedef int32_t avsg_lifetime;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The vector instructions that the device "cpu" runs its kernels with.
 */
enum avsg_machine
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The fastest that the CPU supports, as the first engine of the process measures it.
   */
  AVSG_MACHINE_AUTO = 0,
  /**
   * Scalar code.
   */
  AVSG_MACHINE_EMU = 1,
  /**
   * AVX2.
   */
  AVSG_MACHINE_AVX2 = 2,
  /**
   * AVX-512, with the faster of the next two, measured as for AVSG_MACHINE_AUTO.
   */
  AVSG_MACHINE_AVX512 = 3,
  /**
   * NEON.
   */
  AVSG_MACHINE_NEON = 4,
  /**
   * AVX-512 with gathers by scalar loads: "avx512".
   */
  AVSG_MACHINE_AVX512_LOADS = 5,
  /**
   * AVX-512 with gathers by vpgatherdd: "avx512 (vpgatherdd)".
   */
  AVSG_MACHINE_AVX512_GATHER = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_machine avsg_machine;
#else
typedef int32_t avsg_machine;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The distribution of misses over cores.
 */
enum avsg_strategy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Equal shares of the misses: the shares of two cores differ by at most one row.
   */
  AVSG_STRATEGY_BALANCED = 0,
  /**
   * Whole requests per core, for comparison.
   */
  AVSG_STRATEGY_REQUEST = 1,
  /**
   * Equal shares of the selected positions, hits included, for comparison.
   */
  AVSG_STRATEGY_POSITION = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_strategy avsg_strategy;
#else
typedef int32_t avsg_strategy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The pages of a pool's memory.
 */
enum avsg_pages
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The same as AVSG_PAGES_HUGE_2M.
   */
  AVSG_PAGES_DEFAULT = 0,
  /**
   * Explicit hugepages of 1 GiB; if the system has none free, AVSG_PAGES_HUGE_2M.
   */
  AVSG_PAGES_HUGE_1G = 1,
  /**
   * Explicit hugepages of 2 MiB; if the system has none free, AVSG_PAGES_THP.
   */
  AVSG_PAGES_HUGE_2M = 2,
  /**
   * Transparent hugepages; if the system does not give them, AVSG_PAGES_PLAIN.
   */
  AVSG_PAGES_THP = 3,
  /**
   * Plain pages.
   */
  AVSG_PAGES_PLAIN = 4,
  /**
   * The caller's memory, or that of an allocator. It appears only in `avsg_pool_info`.
   */
  AVSG_PAGES_CALLER = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_pages avsg_pages;
#else
typedef int32_t avsg_pages;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The access of a process to a pool. A pool has at most one writer at a time.
 */
enum avsg_role
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The process reads rows, and its mapping is read-only.
   */
  AVSG_ROLE_READER = 0,
  /**
   * The process reads and writes rows.
   */
  AVSG_ROLE_WRITER = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_role avsg_role;
#else
typedef int32_t avsg_role;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Status bits of a request. The ids that set them were treated as padding.
 */
enum avsg_request_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * An id was at or above the request's `seq_len`.
   */
  AVSG_REQUEST_ID_OUT_OF_RANGE = 1,
  /**
   * The row of an id was outside the host pool.
   */
  AVSG_REQUEST_ROW_OUT_OF_POOL = 2,
  /**
   * The kernels of an Ascend device were built for smaller tables of blocks of the device buffer than
   * this engine's, so that every id of the batch was treated as padding. A call with a NULL stream is
   * AVSG_INVALID then; in a stream only this bit says so.
   */
  AVSG_REQUEST_TOO_MANY_SLOT_BLOCKS = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_request_status avsg_request_status;
#else
typedef int32_t avsg_request_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How the device "cpu" copies rows.
 */
enum avsg_copier
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The fastest, as the first engine of the process with rows of this length measures it.
   */
  AVSG_COPIER_AUTO = 0,
  /**
   * One memcpy for each row.
   */
  AVSG_COPIER_PLAIN = 1,
  /**
   * Vector copies with prefetch of both ends of a later row.
   */
  AVSG_COPIER_PREFETCH = 2,
  /**
   * Non-temporal stores with prefetch of the source of a later row.
   */
  AVSG_COPIER_STREAM = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_copier avsg_copier;
#else
typedef int32_t avsg_copier;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The importance of a message.
 */
enum avsg_log_level
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A defect of the library.
   */
  AVSG_LOG_ERROR = 1,
  /**
   * Something works, but slower than asked for.
   */
  AVSG_LOG_WARN = 2,
  /**
   * What was measured and chosen.
   */
  AVSG_LOG_INFO = 3,
  /**
   * What was made.
   */
  AVSG_LOG_DEBUG = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_log_level avsg_log_level;
#else
typedef int32_t avsg_log_level;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an allocator is asked for.
 */
enum avsg_memory_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Memory of the process: the chunks of a pool, the outputs of plans, and all memory of an
   * engine on "cpu".
   */
  AVSG_MEMORY_HOST = 0,
  /**
   * Memory of the process that an Ascend device copies from and to, as of aclrtMallocHost.
   */
  AVSG_MEMORY_PINNED = 1,
  /**
   * Memory of an Ascend device, as of aclrtMalloc.
   */
  AVSG_MEMORY_DEVICE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_memory_kind avsg_memory_kind;
#else
typedef int32_t avsg_memory_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The operator on one device: the tables and the device buffer of every state. Engines share
 * nothing but a pool and workers, so that calls on different engines may overlap. On "cpu" the
 * functions of a step allocate nothing and take no lock; they sleep only while another worker runs
 * a piece of the step. After AVSG_DEVICE of a call that may have changed something, the next plan
 * empties every state, and plans that were made before are refused.
 */
typedef struct avsg_engine avsg_engine;

/**
 * The outputs of Stage One for a batch: slots, miss lists and counters. A plan is allocated once
 * for the largest batch and reused in every step. An engine may have several plans that are not
 * transferred to every layer yet.
 */
typedef struct avsg_plan avsg_plan;

/**
 * A host pool: the rows of every layer, in memory that processes can share. The caller must not
 * write a row while another thread writes it or an engine copies it.
 */
typedef struct avsg_pool avsg_pool;

/**
 * The threads that run the launches of one or several engines on "cpu".
 */
typedef struct avsg_workers avsg_workers;

/**
 * Takes a message: one line without a line break, valid during the call. It may be called on any
 * thread and at the same time, and must not call this library.
 */
typedef void (*avsg_log_callback)(void *user, int32_t level, const char *message);

/**
 * Returns the address of `bytes` bytes, at least 1, of an `avsg_memory_kind`, at a multiple of
 * `alignment`: 64, or 4096 for the chunks of a pool. The memory need not be zeroed. NULL, if there
 * is none, makes the call fail with AVSG_NO_MEMORY; another address that is no such multiple, with
 * AVSG_INVALID, and is released.
 */
typedef void *(*avsg_allocate)(void *user, int32_t kind, size_t bytes, size_t alignment);

/**
 * Takes back an address that `avsg_allocate` returned for this kind and number of bytes. Each is
 * released once.
 */
typedef void (*avsg_release)(void *user, int32_t kind, void *address, size_t bytes);

/**
 * An allocator of the caller, for `avsg_pool_config.allocator` and `avsg_engine_config.allocator`.
 * The struct is copied. Its functions may be called until the last object with it is destroyed: a
 * pool until its handle and every engine on it are, an engine until its handle is, a plan until its
 * handle is, in any order.
 *
 * They are called on the threads that create and destroy these objects, and on an Ascend device by
 * a function of a step with host arrays that is given a larger batch than every earlier one
 * (`avsg_memory_bytes` says how much that takes); never by one with a stream, nor by a step on "cpu".
 * For AVSG_MEMORY_PINNED and AVSG_MEMORY_DEVICE the engine's context is the current one of the
 * thread, and at a release no work uses the memory. They must not call this library with the object
 * that they are called for, and no exception may leave them. Threads that create and destroy
 * objects at the same time call them at the same time.
 */
typedef struct avsg_allocator {
  /**
   * sizeof(avsg_allocator).
   */
  size_t size;
  /**
   * The first argument of both functions.
   */
  void *user;
  /**
   * Allocates memory.
   */
  avsg_allocate allocate;
  /**
   * Releases memory.
   */
  avsg_release release;
} avsg_allocator;

/**
 * The configuration of a host pool. `size`, `layers`, `rows`, `segments` and `segment_bytes` must
 * be set.
 */
typedef struct avsg_pool_config {
  /**
   * sizeof(avsg_pool_config).
   */
  size_t size;
  /**
   * The number of layers.
   */
  size_t layers;
  /**
   * Rows of each layer.
   */
  size_t rows;
  /**
   * Segments, the contiguous parts of a row that are apart in memory: 1 to 4. A row of BF16 MLA
   * is one segment of 1152 bytes, or two of 1024 and 128.
   */
  size_t segments;
  /**
   * Bytes of each segment.
   */
  size_t segment_bytes[AVSG_MAX_SEGMENTS];
  /**
   * Bytes from the segment of one row to that of the next, in the pool, the device buffer and
   * the fresh rows; 0 selects `segment_bytes`.
   */
  size_t segment_stride[AVSG_MAX_SEGMENTS];
  /**
   * The largest length of a chunk, the unit that a device registers; 0 selects 64 MiB, and
   * SIZE_MAX makes one chunk of each layer and segment.
   */
  size_t chunk_bytes;
  /**
   * An `avsg_pages`. It is ignored with an allocator.
   */
  int32_t pages;
  /**
   * Must be 0.
   */
  uint32_t reserved;
  /**
   * The caller's allocator, which `avsg_pool_create` takes each chunk from; NULL for memory of the
   * system. A pool with an allocator cannot be exported. Other functions ignore it.
   */
  const struct avsg_allocator *allocator;
} avsg_pool_config;

/**
 * A contiguous range of rows of one layer and segment.
 */
typedef struct avsg_chunk {
  /**
   * The first byte.
   */
  void *data;
  /**
   * The length in bytes.
   */
  size_t bytes;
} avsg_chunk;

/**
 * The description of a pool.
 */
typedef struct avsg_pool_info {
  /**
   * sizeof(avsg_pool_info).
   */
  size_t size;
  /**
   * The number of layers.
   */
  size_t layers;
  /**
   * Rows of each layer.
   */
  size_t rows;
  /**
   * Segments of a row.
   */
  size_t segments;
  /**
   * Bytes of each segment.
   */
  size_t segment_bytes[AVSG_MAX_SEGMENTS];
  /**
   * Bytes from the segment of one row to that of the next.
   */
  size_t segment_stride[AVSG_MAX_SEGMENTS];
  /**
   * Bytes of a row: the sum of `segment_bytes`.
   */
  size_t row_bytes;
  /**
   * Bytes of all chunks.
   */
  size_t bytes;
  /**
   * Bytes of the chunks that are in hugepages.
   */
  size_t huge_bytes;
  /**
   * The number of chunks.
   */
  size_t chunks;
  /**
   * An `avsg_pages`: the kind that the pool has, or AVSG_PAGES_CALLER.
   */
  int32_t pages;
  /**
   * An `avsg_role` of this process.
   */
  int32_t role;
} avsg_pool_info;

/**
 * A contiguous range of the caller's memory, of any length and alignment.
 */
typedef struct avsg_region {
  /**
   * The first byte.
   */
  void *data;
  /**
   * The length in bytes.
   */
  size_t bytes;
  /**
   * The address of the first byte for kernels of the Ascend device, if the caller has registered
   * the memory. 0 lets the library register the pages that the region touches.
   */
  uint64_t device_address;
} avsg_region;

/**
 * Where some rows of one segment are. Row r of layer l is at
 * offset + (l - first_layer) * layer_stride + ((r - first_row) / block_rows) * block_stride +
 * ((r - first_row) % block_rows) * row_stride bytes from the start of the region.
 */
typedef struct avsg_pool_part {
  /**
   * The index of the region.
   */
  size_t region;
  /**
   * Bytes from the start of the region to the first row of the first layer.
   */
  size_t offset;
  /**
   * The index of the segment.
   */
  size_t segment;
  /**
   * The first layer.
   */
  size_t first_layer;
  /**
   * The number of layers.
   */
  size_t layers;
  /**
   * Bytes from one layer to the next; any for one layer.
   */
  size_t layer_stride;
  /**
   * The first row.
   */
  size_t first_row;
  /**
   * The number of rows. If a segment's rows are in several parts, all parts but the last hold the
   * same power of two of rows.
   */
  size_t rows;
} avsg_pool_part;

/**
 * The layout of a pool in memory of the caller. Every row of every layer and segment is in one
 * part. Rows may lie between those of other layers, segments or blocks where the smaller stride
 * stays within the larger one; AVSG_INVALID if two rows overlap. `size`, `row_stride`, `regions`,
 * `region_count`, `parts` and `part_count` must be set.
 */
typedef struct avsg_pool_layout {
  /**
   * sizeof(avsg_pool_layout).
   */
  size_t size;
  /**
   * Rows of a block, a power of two; 0 for rows without blocks.
   */
  size_t block_rows;
  /**
   * Bytes from one block of a segment to the next; ignored if `block_rows` is 0.
   */
  size_t block_stride[AVSG_MAX_SEGMENTS];
  /**
   * Bytes from one row of a block to the next.
   */
  size_t row_stride[AVSG_MAX_SEGMENTS];
  /**
   * The memory.
   */
  const struct avsg_region *regions;
  /**
   * Elements of `regions`: at most `part_count`.
   */
  size_t region_count;
  /**
   * The parts, in any order.
   */
  const struct avsg_pool_part *parts;
  /**
   * Elements of `parts`: at most layers * rows * segments.
   */
  size_t part_count;
} avsg_pool_layout;

/**
 * A task of the library, which an executor calls with `data` and an index.
 */
typedef void (*avsg_task)(void *data, size_t index);

/**
 * A function of the caller that calls task(data, i) once for each i below `count`, on any threads
 * and at the same time where it can, and returns when all these calls have returned. One thread at
 * a time calls it. A call that it leaves out costs only speed. No exception may leave it.
 */
typedef void (*avsg_executor)(void *user, avsg_task task, void *data, size_t count);

/**
 * The configuration of workers. `size` and `threads` must be set.
 */
typedef struct avsg_workers_config {
  /**
   * sizeof(avsg_workers_config).
   */
  size_t size;
  /**
   * Threads that run a launch, the caller's included: 1 to 1024. With an executor, the tasks
   * that it gets.
   */
  uint32_t threads;
  /**
   * 1 pins each started thread to one of `cpus`, to which no other workers of this process are
   * pinned (AVSG_INVALID if too few are left); with no `cpus`, to one of the thread's that calls,
   * of which the first is left to the caller. 0 leaves the choice to the system.
   */
  uint32_t pin;
  /**
   * The CPUs that started threads may use; NULL for those of the thread that calls.
   */
  const int32_t *cpus;
  /**
   * The number of `cpus`.
   */
  size_t cpu_count;
  /**
   * Microseconds that a thread polls before it sleeps: a started thread for the next launch, and
   * any thread for the pieces of the others. 0 selects 100, and -1 none.
   */
  int32_t spin_us;
  /**
   * Must be 0.
   */
  uint32_t reserved;
  /**
   * The caller's threads. NULL starts threads.
   */
  avsg_executor executor;
  /**
   * The first argument of `executor`, which is called on the threads of the engines' callers.
   */
  void *user;
} avsg_workers_config;

/**
 * A device buffer in memory of the caller: process memory for "cpu", device memory for an Ascend
 * device, and its table of blocks, too. Slot s of state t has the index n = t * S + s. In each layer
 * and segment it is at base + (n / block_slots) * block_stride + (n % block_slots) * slot_stride. The
 * memory, which need not be zeroed but must be initialised, is valid until the engine is destroyed,
 * serves one engine, and is written by it only. Slots may lie between those of other layers or states
 * where the smaller stride stays within the larger one; AVSG_INVALID if they overlap each other,
 * rows of the pool or `block_table`. `size`, `bases`, `base_count` and `slot_stride` must be set.
 */
typedef struct avsg_caller_buffer {
  /**
   * sizeof(avsg_caller_buffer).
   */
  size_t size;
  /**
   * bases[layer * segments + segment] is the address of index 0.
   */
  void *const *bases;
  /**
   * Elements of `bases`: layers * segments.
   */
  size_t base_count;
  /**
   * Slots of a block, a power of two up to S; 0 for slots without blocks. S gives the states a
   * stride of their own.
   */
  size_t block_slots;
  /**
   * Bytes from one block of a segment to the next; ignored if `block_slots` is 0.
   */
  size_t block_stride[AVSG_MAX_SEGMENTS];
  /**
   * Bytes from one slot of a block to the next.
   */
  size_t slot_stride[AVSG_MAX_SEGMENTS];
  /**
   * NULL, or the blocks of each state in any order, S / block_slots per state: slot s of state t
   * is slot s % block_slots of block block_table[t * (S / block_slots) + s / block_slots]. The
   * work of every call that plans or transfers reads this array, which must stay valid and is not
   * written meanwhile. An entry may change together with the generation of its state. On "cpu" a
   * call that names a state with an entry outside of 0..blocks is AVSG_INVALID. Kernels read the
   * array when they run, in a replay too: they leave out the rows of such a block, whose slots then
   * hold other rows until the state has a new generation. An Ascend device takes at most 512
   * entries per state.
   */
  const int32_t *block_table;
  /**
   * Elements of `block_table`.
   */
  size_t block_table_len;
  /**
   * With a table, the number of blocks of the memory.
   */
  size_t blocks;
} avsg_caller_buffer;

/**
 * The configuration of an engine. `size`, `k`, `tokens`, `slots` and `states` must be set.
 */
typedef struct avsg_engine_config {
  /**
   * sizeof(avsg_engine_config).
   */
  size_t size;
  /**
   * A name of `avsg_devices`, or NULL for "cpu". An Ascend device needs a pool of pages that its
   * driver can register (AVSG_DEVICE otherwise; try smaller `pages`), rows of one or two
   * segments, and AVSG_STRATEGY_BALANCED. Its engines on one pool share one registration.
   */
  const char *device;
  /**
   * K, the largest number of ids per row: 1 to S.
   */
  uint32_t k;
  /**
   * N_q, the largest number of rows of a request in one step: 1 to 8, with N_q * K at most S.
   */
  uint32_t tokens;
  /**
   * S, the number of slots per state and layer: a power of two from 64 (128 on an Ascend device)
   * to 32768.
   */
  uint32_t slots;
  /**
   * An `avsg_table`.
   */
  int32_t table;
  /**
   * The first multiplier of the paper's hash, odd. If both are 0, they are Knuth's and xxHash's.
   * A wide table ignores both.
   */
  uint32_t paper_a1;
  /**
   * The second multiplier of the paper's hash, odd.
   */
  uint32_t paper_a2;
  /**
   * An `avsg_lifetime`.
   */
  int32_t lifetime;
  /**
   * The constant lifetime in decode steps: 0 to 127 (1 to 127 in a paper table). 0 unless
   * `lifetime` is AVSG_LIFETIME_CONSTANT.
   */
  int32_t life;
  /**
   * The decay of frequency lifetimes per step: 0.5 to 0.965; 0 selects 0.87. 0 unless `lifetime`
   * is AVSG_LIFETIME_FREQUENCY.
   */
  double lambda;
  /**
   * Links per slot: 1, 2 or 4; 0 selects 4 for a wide table and 1 for a paper table.
   */
  uint32_t spread;
  /**
   * R, the number of links probed after the first: 1 to 15; 0 selects 3, and -1 selects none.
   */
  int32_t retries;
  /**
   * Tokens per block of the host's block tables: a power of two up to 65536. 0 means no block
   * tables: row x of the pool belongs to id x.
   */
  uint32_t page;
  /**
   * An `avsg_machine`, used by "cpu".
   */
  int32_t machine;
  /**
   * An `avsg_strategy`.
   */
  int32_t strategy;
  /**
   * Cores to use: 1 to 1024; 0 selects all cores of the device, or all CPUs that this process
   * may use, or one for each thread of `workers`. On "cpu" a core is a share of the copies, which
   * any free thread takes. An Ascend device uses at most the cores that it has, and in a stream
   * at most the stream's limit (aclrtSetStreamResLimit) at the time of the call.
   */
  uint32_t cores;
  /**
   * Request states: the largest number of requests that are resident at a time.
   */
  size_t states;
  /**
   * The path of the kernels of this geometry, a file or a folder: compiled ones for "ascend"
   * (`avsg emit` writes their sources), sources for "ascend-sim". NULL selects the kernels in
   * this library. For "ascend" these are the kernels of the default geometries, and only if the
   * library was built with the package feature `kernels` where CANN's compiler is installed
   * (AVSG_INVALID otherwise); for "ascend-sim" they are those of every geometry. "cpu" ignores
   * it.
   */
  const char *kernels;
  /**
   * The path of the runtime's library (libascendcl.so) for "ascend". NULL searches the system's
   * library path.
   */
  const char *runtime;
  /**
   * The index of the device, as the runtime counts devices.
   */
  int32_t device_id;
  /**
   * Milliseconds after which a call stops waiting for an Ascend device; 0 selects 10000.
   */
  uint32_t timeout_ms;
  /**
   * Kernels that `avsg_engine_step` launches on an Ascend device. 1: a single kernel, which
   * starts when all its cores are idle, and whose cores wait for each other between the stages.
   * 2: one per stage, so that other streams can compute beside them. 0: one with a NULL stream,
   * and two in a stream.
   */
  uint32_t launches;
  /**
   * Must be 0.
   */
  uint32_t reserved;
  /**
   * The threads of "cpu", which other engines may share. NULL starts a thread for each core but
   * the caller's, not more than CPUs, and pins none.
   */
  const struct avsg_workers *workers;
  /**
   * An `avsg_copier`, used by "cpu".
   */
  int32_t copier;
  /**
   * The distance of the later row that AVSG_COPIER_PREFETCH and AVSG_COPIER_STREAM prefetch, in
   * rows: 0 to 64; 0 prefetches nothing.
   */
  uint32_t copier_ahead;
  /**
   * layer_indexer[l] is the indexer of layer l of the pool, numbered from 0 without a gap. The
   * layers of one indexer share a table of each state and are served by one plan. NULL means one
   * indexer for all layers.
   */
  const uint32_t *layer_indexer;
  /**
   * Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
   */
  size_t layer_indexers;
  /**
   * The memory of the slots; NULL lets the engine allocate it.
   */
  const struct avsg_caller_buffer *buffer;
  /**
   * 1 makes the slots that a plan returns (`avsg_plan_arrays.slot`) indices among the slots of all
   * states: slot_base + state * S + slot, or the place of the slot in a buffer with a table of
   * blocks (-1 if the device found its block outside of the buffer). 0 leaves them slots of their
   * state. Miss lists always have slots of the state.
   */
  int32_t global_slots;
  /**
   * Added to every index if `global_slots` is 1; 0 or more.
   */
  int32_t slot_base;
  /**
   * The caller's allocator for the memory of the engine and of its plans (`avsg_memory_bytes`);
   * NULL for that of the system and of the device.
   */
  const struct avsg_allocator *allocator;
} avsg_engine_config;

/**
 * Device memory of an engine, in bytes.
 */
typedef struct avsg_engine_memory {
  /**
   * sizeof(avsg_engine_memory).
   */
  size_t size;
  /**
   * Bytes of the device buffer: S rows for each state and layer.
   */
  size_t buffer;
  /**
   * Bytes of the tables and, on "cpu", of the cores' working memory.
   */
  size_t tables;
} avsg_engine_memory;

/**
 * The description of an engine: its configuration with the defaults filled in, and what creation
 * measured.
 */
typedef struct avsg_engine_info {
  /**
   * sizeof(avsg_engine_info).
   */
  size_t size;
  /**
   * The name of the device.
   */
  char device[16];
  /**
   * The vector instructions, such as "avx512"; "none" on an Ascend device.
   */
  char machine[32];
  /**
   * The method that copies rows, such as "stream+8"; "none" on an Ascend device.
   */
  char copier[32];
  /**
   * K, the largest number of ids per row.
   */
  uint32_t k;
  /**
   * N_q, the largest number of rows of a request in one step.
   */
  uint32_t tokens;
  /**
   * S, the number of slots per state and layer.
   */
  uint32_t slots;
  /**
   * An `avsg_table`.
   */
  int32_t table;
  /**
   * AVSG_LIFETIME_CONSTANT or AVSG_LIFETIME_FREQUENCY.
   */
  int32_t lifetime;
  /**
   * The constant lifetime in decode steps; 0 with AVSG_LIFETIME_FREQUENCY.
   */
  int32_t life;
  /**
   * Links per slot.
   */
  uint32_t spread;
  /**
   * R, the number of links probed after the first.
   */
  uint32_t retries;
  /**
   * Tokens per block of the host's block tables; 0 if there are none.
   */
  uint32_t page;
  /**
   * Cores in use.
   */
  uint32_t cores;
  /**
   * Request states.
   */
  size_t states;
  /**
   * Layers of the pool.
   */
  size_t layers;
  /**
   * Bytes of the device buffer.
   */
  size_t buffer_bytes;
  /**
   * Threads that run a launch on "cpu", the caller's included; 0 on an Ascend device.
   */
  uint32_t threads;
  /**
   * Always 0.
   */
  uint32_t reserved;
  /**
   * Indexers: the tables of each state.
   */
  size_t indexers;
} avsg_engine_info;

/**
 * The device buffer of one layer and segment. Slot s of state t is at
 * base + t * state_stride + s * slot_stride.
 */
typedef struct avsg_buffer {
  /**
   * sizeof(avsg_buffer).
   */
  size_t size;
  /**
   * Slot 0 of state 0, in the device's memory. The pages of `avsg_engine_block_table` count from
   * here.
   */
  void *base;
  /**
   * Bytes from one slot to the next: the segment's stride.
   */
  size_t slot_stride;
  /**
   * Bytes from one state to the next: S * slot_stride.
   */
  size_t state_stride;
  /**
   * Bytes of the segment in a row.
   */
  size_t bytes;
} avsg_buffer;

/**
 * The memory of a pool, an engine and a plan by `avsg_memory_kind`, in bytes. What is 0 on "cpu" has
 * a value on an Ascend device only.
 */
typedef struct avsg_memory {
  /**
   * sizeof(avsg_memory).
   */
  size_t size;
  /**
   * What `avsg_pool_create` takes of AVSG_MEMORY_HOST; without an allocator, at most.
   */
  size_t pool;
  /**
   * What `avsg_engine_create` takes of AVSG_MEMORY_HOST: on "cpu" the device buffer, the tables of
   * all indexers and the cores' working memory; on an Ascend device a copy of one table.
   */
  size_t engine_host;
  /**
   * What it takes of AVSG_MEMORY_DEVICE: the device buffer, the tables of all indexers, 8 bytes for
   * each chunk of the pool, and 512 bytes with AVSG_LIFETIME_FREQUENCY; 0 on "cpu".
   */
  size_t engine_device;
  /**
   * What `avsg_plan_create` takes of AVSG_MEMORY_HOST.
   */
  size_t plan_host;
  /**
   * What it takes of AVSG_MEMORY_PINNED; 0 on "cpu".
   */
  size_t plan_pinned;
  /**
   * What it takes of AVSG_MEMORY_DEVICE; 0 on "cpu". `plan_pinned` and this are released when a
   * later plan of the engine is created, or with the engine.
   */
  size_t plan_device;
  /**
   * What the functions of a step with a NULL stream add of AVSG_MEMORY_PINNED once the largest
   * batch and the largest append came; 0 on "cpu". An engine takes it once for all its plans.
   */
  size_t staging_pinned;
  /**
   * What they add of AVSG_MEMORY_DEVICE; 0 on "cpu".
   */
  size_t staging_device;
} avsg_memory;

/**
 * The arrays of a plan. Their addresses never change. Their contents are those of the last batch,
 * until the next call that plans into the same plan.
 */
typedef struct avsg_plan_arrays {
  /**
   * sizeof(avsg_plan_arrays).
   */
  size_t size;
  /**
   * Elements from one row of `slot` and of the miss lists to the next: the engine's K.
   */
  size_t k;
  /**
   * slot[row * k + i] is the slot of the i-th id of a row, or -1 for padding and for i at or
   * above the batch's `k`.
   */
  const int32_t *slot;
  /**
   * valid[row] is the number of ids of a row that have a slot.
   */
  const int32_t *valid;
  /**
   * The batch's `cu_q`.
   */
  const int32_t *cu_q;
  /**
   * record[request * 16 + g] is the number of misses of the request's g-th row (g < 8). Element
   * 8 of the 16 is the request's number of misses, and element 9 its `avsg_request_status` bits.
   */
  const int32_t *record;
  /**
   * The miss lists: miss j of a request, in row order, is at index cu_q[request] * k + j of each
   * of the four arrays. This one has its position: (row within the request) * k + i.
   */
  const int32_t *miss_position;
  /**
   * The id of each miss.
   */
  const int32_t *miss_id;
  /**
   * The slot that each miss got.
   */
  const int32_t *miss_slot;
  /**
   * The row of each miss in the host pool, or -1 - g for the request's g-th fresh row.
   */
  const int32_t *miss_row;
} avsg_plan_arrays;

/**
 * The counters of the last batch planned; all 0 before the first.
 */
typedef struct avsg_plan_counters {
  /**
   * sizeof(avsg_plan_counters).
   */
  size_t size;
  /**
   * Requests, padded ones included.
   */
  size_t requests;
  /**
   * Rows of the batch.
   */
  size_t rows;
  /**
   * Selected ids that have a slot.
   */
  size_t selected;
  /**
   * Hits among `selected`.
   */
  size_t hits;
  /**
   * Misses among `selected`: the rows that one transfer copies.
   */
  size_t misses;
  /**
   * The `avsg_request_status` bits of all requests, combined by OR.
   */
  int32_t status;
  /**
   * Always 0.
   */
  int32_t reserved;
  /**
   * The number of this batch among all that its engine has planned, from 1. Messages name plans
   * by it.
   */
  uint64_t number;
} avsg_plan_counters;

/**
 * The outputs for one request: the parts of `avsg_plan_arrays` that belong to it.
 */
typedef struct avsg_plan_request {
  /**
   * sizeof(avsg_plan_request).
   */
  size_t size;
  /**
   * The first row of the request in the batch.
   */
  size_t first_row;
  /**
   * The number of rows of the request.
   */
  size_t rows;
  /**
   * The slots, from the request's first row on.
   */
  const int32_t *slot;
  /**
   * The numbers of valid ids, from the request's first row on.
   */
  const int32_t *valid;
  /**
   * The number of misses, which is the length of the four arrays below.
   */
  size_t misses;
  /**
   * The position of each miss.
   */
  const int32_t *miss_position;
  /**
   * The id of each miss.
   */
  const int32_t *miss_id;
  /**
   * The slot of each miss.
   */
  const int32_t *miss_slot;
  /**
   * The row of each miss.
   */
  const int32_t *miss_row;
  /**
   * The request's `avsg_request_status` bits.
   */
  int32_t status;
  /**
   * Always 0.
   */
  int32_t reserved;
} avsg_plan_request;

/**
 * An array of int32_t. Its length is checked against the batch.
 */
typedef struct avsg_i32s {
  /**
   * The first element.
   */
  const int32_t *data;
  /**
   * The number of elements.
   */
  size_t len;
} avsg_i32s;

/**
 * The batch of one decode step. The rule Streams states which memory the arrays are in. One that
 * overlaps the outputs of the call's plan, or the device buffer or a table of its engine, is
 * AVSG_INVALID in a call that plans. In a stream the number of rows is read
 * on the device and is at most what `ids` has elements for. An array has one element per request
 * unless its comment states a different length.
 */
typedef struct avsg_batch {
  /**
   * sizeof(avsg_batch).
   */
  size_t size;
  /**
   * The selected ids: row r has `k` of them from r * ids_stride on. A negative id is padding. An
   * id at or above its request's `seq_len`, or that misses and whose row is outside the pool, is
   * treated as padding and sets an `avsg_request_status` bit. An id that hits keeps its slot also
   * if its block has left the pool or the block table. An id may occur in a row more than once:
   * all that hit have one slot, and each that misses takes a slot and a copy of its own
   * (`avsg_plan_count_duplicates`).
   */
  struct avsg_i32s ids;
  /**
   * Elements from one row of `ids` to the next, at least `k`.
   */
  size_t ids_stride;
  /**
   * Ids per row: 1 to the engine's K.
   */
  size_t k;
  /**
   * The first row of each request, and then the number of rows: requests + 1 elements that begin
   * at 0 and ascend by at most N_q.
   */
  struct avsg_i32s cu_q;
  /**
   * The state of each request, distinct, or -1 for a padded request, whose slots become -1 and
   * which copies nothing. Its length is the number of requests.
   */
  struct avsg_i32s state;
  /**
   * The generation of each request, by the rule Generations.
   */
  struct avsg_i32s generation;
  /**
   * The number of tokens whose rows were final before this step: the context length without this
   * step's tokens. Slots of ids from there on are emptied first, and the rows of those ids are
   * fresh rows. -1 disables both.
   */
  struct avsg_i32s stable_len;
  /**
   * The sequence length with this step's tokens, at most 4194304. If `stable_len` is not -1, it is
   * at least `stable_len` and at most `stable_len` plus the request's rows.
   */
  struct avsg_i32s seq_len;
  /**
   * The pool's blocks of each request, `block_stride` elements per request; empty if the
   * engine's `page` is 0.
   */
  struct avsg_i32s block_table;
  /**
   * Elements from one request of `block_table` to the next.
   */
  size_t block_stride;
  /**
   * The indexer that selected the ids: a number of `avsg_engine_config.layer_indexer`, or 0 in an
   * engine with one indexer. An append ignores it.
   */
  size_t indexer;
  /**
   * In a stream, the most rows that `cu_q` counts in an append: 0 means those that `ids` has
   * elements for, or N_q per request without ids. Other calls ignore it.
   */
  size_t rows;
} avsg_batch;

/**
 * The fresh rows of a step. In each segment, row r of the batch is at r * (the segment's stride).
 * The rule Streams states which memory they are in; a call that transfers refuses rows that overlap
 * what it writes, as it refuses arrays of a batch.
 */
typedef struct avsg_fresh {
  /**
   * sizeof(avsg_fresh).
   */
  size_t size;
  /**
   * The number of segments, which is the pool's.
   */
  size_t segments;
  /**
   * The first row of each segment.
   */
  const void *data[AVSG_MAX_SEGMENTS];
  /**
   * Bytes at each of `data`: at least (rows - 1) * stride + (bytes of the segment), in a stream
   * for the largest number of rows that the batch can have.
   */
  size_t bytes[AVSG_MAX_SEGMENTS];
} avsg_fresh;

/**
 * The ids that `avsg_engine_load` puts into the slots of one state.
 */
typedef struct avsg_load {
  /**
   * sizeof(avsg_load).
   */
  size_t size;
  /**
   * The ids, at most S of them, in host memory.
   */
  struct avsg_i32s ids;
  /**
   * The pool's blocks of the request, in host memory; empty if the engine's `page` is 0.
   */
  struct avsg_i32s block_table;
  /**
   * The indexer, whose layers get the rows.
   */
  size_t indexer;
  /**
   * The state.
   */
  int32_t state;
  /**
   * The generation of the request, by the rule Generations.
   */
  int32_t generation;
  /**
   * The sequence length. Ids at or above it are padding.
   */
  int32_t seq_len;
  /**
   * Must be 0.
   */
  int32_t reserved;
} avsg_load;

/**
 * What an engine has done since it was made. Every number only grows. A load counts as its plans
 * and transfers. The host does not see what work in a caller's stream plans and copies: of such
 * calls only `queued` is counted. Times are those of the calling thread, in nanoseconds.
 */
typedef struct avsg_engine_stats {
  /**
   * sizeof(avsg_engine_stats).
   */
  size_t size;
  /**
   * Batches planned, with or without a transfer in the same call.
   */
  uint64_t plans;
  /**
   * Transfers of a plan to a layer, with or without a plan in the same call.
   */
  uint64_t transfers;
  /**
   * Appends to a layer.
   */
  uint64_t appends;
  /**
   * Calls that were put into a caller's stream.
   */
  uint64_t queued;
  /**
   * Selected ids that had a slot.
   */
  uint64_t hits;
  /**
   * Selected ids that got a slot.
   */
  uint64_t misses;
  /**
   * Those of the misses whose slot an earlier id had been given since the state was last empty:
   * the id was evicted, or had been invalidated.
   */
  uint64_t evictions;
  /**
   * Bytes that transfers copied to slots, from the pool or from fresh rows.
   */
  uint64_t transferred_bytes;
  /**
   * Bytes of the fresh rows of appends.
   */
  uint64_t appended_bytes;
  /**
   * Time in Stage One.
   */
  uint64_t plan_ns;
  /**
   * Time in Stage Two.
   */
  uint64_t transfer_ns;
  /**
   * Time of steps on an Ascend device, whose stages the host cannot tell apart.
   */
  uint64_t step_ns;
  /**
   * Time in appends.
   */
  uint64_t append_ns;
} avsg_engine_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the interface version of the loaded library. A program must not use a library whose
 * version differs from the `AVSG_ABI_VERSION` that it was built with.
 */
uint32_t avsg_abi_version(void);

/**
 * Returns the version of the library, such as "0.1.0". The string is valid for ever.
 */
const char *avsg_version(void);

/**
 * Returns the names for `avsg_engine_config.device`, separated by spaces. "ascend" needs a runtime
 * library, which the creation of an engine searches. "ascend-sim" is among them if the library was
 * built with the simulator (`cargo build -p avsg-capi-so --features sim`). The string is valid for
 * ever.
 */
const char *avsg_devices(void);

/**
 * Returns the message of the last failure on the calling thread, or an empty string before the
 * first one. Calls that succeed do not change it. The string is valid until the next call that
 * fails on this thread, or until the thread ends.
 */
const char *avsg_last_error(void);

/**
 * Returns the name of a status, such as "AVSG_BUSY", or "unknown status" for another number. The
 * string is never NULL and valid for ever.
 */
const char *avsg_status_name(int32_t status);

/**
 * Sets the function that takes the messages of the library up to `level`, an `avsg_log_level`, for
 * the whole process; NULL takes none, as before the first call. After this function has returned,
 * an earlier callback is not called any more. The library writes messages nowhere else, and no
 * call of a step says anything. AVSG_UNSUPPORTED: the process is a Rust program with a logger of
 * its own, which gets the messages.
 *
 * Pointers: Until it is replaced, `callback` may be called with `user` on any thread.
 */
avsg_status avsg_set_log(avsg_log_callback callback, void *user, int32_t level);

/**
 * Computes the largest number of bytes that `avsg_pool_create` allocates with this configuration. With
 * an allocator it is exactly what that is asked for, in AVSG_MEMORY_HOST.
 */
avsg_status avsg_pool_bytes(const struct avsg_pool_config *config,
                            size_t *bytes);

/**
 * Creates a pool in zeroed memory that is resident from the start, and makes this process its
 * writer. Memory of an allocator is zeroed by the calling thread.
 */
avsg_status avsg_pool_create(const struct avsg_pool_config *config, struct avsg_pool **pool);

/**
 * Computes the length of each chunk of a pool over the caller's memory, layer by layer and segment
 * by segment in each. `count` receives the number of chunks, even if `capacity` is below it, which
 * is AVSG_INVALID. A `capacity` of 0 asks for `count` only.
 */
avsg_status avsg_pool_chunk_bytes(const struct avsg_pool_config *config,
                                  size_t *bytes,
                                  size_t capacity,
                                  size_t *count);

/**
 * Creates a pool over memory of the caller, such as that of a device's own allocator. Each chunk
 * has at least the length that `avsg_pool_chunk_bytes` gives, and none overlaps another, which is
 * AVSG_INVALID. The pool cannot be exported.
 *
 * Pointers: The chunks do not overlap, and their memory is valid for reads and writes until the pool's
 * handle and every engine on the pool are destroyed.
 */
avsg_status avsg_pool_from_memory(const struct avsg_pool_config *config,
                                  const struct avsg_chunk *chunks,
                                  size_t count,
                                  struct avsg_pool **pool);

/**
 * Describes a pool.
 */
avsg_status avsg_pool_get_info(const struct avsg_pool *pool, struct avsg_pool_info *info);

/**
 * Gives every chunk of a pool, for registration with a device, in the order and with the
 * `capacity` and `count` of `avsg_pool_chunk_bytes`. The chunks are read-only for a reader.
 */
avsg_status avsg_pool_chunks(const struct avsg_pool *pool,
                             struct avsg_chunk *chunks,
                             size_t capacity,
                             size_t *count);

/**
 * Makes this process a reader of the pool, so that another process can become its writer.
 * AVSG_BUSY while the pool has engines; destroy them first.
 */
avsg_status avsg_pool_demote(struct avsg_pool *pool);

/**
 * Destroys the handle of a pool.
 */
avsg_status avsg_pool_destroy(struct avsg_pool *pool);

/**
 * Creates a pool over memory of the caller as it is: rows may be anywhere that an `avsg_pool_part`
 * can describe (token-major, layer-major, block-major, with padding after rows or blocks), in one
 * region or several, of any length and alignment. Of `config`, only `layers`, `rows`, `segments`,
 * `segment_bytes` and, for the fresh rows and the device buffer, `segment_stride` are used. The
 * pool cannot be exported. The structs and arrays are not used after the call.
 *
 * Pointers: No two rows overlap. The regions are valid for reads and writes, and their device addresses those
 * of registered memory, until the pool's handle and every engine on the pool are destroyed.
 */
avsg_status avsg_pool_from_layout(const struct avsg_pool_config *config,
                                  const struct avsg_pool_layout *layout,
                                  struct avsg_pool **pool);

/**
 * Writes a row from `data`, which has its segments one after another. Another thread or process
 * that reads the row at the same time may read a mix of old and new bytes.
 */
avsg_status avsg_pool_write_row(const struct avsg_pool *pool,
                                size_t layer,
                                size_t row,
                                const void *data,
                                size_t bytes);

/**
 * Copies a row to `data`, with its segments one after another.
 */
avsg_status avsg_pool_read_row(const struct avsg_pool *pool,
                               size_t layer,
                               size_t row,
                               void *data,
                               size_t bytes);

/**
 * Gives the address of a segment of a row, for reads in place while no thread or process writes
 * the row.
 */
avsg_status avsg_pool_row(const struct avsg_pool *pool,
                          size_t layer,
                          size_t segment,
                          size_t row,
                          const void **data);

/**
 * Gives the address of a segment of a row as `avsg_pool_row` does, for writes in place.
 * AVSG_INVALID if this process is a reader.
 */
avsg_status avsg_pool_row_mut(const struct avsg_pool *pool,
                              size_t layer,
                              size_t segment,
                              size_t row,
                              void **data);

/**
 * Gives what another process needs to map this pool: the descriptor in `desc`, whose `desc_bytes`
 * must be at least AVSG_POOL_DESC_BYTES, and a new file descriptor of the memory in `fd`. The
 * caller passes `fd` on (by inheritance or SCM_RIGHTS) and closes it. A process that has `fd` can
 * map the memory. AVSG_INVALID for a pool over the caller's memory.
 */
avsg_status avsg_pool_export(const struct avsg_pool *pool,
                             uint8_t *desc,
                             size_t desc_bytes,
                             int32_t *fd);

/**
 * Maps a pool that another process exported, as an `avsg_role`. The caller still owns `fd` and may
 * close it. AVSG_INVALID for AVSG_ROLE_WRITER while the pool has a writer, which ceases to be one
 * by `avsg_pool_destroy`, by `avsg_pool_demote` or when its process ends.
 */
avsg_status avsg_pool_import(const uint8_t *desc,
                             size_t desc_bytes,
                             int32_t fd,
                             int32_t as_role,
                             struct avsg_pool **pool);

/**
 * Exports a pool as `avsg_pool_export` does and sends it over a connected Unix socket. The caller
 * owns the socket, which must be blocking and not be used by anything else during the call. A
 * signal does not end the call.
 */
avsg_status avsg_pool_send(const struct avsg_pool *pool, int32_t socket);

/**
 * Waits for a pool that `avsg_pool_send` sends, and imports it as `avsg_pool_import` does. A signal
 * does not end the wait. AVSG_NO_MEMORY if the file lacks more pages than the machine can give.
 */
avsg_status avsg_pool_recv(int32_t socket, int32_t as_role, struct avsg_pool **pool);

/**
 * Makes workers, for engines whose configuration names them. Workers that start threads take no
 * more than `threads` - 1. Several engines may share workers: a launch that finds them in use runs
 * on its caller's thread alone, with the same result.
 *
 * Pointers: The pointers keep the rule Pointers. `executor` may be called until the workers' handle and
 * every engine with them are destroyed.
 */
avsg_status avsg_workers_create(const struct avsg_workers_config *config,
                                struct avsg_workers **workers);

/**
 * Destroys the handle of workers. The threads end when the last engine with them is destroyed.
 */
avsg_status avsg_workers_destroy(struct avsg_workers *workers);

/**
 * Computes the device memory of an engine with this configuration on a pool of that one, and
 * allocates nothing. It checks as `avsg_memory_bytes` does.
 */
avsg_status avsg_engine_bytes(const struct avsg_engine_config *config,
                              const struct avsg_pool_config *pool,
                              struct avsg_engine_memory *memory);

/**
 * Creates an engine with the layers and the row format of the pool, allocates all its memory and
 * starts its cores. On "cpu" the automatic choices of instructions and copy method are measured by
 * the first engine of a process (the copy method, for each length of a row), which takes tens of
 * milliseconds; every later engine takes the same ones. On an Ascend device it loads the kernels, which
 * "ascend-sim" first compiles with the C++ compiler. AVSG_UNSUPPORTED: the library or the machine
 * lacks the device, and the message lists what was tried.
 */
avsg_status avsg_engine_create(const struct avsg_engine_config *config,
                               const struct avsg_pool *pool,
                               struct avsg_engine **engine);

/**
 * Describes an engine.
 */
avsg_status avsg_engine_get_info(const struct avsg_engine *engine, struct avsg_engine_info *info);

/**
 * Gives the table of one state and indexer 0 as words: header, ids, lifetimes, links. It is meant for snapshots
 * and tests. The words are valid until the next call that takes the engine's handle as a non-const
 * pointer. On an Ascend device they are copied without waiting for the caller's streams:
 * synchronize those first.
 */
avsg_status avsg_engine_table(struct avsg_engine *engine,
                              size_t state,
                              const int32_t **words,
                              size_t *count);

/**
 * Gives the table of one state and any indexer, as `avsg_engine_table` does.
 */
avsg_status avsg_engine_indexer_table(struct avsg_engine *engine,
                                      size_t indexer,
                                      size_t state,
                                      const int32_t **words,
                                      size_t *count);

/**
 * Destroys an engine with its cores, tables and device buffer. Its plans are destroyed separately,
 * and their host arrays stay readable until then. AVSG_DEVICE: the runtime refused to release
 * something, and the rest was released; the handle is invalid in any case.
 */
avsg_status avsg_engine_destroy(struct avsg_engine *engine);

/**
 * Describes the device buffer of a layer and segment, which attention reads. Its memory is valid
 * until the engine is destroyed, and only the engine may write it. AVSG_INVALID for a buffer of the
 * caller whose slots are no single stride apart.
 */
avsg_status avsg_engine_buffer(const struct avsg_engine *engine,
                               size_t layer,
                               size_t segment,
                               struct avsg_buffer *buffer);

/**
 * Computes the memory of a pool, of an engine on it, and of a plan for batches of at most `max_rows`
 * rows and `max_requests` requests, and allocates nothing. It refuses what `avsg_pool_create`,
 * `avsg_engine_create` and `avsg_plan_create` refuse in a configuration; what they find on the machine
 * (memory, threads, devices, kernels) it does not look at. An allocator in the configurations is
 * asked for exactly these bytes. `block_stride` is that of the largest batch with host arrays; only
 * the staging memory depends on it, which is a sum of powers of two and exact for the largest batch.
 * On a pool of `avsg_pool_from_layout` the chunks are the parts of each layer.
 */
avsg_status avsg_memory_bytes(const struct avsg_engine_config *config,
                              const struct avsg_pool_config *pool,
                              size_t max_rows,
                              size_t max_requests,
                              size_t block_stride,
                              struct avsg_memory *memory);

/**
 * Creates a plan for batches of at most `max_rows` rows and `max_requests` requests, each 1 to
 * 1048576. `avsg_memory_bytes` computes its memory: on "cpu" 20 * K + 4 bytes per row and 80 bytes
 * per request.
 */
avsg_status avsg_plan_create(const struct avsg_engine *engine,
                             size_t max_rows,
                             size_t max_requests,
                             struct avsg_plan **plan);

/**
 * Destroys a plan.
 */
avsg_status avsg_plan_destroy(struct avsg_plan *plan);

/**
 * Gives the addresses of a plan's arrays in host memory.
 */
avsg_status avsg_plan_get_arrays(const struct avsg_plan *plan, struct avsg_plan_arrays *arrays);

/**
 * Gives the addresses of a plan's arrays in device memory, which is freed with the engine. `cu_q`
 * is NULL, because the batch has it. On "cpu" this is `avsg_plan_get_arrays`.
 */
avsg_status avsg_plan_get_device_arrays(const struct avsg_plan *plan,
                                        struct avsg_plan_arrays *arrays);

/**
 * Computes a plan's counters in O(rows).
 */
avsg_status avsg_plan_get_counters(const struct avsg_plan *plan,
                                   struct avsg_plan_counters *counters);

/**
 * Counts the ids of the last batch planned that a row selects again. An indexer selects each id
 * once, so that a number above 0 shows a defect of the caller, which costs slots and copies. It
 * sorts each row, and is meant for tests.
 */
avsg_status avsg_plan_count_duplicates(const struct avsg_plan *plan, size_t *count);

/**
 * Gives the outputs for one request of the last batch planned.
 */
avsg_status avsg_plan_get_request(const struct avsg_plan *plan,
                                  size_t request,
                                  struct avsg_plan_request *outputs);

/**
 * Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one
 * plan.
 *
 * Rules: Pointers and Streams.
 */
avsg_status avsg_engine_plan(struct avsg_engine *engine,
                             const struct avsg_batch *batch,
                             struct avsg_plan *plan,
                             void *stream);

/**
 * Stage Two: copies the rows of a plan's misses to the slots of one layer. `fresh` may be NULL if
 * no miss is a fresh row. A plan that was made with a NULL stream is transferred with one. A plan
 * that was made in a stream is transferred in a stream after the plan's work, and the batch's
 * `cu_q` and `state` must not change before.
 *
 * Order: every plan with a miss must be transferred to every layer that attention reads. The plans
 * of one state must be transferred to a layer in the order in which they were made: a plan older
 * than the last one transferred, or one with an older plan missing, is AVSG_INVALID. There is no
 * other constraint: a plan may go to the layers in any order and to a layer twice, plans of
 * different states are independent, and the next batch may be planned, and transferred to the
 * layers that have this plan, before the other layers have it. In a stream, states are not checked
 * and replays are unknown to the library, so that the caller ensures the order.
 *
 * Rules: Pointers and Streams.
 */
avsg_status avsg_engine_transfer(struct avsg_engine *engine,
                                 struct avsg_plan *plan,
                                 size_t layer,
                                 const struct avsg_fresh *fresh,
                                 void *stream);

/**
 * Does `avsg_engine_plan` and `avsg_engine_transfer` for one layer, in
 * `avsg_engine_config.launches` kernels. `fresh` may be NULL if every `stable_len` is -1.
 *
 * Rules: Pointers and Streams.
 */
avsg_status avsg_engine_step(struct avsg_engine *engine,
                             const struct avsg_batch *batch,
                             struct avsg_plan *plan,
                             size_t layer,
                             const struct avsg_fresh *fresh,
                             void *stream);

/**
 * Writes the step's fresh rows to one layer of the host pool: fresh row g of a request becomes the
 * row of id stable_len + g. A request may have any number of rows, not only N_q (`avsg_batch.rows`
 * in a stream), which writes the rows of a prefill or a restore. Call it after the layer's transfer and before the next plan. Requests
 * whose `stable_len` or `state` is -1 are skipped. AVSG_INVALID if the pool has no row for an id,
 * or if this process is a reader; in a stream, rows without one in the pool are skipped.
 *
 * Rules: Pointers and Streams.
 */
avsg_status avsg_engine_append(struct avsg_engine *engine,
                               const struct avsg_batch *batch,
                               size_t layer,
                               const struct avsg_fresh *fresh,
                               void *stream);

/**
 * Fills the block table of a paged attention kernel, with pages of `page` slots (0 selects S). The
 * pages of a request's state are written from table[request * stride] on, as indices that count
 * from avsg_buffer.base, and S is written to lengths[request]. A state has S / page pages: slot s
 * is row s % page of the page at index s / page. A padded request (state -1) gets pages of -1 and
 * length 0. `requests` is at most 1048576, and the three arrays do not overlap.
 *
 * Pointers: `states` and `lengths` have `requests` elements, and `table` has requests * stride.
 */
avsg_status avsg_engine_block_table(const struct avsg_engine *engine,
                                    const int32_t *states,
                                    size_t requests,
                                    size_t page,
                                    int32_t *table,
                                    size_t stride,
                                    int32_t *lengths);

/**
 * Empties the slots of a state's ids from `first` to `end` - 1, because their rows in the pool were
 * rewritten under a live request. The next plan that selects such an id copies its new row; other
 * ids keep their slots. A plan that was made before keeps its slots: transfer it first. On an
 * Ascend device the call waits for the work of all streams, none of which may be in a capture.
 */
avsg_status avsg_engine_invalidate(struct avsg_engine *engine,
                                   size_t state,
                                   size_t first,
                                   size_t end);

/**
 * Puts the rows of chosen ids into the slots of a state without a selection, for example after a
 * restore: it plans K ids at a time into `plan`, which holds at least one row, and transfers them to
 * every layer of the indexer. A later plan that selects these ids hits them. AVSG_INVALID, with
 * nothing changed, if one of these layers lacks rows of an earlier plan of the state: transfer that
 * one first.
 */
avsg_status avsg_engine_load(struct avsg_engine *engine,
                             const struct avsg_load *load,
                             struct avsg_plan *plan);

/**
 * Copies the state `from` to the state `to`, with its tables and slots, for a sequence that is
 * forked. `from_generation` is the generation of the request that is forked, and `to_generation`
 * that of the copy, by the rule Generations. A request that has no plan yet can be forked, too.
 * AVSG_INVALID if a layer lacks rows of the last plan of `from` in that generation. On an Ascend
 * device the call waits as `avsg_engine_invalidate` does.
 */
avsg_status avsg_engine_fork(struct avsg_engine *engine,
                             size_t from,
                             int32_t from_generation,
                             size_t to,
                             int32_t to_generation);

/**
 * Drops a planned batch whose transfers are not going to be made, or not to every layer, for
 * example because its drafts were abandoned. The ids that it missed lose their slots, so that the
 * next plan misses them again; the plan holds no batch afterwards. AVSG_INVALID, with nothing
 * changed, if the plan was made in a stream, or if a state of which it missed a row was planned
 * again or emptied since: discard newer plans first. On an Ascend device the call waits as
 * `avsg_engine_invalidate` does.
 */
avsg_status avsg_engine_discard(struct avsg_engine *engine, struct avsg_plan *plan);

/**
 * Gives the counters and times of an engine's calls so far.
 */
avsg_status avsg_engine_get_stats(const struct avsg_engine *engine,
                                  struct avsg_engine_stats *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AVSG_H */
