//! The choice of the vector machine for the CPU device. It is measured once per process, so that
//! every engine has the same one and is made in milliseconds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use avsg_device::params::Params;

use super::machine::{MACHINES, Machine};
use super::standalone_table::StandaloneTable;
use crate::resources::MachineChoice;
use crate::system::reserve;
use crate::{Result, invalid};

/// The part of its time by which a machine must be faster than those before it in [`Machine::all`] to be
/// chosen. Medians of one run differ by less, so that every process makes the same choice.
const MARGIN: f64 = 0.05;
/// For each set of candidates, as bits of the indices in [`Machine::all`], the index of the fastest, counted
/// from 1; 0 until it is measured. There is no lock, which a forked child could find locked for ever.
static FASTEST: [AtomicUsize; 1 << MACHINES] = [const { AtomicUsize::new(0) }; 1 << MACHINES];

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
        let names = all.iter().map(Machine::name).collect::<Vec<_>>().join(", ");
        Err(invalid!("machine" is format!("{choice:?}").to_lowercase(), but
            "this CPU has {names}"; "choose one of those, or auto"))
    }
}

/// Returns the fastest of `candidates`, which are indices in `all`.
fn fastest(all: &[Machine], candidates: &[usize]) -> Result<Machine> {
    let known = &FASTEST[candidates.iter().fold(0, |set, index| set | 1 << index)];
    if let Some(index) = known.load(Ordering::Relaxed).checked_sub(1) {
        return Ok(all[index]);
    }
    let start = Instant::now();
    let index = measure(all, candidates)?;
    log::info!("kernels run on {}, the fastest as measured in {:.1?}", all[index], start.elapsed());
    // If two threads measure at the same time, both use the result of the first.
    let first = known.compare_exchange(0, index + 1, Ordering::Relaxed, Ordering::Relaxed);
    Ok(all[first.map_or_else(|first| first - 1, |_| index)])
}

/// Returns the candidate with the least median time per step, or one before it that it beats by less than
/// [`MARGIN`]. The machines take turns, so that noise affects all alike, and another one begins each round,
/// because a step is slower behind one that has used other parts of the core.
fn measure(all: &[Machine], candidates: &[usize]) -> Result<usize> {
    const STEPS: usize = 96;
    const K: usize = 2048;
    const COLD: usize = 4;
    // One table serves all machines, because each of them leaves it as the others would.
    let mut table = StandaloneTable::new(&Params::wide(K as u32, 1, 8192))?;
    let mut ids = reserve::filled("measured ids", K, 0)?;
    let mut times = reserve::filled("measured times", STEPS * candidates.len(), f64::INFINITY)?;
    for step in 0..STEPS + COLD {
        for turn in 0..candidates.len() {
            let candidate = (step + turn) % candidates.len();
            // Ids are spread over 16 K, and a tenth of them changes from step to step.
            let n = step * candidates.len() + turn;
            let id = |i: usize| ((i + n * K / 10) * 40503 % (16 * K)) as i32;
            ids.iter_mut().enumerate().for_each(|(i, to)| *to = id(i));
            let start = Instant::now();
            table.step_on(all[candidates[candidate]], &ids, 1, -1);
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
