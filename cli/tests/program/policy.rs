//! The default lifetimes hit about as often as constant ones, or more often, on workloads of many kinds. That the table
//! finds ids as perfect look-up would is checked on the kernels (`device/tests/kernels/structured.rs`).
//!
//! `AVSG_THOROUGH=1` runs more seeds, and K = 2048.

mod families;

use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use avsg_cli::baseline::count_operator_hits;
use avsg_cli::trace::Trace;
use avsg_testkit::tier;
use families::Workload;

/// The number of steps within which the default must hold its bound, too.
const FIRST: usize = 64;

fn percent(trace: &Trace, p: &Params) -> f64 {
    let machine = Machine::find(MachineChoice::Auto).expect("every CPU has a machine");
    let count = count_operator_hits(trace, p, machine).expect("enough memory");
    count.percent().expect("more than one step")
}

/// Returns the trace with `tokens` of its rows in each step.
fn in_steps_of(trace: &Trace, tokens: usize) -> Trace {
    let steps = trace.steps / tokens;
    let ids = trace.ids[..steps * tokens * trace.k].to_vec();
    Trace::new(ids, None, [steps, tokens, trace.k]).expect("a valid trace")
}

/// Checks the bounds of a workload at S from N_q·K to 8·K, prints the most that the default loses, and returns
/// the sum of what it gains.
fn check(workload: &Workload, tokens: usize) -> f64 {
    let trace = in_steps_of(&workload.trace, tokens);
    let first = trace.truncated(FIRST).expect("a valid trace");
    let (mut smaller, mut gain, mut worst) = (0.0, 0.0, 0.0f64);
    for slots in [1, 2, 4, 8].map(|n| n * trace.k).into_iter().filter(|s| s / trace.k >= tokens) {
        let default = Params::wide(trace.k as u32, tokens as u32, slots as u32);
        let constant = Params { lifetime: Lifetime::Constant(127), ..default };
        let name = format!("{}, N_q {tokens}, S {slots}", workload.name);
        for (part, when) in [(&first, "after 64 steps"), (&trace, "at the end")] {
            let gained = percent(part, &default) - percent(part, &constant);
            assert!(gained >= -workload.bound, "{name} {when}: {gained:+.2} points");

            gain += gained;
            worst = worst.min(gained);
        }
        let hits = percent(&trace, &default);
        assert!(hits >= smaller - 0.2, "{name}: {hits:.2} %, and a smaller S has {smaller:.2} %");
        smaller = hits;
    }
    println!("{}, K {}, N_q {tokens}: at worst {worst:+.2} points", workload.name, trace.k);
    gain
}

#[test]
fn the_default_loses_little_to_constant_lifetimes_and_gains_elsewhere() {
    let thorough = [(256, 12, 400), (2048, 3, 400)];
    let sizes = if tier::thorough() { &thorough[..] } else { &[(128, 1, 200)] };
    for &(k, seeds, steps) in sizes {
        for seed in 0..seeds {
            let gain = |workload: &Workload| check(workload, 1) + check(workload, 4);
            let all = families::all(k, steps, seed);
            let gains: f64 = all.iter().map(gain).sum();
            assert!(gains > 5.0, "K {k}, seed {seed}: {gains:+.2} points");
        }
    }
}
