//! What is measured: the sizes of all cells and probes.

use std::time::Duration;

use avsg::device::params::Params;

/// The sizes of a run.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// K, the ids that a request selects. N_q is 1.
    pub k: u32,
    /// The values of S, the slots of a request.
    pub slots: &'static [u32],
    /// The links per slot.
    pub spreads: &'static [u32],
    /// The bytes of rows.
    pub row_bytes: &'static [u32],
    /// The ids of K that miss.
    pub missing: &'static [u32],
    /// The values of B, the requests of a batch, each a power of two.
    pub requests: &'static [u32],
    /// The rows of the host pool, a power of two. Each request of a batch has an equal share of its own.
    pub pool_rows: u32,
    /// The threads of a block.
    pub threads: u32,
    /// Bytes that are written between two replays, which are more than the L2 cache of a GPU holds.
    pub flush_bytes: usize,
    /// Replays before those that count.
    pub warm_up: usize,
    /// Replays that count.
    pub samples: usize,
    /// The time after which no further replay of a cell begins.
    pub cell_limit: Duration,
    /// The time after which no further cell begins.
    pub run_limit: Duration,
    /// The sizes of the probes.
    pub probes: ProbeSizes,
}

/// The sizes of the probes.
#[derive(Clone, Debug)]
pub struct ProbeSizes {
    /// The rows that a probe gathers.
    pub rows: u32,
    /// The blocks of a launch.
    pub blocks: &'static [u32],
    /// The warps of a block that start bulk copies.
    pub warps: &'static [u32],
    /// The bytes of shared memory of a block for the rows that are under way.
    pub ring_bytes: &'static [u32],
    /// The requests whose tables are loaded, each by a block.
    pub tables: &'static [u32],
    /// The bytes that the copy engine brings to the GPU at once.
    pub engine_bytes: usize,
}

/// The selections of a cell, which replays take in turn.
pub const SELECTIONS: u32 = 4;

impl Sizes {
    /// The sizes of a run on a GPU. By the sizes of the copies it takes about two minutes if the link to
    /// the host has 50 GB/s.
    pub const FULL: Self = Self {
        k: 2048,
        slots: &[4096, 8192],
        spreads: &[2, 4],
        row_bytes: &[512, 656, 1152],
        missing: &[2, 410, 2048],
        requests: &[1, 2, 4, 8, 16, 32, 64, 128],
        pool_rows: 1 << 21,
        threads: 1024,
        flush_bytes: 256 << 20,
        warm_up: 5,
        samples: 30,
        cell_limit: Duration::from_millis(1500),
        run_limit: Duration::from_secs(520),
        probes: ProbeSizes {
            rows: 4096,
            blocks: &[1, 2, 4, 8],
            warps: &[1, 4, 8, 16],
            ring_bytes: &[64 << 10, 96 << 10],
            tables: &[1, 8, 64],
            engine_bytes: 256 << 20,
        },
    };

    /// Returns the geometries, each with S and the links per slot of one.
    pub fn geometries(&self) -> impl Iterator<Item = Params> + '_ {
        let of = |slots, spread| match spread {
            2 => Params::compact(self.k, 1, slots),
            _ => Params { spread, ..Params::wide(self.k, 1, slots) },
        };
        self.slots.iter().flat_map(move |&slots| self.spreads.iter().map(move |&s| of(slots, s)))
    }

    /// Returns the largest of some sizes.
    pub fn largest(of: &[u32]) -> usize {
        of.iter().copied().max().unwrap_or_default() as usize
    }

    /// Returns id `n` of a request of a batch, all of which are different. They lie in the request's share of the
    /// pool, in an order without a pattern.
    pub fn id(&self, requests: u32, request: u32, n: u32) -> u32 {
        let share = self.pool_rows / requests;
        request * share + scatter(n, share)
    }

    /// Returns the ids of a request that fill round `n` of its slots.
    pub fn filling(&self, requests: u32, request: u32, round: u32) -> Vec<i32> {
        (0..self.k).map(|i| self.id(requests, request, round * self.k + i) as i32).collect()
    }

    /// Returns ids of full slots.
    pub fn hits(&self, slots: u32, requests: u32, request: u32, n: u32) -> Vec<i32> {
        (0..n).map(|i| self.id(requests, request, scatter(i, slots)) as i32).collect()
    }

    /// Returns a selection of a request, of which `missing` ids are in no slot.
    pub fn selection(
        &self,
        slots: u32,
        requests: u32,
        request: u32,
        (missing, number): (u32, u32),
    ) -> Vec<i32> {
        let mut ids = self.hits(slots, requests, request, self.k - missing);
        let first = slots + number * self.k;
        ids.extend((first..first + missing).map(|n| self.id(requests, request, n) as i32));
        (0..self.k).map(|i| ids[scatter(i, self.k) as usize]).collect()
    }
}

/// Returns a permutation of the numbers below a power of two.
fn scatter(n: u32, below: u32) -> u32 {
    let mask = below - 1;
    let mixed = n.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15) & mask;
    let mixed = mixed ^ (mixed >> (below.ilog2() / 2 + 1));
    mixed.wrapping_mul(0x85EB_CA6B) & mask
}
