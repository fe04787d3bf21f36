/* AVSG: exact sparse gather of the top-K selected KV rows from host memory into a small device buffer.
 *
 * Generated from bindings/c/src by cbindgen (BLESS=1 cargo test -p avsg-capi --test header): do not edit.
 * docs/c-api.md shows a decode loop, and says in which order calls are made, what generations and
 * strides are, and what the library takes of memory, threads and processes.
 *
 * A row is the KV data of one token in one layer, in 1 to 4 segments. An id is the position of a token
 * in its request's sequence; each token of a step selects K ids. A fresh row is that of a token of the
 * step, which is not in the pool yet. A state is the S slots per layer that one resident request uses,
 * with a table of them for each indexer, the part of a model that selects ids for one or more layers.
 * An id hits if it has a slot; else it misses, gets a slot, and its row is copied.
 *
 * Rules of every function:
 * Status     After a failure avsg_last_error names the value, the limit and the remedy. A failed call
 *            has changed nothing, unless it is AVSG_OS, AVSG_INTERNAL, AVSG_DEVICE or AVSG_LOST_ROWS, or
 *            its comment says so; a handle or address that it would give is NULL, a file descriptor -1, a
 *            count 0. None aborts.
 * Pointers   A pointer is aligned and not NULL, unless its comment says so. An array may be NULL if it
 *            is empty; it has as many elements as the length beside it, does not change meanwhile,
 *            and shares no byte with memory that the call writes.
 * Structs    `size` is set to sizeof, also where the library fills the struct. 0 is the default of every
 *            other field, but AVSG_INVALID for layers, rows, segments and their bytes, k, tokens, slots,
 *            states, threads, and strides in the caller's memory. Reserved fields are 0: begin with AVSG_INIT
 *            (avsg::init in C++). Structs grow at the end only, so that versions work together.
 * Handles    A handle is looked up and never dereferenced. Calls may overlap if they take it as a const
 *            pointer; another overlap is AVSG_BUSY at once. avsg_engine_get_info, _buffer, _stats, _used_slots,
 *            avsg_plan_get_arrays and _counters may overlap every call; destruction of their handle waits for
 *            them. Handles are destroyed in any order, and NULL is accepted; a pool's memory lasts until its
 *            handle and every engine on it are destroyed.
 * Units      Sizes are bytes, but lengths and strides of int32_t arrays are elements.
 */
#ifndef AVSG_H
#define AVSG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#else
/// A struct of this type with its `size` set and every other field 0.
#define AVSG_INIT(type) ((type){.size = sizeof(type)})
#endif

/// What a function returns. The numbers never change; treat an unknown one as a failure.
typedef enum avsg_status {
  AVSG_OK = 0,  ///< The call succeeded.
  AVSG_INVALID = 1,  ///< A value is out of range, a pointer misaligned, or an array too short.
  AVSG_NULL = 2,  ///< A pointer that must not be NULL is NULL.
  AVSG_HANDLE = 3,  ///< A handle was destroyed, never created, or is of another kind.
  AVSG_SIZE = 4,  ///< The `size` of a struct is wrong, or a field that this library lacks is not 0.
  AVSG_BUSY = 5,  ///< Another call uses the handle, or all transfers are under way. Call again later.
  AVSG_UNSUPPORTED = 6,  ///< The library or the device lacks the requested feature.
  AVSG_NO_MEMORY = 7,  ///< The machine or an allocator cannot give that much memory.
  AVSG_OS = 8,  ///< A call of the operating system failed.
  AVSG_INTERNAL = 9,  ///< The library has a defect. Destroy the handle, and report the message.
  AVSG_DEVICE = 10,  ///< A call of the device's runtime failed, or a kernel wrote a wrong value.
  AVSG_FORKED = 11,  ///< The handle belongs to the process that this one was forked from.
  AVSG_LOST_ROWS = 12,  ///< Rows of a file are not whole; a plan's other requests are served.
} avsg_status;

/// The largest number of segments of a row.
#define AVSG_MAX_SEGMENTS 4

// ---- Part 1: a decode loop --------------------------------------------------------------------------
// Once: avsg_pool_create, avsg_engine_create, avsg_plan_create, avsg_plan_get_arrays, avsg_engine_get_buffer.
// Each step: avsg_engine_plan for each indexer, then for each layer avsg_engine_transfer, attention over the
// slots, and avsg_engine_append. At the end: three avsg_*_destroy. After a failure: avsg_last_error.

/// A host pool: every row of every layer.
typedef struct avsg_pool avsg_pool;

/// The configuration of a pool. A row of BF16 MLA is one segment of 1152 bytes, or two of 1024 and
/// 128. The device buffer and fresh rows have the strides of the pool.
typedef struct avsg_pool_config {
  size_t size;  ///< sizeof(avsg_pool_config).
  size_t layers;  ///< The number of layers.
  size_t rows;  ///< Rows of each layer.
  size_t segments;  ///< Segments of a row, its contiguous parts: 1 to 4.
  size_t segment_bytes[AVSG_MAX_SEGMENTS];  ///< Bytes of each segment.
  size_t segment_stride[AVSG_MAX_SEGMENTS];  ///< Bytes from a row to the next; 0: `segment_bytes`.
  size_t chunk_bytes;  ///< Most bytes of a chunk, which a device registers; 0: 64 MiB, SIZE_MAX: any.
  /// An `avsg_pages`; ignored with a layout, an allocator or a file, which refuses those of 1 GiB.
  int32_t pages;
  uint32_t reserved;  ///< Must be 0.
  const struct avsg_pool_layout *layout;  ///< NULL, or the caller's memory (Part 3).
  const struct avsg_allocator *allocator;  ///< NULL, or the allocator of each chunk (Part 3).
  const struct avsg_pool_file *file;  ///< NULL, or the file that has the rows (Part 3).
} avsg_pool_config;

/// Creates a pool of which this process is the writer: in zeroed memory, by a layout, or in a file.
avsg_status avsg_pool_create(const avsg_pool_config *config, avsg_pool **pool);

/// The configuration of an engine.
typedef struct avsg_engine_config {
  size_t size;  ///< sizeof(avsg_engine_config).
  const char *device;  ///< A name of `avsg_devices`, or NULL for "cpu".
  uint32_t k;  ///< K, the most ids that a token selects: 1 to S.
  uint32_t tokens;  ///< N_q, the most tokens of a request in one step: 1 to 16, with N_q * K at most S.
  uint32_t slots;  ///< S, slots per state and layer: a multiple of 64 (Ascend: 128), at most 65536.
  uint32_t page;  ///< Tokens per block of block tables: a power of two to 65536; 0: row x is id x.
  size_t states;  ///< Request states: the most requests that are resident at a time.
  const uint32_t *layer_indexer;  ///< The indexer of each layer, from 0; NULL: one for all.
  size_t layer_indexers;  ///< Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
  uint32_t cores;  ///< Cores, 1 to 1024; 0: one for each thread of `workers`, or all.
  int32_t global_slots;  ///< 1: `slot` of a plan counts over all states, `miss_slot` does not (Part 3).
  int32_t slot_base;  ///< Added to such indices; 0 or more.
  uint32_t under_way;  ///< The most transfers that are under way (Part 2): 1 to 64; 0: 4.
  const struct avsg_workers *workers;  ///< NULL, or the threads of "cpu" (Part 3).
  const struct avsg_ascend *ascend;  ///< NULL, or the options of an Ascend device (Part 3).
  const struct avsg_tuning *tuning;  ///< NULL, or how the engine works (Part 3).
  const struct avsg_caller_buffer *buffer;  ///< NULL, or the memory of the slots (Part 3).
  const struct avsg_allocator *allocator;  ///< NULL, or that of the engine and its plans (Part 3).
} avsg_engine_config;

/// The operator on one device: the slots and the tables of every state.
typedef struct avsg_engine avsg_engine;

/// Creates an engine on a pool, and starts its cores. The first engine of a process measures what `tuning`
/// leaves open, for tens of milliseconds. AVSG_UNSUPPORTED: the machine or the library lacks the device.
avsg_status avsg_engine_create(const avsg_engine_config *config, const avsg_pool *pool,
    avsg_engine **engine);

