//! Which engine a workload is lived on.

use avsg::device::params::{Lifetime, Params};
use avsg::device::stage_two::Strategy;
use avsg::engine::MachineChoice;
use avsg::engine::{Config, Engine};
use avsg::geometry::frequency;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::{RowFormat, Segment};

use super::setting::Setting;

/// Rows of the host pool that belong to one request.
pub const OWN_ROWS: usize = 192;

/// Geometry as plain numbers, each read modulo its range.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The table and its geometry of links.
    pub table: u8,
    /// The lifetime rule.
    pub lifetime: u8,
    /// K.
    pub k: u8,
    /// N_q.
    pub tokens: u8,
    /// S.
    pub slots: u8,
    /// Rows per host block.
    pub page: u8,
    /// Segments of a row.
    pub format: u8,
    /// Request states, and layers.
    pub states: u8,
    /// Copying cores.
    pub cores: u8,
    /// How misses are spread over cores.
    pub strategy: u8,
}

impl From<[u8; 10]> for Shape {
    fn from(bytes: [u8; 10]) -> Self {
        let [table, lifetime, k, tokens, slots, page, format, states, cores, strategy] = bytes;
        Self { table, lifetime, k, tokens, slots, page, format, states, cores, strategy }
    }
}

impl Shape {
    /// The table's parameters; every shape gives valid ones.
    pub fn params(&self) -> Params {
        let slots = [64, 128, 256][usize::from(self.slots) % 3];
        let tokens = 1 + u32::from(self.tokens) % 4;
        let k = 1 + u32::from(self.k) % (slots / tokens).min(40);
        let page = [0, 1, 16, 64][usize::from(self.page) % 4];
        let wide = |spread, retries| Params { spread, retries, ..Params::wide(k, tokens, slots) };
        let constant = |l: &[i8]| Lifetime::Constant(l[usize::from(self.lifetime / 2) % l.len()]);
        let lambda = [0.9, 0.5, 0.965][usize::from(self.lifetime / 2) % 3];
        let mut params = match self.table % 5 {
            0 => Params::paper(k, tokens, slots),
            1 | 2 => wide(4, 3),
            3 => wide(2, 7),
            // Hardly any links: most ids lose their mapping, so orphans and copies abound.
            _ => wide(1, 0),
        };
        params.lifetime = match (self.table % 5, self.lifetime % 2) {
            (0, _) => constant(&[16, 1, 127]),
            (_, 0) => constant(&[127, 0, 16, 1]),
            _ => frequency(lambda).unwrap(),
        };
        Params { page, ..params }
    }

    /// One to three segments, packed and with odd strides.
    fn format(&self) -> RowFormat {
        let strided = |parts: &[(usize, usize)]| {
            let of = |&(bytes, stride): &(usize, usize)| Segment { bytes, stride };
            RowFormat::strided(&parts.iter().map(of).collect::<Vec<_>>()).unwrap()
        };
        match self.format % 5 {
            0 => strided(&[(24, 24)]),
            1 => strided(&[(32, 32), (8, 8)]),
            2 => strided(&[(13, 17), (5, 5), (70, 71)]),
            3 => strided(&[(656, 659)]),
            _ => strided(&[(64, 64), (1, 3)]),
        }
    }

    /// Request states of its engine.
    pub fn states(&self) -> usize {
        1 + usize::from(self.states) % 4
    }

    fn layers(&self) -> usize {
        1 + usize::from(self.states / 4) % 2
    }

    /// What its engine is to be.
    pub fn config(&self, choice: MachineChoice) -> Config {
        let strategies = [Strategy::Balanced, Strategy::Request, Strategy::Position];
        Config {
            params: self.params(),
            states: self.states(),
            cores: 1 + usize::from(self.cores) % 7,
            machine: choice,
            strategy: strategies[usize::from(self.strategy) % 3],
        }
    }

    /// What a workload on it needs to know, with so many requests to a batch.
    pub fn setting(&self, requests: usize) -> Setting {
        let (params, format) = (self.params(), self.format());
        let (states, layers) = (self.states(), self.layers());
        Setting { params, states, layers, format, own: OWN_ROWS, requests }
    }

    /// An empty pool.
    pub fn pool(&self) -> PoolConfig {
        let (rows, layers) = (self.states() * OWN_ROWS, self.layers());
        let pages = Pages::Plain;
        // Small chunks: rows of one request lie in several.
        PoolConfig { pages, chunk_bytes: 4096, ..PoolConfig::new(layers, rows, self.format()) }
    }

    /// An engine on the CPU with an empty pool.
    pub fn engine(&self, choice: MachineChoice) -> Engine {
        Engine::new(self.config(choice), HostPool::new(&self.pool()).unwrap()).unwrap()
    }
}
