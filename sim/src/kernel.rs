//! A test may have kernels of its own: closures that see the memory of the device.

use std::fmt;
use std::sync::Arc;

/// Why a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFault {
    /// It raised an exception on the device, with a sentence about it.
    Exception(String),
    /// It will never end.
    Hang(String),
}

/// What a kernel of the test's own sees of the device.
pub struct Device<'a> {
    /// Blocks of the launch.
    pub blocks: u32,
    /// The arguments: device addresses.
    pub args: &'a [u64],
    regions: &'a [(u64, usize, bool)],
}

impl Device<'_> {
    /// Device or registered memory at an address.
    ///
    /// # Errors
    /// If it is neither: the exception that the device would raise.
    pub fn slice(&self, at: u64, bytes: usize) -> Result<*mut u8, KernelFault> {
        let holds = |&(from, len, _): &(u64, usize, bool)| {
            from <= at && at + bytes as u64 <= from + len as u64
        };
        if self.regions.iter().any(holds) {
            return Ok(at as *mut u8);
        }
        let text = format!("the address {at:#x} of an MTE instruction is out of range");
        Err(KernelFault::Exception(text))
    }
}

type Body = dyn Fn(&Device<'_>) -> Result<(), KernelFault> + Send + Sync;

/// A kernel of the test's own: a closure that plays all blocks.
#[derive(Clone)]
pub struct Kernel {
    body: Arc<Body>,
    pub(crate) sync_all: bool,
}

impl Kernel {
    /// A kernel; `sync_all` says whether its blocks wait for each other.
    pub fn new(
        sync_all: bool,
        body: impl Fn(&Device<'_>) -> Result<(), KernelFault> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Arc::new(body), sync_all }
    }

    /// This runs all blocks; `fault_block` is one that raises an exception on order.
    pub(crate) fn launch(
        &self,
        blocks: u32,
        args: &[u64],
        regions: &[(u64, usize, bool)],
        fault_block: Option<u32>,
    ) -> Result<(), KernelFault> {
        let done = (self.body)(&Device { blocks, args, regions });
        match fault_block {
            // The other blocks have done their part, which is the worst case.
            Some(block) => Err(KernelFault::Exception(format!("block {block}, on order"))),
            None => done,
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("sync_all", &self.sync_all).finish_non_exhaustive()
    }
}