/// The outputs of Stage One for a batch, reused in every step. An engine may have several plans.
typedef struct avsg_plan avsg_plan;

/// Creates a plan for batches of at most these tokens and requests, each 1 to 1048576.
avsg_status avsg_plan_create(const avsg_engine *engine, size_t max_tokens, size_t max_requests,
    avsg_plan **plan);

/// An array of int32_t, whose length is checked.
typedef struct avsg_i32s {
  const int32_t *data;  ///< The first element.
  size_t len;  ///< The number of elements.
} avsg_i32s;

/// The batch of one decode step. An array has an element per request unless its comment says otherwise.
typedef struct avsg_batch {
  size_t size;  ///< sizeof(avsg_batch).
  /// The ids of token t from t * ids_stride on; negative: padding. A repeated id may take a slot and a copy more.
  struct avsg_i32s ids;
  size_t ids_stride;  ///< Elements from one token of `ids` to the next.
  size_t k;  ///< Ids per token: 1 to the engine's K.
  /// The first token of each request, from 0, at most N_q apart (in an append: any), then the number of tokens.
  struct avsg_i32s cu_q;
  struct avsg_i32s state;  ///< A distinct state of each request; -1: a padded request, without slots.
  /// A plan empties a table whose last plan had another one. Take a number that the state has not had: a
  /// table without a plan in between still has the slots of an earlier number.
  struct avsg_i32s generation;
  /// Tokens whose rows were final before this step. Slots of ids from there on are emptied first,
  /// and the rows of those ids are fresh rows. -1: neither.
  struct avsg_i32s stable_len;
  struct avsg_i32s seq_len;  ///< Tokens of the sequence with those of this step, at most 16777216.
  struct avsg_i32s block_table;  ///< The pool's blocks of each request; empty if `page` is 0.
  size_t block_stride;  ///< Elements from one request of `block_table` to the next.
  size_t indexer;  ///< The indexer that selected the ids.
  /// In a stream, the most rows of an append; 0: one per token of `ids`, or N_q per request.
  size_t append_rows;
} avsg_batch;

/// The fresh rows of a step: that of token t of the batch is at t * segment_stride in each segment.
typedef struct avsg_fresh {
  size_t size;  ///< sizeof(avsg_fresh).
  size_t segments;  ///< Segments of a row.
  const void *data[AVSG_MAX_SEGMENTS];  ///< The row of token 0 in each segment.
  size_t bytes[AVSG_MAX_SEGMENTS];  ///< Bytes there: (most tokens - 1) * stride + segment_bytes.
} avsg_fresh;

/// The arrays of a plan, at addresses that never change. They hold the last batch planned.
typedef struct avsg_plan_arrays {
  size_t size;  ///< sizeof(avsg_plan_arrays).
  size_t k;  ///< The stride of tokens in `slot` and the miss lists: the engine's K.
  const int32_t *slot;  ///< slot[t * k + i] is that of the i-th id of token t; -1: padding, or no id.
  const int32_t *valid;  ///< valid[t] is the number of ids of token t that have a slot.
  const int32_t *cu_q;  ///< The batch's `cu_q`; NULL in device memory.
  /// summary[r * AVSG_SUMMARY_WORDS + g] is the number of misses of request r's g-th token (g < 8). In a
  /// request of more than 8 tokens these are its low 16 bits, and its high 16 bits are those of token
  /// g + 8. The elements AVSG_SUMMARY_MISSES and AVSG_SUMMARY_STATUS are those of the request.
  const int32_t *summary;
  /// Miss j of request r, in token order, is at cu_q[r] * k + j of each list. This one has its
  /// position: (token within the request) * k + i.
  const int32_t *miss_position;
  const int32_t *miss_id;  ///< The id of each miss.
  const int32_t *miss_slot;  ///< The slot of each miss within its state, also with `global_slots`.
  const int32_t *miss_row;  ///< The pool's row of each miss, or -1 - g: the request's g-th fresh row.
  /// The misses of token t; NULL in device memory, where `summary` has them.
  const int32_t *row_misses;
  /// failed_layer[r] and failed_row[r] name a row that is not whole if transfers leave request r out
  /// (AVSG_LOST_ROWS); else they are -1. A transfer sets all three. NULL in device memory.
  const int64_t *failed_layer;
  const int64_t *failed_row;  ///< The row beside failed_layer[r].
  const int32_t *failed_new;  ///< 1 if the last transfer of the plan found it, else 0.
} avsg_plan_arrays;

/// Gives the addresses of a plan's arrays in AVSG_MEMORY_HOST, which a plan made with a NULL stream
/// fills, or in AVSG_MEMORY_DEVICE, which is freed with the engine and is host memory on "cpu".
avsg_status avsg_plan_get_arrays(const avsg_plan *plan, int32_t memory, avsg_plan_arrays *arrays);

/// The device buffer of one layer and segment. Slot s of state t is at
/// base + t * state_stride + s * slot_stride.
typedef struct avsg_buffer {
  size_t size;  ///< sizeof(avsg_buffer).
  void *base;  ///< Slot 0 of state 0 in the device's memory, and page 0 of page tables.
  size_t slot_stride;  ///< Bytes from one slot to the next: the segment's stride.
  size_t state_stride;  ///< Bytes from one state to the next: S * slot_stride.
  size_t bytes;  ///< Bytes of the segment in a row.
} avsg_buffer;

/// Describes the device buffer of a layer and segment, which attention reads. Its memory is valid
/// until the engine is destroyed, and only the engine may write it. AVSG_INVALID for a buffer of the
/// caller whose slots are no single stride apart.
avsg_status avsg_engine_get_buffer(const avsg_engine *engine, size_t layer, size_t segment,
    avsg_buffer *buffer);

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one plan. What
/// `plan` holds is lost, and if no layer has it, for example after an exception, it is discarded first (Part 2).
avsg_status avsg_engine_plan(avsg_engine *engine, const avsg_batch *batch, avsg_plan *plan,
    void *stream);

/// Stage Two: copies the rows of a plan's misses to the slots of `count` layers, in ascending order. fresh[i]
/// has the rows of layers[i], in at most AVSG_MAX_LIST_SEGMENTS segments together; `fresh` may be NULL if no
/// miss is a fresh row. AVSG_INVALID if a layer lacks an older plan of a state, or has a newer one. After
/// AVSG_OS none of the layers has the plan: repeat the call, discard the plan, or give its requests new
/// generations. `avsg_plan_get_lost_ids` says what AVSG_LOST_ROWS means.
avsg_status avsg_engine_transfer(avsg_engine *engine, avsg_plan *plan, const size_t *layers,
    size_t count, const avsg_fresh *fresh, void *stream);

/// Writes the step's fresh rows to `count` layers of the pool, in ascending order: fresh row g of a request
/// becomes the row of id stable_len + g. `fresh` is that of a transfer. A request may have any number of
/// rows, which writes those of a prefill or a restore. `ids`, `ids_stride`, `k`, `indexer` and the elements
/// of `generation` are ignored. Requests whose `stable_len` or `state` is -1 are skipped. If two requests
/// have one row in the pool, host arrays leave that of the later one, and a stream that of either or a mix.
/// AVSG_INVALID if the pool has no row for an id, or if this process is a reader; a stream skips rows without
/// one. After AVSG_OS or AVSG_DEVICE rows of any of the layers may be missing: repeat the call.
avsg_status avsg_engine_append(avsg_engine *engine, const avsg_batch *batch, const size_t *layers,
    size_t count, const avsg_fresh *fresh, void *stream);

/// Destroys the handle of a pool, whose memory lasts until every engine on it is destroyed.
avsg_status avsg_pool_destroy(avsg_pool *pool);

/// Destroys an engine; its plans stay readable on the host. After AVSG_DEVICE the handle is invalid, too.
avsg_status avsg_engine_destroy(avsg_engine *engine);

