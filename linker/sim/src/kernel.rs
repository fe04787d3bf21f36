//! Kernels of a test: closures with access to the memory of the device.

use std::fmt;
use std::sync::Arc;

/// The failure of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFault {
    /// The kernel raised an exception on the device; the text describes it.
    Exception(String),
    /// The kernel never ends; the text describes why.
    Hang(String),
}

/// The device as a closure kernel sees it.
pub struct ClosureDevice<'a> {
    /// Number of blocks of the launch.
    pub blocks: u32,
    /// Arguments of the launch: device addresses.
    pub args: &'a [u64],
    regions: &'a [(u64, usize, bool)],
}

impl ClosureDevice<'_> {
    /// Returns a pointer to `bytes` bytes of device memory or registered memory.
    ///
    /// # Errors
    /// The exception that the device would raise, if the range is not inside one region.
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

type Body = dyn Fn(&ClosureDevice<'_>) -> Result<(), KernelFault> + Send + Sync;

/// A closure kernel. One call of the closure runs all blocks.
#[derive(Clone)]
pub struct ClosureKernel {
    body: Arc<Body>,
    pub(crate) sync_all: bool,
}

impl ClosureKernel {
    /// Returns a kernel of a closure; `sync_all` tells whether its blocks wait for each other.
    pub fn new(
        sync_all: bool,
        body: impl Fn(&ClosureDevice<'_>) -> Result<(), KernelFault> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Arc::new(body), sync_all }
    }

    /// Runs all blocks; `fault_block` raises an injected exception.
    pub(crate) fn launch(
        &self,
        blocks: u32,
        args: &[u64],
        regions: &[(u64, usize, bool)],
        fault_block: Option<u32>,
    ) -> Result<(), KernelFault> {
        let done = (self.body)(&ClosureDevice { blocks, args, regions });
        match fault_block {
            // All blocks have run at this point, which is the worst case for the caller.
            Some(block) => Err(KernelFault::Exception(format!("injected into block {block}"))),
            None => done,
        }
    }
}

impl fmt::Debug for ClosureKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosureKernel").field("sync_all", &self.sync_all).finish_non_exhaustive()
    }
}
