//! A filled pool, and an engine on it.

use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use crate::content::fill_row;

/// A pool whose row x of layer l holds x at version l.
pub fn pool(layers: usize, rows: usize, format: RowFormat) -> HostPool {
    let config = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(layers, rows, format) };
    let pool = HostPool::new(&config).unwrap();
    fill(&pool, rows, |layer, row| (row as i32, layer as u32));
    pool
}

/// Makes the first `rows` rows of each layer the id and version that `content` says for layer and row.
pub fn fill(pool: &HostPool, rows: usize, content: impl Fn(usize, usize) -> (i32, u32)) {
    let mut bytes = vec![0; pool.format().bytes()];
    for (layer, row) in (0..pool.layers()).flat_map(|l| (0..rows).map(move |row| (l, row))) {
        let (id, version) = content(layer, row);
        fill_row(id, version, &mut bytes);
        pool.write_row(layer, row, &bytes).unwrap();
    }
}

/// An engine of so many states and cores.
pub fn engine(params: Params, states: usize, cores: usize, pool: HostPool) -> Engine {
    Engine::new(Config { cores, ..Config::new(params, states) }, pool).unwrap()
}
