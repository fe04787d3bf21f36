//! The inputs and outputs of a step as arrays in device memory, for calls that are put into a
//! caller's stream.

use core::ffi::c_void;

use crate::call::{Batch, BatchArray, BatchOf, Call, CallArray};
use crate::system::address::Address;

/// An array in device memory: int32 of a batch, or the bytes of a segment of fresh rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceArray {
    /// Device address; a multiple of 4 if the elements are int32.
    pub address: u64,
    /// Number of elements.
    pub len: usize,
}

impl CallArray for DeviceArray {
    fn count(self) -> usize {
        self.len
    }

    fn device_address(self) -> Option<u64> {
        Some(self.address)
    }
}

impl BatchArray for DeviceArray {
    fn readable(_: &BatchOf<Self>) -> Option<&Batch<'_>> {
        None
    }
}

/// A batch in device memory. Kernels read the contents of the arrays at every replay; the numbers in
/// this struct, and the length of `state`, are fixed by a capture. `ids` has room for the most rows
/// that `cu_q` may count.
pub type DeviceBatch = BatchOf<DeviceArray>;

/// A checked call whose arrays are in device memory.
pub(crate) type DeviceCall<'a> = Call<'a, DeviceArray, DeviceArray>;

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
    /// `[requests, 16]`, the summaries ([`crate::device::request::summary`]), which have the misses of each
    /// row.
    pub summary: u64,
}

/// A stream handle of the device's runtime, without ownership (`aclrtStream`). The runtime accepts it
/// from every thread whose current context is the stream's. A copy may outlive the stream, so every function
/// that passes it to the runtime is unsafe.
#[derive(Clone, Copy, Debug)]
pub struct RawStream(Address<c_void>);

impl RawStream {
    /// Wraps a stream handle.
    ///
    /// # Safety
    /// `stream` is a stream of the engine's device.
    pub unsafe fn new(stream: *mut c_void) -> Self {
        Self(Address(stream))
    }

    /// Returns the runtime's stream, an `aclrtStream`.
    pub fn handle(self) -> *mut c_void {
        self.0.0
    }
}