/// Destroys a plan, which may have a transfer under way, or no layer (`avsg_engine_discard`). It waits for no call.
avsg_status avsg_plan_destroy(avsg_plan *plan);

/// Returns the message of the last failure on the calling thread, or an empty string before the first one.
/// The string is valid and unchanged until the next call that fails on this thread, or the thread ends.
const char *avsg_last_error(void);

// ---- Part 2: streams, steps, states and descriptions ------------------------------------------------

// Streams. A function of a step (avsg_engine_step, _plan, _transfer, _begin and _append) takes a stream:
// - NULL: the arrays are host memory, the call waits until its work is done, and the plan can be read on
//   the host. The device "cpu" takes nothing else (AVSG_UNSUPPORTED). An Ascend device copies the
//   arrays, and allocates when a batch is larger than every earlier one.
// - an aclrtStream of the engine's Ascend device: the arrays are device memory, and the call adds its
//   work to the stream and returns. Until that work and every replay of it are done, the arrays stay
//   allocated and unwritten, the stream lives, and nothing else uses the plan, or the slots and tables of
//   the batch's states. The host reads no array, so that a captured call can be replayed, and does not check
//   contents, nor the order of transfers: `cu_q` must ascend from 0 by at most N_q to what `ids` has
//   elements for, and each state be -1 or a distinct one in range. The plan's outputs are in
//   AVSG_MEMORY_DEVICE only; other getters, and a transfer with a NULL stream, are AVSG_UNSUPPORTED. A
//   plan that was made in a stream is transferred in a stream after that work, and the batch's `cu_q`
//   and `state` do not change before.
// After AVSG_DEVICE of a call that may have changed something, the next plan empties every state, on which
// no stream may be at work then, and earlier plans are refused.

/// The most segments that the fresh rows of a call have in all its layers: 256 layers of one segment, or 64
/// of 4.
#define AVSG_MAX_LIST_SEGMENTS 256

/// Plans a batch and transfers it to one layer: `avsg_engine_plan` and `avsg_engine_transfer` in one
/// call, `fresh` may be NULL if every `stable_len` is -1. After AVSG_OS and AVSG_LOST_ROWS the batch is
/// planned: go on as after such an `avsg_engine_transfer`.
avsg_status avsg_engine_step(avsg_engine *engine, const avsg_batch *batch, avsg_plan *plan,
    size_t layer, const avsg_fresh *fresh, void *stream);

/// Begins an `avsg_engine_transfer`, with its arguments, and returns while the rows are read from a file or copied.
/// In a stream it is that call. Fresh rows are copied before it returns, and all others, too, by an engine with one
/// thread or an executor, and if they are so few that waking a thread takes longer. Over a file the kernel reads
/// meanwhile, and the wait copies; without io_uring the workers do both, without a limit of time.
///
/// Until `avsg_engine_wait` has succeeded, the slots of the plan's misses are not read in these layers. A plan, a load,
/// a fork and another transfer of its states for its indexer are AVSG_INVALID. All arrays of the plan and the slots
/// of its hits may be read, and everything else may be called, also for other plans. AVSG_BUSY if as many
/// transfers are under way as `under_way` of the engine says. A discard of the plan, a plan of another batch into
/// it, and the destruction of its engine end the transfer first, at most after the time limit of a file; so does the
/// engine's next call after the destruction of the plan. Memory that the kernel still writes to then stays allocated.
avsg_status avsg_engine_begin(avsg_engine *engine, avsg_plan *plan, const size_t *layers, size_t count,
    const avsg_fresh *fresh, void *stream);

/// Waits for the transfer of a plan that is under way, takes part in it, and returns what `avsg_engine_transfer`
/// would have. After any status it is no longer under way. AVSG_INVALID if none is, or if the plan was made in a
/// stream: use an event of your stream.
avsg_status avsg_engine_wait(avsg_engine *engine, avsg_plan *plan);

/// Asks, without waiting, about a transfer that is under way: `done` receives 1 if `avsg_engine_wait` has nothing to
/// wait for that was begun, else 0. More records of a file than fit the memory for them are begun by that call. An
/// Ascend device is not asked: 1. AVSG_INVALID as for `avsg_engine_wait`.
avsg_status avsg_engine_test(avsg_engine *engine, avsg_plan *plan, int32_t *done);

/// Status bits of a request. The ids that set them were treated as padding.
typedef enum avsg_request_status {
  AVSG_REQUEST_ID_OUT_OF_RANGE = 1,  ///< An id was at or above the request's `seq_len`.
  AVSG_REQUEST_ROW_OUT_OF_POOL = 2,  ///< The row of an id was outside the host pool.
  /// The kernels of an Ascend device were built for fewer blocks per state of the device buffer than
  /// this engine has, so that every id of the batch was treated as padding. A call with a NULL stream is
  /// AVSG_INVALID then; in a stream only this bit says so.
  AVSG_REQUEST_TOO_MANY_SLOT_BLOCKS = 4,
} avsg_request_status;

/// Elements of `avsg_plan_arrays.summary` for each request: first the misses of its tokens.
#define AVSG_SUMMARY_WORDS 16

/// The element of a request's summary that has the number of its misses.
#define AVSG_SUMMARY_MISSES 8

/// The element of a request's summary that has its `avsg_request_status` bits.
#define AVSG_SUMMARY_STATUS 9

/// The counters of the last batch planned; all 0 before the first, while one is planned, and after a discard.
typedef struct avsg_plan_counters {
  size_t size;  ///< sizeof(avsg_plan_counters).
  size_t requests;  ///< Requests, padded ones included.
  size_t tokens;  ///< Tokens of the batch.
  size_t selected;  ///< Selected ids that have a slot.
  size_t hits;  ///< Hits among `selected`.
  size_t misses;  ///< Misses among `selected`: the rows that one transfer copies.
  int32_t status;  ///< The `avsg_request_status` bits of all requests, combined by OR.
  int32_t reserved;  ///< Always 0.
  /// The number of this batch among all that its engine has planned, from 1. Messages name plans by it,
  /// and a reader of the plan's arrays knows by another number that they were overwritten meanwhile.
  uint64_t number;
} avsg_plan_counters;

/// Gives a plan's counters, all of one batch.
avsg_status avsg_plan_get_counters(const avsg_plan *plan, avsg_plan_counters *counters);

/// Gives the ids of the rows of a file that a request of a plan missed and that are not whole: never written,
/// lost with a process, damaged, or cut off. A step, transfer or load that finds such rows in its layers is
/// AVSG_LOST_ROWS, and serves all other requests. `failed_row` of `avsg_plan_arrays` names a request that is
/// not served, and `failed_new` tells whether the last transfer of the plan found it, or an earlier one or
/// another plan: transfers leave it out from now on, of this plan and of other plans since its state was
/// empty, and its next plan finds it empty. Write these rows again, and repeat the step for it. The ids are
/// in the order of its misses. `count` receives their number, also if it is above `capacity`, which is
/// AVSG_INVALID; a `capacity` of 0 asks for `count` only. It is 0 for a request that is served, or that
/// another plan has lost.
avsg_status avsg_plan_get_lost_ids(const avsg_plan *plan, size_t request, int32_t *ids, size_t capacity,
    size_t *count);

/// Fills the page table of a paged attention kernel, with pages of `page` slots (0 selects S). The
/// pages of a request's state are written from table[request * stride] on, as indices that count
/// from avsg_buffer.base, and S is written to lengths[request]. A state has S / page pages: slot s
/// is row s % page of the page at index s / page. A padded request (state -1) gets pages of -1 and
/// length 0. `states` and `lengths` have `requests` elements, at most 1048576, and `table` has requests *
/// stride; the three arrays do not overlap.
avsg_status avsg_engine_get_page_table(const avsg_engine *engine, const int32_t *states,
    size_t requests, size_t page, int32_t *table, size_t stride, int32_t *lengths);

/// Writes a row from `data`, which has its segments one after another. The caller must not write a row
/// while another thread writes it or an engine copies it; another read may get a mix of old and new bytes.
avsg_status avsg_pool_write_row(const avsg_pool *pool, size_t layer, size_t row, const void *data,
    size_t bytes);

