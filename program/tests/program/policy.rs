//! The default lifetimes hit about as often as constant ones, or more often, on workloads of many kinds: the paper's, and
//! such as are hard for one policy or another. That the table finds ids as perfect look-up would is checked on the kernels
//! (`device/tests/kernels/structured.rs`).
//!
//! `AVSG_THOROUGH=1` runs more seeds, and K = 2048.

use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use avsg_cli::baseline::count_operator_hits;
use avsg_cli::synth::Synth;
use avsg_cli::trace::Trace;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

/// A workload of one token per step: its name, and the most points that the default may lose to constant lifetimes.
type Workload = (String, Trace, f64);

/// The number of steps after which two topics alternate.
const TOPIC: usize = 60;

/// Returns workloads of `k` ids per token, other ones for each seed.
fn families(k: usize, steps: usize, seed: u64) -> Vec<Workload> {
    let mut random = SplitMix64::new(seed);
    let mut all = Vec::new();
    for gamma in [0.5, 0.7, 0.9] {
        for mu in [0.5, 0.7, 0.9] {
            let trace = paper(k, steps, [gamma, mu], random.word());
            all.push((format!("paper {gamma} {mu}"), trace, 0.35));
        }
    }
    let mut stress = |name: String, ids: &mut dyn FnMut(usize) -> Vec<i32>, bound| {
        let ids = (0..steps).flat_map(&mut *ids).collect();
        let trace = Trace::new(ids, None, [steps, 1, k]).expect("a valid trace");
        all.push((name, trace, bound));
    };
    let slide = k / 128 + random.below(k / 8);
    stress(format!("window by {slide}"), &mut |t| ids(t * slide..t * slide + k), 0.5);
    for _ in 0..2 {
        let (cycle, advance) = (k + random.below(6 * k), k / 8 + random.below(k / 2));
        let mut row = |t: usize| (0..k).map(|i| ((t * advance + i) % cycle) as i32).collect();
        stress(format!("cycle of {cycle} by {advance}"), &mut row, 0.5);
    }
    let kept = k / 4 + random.below(k / 2);
    let scan = k - kept;
    let mut row = |t: usize| [ids(0..kept), ids(kept + t * scan..kept + (t + 1) * scan)].concat();
    stress(format!("{kept} kept, {scan} scanned"), &mut row, 0.5);
    let context = 6 * k + random.below(8 * k);
    let mut draws = SplitMix64::new(random.word());
    stress(format!("uniform of {context}"), &mut |_| draw(&mut draws, k, context, 0.0), 0.5);
    stress(format!("Zipf 0.9 of {context}"), &mut |_| draw(&mut draws, k, context, 0.9), 0.5);
    let texts = [[0.9, 0.5], [0.7, 0.7]].map(|cell| paper(k, steps, cell, random.word()));
    let apart = texts[0].largest_id().unwrap_or(0) + 1;
    let mut row = |t: usize| {
        let text = t / TOPIC % 2;
        texts[text].row(t, 0).iter().map(|id| id + apart * text as i32).collect()
    };
    stress("alternating topics".into(), &mut row, 1.5);
    all
}

/// Returns a cell of the paper's workload, with a context of 8·K ids.
fn paper(k: usize, steps: usize, [gamma, mu]: [f64; 2], seed: u64) -> Trace {
    Synth { gamma, mu, k, steps, seed, context: 8 * k }.trace().expect("valid parameters")
}

fn ids(range: std::ops::Range<usize>) -> Vec<i32> {
    range.map(|id| id as i32).collect()
}

/// Draws `k` of `context` ids without replacement, id i with the weight (i + 1)^-s.
fn draw(random: &mut SplitMix64, k: usize, context: usize, s: f64) -> Vec<i32> {
    let key = |id: usize, unit: f64| (-unit.ln() * (id as f64 + 1.0).powf(s), id as i32);
    let mut keyed: Vec<_> = (0..context).map(|id| key(id, random.unit())).collect();
    keyed.select_nth_unstable_by(k - 1, |a, b| a.0.total_cmp(&b.0));
    keyed[..k].iter().map(|&(_, id)| id).collect()
}

/// The number of steps within which the default must hold its bound, too.
const FIRST: usize = 64;

fn percent(trace: &Trace, p: &Params) -> f64 {
    let machine = Machine::find(MachineChoice::Auto).expect("every CPU has a machine");
    let count = count_operator_hits(trace, p, machine).expect("enough memory");
    count.percent().expect("more than one step")
}

/// Checks the bounds of a workload at S from N_q·K to 8·K, prints the most that the default loses, and returns
/// the sum of what it gains.
fn check((name, trace, bound): &Workload, tokens: usize) -> f64 {
    let trace = Trace { steps: trace.steps / tokens, tokens, ..trace.clone() };
    let first = trace.truncated(FIRST).expect("a valid trace");
    let (mut smaller, mut gain, mut worst) = (0.0, 0.0, 0.0f64);
    for slots in [1, 2, 4, 8].map(|n| n * trace.k).into_iter().filter(|s| s / trace.k >= tokens) {
        let default = Params::wide(trace.k as u32, tokens as u32, slots as u32);
        let constant = Params { lifetime: Lifetime::Constant(127), ..default };
        let name = format!("{name}, N_q {tokens}, S {slots}");
        for (part, when) in [(&first, "after 64 steps"), (&trace, "at the end")] {
            let gained = percent(part, &default) - percent(part, &constant);
            assert!(gained >= -bound, "{name} {when}: {gained:+.2} points");

            gain += gained;
            worst = worst.min(gained);
        }
        let hits = percent(&trace, &default);
        assert!(hits >= smaller - 0.2, "{name}: {hits:.2} %, and a smaller S has {smaller:.2} %");
        smaller = hits;
    }
    println!("{name}, K {}, N_q {tokens}: at worst {worst:+.2} points", trace.k);
    gain
}

#[test]
fn the_default_loses_little_to_constant_lifetimes_and_gains_elsewhere() {
    let thorough = [(256, 12, 400), (2048, 3, 400)];
    let sizes = if tier::thorough() { &thorough[..] } else { &[(128, 1, 200)] };
    for &(k, seeds, steps) in sizes {
        for seed in 0..seeds {
            let gain = |workload: &Workload| check(workload, 1) + check(workload, 4);
            let all = families(k, steps, seed);
            let gains: f64 = all.iter().map(gain).sum();
            assert!(gains > 5.0, "K {k}, seed {seed}: {gains:+.2} points");
        }
    }
}
