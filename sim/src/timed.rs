//! Launches kernels on the shim without a runtime, and times them.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::binary::{Binary, LaunchConfig, Shim};
use crate::cycles::{Cycles, Prices, Times};
use crate::fault::Failure;
use crate::kernel::KernelFault;

/// Kernels that were compiled with the clocks of the shim.
#[derive(Debug)]
pub struct TimedKernels(Arc<Shim>);

impl TimedKernels {
    /// Compiles C++ text that includes no headers but those of the shim.
    ///
    /// # Errors
    /// If there is no C++ compiler, or the text does not compile: a sentence.
    pub fn compile(text: &str) -> Result<Self, String> {
        let binary = Binary::from_data(format!("#define AVSG_SHIM_CYCLES\n{text}").as_bytes());
        match binary {
            Ok(Binary::Shim(shim)) => Ok(Self(shim)),
            Ok(Binary::Closure) => Err("the text is no kernel".to_owned()),
            Err(Failure { text, .. }) => Err(text),
        }
    }
}

/// A launch: arguments in the order of the kernel's parameters, and the memory that it may access.
#[derive(Debug)]
pub struct TimedLaunch<'a> {
    name: &'a str,
    blocks: u32,
    args: Vec<u64>,
    regions: Vec<(u64, usize, bool)>,
    memory: PhantomData<&'a mut ()>,
}

/// Types without padding or invalid bit patterns, which kernels read and write.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for i32 {}
impl Plain for u64 {}

impl<'a> TimedLaunch<'a> {
    /// Returns a launch of a number of blocks, each on a core of its own.
    pub fn new(name: &'a str, blocks: u32) -> Self {
        Self { name, blocks, args: Vec::new(), regions: Vec::new(), memory: PhantomData }
    }

    /// Passes device memory as the next argument.
    #[must_use]
    pub fn device<T: Plain>(mut self, memory: &'a mut [T]) -> Self {
        self.args.push(memory.as_mut_ptr() as u64);
        self.region(memory, false)
    }

    /// Passes a null pointer as the next argument.
    #[must_use]
    pub fn null(mut self) -> Self {
        self.args.push(std::ptr::null::<c_void>() as u64);
        self
    }

    /// Registers host memory, which the kernel reaches by an address in other memory.
    #[must_use]
    pub fn host<T: Plain>(self, memory: &'a mut [T]) -> Self {
        self.region(memory, true)
    }

    fn region<T: Plain>(mut self, memory: &'a mut [T], host: bool) -> Self {
        self.regions.push((memory.as_mut_ptr() as u64, size_of_val(memory), host));
        self
    }

    /// Runs the kernel in program order, and returns its times under each of the prices, of which there
    /// may be none.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the shim: the shim's message.
    pub fn run(self, kernels: &TimedKernels, prices: &[Prices]) -> Result<Vec<Times>, String> {
        let mut times = vec![Times::default(); prices.len()];
        let cycles = Cycles::new(prices, &mut times);
        let config = LaunchConfig {
            name: self.name,
            blocks: self.blocks,
            cores: self.blocks,
            adversarial: false,
            seed: 1,
            fault_block: None,
            cycles: if prices.is_empty() { std::ptr::null() } else { &raw const cycles },
        };
        match kernels.0.launch(&config, &self.args, &self.regions) {
            Ok(()) => Ok(times),
            Err(KernelFault::Exception(text) | KernelFault::Hang(text)) => Err(text),
        }
    }
}