/// Writes the rows from row `first` on of `count` layers, whose shape in `data` is [count][rows][bytes of a
/// row]: the segments of a row one after another. `bytes` tells the number of rows. It costs one call for all
/// rows; those of a file are written by large operations, and each record once if the list has all layers of an
/// indexer, or if the records fit `queue_bytes` until all of their layers are written. After AVSG_OS the rows
/// of the file that were not taken are not whole: repeat the call. Otherwise as avsg_pool_write_row.
avsg_status avsg_pool_write_rows(const avsg_pool *pool, const size_t *layers, size_t count,
    size_t first, const void *data, size_t bytes);

/// Copies a row to `data`, with its segments one after another. AVSG_LOST_ROWS if it is not whole in the file
/// of the pool.
avsg_status avsg_pool_read_row(const avsg_pool *pool, size_t layer, size_t row, void *data,
    size_t bytes);

/// Copies the rows from row `first` on of `count` layers to `data`, in the shape that avsg_pool_write_rows takes.
/// Neighbours in a file are read by large operations. AVSG_LOST_ROWS, with `data` undefined, if a row is not
/// whole in the file.
avsg_status avsg_pool_read_rows(const avsg_pool *pool, const size_t *layers, size_t count, size_t first,
    void *data, size_t bytes);

/// Gives the address of a segment of a row, for reads and, in the pool's writer, writes in place
/// while no other thread or process writes the row. A reader's memory is mapped without writes.
avsg_status avsg_pool_get_row(const avsg_pool *pool, size_t layer, size_t segment, size_t row,
    void **data);

/// Empties the slots of a state's ids from `first` to `end` - 1, because their rows in the pool were
/// rewritten under a live request. `end` is above `first` and at most 16777216, behind the last id. The next
/// plan that selects such an id copies its new row; other ids keep their slots. A plan that was made before
/// keeps its slots: transfer it first. On an Ascend device the call waits for the work of all streams, none
/// of which may be in a capture.
avsg_status avsg_engine_invalidate(avsg_engine *engine, size_t state, size_t first, size_t end);

/// The ids that `avsg_engine_load` puts into the slots of one state.
typedef struct avsg_load {
  size_t size;  ///< sizeof(avsg_load).
  struct avsg_i32s ids;  ///< The ids, at most S of them, in host memory.
  /// The pool's blocks of the request, in host memory; empty if the engine's `page` is 0.
  struct avsg_i32s block_table;
  size_t indexer;  ///< The indexer, whose layers get the rows.
  int32_t state;  ///< The state that gets the rows.
  int32_t generation;  ///< The request's generation, as in `avsg_batch`.
  int32_t seq_len;  ///< The sequence length. Ids at or above it are padding.
  uint32_t reserved;  ///< Must be 0.
} avsg_load;

/// Puts the rows of chosen ids into the slots of a state without a selection, for example after a
/// restore: it plans K ids at a time into `plan`, which holds at least one token, and transfers them to
/// every layer of the indexer. The next plan hits these ids as those that `avsg_engine_get_held` tells of.
/// AVSG_INVALID, with nothing changed, if one of these layers lacks rows of an earlier plan of the state:
/// transfer that one first. After AVSG_OS of a pool in a file the last K ids are forgotten, and those before
/// them keep their slots. After AVSG_LOST_ROWS the state is empty for the indexer, and request 0 of `plan` has
/// the row.
avsg_status avsg_engine_load(avsg_engine *engine, const avsg_load *load, avsg_plan *plan);

/// Copies the state `from` to `count` others, with its tables and slots, for a sequence that is forked: to[i]
/// gets the generation to_generation[i]. `from_generation` is that of the request that is forked, which need
/// not have a plan yet. A state is named once. "cpu" copies with all workers. AVSG_INVALID if a layer lacks
/// rows of the last plan of `from` in that generation. On an Ascend device the call waits as
/// `avsg_engine_invalidate` does.
avsg_status avsg_engine_fork(avsg_engine *engine, size_t from, int32_t from_generation,
    const int32_t *to, const int32_t *to_generation, size_t count);

/// Tells which ids from `first` to `end` - 1 (as in `avsg_engine_invalidate`) a state holds for an indexer:
/// bit i % 64 of bits[i / 64] is 1 if it holds id first + i. The first token of the state's next plan in
/// `generation` hits such an id and has no row to copy, if it selects it below `seq_len` and below a
/// `stable_len` other than -1. A later token of that plan may miss it, because an earlier one has evicted it,
/// and what later plans do is open. `bits` has `words` elements, at least one for 64 ids. On an Ascend device
/// the call waits as `avsg_engine_invalidate` does and reads the table back: it is not meant for the step
/// path.
avsg_status avsg_engine_get_held(avsg_engine *engine, size_t indexer, size_t state, int32_t generation,
    size_t first, size_t end, uint64_t *bits, size_t words);

/// Drops a planned batch whose transfers are not going to be made, or not to every layer, for
/// example because its drafts were abandoned. The ids that it missed lose their slots, so that the
/// next plan misses them again; the plan holds no batch afterwards. AVSG_INVALID, with nothing
/// changed, if the plan was made in a stream, or if a state of which it missed a row was planned
/// again or emptied since: discard newer plans first. On an Ascend device the call waits as
/// `avsg_engine_invalidate` does.
///
/// A batch that was planned with a NULL stream and that no layer has is discarded without this call: when the
/// next one is planned into its plan, for which an Ascend device waits only then, and once its plan was
/// destroyed in the engine's next call that plans or uses tables, which frees the plan's memory. While a
/// newer plan of a state needs its rows, planning into it is AVSG_INVALID, unless that empties the state, and
/// what was destroyed is kept. A batch that some layer has is overwritten and stays in that layer; a transfer
/// to another one is AVSG_INVALID then, and names every layer and state that lacks it, until the requests have
/// new generations.
avsg_status avsg_engine_discard(avsg_engine *engine, avsg_plan *plan);

/// The description of an engine: its configuration with the defaults filled in, and what creation
/// measured.
typedef struct avsg_engine_info {
  size_t size;  ///< sizeof(avsg_engine_info).
  char device[16];  ///< The name of the device.
  char machine[32];  ///< The vector instructions, such as "avx512"; "none" on an Ascend device.
  char copier[32];  ///< The method that copies rows, such as "stream+8"; "none" on an Ascend device.
  uint32_t k;  ///< K, the most ids that a token selects.
  uint32_t tokens;  ///< N_q, the most tokens of a request in one step.
  uint32_t slots;  ///< S, the number of slots per state and layer.
  int32_t table;  ///< An `avsg_table`.
  int32_t lifetime;  ///< An `avsg_lifetime`, but not AVSG_LIFETIME_AUTO.
  int32_t life;  ///< The constant lifetime in decode steps; 0 with AVSG_LIFETIME_LEARNED.
  uint32_t spread;  ///< Links per slot.
  uint32_t retries;  ///< R, the number of links probed after the first.
  uint32_t page;  ///< Tokens per block of the host's block tables; 0 if there are none.
  uint32_t cores;  ///< Cores in use.
  size_t states;  ///< Request states.
  size_t layers;  ///< Layers of the pool.
  size_t buffer_bytes;  ///< Bytes of the device buffer.
  /// Threads that run a launch on "cpu", the caller's included; 0 on an Ascend device.
  uint32_t threads;
  uint32_t under_way;  ///< The most transfers that are under way at once.
  size_t indexers;  ///< Indexers: the tables of each state.
} avsg_engine_info;

/// Describes an engine.
avsg_status avsg_engine_get_info(const avsg_engine *engine, avsg_engine_info *info);

