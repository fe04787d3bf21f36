//! Kernels: what a launch is, and how it runs.

use std::fmt;
use std::sync::Arc;

use crate::binary::Code;
use crate::fault::{Accident, Fail, Outcome, fail};
use crate::sys;
use crate::world::World;

/// A queued kernel with its arguments, copied when it was launched.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub name: String,
    pub code: Code,
    pub device: u32,
    pub args: Vec<u64>,
    /// Small buffers that travel with the arguments, by the argument that points to them.
    pub carried: Vec<(usize, Vec<u8>)>,
    pub blocks: u32,
    /// Whether it waits until all its cores are idle.
    pub batch: bool,
}

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
    pub(crate) body: Arc<Body>,
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
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("sync_all", &self.sync_all).finish_non_exhaustive()
    }
}

/// How a launch ended.
pub(crate) enum End {
    Done,
    Failed(Fail),
    Hung,
}

/// Runs a launch to its end.
pub(crate) fn run(world: &mut World, launch: &Launch) -> End {
    let accident = world.faults.launch();
    if accident == Some(Accident::Hang) {
        return End::Hung;
    }
    // Blocks that wait for each other can do so only if all of them have a core.
    if launch.code.sync_all() && launch.blocks > world.options.cores {
        return End::Hung;
    }
    let block = match accident {
        Some(Accident::Exception(block)) => Some(block),
        _ => None,
    };
    match execute(world, launch, block) {
        Ok(Ok(())) => End::Done,
        Ok(Err(KernelFault::Hang(_))) => End::Hung,
        Ok(Err(KernelFault::Exception(text))) => {
            let code = sys::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
            End::Failed(Fail { code, text: format!("kernel {}: {text}", launch.name) })
        }
        Err(error) => End::Failed(error),
    }
}

fn execute(
    world: &mut World,
    launch: &Launch,
    fault_block: Option<u32>,
) -> Outcome<Result<(), KernelFault>> {
    let mut args = launch.args.clone();
    // Words, so that the buffers are as aligned as the device's would be.
    let buffers: Vec<Vec<u64>> = launch
        .carried
        .iter()
        .map(|(_, bytes)| {
            let mut words = vec![0u64; bytes.len().div_ceil(8)];
            for (word, part) in words.iter_mut().zip(bytes.chunks(8)) {
                let mut eight = [0; 8];
                eight[..part.len()].copy_from_slice(part);
                *word = u64::from_ne_bytes(eight);
            }
            words
        })
        .collect();
    for ((at, _), buffer) in launch.carried.iter().zip(&buffers) {
        match args.get_mut(*at) {
            Some(arg) => *arg = buffer.as_ptr() as u64,
            None => return fail(sys::ACL_ERROR_RT_PARAM_INVALID, "a buffer without its argument"),
        }
    }
    let mut regions: Vec<_> = world.memory.regions(launch.device).collect();
    regions.extend(buffers.iter().map(|b| (b.as_ptr() as u64, b.len() * 8, false)));
    world.memory.open_all(true)?;
    let seed = world.draw();
    let ended = match &launch.code {
        Code::Native(kernel) => native(kernel, launch.blocks, &args, &regions, fault_block),
        Code::Shim(library) => {
            let setting = crate::binary::Setting {
                name: &launch.name,
                blocks: launch.blocks,
                cores: world.options.cores,
                adversarial: world.options.adversarial,
                seed,
                fault_block,
            };
            library.launch(&setting, &args, &regions)
        }
    };
    world.memory.open_all(false)?;
    Ok(ended)
}

fn native(
    kernel: &Kernel,
    blocks: u32,
    args: &[u64],
    regions: &[(u64, usize, bool)],
    fault_block: Option<u32>,
) -> Result<(), KernelFault> {
    let done = (kernel.body)(&Device { blocks, args, regions });
    match fault_block {
        // Its other blocks have done their part, which is the worst case.
        Some(block) => Err(KernelFault::Exception(format!("block {block}, on order"))),
        None => done,
    }
}
