//! The clocks of the pipes: the times of small programs are what a hand computes from the prices.

use avsg_sim::cycles::{Cycles, Prices};

use super::harness::{Failure, Kernels, Launch};

/// No sum of a few of these numbers is a sum of others.
const PRICES: Prices = Prices {
    issue: 1.0,
    scalar: 10.0,
    head: 100.0,
    repeat: 3.0,
    compact: 7.0,
    gather: 2.0,
    barrier: 1000.0,
    flag: 5000.0,
    sync_all: 20_000.0,
    dma: 300.0,
    latency: 40_000.0,
    byte: 0.5,
};

fn kernels() -> Option<Kernels> {
    kernels!("cycles.cpp")
}

fn try_timed(k: &Kernels, name: &str, blocks: u32, prices: Prices) -> Result<Cycles, Failure> {
    let mut input = vec![0; 1024];
    Launch::new(name).blocks(blocks).device(&mut input).run_timed(k, prices)
}

fn timed(k: &Kernels, name: &str, blocks: u32) -> Cycles {
    try_timed(k, name, blocks, PRICES).unwrap()
}

#[test]
fn dependent_instructions_follow_each_other() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "chain", 1);
    // One cycle of issue, three heads, one repeat twice and two once, and a barrier after each.
    assert_eq!(time.total, 1.0 + 3.0 * 1100.0 + 12.0);
    assert_eq!(time.phases[0], time.total);
}

#[test]
fn a_copy_runs_while_the_vector_unit_works() {
    let Some(k) = kernels() else { return };
    let fast = Prices { latency: 0.0, flag: 0.0, ..PRICES };
    let idle = Prices { latency: 0.0, flag: 0.0, dma: 0.0, byte: 0.0, ..PRICES };
    let [all, fast, idle] = [PRICES, fast, idle].map(|p| try_timed(&k, "overlap", 1, p).unwrap());
    // The copy is issued in cycle 1 and completes after its start, 256 bytes and the latency. The
    // vector unit fills the other buffer meanwhile, waits, adds, and there is a barrier.
    assert_eq!(all.total, 1.0 + 300.0 + 128.0 + 40_000.0 + 5000.0 + 103.0 + 1000.0);
    assert_eq!(fast.total, 1.0 + 300.0 + 128.0 + 103.0 + 1000.0);
    // A copy that takes no time is over before the vector unit needs it.
    assert_eq!(idle.total, 2.0 + 103.0 + 103.0 + 1000.0);
}

#[test]
fn copies_queue_on_their_pipe_and_their_latencies_overlap() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "copies", 1);
    let first = 1.0 + 2.0 * 300.0 + 128.0 + 256.0 + 40_000.0 + 1000.0;
    assert_eq!(time.phases[0], first);
    assert_eq!(time.phases[1], 1.0 + 300.0 + 128.0 + 40_000.0 + 1000.0);
    assert_eq!(time.total, first + time.phases[1]);
}

#[test]
fn flags_carry_times_between_units() {
    let Some(k) = kernels() else { return };
    // Eight accesses and a flag's issue; a flag, an instruction, a flag; two accesses, and a barrier.
    // The waits are issued meanwhile.
    let set = 80.0 + 1.0;
    let total = set + 5000.0 + 103.0 + 5000.0 + 20.0 + 1.0 + 1000.0;
    assert_eq!(timed(&k, "scalars", 1).total, total);
    // A flag that was set in cycle 104 delays nothing in cycle 6002.
    assert_eq!(timed(&k, "early_flag", 1).total, 2.0 + 6000.0 + 1.0 + 10.0 + 1.0 + 1000.0);
}

#[test]
fn cores_leave_sync_all_together() {
    let Some(k) = kernels() else { return };
    for blocks in [1, 2, 5] {
        let time = timed(&k, "meet", blocks);
        // The slowest core accesses UB 5 times per block, then issues the barrier over all pipes. Core 0 waits for
        // the others in the first round, and is the slowest in the second one.
        let round = 50.0 * f64::from(blocks) + 1.0 + 1000.0 + 20_000.0;
        assert_eq!(time.phases[0], round, "{blocks}");
        assert_eq!(time.total, 2.0 * round, "{blocks}");
    }
}

#[test]
fn instructions_take_the_time_of_their_rates() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "rates", 1);
    for (phase, work) in [
        // A compare of 256 words, a gather of 100 elements, a compaction of 200 words.
        (1, 100.0 + 4.0 * 3.0),
        (2, 100.0 + 100.0 * 2.0),
        (3, 100.0 + 4.0 * 7.0),
        // A selection of 128 words runs two instructions and three barriers.
        (4, 200.0 + 3.0 * 3.0 + 3.0 * 1000.0),
        // A cast of 256 halves to floats, a sum of 512 halves, and three repeats under a mask.
        (5, 100.0 + 4.0 * 3.0),
        (6, 100.0 + 4.0 * 3.0),
        (7, 100.0 + 3.0 * 3.0),
    ] {
        assert_eq!(time.phases[phase], 1.0 + work + 1000.0, "{phase}");
    }
    assert_eq!(time.phases.iter().sum::<f64>(), time.total);
}

#[test]
fn a_phase_that_does_not_exist_is_refused() {
    let Some(k) = kernels() else { return };
    let failure = try_timed(&k, "phase_16", 1, PRICES).unwrap_err();
    let named = ["phase 16", "0..15"].iter().all(|piece| failure.text.contains(piece));
    assert!(named, "{failure:?}");
}
