//! The geometry of the engine that runs a workload, and what the workload depends on of any engine.

use avsg::device::params::{Lifetime, MAX_TOKENS, Params};
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::{RowFormat, Segment};

/// Number of rows of the host pool per request.
const ROWS_PER_REQUEST: usize = 192;

/// A geometry as plain numbers, each of which is read modulo its range.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The kind of table, and the spread and retries of its probe sequences.
    pub table: u8,
    /// Lifetime rule.
    pub lifetime: u8,
    /// K, the number of ids per row.
    pub k: u8,
    /// N_q, the number of tokens per request.
    pub tokens: u8,
    /// S, the number of slots per state.
    pub slots: u8,
    /// Number of rows per host block.
    pub page: u8,
    /// Segments of a row and their strides.
    pub format: u8,
    /// Numbers of request states and of layers.
    pub states: u8,
    /// Number of cores that copy.
    pub cores: u8,
}

impl From<[u8; 9]> for Shape {
    fn from(bytes: [u8; 9]) -> Self {
        let [table, lifetime, k, tokens, slots, page, format, states, cores] = bytes;
        Self { table, lifetime, k, tokens, slots, page, format, states, cores }
    }
}

impl Shape {
    /// Returns the parameters of the table, which are valid for every shape.
    pub fn params(&self) -> Params {
        // The paper's table has a power of two.
        let paper = self.table.is_multiple_of(5);
        let sizes: &[u32] = if paper { &[64, 128, 256] } else { &[64, 128, 256, 192, 320] };
        let slots = sizes[usize::from(self.slots) % sizes.len()];
        // Most geometries have few tokens, because many of them leave few ids for each.
        let most = if self.tokens < 192 { 4 } else { MAX_TOKENS };
        let tokens = 1 + u32::from(self.tokens) % most;
        let k = 1 + u32::from(self.k) % (slots / tokens).min(40);
        let page = [0, 1, 16, 64][usize::from(self.page) % 4];
        let wide = |spread, retries| Params { spread, retries, ..Params::wide(k, tokens, slots) };
        let constant = |l: &[i8]| Lifetime::Constant(l[usize::from(self.lifetime / 2) % l.len()]);
        let mut params = match self.table % 5 {
            0 => Params::paper(k, tokens, slots),
            1 | 2 => wide(4, 3),
            3 => wide(2, 7),
            // With one link per id most ids lose their mapping, which makes many orphans and
            // copies.
            _ => wide(1, 0),
        };
        params.lifetime = match (self.table % 5, self.lifetime % 2) {
            (0, _) => constant(&[16, 1, 127]),
            (_, 0) => constant(&[127, 0, 16, 1]),
            _ => Lifetime::Learned,
        };
        Params { page, ..params }
    }

    /// Returns a format of one to three segments, packed or with odd strides.
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

    /// Returns the number of request states.
    pub fn states(&self) -> usize {
        1 + usize::from(self.states) % 4
    }

    fn layers(&self) -> usize {
        1 + usize::from(self.states / 4) % 2
    }

    /// Returns the configuration of the engine.
    pub fn config(&self, choice: MachineChoice) -> Config {
        Config {
            cores: 1 + usize::from(self.cores) % 7,
            machine: choice,
            ..Config::new(self.params(), self.states())
        }
    }

    /// Returns the setting of a workload.
    pub fn setting(&self) -> EngineSetting {
        EngineSetting {
            params: self.params(),
            states: self.states(),
            layers: self.layers(),
            format: self.format(),
            rows_per_request: ROWS_PER_REQUEST,
            // More than there are states, so some requests are padded.
            max_requests: 6,
        }
    }

    /// Returns the configuration of the host pool.
    pub fn pool(&self) -> PoolConfig {
        let (rows, layers) = (self.states() * ROWS_PER_REQUEST, self.layers());
        let pages = Pages::Plain;
        // Small chunks distribute the rows of one request over several chunks.
        PoolConfig { pages, chunk_bytes: 4096, ..PoolConfig::new(layers, rows, self.format()) }
    }

    /// Returns an engine on the CPU with a zeroed pool.
    pub fn engine(&self, choice: MachineChoice) -> Engine {
        Engine::new(self.config(choice), HostPool::new(&self.pool()).unwrap()).unwrap()
    }
}

/// The parameters of an engine and the largest batch of a workload.
#[derive(Clone, Debug)]
pub struct EngineSetting {
    /// Parameters of the table.
    pub params: Params,
    /// Number of request states.
    pub states: usize,
    /// Number of layers of the pool.
    pub layers: usize,
    /// Format of a row.
    pub format: RowFormat,
    /// Number of rows of the pool per request: more than 8, and a multiple of the page.
    pub rows_per_request: usize,
    /// Maximum number of requests per batch; requests beyond the number of states are padded.
    pub max_requests: usize,
}

impl EngineSetting {
    /// Returns the number of rows of the pool.
    pub fn pool_rows(&self) -> usize {
        self.states * self.rows_per_request
    }

    /// Returns the maximum number of rows per batch.
    pub fn max_rows(&self) -> usize {
        self.max_requests * self.params.tokens as usize
    }
}
