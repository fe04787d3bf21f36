//! A step through the C ABI costs at most 2 microseconds more than the Rust call, and takes no memory.
//! Both run in turns in one process: `cargo test --release --test capi_overhead -- --nocapture`.

#[path = "c_side/c.rs"]
mod c;

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::engine::{Config, Engine, Fresh};
use avsg_capi::*;
use avsg_testkit::batch::Owned;
use avsg_testkit::{allocations, small};
use c::*;

const TURNS: usize = if cfg!(debug_assertions) { 500 } else { 20_000 };

fn rust() -> Engine {
    let pool = small::pool(2, ROWS, format());
    let params = Params { page: 16, ..Params::wide(K as u32, 2, 64) };
    let config = Config { cores: 1, machine: MachineChoice::Emu, ..Config::new(params, 2) };
    Engine::new(config, pool).unwrap()
}

/// The medians of steps of these batches: (Rust, through C), in turns.
fn medians(all: &[Arrays]) -> (Duration, Duration) {
    let (life, mut engine) = (Life::new(), rust());
    let mut plan = engine.new_plan(4, 2).unwrap();
    let (mut through_c, mut direct) = (Vec::with_capacity(TURNS), Vec::with_capacity(TURNS));
    for turn in 0..TURNS {
        let owned = &all[turn % all.len()];
        let slices = owned.rows.segments();
        let fresh = Fresh { segments: &slices };
        let batch = Owned::batch(owned);
        let (c_batch, c_fresh) = (owned.batch(), owned.fresh());
        let rust = |engine: &mut Engine, plan: &mut _| {
            let start = Instant::now();
            engine.step(&batch, plan, 0, Some(&fresh)).unwrap();
            start.elapsed()
        };
        let c = || {
            let mut took = Duration::ZERO;
            let calls = allocations::calls(|| {
                let start = Instant::now();
                // SAFETY: `owned` keeps the arrays; the handles are `life`'s.
                let status = unsafe {
                    avsg_engine_step(life.engine, &c_batch, life.plan, 0, &c_fresh, null_mut())
                };
                took = start.elapsed();
                ok(status);
            });
            assert_eq!(calls, 0, "allocator calls of a step through C");
            took
        };
        // In turns, and each first in half of them.
        if turn % 2 == 0 {
            direct.push(rust(&mut engine, &mut plan));
            through_c.push(c());
        } else {
            through_c.push(c());
            direct.push(rust(&mut engine, &mut plan));
        }
    }
    let median = |times: &mut Vec<_>| *times.select_nth_unstable(TURNS / 2).1;
    life.end();
    (median(&mut direct), median(&mut through_c))
}

#[test]
fn a_step_through_c_costs_at_most_two_microseconds_more() {
    allocations::check();
    let real: Vec<Arrays> = (0..64).map(Arrays::new).collect();
    // Padded requests: nothing but the calls themselves. Time decides in release builds only: CI's are not, and a
    // busy machine must not fail it.
    let sharp = !cfg!(debug_assertions);
    let mut padded = real.clone();
    padded.iter_mut().for_each(|arrays| arrays.state.fill(-1));
    for (what, all) in [("steps", real), ("calls", padded)] {
        let (rust, c) = medians(&all);
        let ratio = c.as_secs_f64() / rust.as_secs_f64();
        println!("medians of {TURNS} {what}: Rust {rust:?}, through C {c:?}, ratio {ratio:.3}");
        assert!(
            !sharp || c.saturating_sub(rust).as_nanos() <= 2000,
            "{what}: {c:?}, Rust {rust:?}"
        );
    }
}
