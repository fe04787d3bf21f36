//! The clocks of the pipes: the times of small programs are what a hand computes from the prices.

use avsg_sim::cycles::{Prices, Times};

use super::harness::{Failure, Kernels, Launch, compile};

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
    fetch: 200_000.0,
    call: 60.0,
};

const S: usize = 0;
const V: usize = 1;
const MTE2: usize = 2;

fn kernels() -> Option<Kernels> {
    compile(include_str!("cycles.cpp"))
}

fn try_timed(
    k: &Kernels,
    name: &str,
    blocks: u32,
    prices: &[Prices],
) -> Result<Vec<Times>, Failure> {
    let mut input = vec![0; 1024];
    Launch::new(name).blocks(blocks).device(&mut input).run_timed(k, prices)
}

fn timed(k: &Kernels, name: &str, blocks: u32) -> Times {
    try_timed(k, name, blocks, &[PRICES]).unwrap()[0]
}

#[test]
fn dependent_instructions_follow_each_other() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "chain", 1);
    // One cycle of issue, three heads, one repeat twice and two once, and a barrier after each.
    assert_eq!(time.total, 1.0 + 3.0 * 1100.0 + 12.0);
    // The work, the barriers, no flag, and the wait for the first instruction's issue.
    assert_eq!(time.phases[0].spent[V], [312.0, 3000.0, 0.0, 1.0]);
    assert_eq!(time.phases[0].elapsed, time.total);
}

#[test]
fn a_copy_runs_while_the_vector_unit_works() {
    let Some(k) = kernels() else { return };
    let fast = Prices { latency: 0.0, flag: 0.0, ..PRICES };
    let idle = Prices { latency: 0.0, flag: 0.0, dma: 0.0, byte: 0.0, ..PRICES };
    let times = try_timed(&k, "overlap", 1, &[PRICES, fast, idle]).unwrap();
    // The copy is issued in cycle 1 and completes after its start, 256 bytes and the latency. The
    // vector unit fills the other buffer meanwhile, waits, adds, and there is a barrier.
    let copied = 1.0 + 300.0 + 128.0 + 40_000.0;
    assert_eq!(times[0].total, copied + 5000.0 + 103.0 + 1000.0);
    assert_eq!(times[0].phases[0].spent[V][2], copied + 5000.0 - (2.0 + 103.0));
    assert_eq!(times[0].phases[0].spent[MTE2][0], 300.0 + 128.0);
    assert_eq!(times[1].total, 1.0 + 300.0 + 128.0 + 103.0 + 1000.0);
    // A copy that takes no time is over before the vector unit needs it.
    assert_eq!(times[2].total, 2.0 + 103.0 + 103.0 + 1000.0);
}

#[test]
fn copies_queue_on_their_pipe_and_their_latencies_overlap() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "copies", 1);
    let first = 1.0 + 2.0 * 300.0 + 128.0 + 256.0 + 40_000.0 + 1000.0;
    assert_eq!(time.phases[0].elapsed, first);
    assert_eq!(time.phases[1].elapsed, 1.0 + 300.0 + 128.0 + 40_000.0 + 1000.0);
    assert_eq!(time.total, first + time.phases[1].elapsed);
}

#[test]
fn flags_carry_times_between_units() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "scalars", 1);
    // Eight accesses and a flag's issue; a flag, an instruction, a flag; two accesses, and a barrier.
    // The waits are issued meanwhile.
    let set = 80.0 + 1.0;
    assert_eq!(time.total, set + 5000.0 + 103.0 + 5000.0 + 20.0 + 1.0 + 1000.0);
    let issued = 6.0;
    assert_eq!(time.phases[0].spent[S][0], 100.0);
    assert_eq!(time.phases[0].spent[S][3], issued);
    let waited = 5000.0 + 103.0 + 5000.0 - 4.0;
    assert_eq!(time.phases[0].spent[S][2], waited);
    // A flag that was set in cycle 104 delays nothing in cycle 6002.
    assert_eq!(timed(&k, "early_flag", 1).total, 2.0 + 6000.0 + 1.0 + 10.0 + 1.0 + 1000.0);
}

#[test]
fn cores_leave_sync_all_together() {
    let Some(k) = kernels() else { return };
    for blocks in [1, 2, 5] {
        let time = timed(&k, "meet", blocks);
        // The slowest core accesses UB 5 times per block, then issues the barrier over all pipes.
        let round = 50.0 * f64::from(blocks) + 1.0 + 1000.0 + 20_000.0;
        assert_eq!(time.phases[0].elapsed, round, "{blocks}");
        assert_eq!(time.total, 2.0 * round, "{blocks}");
        // Core 0 waits for the others in the first round, and is the slowest in the second one.
        let waits = [0, 1].map(|phase| time.phases[phase].spent[S][1]);
        assert_eq!(waits, [round - 51.0, 21_000.0], "{blocks}");
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
        assert_eq!(time.phases[phase].spent[V][0], work, "{phase}");
        assert_eq!(time.phases[phase].elapsed, 1.0 + work + 1000.0, "{phase}");
    }
    let elapsed: f64 = time.phases.iter().map(|phase| phase.elapsed).sum();
    assert_eq!(elapsed, time.total);
}

#[test]
fn wrong_launches_are_refused() {
    let Some(k) = kernels() else { return };
    let refused = |failure: Failure, pieces: &[&str]| {
        assert!(pieces.iter().all(|piece| failure.text.contains(piece)), "{failure:?}");
    };
    refused(try_timed(&k, "phase_16", 1, &[PRICES]).unwrap_err(), &["phase 16", "0..15"]);
    refused(try_timed(&k, "chain", 1, &[PRICES; 33]).unwrap_err(), &["33 sets", "at most 32"]);
    assert_eq!(try_timed(&k, "chain", 1, &[]).unwrap(), [], "a launch without prices runs");
    assert_eq!(try_timed(&k, "chain", 1, &[PRICES; 32]).unwrap().len(), 32);
    let untimed = include_str!("cycles.cpp").replace("#define AVSG_SHIM_CYCLES\n", "");
    let untimed = compile(&untimed).expect("the compiler was found above");
    let mut input = [0; 8];
    let launch = Launch::new("chain").device(&mut input);
    let failure = launch.run_timed(&untimed, &[PRICES]).unwrap_err();
    assert_eq!(failure.code, 2);
    refused(failure, &["compiled without AVSG_SHIM_CYCLES"]);
}

/// The first line waits for its fetch, and a second statement in it does not. A cache of 128 lines keeps the lines that
/// were used last.
#[test]
fn lines_that_are_not_in_the_cache_are_fetched() {
    let Some(k) = kernels() else { return };
    let time = timed(&k, "code", 1);
    let [once, loops, longer, preloaded] = [0, 1, 2, 3].map(|n| time.phases[n]);
    // Bytes 0 to 99 and 100 to 199 are in two lines; a function is called twice.
    assert_eq!((once.fetched, once.called), (2.0, 2.0));
    assert_eq!(once.elapsed, 2.0 * 200_000.0 + 2.0 * 60.0);
    // Two rounds over 128 lines fetch those that were not there. A round over 129 lines fetches the last one, and
    // the next round all of them.
    assert_eq!(loops.fetched, 126.0);
    assert_eq!(longer.fetched, 1.0 + 129.0);
    // Two units of a preload arrive one after the other, and the scalar unit waits for the one that it needs.
    assert_eq!(preloaded.fetched, 1.0);
    assert_eq!(preloaded.elapsed, 200_000.0 + 2.0 * 200_000.0);
}
