/* AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.
 *
 * Generated from capi/src by cbindgen (BLESS=1 cargo test -p avsg-capi --test header): do not edit.
 *
 * A life:
 *   avsg_pool_create      host memory for every row of every layer
 *   avsg_engine_create    tables and device buffer of one device, on that pool
 *   avsg_plan_create      the outputs of a step
 *   each decode step:     avsg_engine_step, or avsg_engine_plan once and avsg_engine_transfer per layer;
 *                         attention reads avsg_engine_buffer through the plan's slots;
 *                         avsg_engine_append brings the step's rows to the pool
 *   avsg_..._destroy      in any order
 *
 * Rules that hold for every function:
 * - It returns an avsg_status. After a failure avsg_last_error has a sentence for the calling thread
 *   that names the value, the limit and the remedy. A failed call has changed nothing, unless the
 *   status is AVSG_INTERNAL or AVSG_OS.
 * - Handles are looked up, not followed: one that was destroyed, was never made or is of another kind is
 *   AVSG_HANDLE. One that another thread's call uses is AVSG_BUSY. Nothing waits.
 * - Any thread may call. Calls on one engine or plan must not overlap; which ones may, is said at each
 *   handle's type. Arrays that a call reads must not change while it runs.
 * - Structs begin with `size`, which the caller sets to sizeof. They grow at the end only; zero every
 *   struct before you fill it, and 0 is the default of every field.
 * - Sizes are bytes, lengths are elements, ids and indices are int32 unless a size_t says otherwise.
 * - No function aborts or unwinds. The library starts no thread but an engine's cores and, while memory is
 *   taken, those that touch it; it installs no signal handler.
 */

#ifndef AVSG_H
#define AVSG_H

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It is raised only when a program that was built against an older
 * header would no longer work; functions, codes and fields at the end of structs come without.
 */
#define AVSG_ABI_VERSION 1

/**
 * Most segments of a row.
 */
#define AVSG_MAX_SEGMENTS 4

/**
 * Bytes of a pool's descriptor, its geometry. They may be sent anywhere, stored, and compared.
 */
#define AVSG_POOL_DESC_BYTES 112

/**
 * What a function of this library answers. Numbers never change their meaning and are never used
 * again; later versions may add some, so treat an unknown one as a failure.
 */
enum avsg_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  AVSG_OK = 0,
  /**
   * A value is outside its range, or an array is too short. Nothing has changed.
   */
  AVSG_INVALID = 1,
  /**
   * A pointer that must not be NULL is. Nothing has changed.
   */
  AVSG_NULL = 2,
  /**
   * A handle is not one: destroyed before, never made, or of another kind.
   */
  AVSG_HANDLE = 3,
  /**
   * A struct's `size` is none that this library knows.
   */
  AVSG_SIZE = 4,
  /**
   * Another thread is inside a call on the same handle. Nothing has changed; call again.
   */
  AVSG_BUSY = 5,
  /**
   * This library, or this device, does not have what was asked for.
   */
  AVSG_UNSUPPORTED = 6,
  /**
   * More memory than can be given. Nothing was taken.
   */
  AVSG_NO_MEMORY = 7,
  /**
   * The operating system refused a call.
   */
  AVSG_OS = 8,
  /**
   * A defect of this library. The handle answers this for ever after: destroy it, and report the
   * sentence of `avsg_last_error`.
   */
  AVSG_INTERNAL = 9,
  /**
   * The device's runtime refused a call; the sentence names the call and its code.
   */
  AVSG_DEVICE = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_status avsg_status;
#else
typedef int32_t avsg_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which table an engine keeps.
 */
enum avsg_table
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * More links than slots, the least valuable slots as victims: exact-LRU hit rates and better.
   */
  AVSG_TABLE_WIDE = 0,
  /**
   * The paper's, bit for bit.
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
 * What a hit makes of a slot's lifetime.
 */
enum avsg_lifetime
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * What pays at this geometry: frequency between K and 4K slots of a wide table, else constant.
   */
  AVSG_LIFETIME_AUTO = 0,
  /**
   * `life`, always: least recently used.
   */
  AVSG_LIFETIME_CONSTANT = 1,
  /**
   * A count of uses that decays by `lambda` a step. Wide tables only.
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
 * Which vector machine the device `cpu` runs its kernels on.
 */
enum avsg_machine
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The fastest that the CPU has, measured at creation.
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
   * AVX-512.
   */
  AVSG_MACHINE_AVX512 = 3,
  /**
   * NEON.
   */
  AVSG_MACHINE_NEON = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_machine avsg_machine;
#else
typedef int32_t avsg_machine;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How misses are spread over cores.
 */
