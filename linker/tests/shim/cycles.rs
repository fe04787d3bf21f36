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

fn try_timed(k: &Kernels, name: &str, blocks: u32, prices: Prices) -> Result<Cycles, Failure> {
    let mut input = vec![0; 1024];
    Launch::new(name).blocks(blocks).device(&mut input).run_timed(k, prices)
}

#[test]
fn programs_take_the_time_that_their_prices_give() {
    let Some(k) = kernels!("cycles.cpp") else { return };
    let timed = |name, blocks| try_timed(&k, name, blocks, PRICES).unwrap();
    let chain = timed("chain", 1);
    // One cycle of issue, three heads, one repeat twice and two once, and a barrier after each.
    assert_eq!(chain.total, 1.0 + 3.0 * 1100.0 + 12.0);
    assert_eq!(chain.phases[0], chain.total);

    let fast = Prices { latency: 0.0, flag: 0.0, ..PRICES };
    let idle = Prices { dma: 0.0, byte: 0.0, ..fast };
    let overlap = [PRICES, fast, idle].map(|p| try_timed(&k, "overlap", 1, p).unwrap().total);
    // The copy is issued in cycle 1 and completes after its start, 256 bytes and the latency. The vector unit fills the
    // other buffer meanwhile, waits, adds, and there is a barrier. A copy that takes no time is over before the vector unit
    // needs it.
    let copy = 1.0 + 300.0 + 128.0;
    let [all, idle] = [copy + 40_000.0 + 5000.0, 2.0 + 103.0].map(|start| start + 103.0 + 1000.0);
    assert_eq!(overlap, [all, copy + 103.0 + 1000.0, idle]);

    // Copies queue on their pipe, and their latencies overlap.
    let copies = timed("copies", 1);
    let first = 1.0 + 2.0 * 300.0 + 128.0 + 256.0 + 40_000.0 + 1000.0;
    let second = 1.0 + 300.0 + 128.0 + 40_000.0 + 1000.0;
    assert_eq!((&copies.phases[..2], copies.total), (&[first, second][..], first + second));

    // Eight accesses and a flag's issue; a flag, an instruction, a flag; two accesses, and a barrier. The waits are issued
    // meanwhile.
    let set = 80.0 + 1.0;
    let scalars = set + 5000.0 + 103.0 + 5000.0 + 20.0 + 1.0 + 1000.0;
    assert_eq!(timed("scalars", 1).total, scalars);
    // A flag that was set in cycle 104 delays nothing in cycle 6002.
    assert_eq!(timed("early_flag", 1).total, 2.0 + 6000.0 + 1.0 + 10.0 + 1.0 + 1000.0);

    for blocks in [1, 2, 5] {
        let time = timed("meet", blocks);
        // The slowest core accesses UB 5 times per block, then issues the barrier over all pipes. Core 0 waits for
        // the others in the first round, and is the slowest in the second one.
        let round = 50.0 * f64::from(blocks) + 1.0 + 1000.0 + 20_000.0;
        assert_eq!((time.phases[0], time.total), (round, 2.0 * round), "{blocks}");
    }

    let rates = timed("rates", 1);
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
        assert_eq!(rates.phases[phase], 1.0 + work + 1000.0, "{phase}");
    }
    assert_eq!(rates.phases.iter().sum::<f64>(), rates.total);

    let failure = try_timed(&k, "phase_16", 1, PRICES).unwrap_err();
    let named = ["phase 16", "0..15"].iter().all(|piece| failure.text.contains(piece));
    assert!(named, "{failure:?}");
}
