//! Which vector machine the CPU device runs its kernels on: found and measured once, at creation.

use std::time::Instant;

use avsg_device::params::Params;

use super::machine::Machine;
use super::stage::StandaloneTable;
use crate::resources::Choice;
use crate::{Error, Result};

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
}

fn names(all: &[Machine]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The machine with the least median time over some steps of a table, taken in turns so that noise
/// hits all alike.
fn fastest(machines: &[Machine], params: &Params) -> Result<Machine> {
    const STEPS: usize = 24;
    const COLD: usize = 4;
    let mut trials: Vec<StandaloneTable> =
        machines.iter().map(|_| StandaloneTable::new(params)).collect::<Result<_>>()?;
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