enum avsg_strategy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Equal shares of the misses: no two cores differ by more than one row.
   */
  AVSG_STRATEGY_BALANCED = 0,
  /**
   * Whole requests to cores. For comparison.
   */
  AVSG_STRATEGY_REQUEST = 1,
  /**
   * Equal shares of the selected positions, hits included. For comparison.
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
 * What backs a pool.
 */
enum avsg_pages
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The best of 2 MiB hugepages, transparent hugepages and plain pages that can be had.
   */
  AVSG_PAGES_DEFAULT = 0,
  /**
   * Explicit hugepages of 1 GiB, or else the next that can be had.
   */
  AVSG_PAGES_HUGE_1G = 1,
  /**
   * Explicit hugepages of 2 MiB, or else the next.
   */
  AVSG_PAGES_HUGE_2M = 2,
  /**
   * Transparent hugepages, or else plain pages.
   */
  AVSG_PAGES_THP = 3,
  /**
   * Plain pages.
   */
  AVSG_PAGES_PLAIN = 4,
  /**
   * The caller's memory. Only reported.
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
 * What a process may do with a pool. One process at a time is its writer.
 */
enum avsg_role
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Reads rows; an imported mapping is read-only.
   */
  AVSG_ROLE_READER = 0,
  /**
   * Reads and writes rows.
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
 * Status bits of a request. Ids that raise them were treated as padding.
 */
enum avsg_request_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Some id was at or above the request's seq_len.
   */
  AVSG_REQUEST_ID_OUT_OF_RANGE = 1,
  /**
   * Some id's row was outside the host pool.
   */
  AVSG_REQUEST_ROW_OUT_OF_POOL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum avsg_request_status avsg_request_status;
#else
typedef int32_t avsg_request_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The operator on one device: the tables and device buffer of every request state.
 *
 * Threads: one may be inside plan, transfer, step, append, table or destroy at a time, whichever it is; a
 * second one gets AVSG_BUSY at once and nothing has changed. Different engines share nothing but a pool
 * and may run side by side. No call of a step (plan, transfer, step, append) allocates or waits for a
 * lock.
 *
 * Devices: on "cpu" every address is this process's memory and a call has done its work when it returns.
 * On "ascend" and "ascend-sim" the device buffer is device memory, and `stream` says what a call of a
 * step is:
 * - NULL: its arrays are host memory. It copies them to the device (which allocates when a batch is
 *   larger than any before), waits, and the plan can be read as on "cpu".
 * - an aclrtStream of the engine's device: its arrays are device memory, it puts its work into the stream
 *   and returns. Nothing is read by the host, so that a capture may replay it, and contents cannot be
 *   checked: `cu_q` must ascend from 0 by at most N_q, and states be in range and named once. The plan's
 *   outputs are in device memory (`avsg_plan_get_device_arrays`).
 *
 * A failed device (AVSG_DEVICE) makes the next plan start every table cold; calls with plans from before
 * are refused.
 */
typedef struct avsg_engine avsg_engine;

/**
 * What a plan found for a batch: slots, miss lists, counters. Allocated once for the largest batch, and
 * used again at each step. Several may be in flight on one engine.
 *
 * Threads: as for the engine; reading it while a call writes it is AVSG_BUSY.
 */
typedef struct avsg_plan avsg_plan;

/**
 * A host pool: every row of every layer, in memory that processes can share. Its handle may be
 * destroyed while engines use it: the memory stays until the last of them is gone.
 *
 * Threads: any number may be inside calls on one pool, except for destroy and demote. Rows are written
 * by one thread at a time; a row must not be written while an engine copies it.
 */
typedef struct avsg_pool avsg_pool;

/**
 * What a host pool is to be. Zero the whole struct, set `size`, `layers`, `rows`, `segments` and
 * `segment_bytes`: 0 is every other field's default.
 */
typedef struct avsg_pool_config {
  /**
   * sizeof(avsg_pool_config).
   */
  size_t size;
  /**
   * Layers.
   */
  size_t layers;
  /**
   * Rows (tokens) of each layer.
   */
  size_t rows;
  /**
   * Contiguous parts of a row that lie apart in memory: 1 to 4. One of 1152 bytes for BF16 MLA, or two
   * of 1024 and 128.
   */
  size_t segments;
  /**
   * Bytes of each segment that are copied.
   */
  size_t segment_bytes[AVSG_MAX_SEGMENTS];
  /**
   * Bytes from one row's segment to the next row's, in host memory, device buffer and fresh rows
   * alike; 0: rows are packed.
   */
  size_t segment_stride[AVSG_MAX_SEGMENTS];
  /**
   * Most bytes of a chunk, which is what a device registers; 0: 64 MiB. SIZE_MAX makes one chunk of
   * each layer and segment.
   */
  size_t chunk_bytes;
  /**
   * An `avsg_pages`: what to try first.
   */
  int32_t pages;
  /**
   * 0.
   */
  uint32_t reserved;
} avsg_pool_config;

