//! The vector machines of a CPU.

use avsg_device::machine::emu::Emu;
#[cfg(target_arch = "aarch64")]
use avsg_device::machine::neon::Neon;
#[cfg(target_arch = "x86_64")]
use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
use avsg_device::one_request::Compiled;
use std::fmt;

/// The number of machines that a CPU can have.
pub(super) const MACHINES: usize = 5;

/// A vector machine that this CPU has. The value proves that it was detected, so no step runs CPUID
/// again, which in a virtual machine traps for several microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    name: &'static str,
    /// Stage One, compiled for the machine.
    pub(super) kernels: &'static dyn Compiled,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl Machine {
    fn new<M: Compiled + 'static>(name: &'static str, detected: Option<M>) -> Option<Self> {
        // A machine has no bytes, so that nothing is allocated.
        Some(Self { name, kernels: Box::leak(Box::new(detected?)) })
    }

    /// Returns the machine's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns every machine that this CPU has, the widest last: one lane on any CPU; NEON with four; AVX2 with
    /// eight and AVX-512 with 16, each with gathers by scalar loads and by `vpgatherdd`.
    pub fn all() -> heapless::Vec<Self, MACHINES> {
        let all = [
            Self::new("emu", Some(Emu::<1>)),
            #[cfg(target_arch = "aarch64")]
            Self::new("neon", Neon::detect()),
            #[cfg(target_arch = "x86_64")]
            Self::new("avx2", Avx2::<false>::detect()),
            #[cfg(target_arch = "x86_64")]
            Self::new("avx2 (vpgatherdd)", Avx2::<true>::detect()),
            #[cfg(target_arch = "x86_64")]
            Self::new("avx512", Avx512::<false>::detect()),
            #[cfg(target_arch = "x86_64")]
            Self::new("avx512 (vpgatherdd)", Avx512::<true>::detect()),
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
}
