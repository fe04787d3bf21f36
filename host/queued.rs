//! The same inputs and outputs in device memory, for work that is put into a caller's stream.

use core::ffi::c_void;

/// An array of int32 in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceArray {
    /// Its address, a multiple of 4.
    pub address: u64,
    /// Its elements.
    pub len: usize,
}

/// [`crate::engine::Batch`] in device memory. The contents may change from replay to replay; the numbers here
/// are fixed when the work is captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceBatch {
    /// Requests, padded ones included.
    pub requests: usize,
    /// Ids per row, at most the geometry's K.
    pub k: usize,
    /// Selected ids, row by row. It has room for as many rows as `cu_q` may count.
    pub ids: DeviceArray,
    /// Words from row to row of `ids`, at least `k`.
    pub ids_stride: usize,
    /// First row of each request, and the number of rows: requests + 1.
    pub cu_q: DeviceArray,
    /// State of each request, -1 for a padded one. No two may name one state.
    pub state: DeviceArray,
    /// Generation of each request.
    pub generation: DeviceArray,
    /// Final tokens of each request before this step, or -1.
    pub stable_len: DeviceArray,
    /// Sequence length of each request with this step's tokens.
    pub seq_len: DeviceArray,
    /// Host blocks, request by request; unused when the geometry's page is 0.
    pub block_table: DeviceArray,
    /// Entries of one request in it.
    pub block_stride: usize,
}

/// One segment of this step's rows in device memory. The stride is the row format's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceRows {
    /// Where row 0 begins.
    pub address: u64,
    /// Bytes behind it.
    pub bytes: usize,
}

/// This step's rows, in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFresh<'a> {
    /// One entry per segment.
    pub segments: &'a [DeviceRows],
}

/// Where a plan's outputs lie on a device: addresses of int32 arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePlan {
    /// Slots: rows * K.
    pub slot: u64,
    /// Valid ids: rows.
    pub valid: u64,
    /// Miss lists, rows * K each: position, id, slot, row. A request's begins at its first row * K.
    pub miss: [u64; 4],
    /// Records: requests * 16, as [`crate::device::request::record`] says.
    pub record: u64,
}

/// A stream that somebody else owns, as the device's runtime names it.
#[derive(Clone, Copy, Debug)]
pub struct RawStream(*mut c_void);

// SAFETY: a handle, never dereferenced here; the runtime accepts it from every thread whose current
// context is the stream's.
unsafe impl Send for RawStream {}
// SAFETY: as for Send.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// Takes a handle over.
    ///
    /// # Safety
    /// It is a stream of the engine's device that stays alive while work is put into it and while that work
    /// runs.
    pub unsafe fn new(stream: *mut c_void) -> Self {
        Self(stream)
    }

    /// The handle.
    pub fn handle(self) -> *mut c_void {
        self.0
    }
}

/// Segments of a row that a device kernel takes.
pub(crate) const DEVICE_SEGMENTS: usize = 2;

/// A checked [`DeviceBatch`]: what kernels are told of it.
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
}

/// What a queued call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Plan,
    Transfer,
    Both,
    Append,
}

/// A call whose arrays are in device memory, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedStep {
    pub work: Work,
    pub batch: QueuedBatch,
    pub out: DevicePlan,
    pub layer: usize,
    /// Bases of this step's rows, 0 where there are none.
    pub fresh: [u64; DEVICE_SEGMENTS],
}