/**
 * One contiguous range of rows of one layer and segment.
 */
typedef struct avsg_chunk {
  /**
   * Where it begins.
   */
  void *data;
  /**
   * Its bytes.
   */
  size_t bytes;
} avsg_chunk;

/**
 * What a pool is.
 */
typedef struct avsg_pool_info {
  /**
   * sizeof(avsg_pool_info), set by the caller.
   */
  size_t size;
  /**
   * Layers.
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
   * Bytes of each.
   */
  size_t segment_bytes[AVSG_MAX_SEGMENTS];
  /**
   * Stride of each.
   */
  size_t segment_stride[AVSG_MAX_SEGMENTS];
  /**
   * Bytes of a whole row, without the gaps of strides.
   */
  size_t row_bytes;
  /**
   * Bytes of all chunks.
   */
  size_t bytes;
  /**
   * Bytes of it that hugepages map.
   */
  size_t huge_bytes;
  /**
   * Chunks.
   */
  size_t chunks;
  /**
   * An `avsg_pages`: what it really got.
   */
  int32_t pages;
  /**
   * An `avsg_role`.
   */
  int32_t role;
} avsg_pool_info;

/**
 * What an engine is to be. Zero the whole struct, set `size`, `k`, `tokens`, `slots` and `states`, and
 * whatever else is not to be the default: 0 is every other field's.
 */
typedef struct avsg_engine_config {
  /**
   * sizeof(avsg_engine_config).
   */
  size_t size;
  /**
   * One of `avsg_devices`. NULL: "cpu". An Ascend device takes pools whose pages its driver registers
   * (AVSG_DEVICE otherwise: try smaller `pages`), rows of one or two segments and the balanced strategy;
   * all its engines on one pool share one registration of it.
   */
  const char *device;
  /**
   * K, the most ids a row selects: 1 to S.
   */
  uint32_t k;
  /**
   * N_q, the most rows (tokens) of a request in one step: 1 to 8, and N_q * K at most S.
   */
  uint32_t tokens;
  /**
   * S, the slots of each request state and layer: a power of two, 64 to 32768; from 128
   * on an Ascend device.
   */
  uint32_t slots;
  /**
   * An `avsg_table`.
   */
  int32_t table;
  /**
   * Multipliers of the paper's hash, odd; both 0: Knuth's and xxHash's. Unused by a wide table.
   */
  uint32_t paper_a1;
  /**
   * The second of them.
   */
  uint32_t paper_a2;
  /**
   * An `avsg_lifetime`.
   */
  int32_t lifetime;
  /**
   * Of a constant lifetime: 0 to 127 (1 to 127 in a paper table), in decode steps.
   */
  int32_t life;
  /**
   * Of frequency lifetimes: 0.5 to 0.965; 0: 0.87.
   */
  double lambda;
  /**
   * Links per slot: 1, 2 or 4; 0: the table's default (wide 4, paper 1).
   */
  uint32_t spread;
  /**
   * R, links looked at after the first: 1 to 15; 0: 3; -1: none.
   */
  int32_t retries;
  /**
   * Tokens per block of the host's block tables: a power of two up to 65536; 0: no block tables, the
   * row of token x is row x of the pool.
   */
  uint32_t page;
  /**
   * An `avsg_machine`. Only for "cpu".
   */
  int32_t machine;
  /**
   * An `avsg_strategy`.
   */
  int32_t strategy;
  /**
   * Cores of the device: 1 to 1024; 0: all of a device, or all CPUs that this process may use. The
   * device `cpu` pins a thread for each but the caller's; others have as many as they have at most, and
   * in a stream as many as its own limit (aclrtSetStreamResLimit) leaves when a call is queued.
   */
  uint32_t cores;
  /**
   * Request states: the most requests that are resident at once.
   */
  size_t states;
  /**
   * The kernels of this geometry, one file or a folder: for "ascend" compiled ones (`avsg emit` writes
   * their sources), for "ascend-sim" sources. NULL: those in this library, which for "ascend" are those
   * of the default geometries, if it was built where CANN's compiler is with the package feature
   * `kernels` (AVSG_INVALID otherwise), and for "ascend-sim" every geometry's. Unused by "cpu".
   */
  const char *kernels;
  /**
   * "ascend": path of the runtime's library (libascendcl.so). NULL: looked for by the system's library
   * path.
   */
  const char *runtime;
  /**
   * Which of several devices, as the runtime counts them.
   */
  int32_t device_id;
  /**
   * Milliseconds after which a call stops waiting for an Ascend device; 0: 10000.
   */
  uint32_t timeout_ms;
  /**
   * Kernels that `avsg_engine_step` launches on an Ascend device. 1: one, whose cores wait for each
   * other between the stages; it starts when all of them are idle. 2: one a stage. 0: one with a NULL
   * stream, two in a stream of the caller's, beside which other streams may compute.
   */
  uint32_t launches;
  /**
   * 0.
   */
  uint32_t reserved;
} avsg_engine_config;

