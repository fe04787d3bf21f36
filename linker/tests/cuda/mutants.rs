//! Texts without one barrier, fence or wait: each breaks a rule of the shim or gives wrong bits.

use super::gpu::Gpu;
use super::stage_one::{ALL, emit_all, neighbours, steps};
use super::{StepState, fixtures::mutants};
use avsg_device::learned::START;
use avsg_device::params::{Lifetime, Params};
use avsg_device::state::header;
use avsg_linker::cuda::{Options, record};
use avsg_sim::shim::Mode;

/// As [`mutants::with_switches`] for the statements in these files.
pub fn with_switches(text: &str, files: &[&str], calls: &[&str]) -> (String, Vec<String>) {
    // A header stands where a file includes it, and ends with its namespace.
    let mut open = vec![""];
    let inside = |_, line: &str| {
        match line.strip_prefix("// avsg_").and_then(|line| line.split_once(": ")) {
            Some((file, _)) => open.push(files.iter().find(|f| **f == file).map_or("", |f| f)),
            None if line == "} // namespace avsg" => drop(open.pop()),
            None => {}
        }
        open.last().is_some_and(|file| !file.is_empty())
    };
    mutants::with_switches(text, inside, calls)
}

/// The files with the barriers of Stage One.
const STAGE_ONE: [&str; 5] = ["scan.cuh", "life.cuh", "stage_one.cuh", "plan.cuh", "learn.cuh"];

/// Leaves out each barrier of Stage One. A run of one of the steps must fail without it.
fn every_barrier_is_needed(p: &Params, options: Options, unneeded: usize) {
    let mut statements = Vec::new();
    let change = |text: String| {
        let learns = p.lifetime == Lifetime::Learned;
        let files = &STAGE_ONE[..STAGE_ONE.len() - usize::from(!learns)];
        let (switched, all) = with_switches(&text, files, &["__syncthreads();", "__syncwarp();"]);
        statements = all;
        switched
    };
    let stage_one = vec![(*p, record(p).unwrap(), options)];
    let Some(emitted) = emit_all(stage_one, Gpu::Loads, change) else { return };
    let mut steps = steps(p, 3, 16);
    let last = steps[15].clone();
    // Some of the ids are new until the table is full, and at the end one valid id stands beside one that is not.
    let k = p.k as i32;
    let many = (0..16).map(|n| (301 * n % (4 * k), k, 0)).chain([(700, k, 9), (700, k, 9)]);
    let two = (0..20).map(|n| (800 + n, 2, 1));
    let step = |(base, k, invalid)| neighbours(p, &last, base, k, invalid);
    steps.extend(many.chain(two).map(step));
    // A step without a token only ages lifetimes.
    let mut none = last.clone();
    none.set("tokens", 0);
    steps.push(none);
    let rest = steps.split_off(20);
    let mut state = StepState::clear(p);
    let mut steps = state.trace(&emitted[0].tape, steps);
    // The next step is the one after which a request has values of its own.
    state.table[header::STEP as usize] = START - 1;
    steps.extend(state.trace(&emitted[0].tape, rest));
    let passing = mutants::unneeded(&statements, |n| {
        emitted[0].compiled.leave_out(n);
        let run = |(seed, step)| emitted[0].run_and_compare(step, (Mode::Adversarial, seed));
        (0..).zip(&steps).any(|step| run(step).is_err())
    });
    assert!(passing.len() <= unneeded, "no run fails without these: {passing:#?}");
}

#[test]
fn every_barrier_of_a_wide_table_is_needed() {
    let wide =
        Params { spread: 2, lifetime: Lifetime::Learned, page: 16, ..Params::wide(512, 2, 2048) };
    // One is at the end of a round behind which there is another one. Such a round takes a branch that has barriers,
    // which the analysis does not know.
    every_barrier_is_needed(&wide, ALL, 1);
}

#[test]
fn every_barrier_of_a_table_of_the_paper_is_needed() {
    every_barrier_is_needed(&Params::paper(512, 2, 2048), ALL, 0);
}
