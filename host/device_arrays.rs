//! The inputs and outputs of a step as arrays in device memory, for calls that are put into a
//! caller's stream.

use core::ffi::c_void;

/// An array of int32 in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceArray {
    /// Device address; a multiple of 4.
    pub address: u64,
    /// Number of elements.
    pub len: usize,
}

/// A [`crate::engine::Batch`] in device memory. Kernels read the contents of the arrays at every
/// replay; the numbers in this struct are fixed by a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceBatch {
    /// Number of requests, padded ones included; 0..=1048576.
    pub requests: usize,
    /// K, the number of ids per row; 1 up to the K of the geometry.
    pub k: usize,
    /// `[rows, K]`, the selected ids, with room for the most rows that `cu_q` may count.
    pub ids: DeviceArray,
    /// Words from one row of `ids` to the next; at least `k`.
    pub ids_stride: usize,
    /// `[requests + 1]`, the first row of each request, then the number of rows.
    pub cu_q: DeviceArray,
    /// `[requests]`, the state of each request, -1 for a padded one. No two requests may name one
    /// state.
    pub state: DeviceArray,
    /// `[requests]`, the generation of each request.
    pub generation: DeviceArray,
    /// `[requests]`, the number of tokens whose KV was final before this step, or -1.
    pub stable_len: DeviceArray,
    /// `[requests]`, the sequence length including this step's tokens.
    pub seq_len: DeviceArray,
    /// `[requests, block_stride]`, the host blocks of each request; unused if the geometry has no
    /// pages.
    pub block_table: DeviceArray,
    /// Entries per request in `block_table`.
    pub block_stride: usize,
    /// The indexer that selected the ids, as in [`crate::engine::Batch::indexer`].
    pub indexer: usize,
    /// The most rows that `cu_q` may count in an append. 0 means those that `ids` has room for, or
    /// N_q per request without ids. A plan ignores it.
    pub rows: usize,
}

/// One segment of the fresh rows in device memory, with the stride of the row format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceRows {
    /// Device address of row 0.
    pub address: u64,
    /// Bytes from there to the end of the rows.
    pub bytes: usize,
}

/// The fresh rows of a step in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFresh<'a> {
    /// One entry per segment of the row format.
    pub segments: &'a [DeviceRows],
}

/// Device addresses of a plan's outputs, which are int32 arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePlan {
    /// `[rows, K]`, the slots; -1 for padding.
    pub slot: u64,
    /// `[rows]`, the number of valid ids.
    pub valid: u64,
    /// Miss lists, `[rows, K]` each: positions, ids, slots, rows. The list of a request begins at K
    /// times its first row.
    pub miss: [u64; 4],
    /// `[requests, 16]`, the records ([`crate::device::request::record`]).
    pub record: u64,
}

/// A stream handle of the device's runtime, without ownership (`aclrtStream`).
#[derive(Clone, Copy, Debug)]
pub struct RawStream(*mut c_void);

// SAFETY: the handle is never dereferenced here, and the runtime accepts it from every thread whose
// current context is the stream's.
unsafe impl Send for RawStream {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// Wraps a stream handle.
    ///
    /// # Safety
    /// `stream` is a stream of the engine's device. It is not destroyed while work is put into it
    /// or runs in it.
    pub unsafe fn new(stream: *mut c_void) -> Self {
        Self(stream)
    }

    /// Returns the handle.
    pub fn handle(self) -> *mut c_void {
        self.0
    }
}

/// The most segments of a row that a device kernel takes.
pub(crate) const DEVICE_SEGMENTS: usize = 2;

/// A checked [`DeviceBatch`]: addresses and numbers for the kernels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueuedBatch {
    pub requests: usize,
    /// The most rows that `cu_q` may count.
    pub rows: usize,
    pub k: usize,
    pub ids: u64,
    pub ids_stride: usize,
    pub cu_q: u64,
    pub state: u64,
    pub generation: u64,
    pub stable_len: u64,
    pub seq_len: u64,
    pub block_table: u64,
    pub block_stride: usize,
    pub indexer: usize,
}

/// The call that is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Plan,
    Transfer,
    PlanAndTransfer,
    Append,
}

/// A checked call whose arrays are in device memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedStep {
    pub kind: CallKind,
    pub batch: QueuedBatch,
    pub out: DevicePlan,
    pub layer: usize,
    /// Device address of each segment's fresh rows; 0 if there are none.
    pub fresh: [u64; DEVICE_SEGMENTS],
}