/**
 * Bytes of memory.
 */
typedef struct avsg_engine_memory {
  /**
   * sizeof(avsg_engine_memory), set by the caller.
   */
  size_t size;
  /**
   * The device buffer: S rows for each state and layer.
   */
  size_t buffer;
  /**
   * Tables and working columns.
   */
  size_t tables;
} avsg_engine_memory;

/**
 * What an engine is: its configuration with every default filled in, and what was found at creation.
 */
typedef struct avsg_engine_info {
  /**
   * sizeof(avsg_engine_info), set by the caller.
   */
  size_t size;
  /**
   * The device.
   */
  char device[16];
  /**
   * The vector machine, such as "avx512"; "none" on a device.
   */
  char machine[32];
  /**
   * How rows are copied, such as "stream+8"; "none" on a device.
   */
  char copier[32];
  /**
   * K.
   */
  uint32_t k;
  /**
   * N_q.
   */
  uint32_t tokens;
  /**
   * S.
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
   * L, if constant.
   */
  int32_t life;
  /**
   * Links per slot.
   */
  uint32_t spread;
  /**
   * R.
   */
  uint32_t retries;
  /**
   * Tokens per block of the host's block tables; 0: none.
   */
  uint32_t page;
  /**
   * Cores.
   */
  uint32_t cores;
  /**
   * Request states.
   */
  size_t states;
  /**
   * Layers, the pool's.
   */
  size_t layers;
  /**
   * Bytes of the device buffer.
   */
  size_t buffer_bytes;
} avsg_engine_info;

/**
 * The device buffer of one layer and segment: state t's slot s is at
 * base + t * state_stride + s * slot_stride.
 */
typedef struct avsg_buffer {
  /**
   * sizeof(avsg_buffer), set by the caller.
   */
  size_t size;
  /**
   * The first slot of state 0, in memory of the device. Page indices count from here.
   */
  void *base;
  /**
   * Bytes from slot to slot: the segment's stride.
   */
  size_t slot_stride;
  /**
   * Bytes from state to state: S of them.
   */
  size_t state_stride;
  /**
   * Bytes of a row's segment.
   */
  size_t bytes;
} avsg_buffer;

/**
 * A plan's arrays. The addresses are the same for the plan's whole life; the contents are those of the
 * last batch, until the next call that plans into it.
 */
typedef struct avsg_plan_arrays {
  /**
   * sizeof(avsg_plan_arrays), set by the caller.
   */
  size_t size;
  /**
   * Elements from row to row of `slot` and the miss lists: the engine's K.
   */
  size_t k;
  /**
   * slot[row * k + i]: the slot of the i-th id of a row; -1 for padding, and from the batch's k on.
   */
  const int32_t *slot;
  /**
   * valid[row]: how many ids of a row have a slot.
   */
  const int32_t *valid;
  /**
   * First row of each request, and the number of rows: the batch's.
   */
  const int32_t *cu_q;
  /**
   * record[request * 16 + ..]: at g < 8 the misses of the request's g-th row, at 8 all its misses, at
   * 9 its status bits.
   */
  const int32_t *record;
  /**
   * Miss j of a request is at cu_q[request] * k + j of the next four, in token order. First: which
   * selection missed, row within the request * k + i.
   */
  const int32_t *miss_position;
  /**
   * Its id.
   */
  const int32_t *miss_id;
  /**
   * The slot that it got.
   */
  const int32_t *miss_slot;
  /**
   * Its row in the host pool; -1 - g: the request's g-th fresh row.
   */
  const int32_t *miss_row;
} avsg_plan_arrays;

/**
 * Counters of the last batch planned; all 0 before the first.
 */
typedef struct avsg_plan_counters {
  /**
   * sizeof(avsg_plan_counters), set by the caller.
   */
  size_t size;
  /**
   * Requests, padded ones included.
   */
  size_t requests;
  /**
   * Rows.
   */
  size_t rows;
  /**
   * Ids that have a slot.
   */
  size_t selected;
  /**
   * Of those, the ones whose row was there already.
   */
  size_t hits;
  /**
   * The others: the rows that one transfer copies.
   */
  size_t misses;
  /**
   * `avsg_request_status` bits of all requests together.
   */
  int32_t status;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * Which of its engine's plans it is, from 1: errors name plans by it.
   */
  uint64_t number;
} avsg_plan_counters;

