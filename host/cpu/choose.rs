//! The choice of the vector machine for the CPU device. It is measured once per process, so that
//! every engine has the same one and is made in milliseconds.

use std::time::Instant;

use avsg_device::params::Params;

use super::machine::{MACHINES, Machine};
use super::standalone_table::StandaloneTable;
use crate::measured::Measured;
use crate::resources::MachineChoice;
use crate::{Result, invalid, reserve};

/// The part of its time by which a machine must be faster than those before it in [`Machine::all`] to be
/// chosen. Medians of one run differ by less, so that every process makes the same choice.
const MARGIN: f64 = 0.05;
/// The most sets of candidates that a [`MachineChoice`] gives.
const SETS: usize = 4;
/// For each set of candidates, as bits of the indices in [`Machine::all`], the index of the fastest.
static FASTEST: Measured<usize, usize, SETS> = Measured::new();

impl Machine {
    /// Returns the machine of a choice. If several match, it returns the fastest on this CPU, which
    /// the first call measures for a few milliseconds with a table of K = 2048 and S = 8192.
    ///
    /// # Errors
    /// If this CPU does not have the machine, or the measurement lacks memory.
    pub fn find(choice: MachineChoice) -> Result<Self> {
        let (all, candidates) = (Self::all(), Self::candidates(choice)?);
        match candidates.as_slice() {
            [one] => Ok(all[*one]),
            several => fastest(&all, several),
        }
    }

    /// Returns the machines of a choice, as indices in [`Self::all`]: at least one, or an error.
    pub(super) fn candidates(choice: MachineChoice) -> Result<heapless::Vec<usize, MACHINES>> {
        let all = Self::all();
        let matches = |name: &str| match choice {
            // Where there is another machine, one lane is never the fastest.
            MachineChoice::Auto => name != "emu" || all.len() == 1,
            MachineChoice::Emu => name == "emu",
            MachineChoice::Avx2 => name.starts_with("avx2"),
            MachineChoice::Avx512 => name.starts_with("avx512"),
            MachineChoice::Avx512Loads => name == "avx512",
            MachineChoice::Avx512Gather => name == "avx512 (vpgatherdd)",
            MachineChoice::Neon => name == "neon",
        };
        let found: heapless::Vec<usize, MACHINES> =
            (0..all.len()).filter(|&index| matches(all[index].name())).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        Err(invalid!("machine" is format!("{choice:?}").to_lowercase(), but
            "this CPU has {}", names(&all); "choose one of those, or auto"))
    }
}

fn names(all: &[Machine]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the fastest of `candidates`, which are indices in `all`.
fn fastest(all: &[Machine], candidates: &[usize]) -> Result<Machine> {
    let set = candidates.iter().fold(0, |set, index| set | 1 << index);
    let index = FASTEST.get_or_measure(set, || {
        let start = Instant::now();
        let index = measure(all, candidates)?;
        let took = start.elapsed();
        log::info!("kernels run on {}, the fastest as measured in {took:.1?}", all[index]);
        Ok(index)
    })?;
    Ok(all[index])
}

/// Returns the candidate with the least median time per step, or one before it that it beats by less than
/// [`MARGIN`]. The machines take turns, so that noise affects all alike, and another one begins each round,
/// because a step is slower behind one that has used other parts of the core.
fn measure(all: &[Machine], candidates: &[usize]) -> Result<usize> {
    const STEPS: usize = 96;
    const COLD: usize = 4;
    // One table serves all machines, because each of them leaves it as the others would.
    let mut table = StandaloneTable::new(&Params::wide(2048, 1, 8192))?;
    let mut times = reserve::filled("measured times", STEPS * candidates.len(), f64::INFINITY)?;
    for step in 0..STEPS + COLD {
        for turn in 0..candidates.len() {
            let candidate = (step + turn) % candidates.len();
            table.select(step * candidates.len() + turn);
            let start = Instant::now();
            table.step(all[candidates[candidate]]);
            if let Some(step) = step.checked_sub(COLD) {
                times[candidate * STEPS + step] = start.elapsed().as_secs_f64();
            }
        }
    }
    let median = |times: &mut [f64]| *times.select_nth_unstable_by(STEPS / 2, f64::total_cmp).1;
    let mut best = (f64::INFINITY, candidates[0]);
    for (times, &index) in times.chunks_mut(STEPS).zip(candidates) {
        let time = median(times);
        if time < best.0 * (1.0 - MARGIN) {
            best = (time, index);
        }
    }
    Ok(best.1)
}
