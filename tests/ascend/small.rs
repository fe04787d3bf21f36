//! The engine of directed cases, whose geometry the Rust kernels run: K = 24, N_q = 2, S = 192.

use avsg::device::params::Params;
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

pub const K: usize = 24;
/// It is no power of two, so a table has more places than slots.
pub const SLOTS: usize = 192;
/// Bytes of a row.
pub const ROW: usize = 64;

pub fn config(states: usize) -> Config {
    let params = Params::wide(K as u32, 2, SLOTS as u32);
    // `Emu` is the only machine that an engine does not measure first.
    Config { cores: 3, machine: MachineChoice::Emu, ..Config::new(params, states) }
}

/// Returns a pool of two layers with 600 rows each, in which row x of layer l has id x and version l.
pub fn pool() -> HostPool {
    fixture::pool(2, 600, RowFormat::single(ROW).unwrap())
}

/// Returns K distinct ids below 500 from `first` on, in steps of 17.
pub fn ids(first: usize) -> Vec<i32> {
    (0..K).map(|lane| ((first + lane * 17) % 500) as i32).collect()
}

/// Returns a batch of one request with one token.
pub fn one_request(state: i32, generation: i32, ids: Vec<i32>) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([state, generation, -1, 600], &[ids]);
    owned
}

/// Returns a batch of states 0 and 1 with one row each, of every third id from `first` on.
pub fn both_states(first: [i32; 2]) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    for (state, first) in first.into_iter().enumerate() {
        let ids = (0..K as i32).map(|lane| first + 3 * lane).collect();
        owned.push([state as i32, 1, -1, 600], &[ids]);
    }
    owned
}

/// Checks that a layer holds the rows that a plan of a batch selects.
#[track_caller]
pub fn check(engine: &Engine, plan: &Plan, owned: &OwnedBatch, layer: usize) {
    exact::check_step(engine, plan, owned, layer, |_, id| (id, layer as u32));
}