/**
 * What a plan found for one request. Arrays as in `avsg_plan_arrays`.
 */
typedef struct avsg_plan_request {
  /**
   * sizeof(avsg_plan_request), set by the caller.
   */
  size_t size;
  /**
   * Its first row in the batch.
   */
  size_t first_row;
  /**
   * Its rows.
   */
  size_t rows;
  /**
   * slot[row within the request * k + i].
   */
  const int32_t *slot;
  /**
   * valid[row within the request].
   */
  const int32_t *valid;
  /**
   * Elements of the next four: its misses, in token order.
   */
  size_t misses;
  /**
   * Which selection missed: row within the request * k + i.
   */
  const int32_t *miss_position;
  /**
   * Its id.
   */
  const int32_t *miss_id;
  /**
   * The slot that it got.
   */
  const int32_t *miss_slot;
  /**
   * Its row in the host pool; -1 - g: the request's g-th fresh row.
   */
  const int32_t *miss_row;
  /**
   * `avsg_request_status` bits; 0 if nothing was wrong.
   */
  int32_t status;
  /**
   * 0.
   */
  int32_t reserved;
} avsg_plan_request;

/**
 * An array of int32 and its length in elements. The length is checked against what the batch needs.
 */
typedef struct avsg_i32s {
  /**
   * The first element. NULL only if `len` is 0.
   */
  const int32_t *data;
  /**
   * Elements.
   */
  size_t len;
} avsg_i32s;

/**
 * One decode step's batch. With a NULL `stream`, arrays are host memory and are read during the call only;
 * with a stream, they are memory of the device, must stay until its work (and every replay) is done, and
 * the batch has as many rows as `ids` has room for, at most. Neither may overlap memory of the engine or a
 * plan. All are per request unless they say
 * otherwise.
 */
typedef struct avsg_batch {
  /**
   * sizeof(avsg_batch).
   */
  size_t size;
  /**
   * Selected ids, row by row (a row is a token of a request); negative is padding. An id that is not
   * below its request's `seq_len`, or whose block is outside the pool, is treated as padding and
   * raises a status bit of the request.
   */
  struct avsg_i32s ids;
  /**
   * Elements from row to row of `ids`, at least `k`.
   */
  size_t ids_stride;
  /**
   * Ids per row, 1 to the engine's K.
   */
  size_t k;
  /**
   * First row of each request, and the number of rows at the end: requests + 1 elements, from 0,
   * ascending by at most N_q.
   */
  struct avsg_i32s cu_q;
  /**
   * State of each request, each at most once; -1 for a padded request: its slots are -1 and it copies
   * nothing. Its length is the number of requests.
   */
  struct avsg_i32s state;
  /**
   * Generation: a value other than the state's last one starts cold. Change it when another request
   * takes the state, or when the request's rows were computed anew.
   */
  struct avsg_i32s generation;
  /**
   * Tokens whose KV was final before this step: the context length without this step's rows. Slots
   * of ids from there on are dropped first, and those ids come from the fresh rows. -1: neither.
   */
  struct avsg_i32s stable_len;
  /**
   * Sequence length with this step's tokens: ids must be below it. At most 4194304.
   */
  struct avsg_i32s seq_len;
  /**
   * Host blocks of each request, `block_stride` elements each; empty if the engine's page is 0.
   */
  struct avsg_i32s block_table;
  /**
   * Elements of one request in `block_table`.
   */
  size_t block_stride;
} avsg_batch;

/**
 * The rows of this step, which exist only on the device so far: for each segment, row r of the batch
 * is at r * (the segment's stride). Host memory with a NULL `stream`, else memory of the device.
 */
typedef struct avsg_fresh {
  /**
   * sizeof(avsg_fresh).
   */
  size_t size;
  /**
   * Segments, as many as the pool's rows have.
   */
  size_t segments;
  /**
   * Where each segment's rows begin.
   */
  const void *data[AVSG_MAX_SEGMENTS];
  /**
   * Bytes of each, at least (rows - 1) * stride + bytes of a row; in a stream for all rows that the
   * batch may have.
   */
  size_t bytes[AVSG_MAX_SEGMENTS];
} avsg_fresh;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The interface version of the library that is loaded. A program built with another
 * `AVSG_ABI_VERSION` must not go on.
 */
uint32_t avsg_abi_version(void);

/**
 * The library's version, such as "0.1.0". Valid for ever.
 */
const char *avsg_version(void);

/**
 * The devices that this library drives, separated by spaces: names for `avsg_engine_config.device`.
 * "ascend" needs a runtime that is looked for when an engine is created; "ascend-sim" is there only if
 * the library was built with its simulator (`cargo build -p avsg-capi --features sim`). Valid for ever.
 */
