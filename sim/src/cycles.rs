//! The prices of a timed launch, and the times that the shim computes from them
//! (`linker/shim/shim/cycles.h`).

use std::ffi::c_double;

/// Cycles of one unit of work each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// The scalar unit issues an instruction, a flag or a barrier.
    pub issue: c_double,
    /// An access of the scalar unit to the unified buffer.
    pub scalar: c_double,
    /// The start of a vector instruction.
    pub head: c_double,
    /// 256 bytes of a vector instruction.
    pub repeat: c_double,
    /// 256 bytes of a GatherMask.
    pub compact: c_double,
    /// An element of a Gather.
    pub gather: c_double,
    /// A barrier, after its pipes are idle.
    pub barrier: c_double,
    /// From the end of the work before SetFlag to the start of that after WaitFlag.
    pub flag: c_double,
    /// From the arrival of the last core at SyncAll to the start of all cores.
    pub sync_all: c_double,
    /// The start of a DMA.
    pub dma: c_double,
    /// From the end of a DMA on its pipe to its completion.
    pub latency: c_double,
    /// A byte of a DMA, from device memory or from the host's.
    pub byte: c_double,
    /// The scalar unit waits for a line that is not in the instruction cache.
    pub fetch: c_double,
    /// A call of a function, and the return from it.
    pub call: c_double,
}

/// The cycles of a core in one phase of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// The growth of the time at which all pipes are free.
    pub elapsed: c_double,
    /// For each of the pipes S, V, MTE2 and MTE3: at work, in barriers, waiting for flags, and
    /// waiting until an instruction is issued. The scalar unit issues instructions in the last.
    pub spent: [[c_double; 4]; 4],
    /// Lines of instructions that were not in the cache when the scalar unit came to them. Only a text with calls of
    /// `AscendC::shim::fetch` has any.
    pub fetched: c_double,
    /// Calls of functions, in a text with calls of `AscendC::shim::call`.
    pub called: c_double,
}

/// The times of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The cycle in which the last core ends.
    pub total: c_double,
    /// The phases of core 0.
    pub phases: [Phase; 16],
}

/// The option of a launch that is timed.
#[repr(C)]
#[derive(Debug)]
pub struct Cycles {
    sets: u32,
    prices: *const Prices,
    times: *mut Times,
}

impl Cycles {
    /// Returns the option that times a launch under each of the prices. Both slices must outlive the
    /// launch.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn new(prices: &[Prices], times: &mut [Times]) -> Self {
        assert_eq!(prices.len(), times.len(), "one result for each set of prices");
        Self { sets: prices.len() as u32, prices: prices.as_ptr(), times: times.as_mut_ptr() }
    }
}