/// What an engine has done since it was made. Every number only grows; while a call runs, they may be of
/// different instants. A load counts as its plans and transfers. The host does not see what work in a
/// caller's stream plans and copies: of such calls only `queued` is counted. Times are those of the calling
/// thread, in nanoseconds.
typedef struct avsg_engine_stats {
  size_t size;  ///< sizeof(avsg_engine_stats).
  uint64_t plans;  ///< Batches planned, with or without a transfer in the same call.
  uint64_t transfers;  ///< Transfers of a plan to a layer, with or without a plan in the same call.
  uint64_t appends;  ///< Appends to a layer.
  /// Calls that were put into a caller's stream; one for several layers counts for each.
  uint64_t queued;
  uint64_t hits;  ///< Selected ids that had a slot.
  uint64_t misses;  ///< Selected ids that got a slot.
  /// Those of the misses whose slot an earlier id had been given since the state was last empty:
  /// the id was evicted, or had been invalidated.
  uint64_t evictions;
  /// Bytes that transfers copied to slots, from the pool or from fresh rows.
  uint64_t transferred_bytes;
  uint64_t appended_bytes;  ///< Bytes of the fresh rows of appends.
  uint64_t plan_ns;  ///< Time in Stage One.
  uint64_t transfer_ns;  ///< Time in Stage Two.
  uint64_t step_ns;  ///< Time of steps on an Ascend device, whose stages the host cannot tell apart.
  uint64_t append_ns;  ///< Time in appends.
  /// Time of transfers, also failed ones, in which nothing was done but to wait for reads of a file; without
  /// io_uring also that of the copies.
  uint64_t read_wait_ns;
} avsg_engine_stats;

/// Gives the counters and times of an engine's calls so far.
avsg_status avsg_engine_get_stats(const avsg_engine *engine, avsg_engine_stats *stats);

/// Gives the slots in use of each state for an indexer: used[t] is that of state t. "cpu" knows it exactly. An
/// Ascend device may have less, because the host does not see which slots `stable_len`, a discard or an
/// invalidation emptied. -1 once a stream has planned, because the host does not see which states it planned.
avsg_status avsg_engine_get_used_slots(const avsg_engine *engine, size_t indexer, int64_t *used,
    size_t capacity);

/// Where memory is.
typedef enum avsg_memory_kind {
  /// Memory of the process: pools, the outputs of plans, and all memory of an engine on "cpu".
  AVSG_MEMORY_HOST = 0,
  /// Memory of the process that an Ascend device copies, as of aclrtMallocHost.
  AVSG_MEMORY_PINNED = 1,
  AVSG_MEMORY_DEVICE = 2,  ///< Memory of an Ascend device, as of aclrtMalloc.
} avsg_memory_kind;

/// The memory of a pool, an engine and a plan by `avsg_memory_kind`, in bytes. What is 0 on "cpu" has
/// a value on an Ascend device only.
typedef struct avsg_memory {
  size_t size;  ///< sizeof(avsg_memory).
  /// AVSG_MEMORY_HOST of `avsg_pool_create`; without an allocator, at most. 0 with a layout; with a file its
  /// queue of writes and what it notes of each row.
  size_t pool;
  size_t buffer;  ///< The device buffer: S rows for each state and layer; 0 in memory of the caller.
  /// The tables of all indexers and, on "cpu", the cores' working memory and, with a file, a bounce
  /// buffer for each transfer that may be under way.
  size_t tables;
  /// AVSG_MEMORY_HOST of `avsg_engine_create`: on "cpu" `buffer` and `tables`; on an Ascend device a
  /// copy of one table.
  size_t engine_host;
  /// AVSG_MEMORY_DEVICE of it: `buffer` and `tables`, 8 bytes for each chunk of the pool or part of a
  /// layer, and 512 bytes with AVSG_LIFETIME_LEARNED; 0 on "cpu".
  size_t engine_device;
  /// AVSG_MEMORY_HOST of `avsg_plan_create`: on "cpu" 20 * K + 8 bytes per token and 116 per request, and
  /// with a file 12 * K bytes per token and, for layers that share an indexer, a bounce buffer of at most
  /// 32 MiB.
  size_t plan_host;
  size_t plan_pinned;  ///< AVSG_MEMORY_PINNED of it; 0 on "cpu".
  /// AVSG_MEMORY_DEVICE of it; 0 on "cpu". `plan_pinned` and this are released when a later plan of
  /// the engine is created, or with the engine.
  size_t plan_device;
  /// What steps with a NULL stream add of AVSG_MEMORY_PINNED once the largest batch came; 0 on "cpu".
  /// An engine takes it once for all its plans.
  size_t staging_pinned;
  size_t staging_device;  ///< What they add of AVSG_MEMORY_DEVICE; 0 on "cpu".
} avsg_memory;

/// Computes the memory of a pool, of an engine on it, and of a plan for batches of at most `max_tokens`
/// tokens and `max_requests` requests, and takes none of it. With a NULL `config` it is that of the
/// pool alone, and without tokens and requests there is no plan. It refuses what the create functions
/// refuse in a configuration, a layout included, and nothing else, and does not look at what they find on
/// the machine (memory, files, threads, devices, kernels). An allocator is asked for exactly these bytes.
/// `block_stride` is that of the largest batch with host arrays, for which the staging memory, a sum of powers
/// of two, is exact.
avsg_status avsg_get_memory(const avsg_engine_config *config, const avsg_pool_config *pool,
    size_t max_tokens, size_t max_requests, size_t block_stride, avsg_memory *memory);

/// Returns the name of a status, such as "AVSG_BUSY", or "unknown status" for another number. The
/// string is never NULL and valid for ever.
const char *avsg_status_name(int32_t status);

/// The importance of a message.
typedef enum avsg_log_level {
  AVSG_LOG_ERROR = 1,  ///< A defect of the library.
  AVSG_LOG_WARN = 2,  ///< Something works, but slower than asked for.
  AVSG_LOG_INFO = 3,  ///< What was measured and chosen.
  AVSG_LOG_DEBUG = 4,  ///< What was made.
} avsg_log_level;

/// Takes a message: one line without a line break, valid during the call. It may be called on any
/// thread and at the same time, and must not call this library.
typedef void (*avsg_log_callback)(void *user, int32_t level, const char *message);

/// Sets the function that takes the messages of the library up to `level`, an `avsg_log_level`, for
/// the whole process; NULL takes none, as before the first call. After this function has returned,
/// an earlier callback is not called any more. The library writes messages nowhere else, and no
/// call of a step says anything. AVSG_UNSUPPORTED: the process is a Rust program with a logger of
/// its own, which gets the messages.
avsg_status avsg_set_log(avsg_log_callback callback, void *user, int32_t level);

/// The version of this interface. It changes only if programs that were built with an older header
/// would break; new functions, constants, and fields at the end of structs do not change it.
#define AVSG_ABI_VERSION 1

/// Returns the interface version of the loaded library. A program must not use a library whose
/// version differs from the `AVSG_ABI_VERSION` that it was built with.
uint32_t avsg_abi_version(void);

/// Returns the version of the library, such as "0.1.0". The string is valid for ever.
const char *avsg_version(void);

/// Returns the names for `avsg_engine_config.device`, separated by spaces. "ascend" needs a runtime
/// library, which the creation of an engine searches. "ascend-sim" is among them if the library was
/// built with the simulator (`cargo build -p avsg-capi-so --features sim`). The string is valid for
/// ever.
const char *avsg_devices(void);

// ---- Part 3: memory, threads and devices of the program, shared pools, tuning -----------------------

/// The threads that run the launches of one or several engines on "cpu".
typedef struct avsg_workers avsg_workers;

/// A task of the library, which an executor calls with `data` and an index.
typedef void (*avsg_task)(void *data, size_t index);

/// A function of the caller that calls task(data, i) once for each i below `count`, on any threads
/// and at the same time where it can, and returns when all these calls have returned. One thread at
/// a time calls it. A call that it leaves out costs only speed. No exception may leave it.
typedef void (*avsg_executor)(void *user, avsg_task task, void *data, size_t count);

