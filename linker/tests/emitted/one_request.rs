//! Steps of a kernel `one_request`, whose results are compared with those of a tape.

use super::{Mode, Request, RunFailure, ShimLaunch, StepState, Traced};
use avsg_device::params::Params;
use avsg_device::request::summary;
use avsg_linker::tape::Tape;

/// Runs a step, and compares all outputs and the table with those of its tape. `run` runs the launch with the arguments that
/// all kernels `one_request` take.
pub fn run_and_compare<T>(
    launch: ShimLaunch<'_>,
    tape: &Tape,
    Traced { step, before, want }: &Traced,
    run: impl FnOnce(ShimLaunch<'_>) -> Result<T, RunFailure>,
) -> Result<T, String> {
    let (mut got, mut want) = (before.clone(), want.clone());
    got.fill_outputs(step);
    let fields: Vec<i32> = tape.params.iter().map(|p| step.param(&p.name)).collect();
    let [ids, blocks] = [&step.ids, &step.blocks].map(|words| [&words[..], &[0]].concat());
    let launch = launch.input(&ids).input(&blocks);
    let launch = got.outputs.iter_mut().fold(launch, |launch, (_, words)| launch.device(words));
    let done = run(launch.device(&mut got.table).input(&fields)).map_err(|f| format!("{f:?}"))?;
    // The kernel writes the whole summary of a request, the tape only some of its words.
    let summary = &mut want.outputs[6].1[summary::WORDS..2 * summary::WORDS];
    summary.iter_mut().filter(|w| **w == -77).for_each(|w| *w = 0);
    got.difference(&want).map_or(Ok(done), Err)
}

/// Runs steps in the interpreter, and compares them with what `run` does.
pub fn compare_steps<T>(
    (p, tape): (&Params, &Tape),
    steps: Vec<Request>,
    modes: &[Mode],
    run: impl Fn(&Traced, (Mode, u64)) -> Result<T, String>,
) {
    for (n, traced) in (0..).zip(StepState::clear(p).trace(tape, steps)) {
        for &mode in modes {
            run(&traced, (mode, n))
                .unwrap_or_else(|e| panic!("step {n} of {p:?}, {mode:?}: {e}\n{tape}"));
        }
    }
}
