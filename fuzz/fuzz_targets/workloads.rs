//! Any bytes are a workload of requests (`testkit/src/workload.rs`); no workload may go wrong.
//!
//! `cargo +nightly fuzz run workloads -- -max_total_time=20`

#![no_main]

use arbitrary::{Result, Unstructured};
use avsg::engine::MachineChoice;
use avsg_testkit::workload::{Workload, Request, Shape, Step, run};
use avsg_testkit::splitmix::{SplitMix64, mix};
use libfuzzer_sys::fuzz_target;

/// More steps tell no more, and libFuzzer wants many short runs.
const MAX_STEPS: usize = 24;

fn request(u: &mut Unstructured<'_>) -> Result<Request> {
    let (who, act, tokens, accept, pick) = u.arbitrary()?;
    let count = u.int_in_range(0..=60)?;
    let ids = (0..count).map(|_| u.arbitrary()).collect::<Result<_>>()?;
    Ok(Request { who, act, tokens, accept, pick, ids })
}

fn step(u: &mut Unstructured<'_>) -> Result<Step> {
    let (form, swap) = u.arbitrary()?;
    let requests = (0..u.int_in_range(0..=5)?).map(|_| request(u)).collect::<Result<_>>()?;
    Ok(Step { form, swap, requests })
}

fn workload(u: &mut Unstructured<'_>) -> Result<Workload> {
    let shape = Shape::from(u.arbitrary::<[u8; 10]>()?);
    let mut steps = Vec::new();
    while !u.is_empty() && steps.len() < MAX_STEPS {
        steps.push(step(u)?);
    }
    Ok(Workload { shape, steps })
}

/// libFuzzer begins with inputs of a few bytes, which are no workload yet: they are seeds of one.
const SHORTEST: usize = 900;

fuzz_target!(|bytes: &[u8]| {
    let mut all = bytes.to_vec();
    let seed = bytes.iter().fold(1u64, |seed, &b| mix(seed ^ u64::from(b)));
    let mut rest = SplitMix64::new(seed);
    while all.len() < SHORTEST {
        all.extend(rest.word().to_le_bytes());
    }
    if let Ok(workload) = workload(&mut Unstructured::new(&all)) {
        run(&workload, workload.shape.engine(MachineChoice::Auto));
    }
});
