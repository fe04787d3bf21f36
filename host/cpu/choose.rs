//! The choice of the vector machine for the CPU device, made once at creation.

use std::time::Instant;

use avsg_device::params::Params;

use super::machine::Machine;
use super::stage::StandaloneTable;
use crate::resources::MachineChoice;
use crate::{Error, Result};

impl Machine {
    /// Returns the machine of a choice. If several match, it returns the fastest on this CPU, by a
    /// measurement of less than a millisecond with a table of this geometry.
    ///
    /// # Errors
    /// If this CPU does not have the machine, or the measurement lacks memory.
    pub fn find(choice: MachineChoice, params: &Params) -> Result<Self> {
        let all = Self::all();
        let matches = |m: &Self| match choice {
            MachineChoice::Auto => true,
            MachineChoice::Emu => matches!(m, Self::Emu(_)),
            #[cfg(target_arch = "x86_64")]
            MachineChoice::Avx2 => matches!(m, Self::Avx2(_)),
            #[cfg(target_arch = "x86_64")]
            MachineChoice::Avx512 => matches!(m, Self::Avx512(_) | Self::Avx512Gather(_)),
            #[cfg(target_arch = "aarch64")]
            MachineChoice::Neon => matches!(m, Self::Neon(_)),
            _ => false,
        };
        let candidates: heapless::Vec<Self, 5> = all.into_iter().filter(matches).collect();
        match candidates.as_slice() {
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

/// Returns the machine with the least median time per step. The machines take turns, so that noise
/// affects all alike.
fn fastest(machines: &[Machine], params: &Params) -> Result<Machine> {
    const STEPS: usize = 24;
    const COLD: usize = 4;
    let mut tables: Vec<StandaloneTable> =
        machines.iter().map(|_| StandaloneTable::new(params)).collect::<Result<_>>()?;
    let mut times = vec![Vec::with_capacity(STEPS); machines.len()];
    for step in 0..STEPS + COLD {
        for ((&machine, table), times) in machines.iter().zip(&mut tables).zip(&mut times) {
            table.select(step);
            let start = Instant::now();
            table.step(machine);
            if step >= COLD {
                times.push(start.elapsed());
            }
        }
    }
    let median = |times: &mut Vec<_>| *times.select_nth_unstable(STEPS / 2).1;
    let medians = times.iter_mut().map(median).zip(machines);
    Ok(medians.min_by_key(|(median, _)| *median).map_or(machines[0], |(_, &machine)| machine))
}
