//! The prices of a timed launch, and the times that the shim computes from them (`linker/shim/ascend/cycles.h`).

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
}

/// What a launch costs by its prices, in cycles.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    pub(crate) prices: Prices,
    /// The cycle in which the last core ends.
    pub total: c_double,
    /// How much the time at which all pipes of core 0 are free grows in each phase.
    pub phases: [c_double; 16],
}