/// The configuration of workers. `size` and `threads` must be set.
typedef struct avsg_workers_config {
  size_t size;  ///< sizeof(avsg_workers_config).
  /// Threads that run a launch, the caller's included: 1 to 1024. With an executor, the tasks
  /// that it gets.
  uint32_t threads;
  /// 1 pins each started thread to one of `cpus`, to which no other workers of this process are
  /// pinned (AVSG_INVALID if too few are left); with no `cpus`, to one of the thread's that calls,
  /// of which the first is left to the caller. 0 leaves the choice to the system.
  uint32_t pin;
  /// The CPUs that started threads may use; NULL for those of the thread that calls.
  const int32_t *cpus;
  size_t cpu_count;  ///< The number of `cpus`.
  /// Microseconds that a thread polls before it sleeps: a started thread for the next launch, and
  /// any thread for the pieces of the others. 0 selects 100, and -1 none.
  int32_t spin_us;
  uint32_t reserved;  ///< Must be 0.
  avsg_executor executor;  ///< The caller's threads. NULL starts threads.
  /// The first argument of `executor`, which is called on the threads of the engines' callers.
  void *user;
} avsg_workers_config;

/// Makes workers, for engines whose configuration names them. Workers that start threads take no
/// more than `threads` - 1. Several engines may share workers: a launch that finds them in use runs
/// on its caller's thread alone, with the same result. An executor is called until the workers' handle and
/// every engine with them are destroyed.
avsg_status avsg_workers_create(const avsg_workers_config *config, avsg_workers **workers);

/// Destroys the handle of workers. The threads end when the last engine with them is destroyed.
avsg_status avsg_workers_destroy(avsg_workers *workers);

/// A contiguous range of the caller's memory, of any length and alignment.
typedef struct avsg_region {
  void *data;  ///< The first byte.
  size_t bytes;  ///< The length in bytes.
  /// The address of the first byte for kernels of the Ascend device, if the caller has registered
  /// the memory. 0 lets the library register the pages that the region touches.
  uint64_t device_address;
} avsg_region;

/// Where some rows of one segment are. Row r of layer l is at
/// offset + (l - first_layer) * layer_stride + ((r - first_row) / block_rows) * block_stride +
/// ((r - first_row) % block_rows) * row_stride bytes from the start of the region.
typedef struct avsg_pool_part {
  size_t region;  ///< The index of the region.
  size_t offset;  ///< Bytes from the start of the region to the first row of the first layer.
  size_t segment;  ///< The index of the segment.
  size_t first_layer;  ///< The first layer.
  size_t layers;  ///< The number of layers.
  size_t layer_stride;  ///< Bytes from one layer to the next; any for one layer.
  size_t first_row;  ///< The first row.
  /// The number of rows. If a segment's rows are in several parts, all parts but the last hold the
  /// same power of two of rows.
  size_t rows;
} avsg_pool_part;

/// A pool in memory of the caller as it is (`avsg_pool_config.layout`): token-major, layer-major or
/// block-major, with padding after rows or blocks, in one region or several. Every row of every layer
/// and segment is in one part. Rows may lie between those of other layers, segments or blocks where
/// the smaller stride stays within the larger one; AVSG_INVALID if two rows overlap. The regions must
/// be valid for reads and writes until the pool's handle and every engine on the pool are destroyed;
/// the structs and arrays are not used after the call. `chunk_bytes` and the allocator are ignored, and the
/// pool cannot be exported.
typedef struct avsg_pool_layout {
  size_t size;  ///< sizeof(avsg_pool_layout).
  size_t block_rows;  ///< Rows of a block, a power of two; 0 for rows without blocks.
  /// Bytes from one block of a segment to the next; ignored if `block_rows` is 0.
  size_t block_stride[AVSG_MAX_SEGMENTS];
  size_t row_stride[AVSG_MAX_SEGMENTS];  ///< Bytes from one row of a block to the next.
  const struct avsg_region *regions;  ///< The memory.
  size_t region_count;  ///< Elements of `regions`: at most `part_count`.
  const struct avsg_pool_part *parts;  ///< The parts, in any order.
  size_t part_count;  ///< Elements of `parts`: at most layers * rows * segments.
} avsg_pool_layout;

/// A device buffer in memory of the caller: process memory for "cpu", device memory for an Ascend
/// device, and `state_blocks`, too. Slot s of state t has the index n = t * S + s. In each layer
/// and segment it is at base + (n / block_slots) * block_stride + (n % block_slots) * slot_stride. The
/// memory, which need not be zeroed but must be initialised, is valid until the engine is destroyed,
/// serves one engine, and is written by it only. Slots may lie between those of other layers or states
/// where the smaller stride stays within the larger one; AVSG_INVALID if they overlap each other,
/// rows of the pool or `state_blocks`. With `global_slots`, `slot` of a plan has n, or with `state_blocks` the
/// place of the slot in the buffer, plus slot_base (-1 if the device found the block outside of the
/// buffer). `miss_slot` always has s, from 0 to S - 1, because Stage Two reads it: with f = cu_q[r] * k the slot of
/// miss j of request r is slot[f + miss_position[f + j]] as `slot` numbers it, and miss_slot[f + j] in its state.
typedef struct avsg_caller_buffer {
  size_t size;  ///< sizeof(avsg_caller_buffer).
  void *const *bases;  ///< bases[layer * segments + segment] is the address of index 0.
  size_t base_count;  ///< Elements of `bases`: layers * segments.
  /// Slots of a block, a power of two that divides S; 0 for slots without blocks. S gives the states a
  /// stride of their own.
  size_t block_slots;
  /// Bytes from one block of a segment to the next; ignored if `block_slots` is 0.
  size_t block_stride[AVSG_MAX_SEGMENTS];
  size_t slot_stride[AVSG_MAX_SEGMENTS];  ///< Bytes from one slot of a block to the next.
  /// NULL, or the blocks of each state in any order, S / block_slots per state: slot s of state t
  /// is slot s % block_slots of block state_blocks[t * (S / block_slots) + s / block_slots]. The
  /// work of every call that plans or transfers reads this array, which must stay valid and is not
  /// written meanwhile. An entry may change together with the generation of its state. On "cpu" a
  /// call that names a state with an entry outside of 0..blocks is AVSG_INVALID. Kernels read the
  /// array when they run, in a replay too: they leave out the rows of such a block, whose slots then
  /// hold other rows until the state has a new generation. An Ascend device takes at most 512
  /// entries per state.
  const int32_t *state_blocks;
  size_t state_blocks_len;  ///< Elements of `state_blocks`.
  size_t blocks;  ///< With `state_blocks`, the number of blocks of the memory.
} avsg_caller_buffer;

/// Returns the address of `bytes` bytes, at least 1, of an `avsg_memory_kind`, at a multiple of
/// `alignment`: 64, or 4096 for the chunks of a pool and for a plan's buffers of rows from a file. The
/// memory need not be zeroed. NULL, if there is none, makes the call fail with AVSG_NO_MEMORY; another
/// address that is no such multiple, with AVSG_INVALID, and is released.
typedef void *(*avsg_allocate)(void *user, int32_t kind, size_t bytes, size_t alignment);

/// Takes back an address that `avsg_allocate` returned for this kind and number of bytes. Each is
/// released once.
typedef void (*avsg_release)(void *user, int32_t kind, void *address, size_t bytes);

/// An allocator of the caller, for `avsg_pool_config.allocator` and `avsg_engine_config.allocator`.
/// The struct is copied. Its functions may be called until the last object with it is destroyed: a
/// pool until its handle and every engine on it are, an engine until its handle is, a plan until its
/// handle is, in any order. A pool with an allocator cannot be exported.
///
/// They are called on the threads that create and destroy these objects, and on an Ascend device by
/// a function of a step with host arrays that is given a larger batch than every earlier one
/// (`avsg_get_memory` says how much that takes); never by one with a stream, nor by a step on "cpu".
/// For AVSG_MEMORY_PINNED and AVSG_MEMORY_DEVICE the engine's context is the current one of the
/// thread, and at a release no work uses the memory. They must not call this library with the object
/// that they are called for, and no exception may leave them. Threads that create and destroy
/// objects at the same time call them at the same time.
typedef struct avsg_allocator {
  size_t size;  ///< sizeof(avsg_allocator).
  void *user;  ///< The first argument of both functions.
  avsg_allocate allocate;  ///< Allocates memory.
  avsg_release release;  ///< Releases memory.
} avsg_allocator;

