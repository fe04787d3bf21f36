//! Makes a workload of requests from any bytes (`tests/kit/src/workload.rs`), runs it and checks
//! every step.
//!
//! `cargo +nightly fuzz run workloads -- -max_total_time=20`

#![no_main]

use arbitrary::{Result, Unstructured};
use avsg::engine::MachineChoice;
use avsg_testkit::splitmix::{SplitMix64, mix};
use avsg_testkit::workload::{Request, Shape, Step, Workload, run};
use libfuzzer_sys::fuzz_target;

/// Maximum number of steps. libFuzzer needs many short runs.
const MAX_STEPS: usize = 24;

fn request(u: &mut Unstructured<'_>) -> Result<Request> {
    let (state, action, tokens, accepted, choice) = u.arbitrary()?;
    let count = u.int_in_range(0..=60)?;
    let ids = (0..count).map(|_| u.arbitrary()).collect::<Result<_>>()?;
    Ok(Request { state, action, tokens, accepted, choice, ids })
}

fn step(u: &mut Unstructured<'_>) -> Result<Step> {
    let (form, swap) = u.arbitrary()?;
    let requests = (0..u.int_in_range(0..=5)?).map(|_| request(u)).collect::<Result<_>>()?;
    Ok(Step { form, swap, requests })
}

fn workload(u: &mut Unstructured<'_>) -> Result<Workload> {
    let shape = Shape::from(u.arbitrary::<[u8; 9]>()?);
    let mut steps = Vec::new();
    while !u.is_empty() && steps.len() < MAX_STEPS {
        steps.push(step(u)?);
    }
    Ok(Workload { shape, steps })
}

/// Minimum length of an input in bytes. libFuzzer begins with a few bytes; a shorter input is
/// extended with pseudo-random bytes that depend on it.
const MIN_BYTES: usize = 900;

fuzz_target!(|bytes: &[u8]| {
    let mut input = bytes.to_vec();
    let seed = bytes.iter().fold(1u64, |seed, &b| mix(seed ^ u64::from(b)));
    let mut rng = SplitMix64::new(seed);
    while input.len() < MIN_BYTES {
        input.extend(rng.word().to_le_bytes());
    }
    if let Ok(workload) = workload(&mut Unstructured::new(&input)) {
        run(&workload, &mut workload.shape.engine(MachineChoice::Auto));
    }
});
