//! A small host pool with known contents, and an engine on it.

use avsg::device::params::Params;
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine, Indexers};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use crate::content::fill_row;
use crate::memory::read_rows;
use crate::scratch::adapted;

/// Returns a pool in which row x of layer l has the contents of id x at version l.
pub fn pool(layers: usize, rows: usize, format: RowFormat) -> HostPool {
    let config = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(layers, rows, format) };
    let pool = HostPool::new(&config).unwrap();
    fill(&pool, rows, |layer, row| (row as i32, layer as u32));
    pool
}

/// Returns a pool in a file, with the rows of a pool in memory.
pub fn in_file(pool: &HostPool, indexers: &Indexers, file: PoolFile) -> HostPool {
    let (layers, rows, format) = (pool.layers(), pool.rows(), pool.format().clone());
    let (file, indexers) = (Some(adapted(file)), indexers.clone());
    let config = PoolConfig { file, indexers, ..PoolConfig::new(layers, rows, format) };
    let copy = HostPool::new(&config).unwrap();
    for (at, row) in read_rows(pool).chunks_exact(pool.format().bytes()).enumerate() {
        copy.write_row(at / rows, at % rows, row).unwrap();
    }
    copy
}

/// Writes the first `rows` rows of each layer: `content(layer, row)` returns their id and version.
pub fn fill(pool: &HostPool, rows: usize, content: impl Fn(usize, usize) -> (i32, u32)) {
    let mut bytes = vec![0; pool.format().bytes()];
    for (layer, row) in (0..pool.layers()).flat_map(|l| (0..rows).map(move |row| (l, row))) {
        let (id, version) = content(layer, row);
        fill_row(id, version, &mut bytes);
        pool.write_row(layer, row, &bytes).unwrap();
    }
}

/// Returns an engine on the CPU with `states` states and `cores` cores.
pub fn engine(params: Params, states: usize, cores: usize, pool: HostPool) -> Engine {
    Engine::new(Config { cores, ..Config::new(params, states) }, pool).unwrap()
}