const char *avsg_devices(void);

/**
 * The sentence of the last failure on the calling thread: it names the value, the limit and the
 * remedy. Empty before the first. A success does not change it. The text is valid until the next
 * call that fails on this thread, or the thread's end; other threads have their own.
 */
const char *avsg_last_error(void);

/**
 * The name of a status, such as "AVSG_BUSY"; "unknown status" for a number that is none. Never NULL,
 * and valid for ever.
 */
const char *avsg_status_name(int32_t status);

/**
 * Bytes that `avsg_pool_create` takes at most, without taking them.
 *
 * Pointers: `config` as its type says; `bytes` may be written.
 */
avsg_status avsg_pool_bytes(const struct avsg_pool_config *config, size_t *bytes);

/**
 * Takes a pool's memory, zeroed and present, and makes this process its writer. More than the machine
 * can give is refused (AVSG_NO_MEMORY) with nothing taken.
 *
 * Pointers: `config` as its type says; `pool` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_create(const struct avsg_pool_config *config,
                             struct avsg_pool **pool);

/**
 * The bytes of each chunk of a pool over the caller's memory, layer by layer and segment by segment.
 * `count` gets the number of chunks. Call it with `capacity` 0 to learn that number; otherwise the
 * lengths are written to `bytes`, and too small a `capacity` is AVSG_INVALID.
 *
 * Pointers: `config` as its type says; `bytes` has room for `capacity` numbers; `count` may be written.
 */
avsg_status avsg_pool_chunk_bytes(const struct avsg_pool_config *config,
                                  size_t *bytes,
                                  size_t capacity,
                                  size_t *count);

/**
 * A pool over memory of the caller, for example what a device's own allocator gave: one chunk for each
 * length of `avsg_pool_chunk_bytes`, at least as long. It cannot be exported. The memory must stay
 * until the pool and every engine on it are destroyed.
 *
 * Pointers: `config` as its type says; `chunks` has `count` elements that are valid for reads and writes and do
 * not overlap; `pool` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_from_memory(const struct avsg_pool_config *config,
                                  const struct avsg_chunk *chunks,
                                  size_t count,
                                  struct avsg_pool **pool);

/**
 * What a pool is and has got.
 *
 * Pointers: `info` has as many bytes as its `size` says.
 */
avsg_status avsg_pool_get_info(const struct avsg_pool *pool, struct avsg_pool_info *info);

/**
 * Every chunk of a pool, layer by layer and segment by segment: what a device registers. `count` gets
 * their number; the rest is as for `avsg_pool_chunk_bytes`. The memory is valid until the pool and every
 * engine on it are destroyed, and read-only for a reader.
 *
 * Pointers: `chunks` has room for `capacity` elements; `count` may be written.
 */
avsg_status avsg_pool_chunks(const struct avsg_pool *pool,
                             struct avsg_chunk *chunks,
                             size_t capacity,
                             size_t *count);

/**
 * Lets go of the right to write, so that another process may take it: this process is a reader from now
 * on. AVSG_BUSY while engines use the pool; destroy them first.
 */
avsg_status avsg_pool_demote(struct avsg_pool *pool);

/**
 * Ends a handle. The memory is unmapped when no engine uses it any more. NULL does nothing.
 */
avsg_status avsg_pool_destroy(struct avsg_pool *pool);

/**
 * Writes a whole row, its segments back to back in `data`. Beside a reader of the same row (another
 * thread or process) the reader may see a mix of old and new bytes.
 *
 * Pointers: `data` has `bytes` bytes.
 */
avsg_status avsg_pool_write_row(const struct avsg_pool *pool,
                                size_t layer,
                                size_t row,
                                const void *data,
                                size_t bytes);

/**
 * Reads a whole row into `data`, its segments back to back.
 *
 * Pointers: `data` has room for `bytes` bytes.
 */
avsg_status avsg_pool_read_row(const struct avsg_pool *pool,
                               size_t layer,
                               size_t row,
                               void *data,
                               size_t bytes);

/**
 * Where a segment of a row begins, to read it in place. Whoever does so makes sure that no thread or
 * process writes the row meanwhile. Valid as long as the pool's memory.
 *
 * Pointers: `data` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_row(const struct avsg_pool *pool,
                          size_t layer,
                          size_t segment,
                          size_t row,
                          const void **data);

/**
 * `avsg_pool_row` for writing in place. AVSG_INVALID for a reader, whose memory is read-only.
 *
 * Pointers: `data` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_row_mut(const struct avsg_pool *pool,
                              size_t layer,
                              size_t segment,
                              size_t row,
                              void **data);

/**
 * What another process needs to map this pool: the descriptor in `desc`, and a new file descriptor of
 * its memory in `fd`, which the caller passes on (by inheritance or SCM_RIGHTS) and closes. Whoever has
 * `fd` can map the memory. AVSG_INVALID for a pool over the caller's memory.
 *
 * Pointers: `desc` has room for `desc_bytes` bytes, at least AVSG_POOL_DESC_BYTES; `fd` may be written. It is -1
 * after a failure.
 */