/// The pages of a pool's memory.
typedef enum avsg_pages {
  AVSG_PAGES_DEFAULT = 0,  ///< The same as AVSG_PAGES_HUGE_2M.
  /// Explicit hugepages of 1 GiB; if the system has none free, AVSG_PAGES_HUGE_2M.
  AVSG_PAGES_HUGE_1G = 1,
  /// Explicit hugepages of 2 MiB; if the system has none free, AVSG_PAGES_THP.
  AVSG_PAGES_HUGE_2M = 2,
  AVSG_PAGES_THP = 3,  ///< Transparent hugepages; if the system does not give them, AVSG_PAGES_PLAIN.
  AVSG_PAGES_PLAIN = 4,  ///< Plain pages.
  /// The caller's memory, or that of an allocator. It appears only in `avsg_pool_info`.
  AVSG_PAGES_CALLER = 5,
} avsg_pages;

/// The access of a process to a pool. A pool has at most one writer at a time.
typedef enum avsg_role {
  AVSG_ROLE_READER = 0,  ///< The process reads rows, and its mapping is read-only.
  AVSG_ROLE_WRITER = 1,  ///< The process reads and writes rows.
} avsg_role;

/// How the rows of a pool's file are read and written.
typedef enum avsg_io {
  AVSG_IO_NONE = 0,  ///< Not at all: the rows are in memory.
  AVSG_IO_URING = 1,  ///< By io_uring, all reads of a transfer in flight at once.
  AVSG_IO_PREADV = 2,  ///< By preadv and pwritev, where the kernel refuses io_uring.
} avsg_io;

/// The description of a pool. What follows `role` is 0 for rows in memory.
typedef struct avsg_pool_info {
  size_t size;  ///< sizeof(avsg_pool_info).
  size_t layers;  ///< The number of layers.
  size_t rows;  ///< Rows of each layer.
  size_t segments;  ///< Segments of a row.
  size_t segment_bytes[AVSG_MAX_SEGMENTS];  ///< Bytes of each segment.
  size_t segment_stride[AVSG_MAX_SEGMENTS];  ///< Bytes from the segment of one row to that of the next.
  size_t row_bytes;  ///< Bytes of a row: the sum of `segment_bytes`.
  size_t bytes;  ///< Bytes of all chunks; of a pool in a file, those of its queue of writes.
  size_t huge_bytes;  ///< Bytes of the chunks that are in hugepages.
  size_t chunks;  ///< The number of chunks.
  int32_t pages;  ///< An `avsg_pages`: the kind that the pool has, or AVSG_PAGES_CALLER.
  int32_t role;  ///< An `avsg_role` of this process.
  uint64_t file_bytes;  ///< Bytes of the file.
  size_t block_bytes;  ///< Bytes of the block that records are padded to.
  /// Bytes of the longest record: the rows of an id in the layers of an indexer, with checksums and padding.
  size_t record_bytes;
  double padding;  ///< The padding's share of the bytes of all records, 0 to 1.
  uint64_t reads;  ///< Reads of the file until now. Records that are neighbours share one.
  uint64_t read_bytes;  ///< Bytes that these read.
  uint64_t writes;  ///< Writes to the file until now.
  uint64_t written_bytes;  ///< Bytes that these wrote.
  int32_t io;  ///< An `avsg_io`.
  uint32_t reserved;  ///< Always 0.
  /// The sessions that the file was made with, as are the numbers below (`avsg_pool_file`).
  size_t sessions;
  size_t session_rows;  ///< Rows of the blocks of a session.
  size_t session_bytes;  ///< The most bytes of the caller for each session.
  size_t token_bytes;  ///< Bytes of the caller for each token.
} avsg_pool_info;

/// Describes a pool.
avsg_status avsg_pool_get_info(const avsg_pool *pool, avsg_pool_info *info);

/// A contiguous range of a pool: rows of one layer and segment.
typedef struct avsg_chunk {
  void *data;  ///< The first byte.
  size_t bytes;  ///< The length in bytes.
} avsg_chunk;

/// Gives every chunk of a pool, for registration with a device: layer by layer, and segment by
/// segment in each. `count` receives their number, also if it is above `capacity`, which is
/// AVSG_INVALID; a `capacity` of 0 asks for `count` only. A reader must not write the chunks. With a
/// layout they are the whole pages of its regions, without regions that have a device address.
avsg_status avsg_pool_get_chunks(const avsg_pool *pool, avsg_chunk *chunks, size_t capacity,
    size_t *count);

/// Makes this process a reader of the pool, so that another process can become its writer.
/// AVSG_BUSY while the pool has engines; destroy them first.
avsg_status avsg_pool_demote(avsg_pool *pool);

/// The file or the block device of a pool whose rows are on a disk (`avsg_pool_config.file`). It has its full
/// size at once. The first transfer of a plan in the layers of an indexer reads the missing rows of all these
/// layers, and an append returns before its rows are written. Each row has a checksum of 8 bytes in the file.
/// One that is not whole, because it was never written, was lost with a process, is damaged or was cut off,
/// is AVSG_LOST_ROWS for avsg_pool_read_row and for a transfer. Not for engines on an Ascend device;
/// AVSG_INVALID with a layout, with an allocator, with AVSG_PAGES_HUGE_1G, and for avsg_pool_get_row and
/// avsg_pool_export. `chunk_bytes` and other `pages` are ignored.
typedef struct avsg_pool_file {
  size_t size;  ///< sizeof(avsg_pool_file).
  /// A folder of a private file, which has no name; with `keep` that of a new file; or a block device.
  const char *path;
  /// The indexer of each layer, as every engine on the pool has them; NULL: one for all.
  const uint32_t *layer_indexer;
  size_t layer_indexers;  ///< Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
  /// Bytes of the queue of writes, at most 256 MiB; 0: those of 1024 records with their padding, at least 8 MiB. Rows
  /// that are written layer by layer want room for the records of all tokens of such a pass: a record that leaves the
  /// queue without some layers is read again for them.
  size_t queue_bytes;
  /// Milliseconds without a read or write that ends, after which a call fails; 0: 30000.
  uint64_t timeout_ms;
  int32_t keep;  ///< 1: the file stays when the pool ends, for `avsg_pool_open`.
  int32_t buffered;  ///< 1: through the page cache; 0: past it, with O_DIRECT.
  /// The number of sessions of a kept file (`avsg_session`); 0: none. avsg_pool_open ignores this field and those
  /// behind it, because the file tells them (`avsg_pool_info`).
  size_t sessions;
  size_t session_rows;  ///< Rows of the blocks of a session, as `page` of the engine.
  size_t session_bytes;  ///< The most bytes of the caller for each session.
  size_t token_bytes;  ///< Bytes of the caller for each token (avsg_pool_write_tokens); 0: none.
} avsg_pool_file;

/// Opens the file of a pool that was kept, and makes this process its only writer. The file tells the pool's
/// geometry and the indexers of its layers: `keep` and `layer_indexer` are ignored. Each row is as a flush
/// left it or as a later write did, or AVSG_LOST_ROWS when it is read; one that was flushed and not written
/// since is as the flush left it.
avsg_status avsg_pool_open(const avsg_pool_file *file, avsg_pool **pool);

/// Makes the rows of a pool's file durable. It waits for the disk; once the disk has refused to make bytes
/// durable (`fdatasync`), every later call fails. A pool in memory has nothing to flush.
avsg_status avsg_pool_flush(const avsg_pool *pool);

/// What a session of a kept file has: tokens whose rows and data last, and bytes of the caller. Token t is row
/// t % n of block blocks[t / n], for blocks of n = `session_rows` rows. The rows of its tokens, and all rows of
/// a block that several sessions have, cannot be written (AVSG_INVALID) until a commit without them has returned.
typedef struct avsg_session {
  size_t size;  ///< sizeof(avsg_session).
  size_t length;  ///< The number of tokens.
  int32_t *blocks;  ///< The blocks, each once; NULL if there are none.
  size_t block_count;  ///< Elements of `blocks`.
  void *data;  ///< Bytes of the caller; NULL if there are none.
  size_t bytes;  ///< The length of `data`, at most `session_bytes`.
} avsg_session;

