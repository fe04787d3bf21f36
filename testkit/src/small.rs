//! A filled pool, an engine on it, and the check that a step's slots hold the current rows.

use crate::content::{check_row, fill_row};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use crate::batch::Owned;

/// A pool whose row x of layer l holds x at version l.
pub fn pool(layers: usize, rows: usize, format: RowFormat) -> HostPool {
    let mut bytes = vec![0; format.bytes()];
    let config = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(layers, rows, format) };
    let pool = HostPool::new(&config).unwrap();
    for layer in 0..layers {
        for row in 0..rows {
            fill_row(row as i32, layer as u32, &mut bytes);
            pool.write_row(layer, row, &bytes).unwrap();
        }
    }
    pool
}

/// An engine of so many states and cores.
pub fn engine(params: Params, states: usize, cores: usize, pool: HostPool) -> Engine {
    Engine::new(Config { cores, ..Config::new(params, states) }, pool).unwrap()
}

/// Every id of the batch that is no padding has a slot, which holds the row `content` names as
/// (id, version); padding and padded requests have -1. Returns how many rows were checked.
pub fn expect_exact(
    engine: &Engine,
    plan: &Plan,
    owned: &Owned,
    layer: usize,
    content: impl Fn(usize, i32) -> (i32, u32),
) -> usize {
    let mut got = vec![0; engine.pool().format().bytes()];
    let mut checked = 0;
    for (request, &state) in owned.state.iter().enumerate() {
        for row in owned.cu_q[request] as usize..owned.cu_q[request + 1] as usize {
            for (&id, &slot) in owned.row(row).iter().zip(plan.slots(row)) {
                if id < 0 || state < 0 {
                    assert_eq!(slot, -1, "row {row}: padding");
                    continue;
                }
                let place = usize::try_from(slot).expect("a slot");
                engine.buffer().slot_bytes(state as usize, layer, place, &mut got).unwrap();
                let (id, version) = content(request, id);
                assert!(check_row(id, version, &got), "row {row}, id {id}, slot {slot}");
                checked += 1;
            }
        }
    }
    checked
}