avsg_status avsg_pool_export(const struct avsg_pool *pool,
                             uint8_t *desc,
                             size_t desc_bytes,
                             int32_t *fd);

/**
 * Maps a pool that another process exported. `fd` stays the caller's, to close when it likes. A
 * reader's mapping is read-only. A pool has one writer: AVSG_ROLE_WRITER fails until the present one
 * has let go (destroy, demote, or the end of its process).
 *
 * Pointers: `desc` has `desc_bytes` bytes; `pool` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_import(const uint8_t *desc,
                             size_t desc_bytes,
                             int32_t fd,
                             int32_t as_role,
                             struct avsg_pool **pool);

/**
 * `avsg_pool_export` over a connected unix socket, which stays the caller's. It must be blocking and
 * used for nothing else meanwhile.
 */
avsg_status avsg_pool_send(const struct avsg_pool *pool,
                           int32_t socket);

/**
 * `avsg_pool_import` of what `avsg_pool_send` sent. Waits until it comes.
 *
 * Pointers: `pool` may be written. It is NULL after a failure.
 */
avsg_status avsg_pool_recv(int32_t socket, int32_t as_role, struct avsg_pool **pool);

/**
 * Device memory that an engine on a pool of this kind takes, without taking it.
 *
 * Pointers: `config` and `pool` as their types say; `memory` has as many bytes as its `size` says.
 */
avsg_status avsg_engine_bytes(const struct avsg_engine_config *config,
                              const struct avsg_pool_config *pool,
                              struct avsg_engine_memory *memory);

/**
 * Takes all memory and starts the cores; layers and row format are the pool's. More memory than the
 * machine can give is refused (AVSG_NO_MEMORY) with nothing taken. Takes milliseconds: it measures which
 * machine and which copy are fastest. An Ascend device loads its kernels, and the simulated one compiles
 * them first, with the C++ compiler. AVSG_UNSUPPORTED if this library or this machine does not have the device: the
 * sentence lists what was tried.
 *
 * Pointers: `config` as its type says, its strings NULL or with a NUL at their end; `engine` may be written. It is
 * NULL after a failure.
 */
avsg_status avsg_engine_create(const struct avsg_engine_config *config,
                               const struct avsg_pool *pool,
                               struct avsg_engine **engine);

/**
 * What an engine is.
 *
 * Pointers: `info` has as many bytes as its `size` says.
 */
avsg_status avsg_engine_get_info(const struct avsg_engine *engine, struct avsg_engine_info *info);

/**
 * One state's table as plain words: header, ids, lifetimes, links. For snapshots and tests. It may be
 * read until the next call on the engine. From a device it is copied, behind nothing: wait for your
 * streams first.
 *
 * Pointers: `words` and `count` may be written. They are NULL and 0 after a failure.
 */
avsg_status avsg_engine_table(struct avsg_engine *engine,
                              size_t state,
                              const int32_t **words,
                              size_t *count);

/**
 * Ends an engine: its cores, tables and device buffer. Plans stay readable and are destroyed by
 * themselves. NULL does nothing.
 */
avsg_status avsg_engine_destroy(struct avsg_engine *engine);

/**
 * Where attention finds the rows of a layer and segment. The same for the engine's whole life; its
 * memory must not be used after destroy, nor a slot be written by anyone else.
 *
 * Pointers: `buffer` has as many bytes as its `size` says.
 */
avsg_status avsg_engine_buffer(const struct avsg_engine *engine,
                               size_t layer,
                               size_t segment,
                               struct avsg_buffer *buffer);

/**
 * Makes a plan for batches of at most so many rows (tokens) and requests: 20 * K bytes a row and 80 a
 * request.
 *
 * Pointers: `plan` may be written. It is NULL after a failure.
 */
avsg_status avsg_plan_create(const struct avsg_engine *engine,
                             size_t max_rows,
                             size_t max_requests,
                             struct avsg_plan **plan);

/**
 * Ends a plan. NULL does nothing.
 */
avsg_status avsg_plan_destroy(struct avsg_plan *plan);

/**
 * Where a plan's arrays are in host memory. What a stream plans does not come here.
 *
 * Pointers: `arrays` has as many bytes as its `size` says.
 */
avsg_status avsg_plan_get_arrays(const struct avsg_plan *plan, struct avsg_plan_arrays *arrays);

