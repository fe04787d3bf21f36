//! A table with learned lifetimes learns once from each Stage One of its request, whatever happens to the
//! rows, and a fork or a new generation takes or forgets what was learned.

use avsg::cpu::worker_pool::{WorkerConfig, WorkerPool};
use avsg::device::memory::links_end;
use avsg::device::params::{Lifetime, Params};
use avsg::device::state::header;
use avsg::engine::{Config, Engine};
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fixture;

const K: usize = 32;
const ROWS: usize = 600;
/// States; the requests of a batch name the first ones.
const STATES: usize = 6;

fn params() -> Params {
    Params { lifetime: Lifetime::Learned, ..Params::wide(K as u32, 1, 128) }
}

/// Returns an engine on `threads` threads. Rows are so long that every step is shared among them.
fn engine(threads: usize) -> Engine {
    let pool = fixture::pool(2, ROWS, RowFormat::single(12_000).unwrap());
    let workers = WorkerPool::new(&WorkerConfig::new(threads)).unwrap();
    let config = Config { cores: threads, ..Config::new(params(), STATES) };
    Engine::with_workers(config, pool, &workers).unwrap()
}

/// Returns a batch of the states 0 to 3, of which `padded` stands for no state.
fn batch(step: usize, padded: usize, generation: i32) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    for request in 0..4 {
        let state = if request == padded { -1 } else { request as i32 };
        let id = |i: usize| ((step * 13 + request * 67 + i * 7) % ROWS) as i32;
        owned.push([state, generation, -1, ROWS as i32], &[(0..K).map(id).collect()]);
    }
    // A request without tokens.
    owned.push([4, generation, -1, ROWS as i32], &[]);
    owned
}

/// Returns the number of steps that each table has learned from.
fn learned(engine: &mut Engine) -> [i32; STATES] {
    std::array::from_fn(|state| engine.read_table(0, state).unwrap()[header::STEP as usize])
}

/// Whichever worker learns, and whether before or after the copies, the tables are the same.
#[test]
fn a_table_learns_once_from_each_plan_and_a_fork_has_what_it_learned() {
    let mut engines = [1, 4].map(engine);
    let mut plans = engines.each_ref().map(|engine| engine.new_plan(4, 5).unwrap());
    let mut steps = [0; STATES];
    for step in 0..80 {
        let owned = batch(step, step % 7, 1);
        let states = owned.state.iter().filter(|&&state| state >= 0);
        states.for_each(|&state| steps[state as usize] += 1);
        for (at, (engine, plan)) in engines.iter_mut().zip(&mut plans).enumerate() {
            if at == 1 && step % 10 != 9 {
                engine.step(&owned.batch(), plan, 0, None).unwrap();
            } else {
                engine.plan(&owned.batch(), plan).unwrap();
                // A transfer that is repeated teaches nothing, and a discard takes nothing back.
                match step % 10 {
                    9 => engine.discard(plan).unwrap(),
                    _ => [0, 0, 1].iter().for_each(|&n| engine.transfer(plan, &[n], None).unwrap()),
                }
            }
            assert_eq!(learned(engine), steps, "step {step}");
        }
    }
    let [one, other] = &mut engines;
    for state in 0..STATES {
        let expected = one.read_table(0, state).unwrap();
        assert!(other.read_table(0, state).unwrap() == expected, "state {state}");
    }
    // After 64 steps the values are those that were learned, and a fork knows them.
    let mut expected = one.read_table(0, 0).unwrap().to_vec();
    let values = &expected[links_end(&params())..][..256];
    assert!(values.windows(2).any(|pair| pair[0] > pair[1]), "{values:?}");
    one.fork(0, 1, &[5], &[8]).unwrap();
    expected[header::GENERATION as usize] = 8;
    assert!(one.read_table(0, 5).unwrap() == expected);
    // The copy of a request that was never planned has learned nothing.
    one.fork(1, 7, &[5], &[9]).unwrap();
    let words = one.read_table(0, 5).unwrap();
    assert_eq!(words[header::STEP as usize], 0);
    assert!(words[links_end(&params())..].iter().all(|&word| word == 0));
    // Another generation starts anew.
    one.plan(&batch(30, 9, 2).batch(), &mut plans[0]).unwrap();
    assert_eq!(learned(one), [1, 1, 1, 1, 1, 0]);
}
