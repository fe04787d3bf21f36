//! The vector machines of a CPU.

use avsg_device::machine::emu::Emu;
#[cfg(target_arch = "aarch64")]
use avsg_device::machine::neon::Neon;
#[cfg(target_arch = "x86_64")]
use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
use avsg_device::one_request::{Compiled, StageOne};
use std::fmt;

/// The number of machines that a CPU can have.
pub(super) const MACHINES: usize = 5;

/// A vector machine that this CPU has. The value proves that it was detected, so no step runs CPUID
/// again, which in a virtual machine traps for several microseconds.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Machine {
    /// One lane, on any CPU.
    Emu(Emu<1>),
    /// AVX2: eight lanes, with gathers by scalar loads.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2<false>),
    /// AVX2: eight lanes, with gathers by `vpgatherdd`.
    #[cfg(target_arch = "x86_64")]
    Avx2Gather(Avx2<true>),
    /// AVX-512: 16 lanes, with gathers by scalar loads.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512<false>),
    /// AVX-512: 16 lanes, with gathers by `vpgatherdd`.
    #[cfg(target_arch = "x86_64")]
    Avx512Gather(Avx512<true>),
    /// NEON: four lanes.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Machine {
    /// Returns the machine's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Emu(_) => "emu",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gather(_) => "avx2 (vpgatherdd)",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather(_) => "avx512 (vpgatherdd)",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }

    /// Returns every machine that this CPU has, the widest last.
    pub fn all() -> heapless::Vec<Self, MACHINES> {
        let all = [
            Some(Self::Emu(Emu)),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Self::Neon),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Self::Avx2Gather),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Self::Avx512Gather),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns the names of what this CPU or its operating system lacks for the widest machine of its
    /// architecture.
    pub fn missing() -> Vec<&'static str> {
        #[cfg(target_arch = "x86_64")]
        return Avx512::<false>::missing().collect();
        #[cfg(not(target_arch = "x86_64"))]
        Vec::new()
    }

    /// Runs Stage One of one request on this machine.
    pub(crate) fn run(self, request: StageOne<'_>) {
        match self {
            Self::Emu(m) => m.stage_one(request),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(m) => m.stage_one(request),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gather(m) => m.stage_one(request),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(m) => m.stage_one(request),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather(m) => m.stage_one(request),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(m) => m.stage_one(request),
        }
    }
}