/**
 * Where a plan's outputs are in device memory, which is where a stream leaves them. `cu_q` is NULL: it is
 * the batch's own. On "cpu" this is `avsg_plan_get_arrays`. On a device the memory is the engine's and ends with it.
 *
 * Pointers: `arrays` has as many bytes as its `size` says.
 */
avsg_status avsg_plan_get_device_arrays(const struct avsg_plan *plan,
                                        struct avsg_plan_arrays *arrays);

/**
 * A plan's counters. O(rows). AVSG_UNSUPPORTED for a batch that was planned in a stream: nobody has waited
 * for it; the same numbers are in `record` of `avsg_plan_get_device_arrays`.
 *
 * Pointers: `counters` has as many bytes as its `size` says.
 */
avsg_status avsg_plan_get_counters(const struct avsg_plan *plan,
                                   struct avsg_plan_counters *counters);

/**
 * One request of the last batch planned. AVSG_UNSUPPORTED for a batch that was planned in a stream.
 *
 * Pointers: `found` has as many bytes as its `size` says.
 */
avsg_status avsg_plan_get_request(const struct avsg_plan *plan,
                                  size_t request,
                                  struct avsg_plan_request *found);

/**
 * Stage One: slots and miss lists of a batch. Layers that share an indexer need it once.
 *
 * Pointers: `batch` as its type says. `stream`: NULL waits, and is all that the device `cpu` knows; else an
 * aclrtStream of the engine's device, and all arrays are device memory (see `avsg_engine`).
 */
avsg_status avsg_engine_plan(struct avsg_engine *engine,
                             const struct avsg_batch *batch,
                             struct avsg_plan *plan,
                             void *stream);

/**
 * Stage Two: copies a plan's misses into one layer's slots. `fresh` may be NULL if no miss is a row of
 * this step. A plan is transferred as it was planned: with NULL, or in a stream behind its plan, where the
 * batch's `cu_q` and `state` must still be there.
 *
 * Order: every plan that missed a row goes to every layer that is read. For one layer and state, plans go
 * in the order in which they were planned: one that comes after a newer one, or before an older one that
 * the layer lacks, is AVSG_INVALID with nothing copied. Everything else is free: a plan may go to layers in
 * any order and to one twice, plans of different states do not wait for each other, and the next batch may
 * be planned, and transferred to the layers that have this one, while this one is on its way to others. In
 * a stream the states are not looked at, and a replay is not seen at all: there the order is the caller's.
 *
 * Pointers: `fresh` is NULL or as its type says. `stream` as for `avsg_engine_plan`.
 */
avsg_status avsg_engine_transfer(struct avsg_engine *engine,
                                 struct avsg_plan *plan,
                                 size_t layer,
                                 const struct avsg_fresh *fresh,
                                 void *stream);

/**
 * Plan and transfer of one layer (avsg_engine_config.launches), in the order that `avsg_engine_transfer` demands. `fresh` may
 * be NULL if every `stable_len` is -1.
 *
 * Pointers: As for `avsg_engine_plan` and `avsg_engine_transfer`.
 */
avsg_status avsg_engine_step(struct avsg_engine *engine,
                             const struct avsg_batch *batch,
                             struct avsg_plan *plan,
                             size_t layer,
                             const struct avsg_fresh *fresh,
                             void *stream);

/**
 * Writes this step's rows, which were only fresh until now, to one layer of the host pool: row g of a
 * request becomes the row of id stable_len + g. Call it when the layer's gather is done and before the
 * next step plans. In a stream, rows without a place are passed over. Requests without `stable_len` or state are passed over. AVSG_INVALID, with nothing
 * written, if some row has no place in the pool or this process is a reader of it.
 *
 * Pointers: As for `avsg_engine_step`; `fresh` is not NULL.
 */
avsg_status avsg_engine_append(struct avsg_engine *engine,
                               const struct avsg_batch *batch,
                               size_t layer,
                               const struct avsg_fresh *fresh,
                               void *stream);

/**
 * What a paged attention kernel wants to know of a batch: for each request the pages of its state, as
 * indices of pages of `page` slots that count from avsg_buffer.base, S / page of them at
 * table[request * stride]; and the number of slots, S, in lengths[request]. Slot s is row s % page of the
 * page at index s / page. A padded request (state -1) gets pages of -1 and length 0. A `page` of 0 means S.
 *
 * Pointers: `states` has `requests` elements; `table` has room for requests * stride, `lengths` for `requests`.
 */
avsg_status avsg_engine_block_table(const struct avsg_engine *engine,
                                    const int32_t *states,
                                    size_t requests,
                                    size_t page,
                                    int32_t *table,
                                    size_t stride,
                                    int32_t *lengths);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AVSG_H */