/// Gives what the last commit of a session has left, also after a kill or a loss of power; a session that never was
/// committed has no tokens. `blocks` and `data` are filled if `block_count` and `bytes`, which say their room
/// before the call and the numbers afterwards, are not 0. AVSG_INVALID if the room is too little, or the session
/// is damaged.
avsg_status avsg_pool_get_session(const avsg_pool *pool, size_t session, avsg_session *out);

/// Makes all rows and data of tokens of the file durable, and then a session: `length` may be more or fewer than
/// before, and 0 without blocks removes it. AVSG_LOST_ROWS if a row or the data of a new token was not written,
/// as far as this process knows. After AVSG_OS the session is as before or as it was to be, and the pool is to
/// be closed and opened again.
avsg_status avsg_pool_commit_session(const avsg_pool *pool, size_t session, const avsg_session *to);

/// Writes the data of the tokens in the rows from `first` on: `token_bytes` for each, one after another, such as its id
/// and the keys of its indexers. A flush or commit makes it durable.
avsg_status avsg_pool_write_tokens(const avsg_pool *pool, size_t first, const void *data, size_t bytes);

/// Reads the data of the tokens in the rows from `first` on. AVSG_LOST_ROWS, with `data` undefined, if some is not
/// whole.
avsg_status avsg_pool_read_tokens(const avsg_pool *pool, size_t first, void *data, size_t bytes);

/// Bytes of a pool's descriptor, which is its geometry and can be sent, stored and compared.
#define AVSG_POOL_DESC_BYTES 112

/// Gives what another process needs to map this pool: the descriptor in `desc`, whose `desc_bytes`
/// must be at least AVSG_POOL_DESC_BYTES, and a new file descriptor of the memory in `fd`. The
/// caller passes `fd` on (by inheritance or SCM_RIGHTS) and closes it. A process that has `fd` can
/// map the memory. AVSG_INVALID for a pool over the caller's memory.
avsg_status avsg_pool_export(const avsg_pool *pool, uint8_t *desc, size_t desc_bytes, int32_t *fd);

/// Maps a pool that another process exported, as an `avsg_role`. The caller still owns `fd` and may
/// close it. AVSG_INVALID for AVSG_ROLE_WRITER while the pool has a writer, which ceases to be one
/// by `avsg_pool_destroy`, by `avsg_pool_demote` or when its process ends.
///
/// In this way the ranks of a node share one pool: one of them appends, and each registers the pool with its own
/// device. All ranks pass the fresh rows that they have to their steps. A reader's step finds an appended row if it
/// comes after the append, for example behind a collective of all ranks.
avsg_status avsg_pool_import(const uint8_t *desc, size_t desc_bytes, int32_t fd, int32_t as_role,
    avsg_pool **pool);

/// An Ascend device (`avsg_engine_config.ascend`). It needs a pool of pages that its driver can register
/// (AVSG_DEVICE otherwise; try smaller `pages`), and rows of one or two segments. Its engines on one
/// pool share one registration. An engine uses at most the cores of the device, and in a stream at most the
/// stream's limit (aclrtSetStreamResLimit) at the time of the call. "cpu" ignores these options.
typedef struct avsg_ascend {
  size_t size;  ///< sizeof(avsg_ascend).
  /// The path of the kernels of this geometry, a file or a folder: compiled ones for "ascend"
  /// (`avsg emit` writes their sources), sources for "ascend-sim". NULL selects the kernels in
  /// this library. For "ascend" these are the kernels of the default geometries, and only if the
  /// library was built with the package feature `kernels` where CANN's compiler is installed
  /// (AVSG_INVALID otherwise); for "ascend-sim" they are those of every geometry.
  const char *kernels;
  /// The path of the runtime's library (libascendcl.so) for "ascend". NULL searches the system's
  /// library path.
  const char *runtime;
  int32_t device_id;  ///< The index of the device, as the runtime counts devices.
  /// Milliseconds after which a call stops waiting for the device; 0 selects 10000.
  uint32_t timeout_ms;
} avsg_ascend;

/// The table that maps ids to slots.
typedef enum avsg_table {
  /// Several links per slot, with the least valuable slots as victims. Hit rates are those of
  /// exact LRU or better.
  AVSG_TABLE_WIDE = 0,
  AVSG_TABLE_PAPER = 1,  ///< The paper's table, bit for bit.
} avsg_table;

/// The rule that chooses the slots which misses replace.
typedef enum avsg_lifetime {
  /// AVSG_LIFETIME_LEARNED for a wide table of at least 2 K slots, and with 2 links per slot fewer than
  /// 4 K, else AVSG_LIFETIME_CONSTANT.
  AVSG_LIFETIME_AUTO = 0,
  AVSG_LIFETIME_CONSTANT = 1,  ///< The constant `life`, which evicts the least recently used slot.
  /// The slots that are least likely to be used soon, which each request learns from its own
  /// selections: by the time since their last use and the number of uses. Only for a wide table.
  AVSG_LIFETIME_LEARNED = 2,
} avsg_lifetime;

/// The vector instructions that the device "cpu" runs its kernels with.
typedef enum avsg_machine {
  AVSG_MACHINE_AUTO = 0,  ///< The fastest of the CPU, as the first engine of the process measures it.
  AVSG_MACHINE_AVX2 = 1,  ///< AVX2.
  AVSG_MACHINE_AVX512 = 2,  ///< AVX-512.
  AVSG_MACHINE_NEON = 3,  ///< NEON.
} avsg_machine;

/// How the device "cpu" copies rows.
typedef enum avsg_copier {
  /// AVSG_COPIER_PREFETCH for rows of fewer than 1024 bytes, or 4096 on CPUs with AVX-512 or NEON, else
  /// AVSG_COPIER_STREAM, both 4 rows ahead.
  AVSG_COPIER_AUTO = 0,
  AVSG_COPIER_PLAIN = 1,  ///< One memcpy for each row.
  AVSG_COPIER_PREFETCH = 2,  ///< Vector copies with prefetch of both ends of a later row.
  AVSG_COPIER_STREAM = 3,  ///< Non-temporal stores with prefetch of the source of a later row.
} avsg_copier;

/// How an engine works (`avsg_engine_config.tuning`): which slots misses replace, and what "cpu" would
/// otherwise measure. No choice changes the rows that attention reads. A link is an entry of a table, which
/// can point to a slot; an id is searched in up to R + 1 links, where R is 7 with 2 links per slot, and else 3.
typedef struct avsg_tuning {
  size_t size;  ///< sizeof(avsg_tuning).
  int32_t table;  ///< An `avsg_table`.
  int32_t lifetime;  ///< An `avsg_lifetime`.
  /// The constant lifetime in decode steps: 0 to 127 (1 to 127 in a paper table). 0 unless
  /// `lifetime` is AVSG_LIFETIME_CONSTANT.
  int32_t life;
  /// Links per slot: 1, 2 or 4. 0 selects 1 for a paper table, and for a wide one 4 on "cpu" and 2 on
  /// an Ascend device, whose fast memory 4 do not fit with K = 2048 and S = 8192.
  uint32_t spread;
  int32_t machine;  ///< An `avsg_machine`, used by "cpu".
  int32_t copier;  ///< An `avsg_copier`, used by "cpu".
  /// The distance of the later row that AVSG_COPIER_PREFETCH and AVSG_COPIER_STREAM prefetch, in
  /// rows: 0 to 64; 0 prefetches nothing.
  uint32_t copier_ahead;
  /// Kernels that `avsg_engine_step` launches on an Ascend device. 1: a single kernel, which
  /// starts when all its cores are idle, and whose cores wait for each other between the stages.
  /// 2: one per stage, so that other streams can compute beside them. 0: one with a NULL stream,
  /// and two in a stream.
  uint32_t launches;
} avsg_tuning;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // AVSG_H
