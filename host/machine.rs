//! Which vector machine the CPU device runs its kernels on: found and measured once, at creation.

use crate::stage::Trial;
use crate::{Error, Result};
use avsg_device::machine::Kernel;
use avsg_device::machine::emu::Emu;
#[cfg(target_arch = "aarch64")]
use avsg_device::machine::neon::Neon;
#[cfg(target_arch = "x86_64")]
use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
use avsg_device::params::Params;
use std::fmt;
use std::time::Instant;

/// A machine that this CPU has. The value holds the proof, so that no step asks CPUID again (in a
/// virtual machine that is a trap of several microseconds).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Machine {
    /// One lane at a time; any CPU.
    Emu(Emu<1>),
    /// Eight lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 with gathers by scalar loads.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512<false>),
    /// AVX-512 with `vpgatherdd`.
    #[cfg(target_arch = "x86_64")]
    Avx512Gather(Avx512<true>),
    /// Four lanes.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

/// What the caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that is there.
    #[default]
    Auto,
    /// The scalar one.
    Emu,
    /// AVX2.
    Avx2,
    /// AVX-512, the faster form of gather.
    Avx512,
    /// NEON.
    Neon,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Emu(_) => "emu",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather(_) => "avx512 (vpgatherdd)",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        })
    }
}

impl Machine {
    /// The machine of a choice; for [`Choice::Auto`] the fastest on this CPU, by a measurement of
    /// well under a millisecond with a table of this geometry.
    ///
    /// # Errors
    /// If the CPU does not have what was asked for.
    pub fn find(choice: Choice, params: &Params) -> Result<Self> {
        let all = Self::all();
        let wanted = |m: &Self| match choice {
            Choice::Auto => true,
            Choice::Emu => matches!(m, Self::Emu(_)),
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2 => matches!(m, Self::Avx2(_)),
            #[cfg(target_arch = "x86_64")]
            Choice::Avx512 => matches!(m, Self::Avx512(_) | Self::Avx512Gather(_)),
            #[cfg(target_arch = "aarch64")]
            Choice::Neon => matches!(m, Self::Neon(_)),
            _ => false,
        };
        let found: heapless::Vec<Self, 5> = all.into_iter().filter(wanted).collect();
        match found.as_slice() {
            [] => Err(Error::invalid(
                "machine",
                format!("{choice:?}").to_lowercase(),
                format!("this CPU has {}", names(&Self::all())),
                "choose one of those, or auto",
            )),
            [one] => Ok(*one),
            several => fastest(several, params),
        }
    }

    /// Every machine that this CPU has, the widest last.
    pub fn all() -> heapless::Vec<Self, 5> {
        let mut all = heapless::Vec::new();
        let mut add = |m: Option<Self>| {
            if let Some(m) = m {
                // Cannot fail: there are five variants.
                let _ = all.push(m);
            }
        };
        add(Some(Self::Emu(Emu)));
        #[cfg(target_arch = "aarch64")]
        add(Neon::detect().map(Self::Neon));
        #[cfg(target_arch = "x86_64")]
        {
            add(Avx2::detect().map(Self::Avx2));
            add(Avx512::detect().map(Self::Avx512));
            add(Avx512::detect().map(Self::Avx512Gather));
        }
        all
    }

    /// Runs a kernel.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        match self {
            Self::Emu(m) => m.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(m) => m.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(m) => m.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather(m) => m.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(m) => m.run(kernel),
        }
    }
}

fn names(all: &[Machine]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The machine with the least median time over some steps of a table, taken in turns so that noise
/// hits all alike.
fn fastest(machines: &[Machine], params: &Params) -> Result<Machine> {
    const STEPS: usize = 24;
    const COLD: usize = 4;
    let mut trials: Vec<Trial> =
        machines.iter().map(|_| Trial::new(params)).collect::<Result<_>>()?;
    let mut times = vec![Vec::with_capacity(STEPS); machines.len()];
    for step in 0..STEPS + COLD {
        for ((&machine, trial), times) in machines.iter().zip(&mut trials).zip(&mut times) {
            trial.select(step);
            let start = Instant::now();
            trial.step(machine);
            if step >= COLD {
                times.push(start.elapsed());
            }
        }
    }
    let median = |times: &mut Vec<_>| *times.select_nth_unstable(STEPS / 2).1;
    let medians = times.iter_mut().map(median).zip(machines);
    Ok(medians.min_by_key(|(median, _)| *median).map_or(machines[0], |(_, &machine)| machine))
}
