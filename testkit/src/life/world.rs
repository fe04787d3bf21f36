//! What the requests' rows really hold, kept apart from the engine: whoever asks for the current
//! bytes of an id is answered from here.

use crate::content::fill_row;
use avsg::pool::HostPool;

use super::shape::OWN_ROWS;

/// One request: its rows, and how far it has come.
pub struct Sequence {
    /// Its least id. Without block tables ids are rows, so every request has a range of its own.
    pub base: usize,
    /// Final tokens: `stable_len` of its next step.
    pub stable: usize,
    /// Its blocks in order; empty without block tables.
    pub blocks: Vec<i32>,
    /// Version of each row in the pool.
    pub version: Vec<u32>,
}

impl Sequence {
    /// One past its largest possible id.
    pub fn end(&self) -> usize {
        self.base + OWN_ROWS
    }
}

/// All requests and the pool.
pub struct World {
    pub page: usize,
    pub pool_rows: usize,
    /// By state.
    pub sequences: Vec<Sequence>,
    /// Every write of a row gets a number that was never used.
    versions: u32,
}

impl World {
    /// As many requests as states, each with rows in the pool, on a shuffled set of blocks.
    pub fn new(states: usize, page: usize, pool: &HostPool) -> Self {
        let per = OWN_ROWS.checked_div(page).unwrap_or(0);
        let blocks = (states * per) as i32;
        // 5 is coprime to every count of blocks here (2^a · 3^b): a permutation.
        let block = |i: usize| (i as i32 * 5 + 2) % blocks;
        let sequence = |s: usize| Sequence {
            base: if page == 0 { s * OWN_ROWS } else { 0 },
            stable: 0,
            blocks: (s * per..(s + 1) * per).map(block).collect(),
            version: vec![0; OWN_ROWS],
        };
        let sequences = (0..states).map(sequence).collect();
        let mut world = Self { page, pool_rows: pool.rows(), sequences, versions: 0 };
        (0..states).for_each(|s| world.join(s, 0, pool));
        world
    }

    /// A new request in place of another: new contents, a prompt of some length, other block order.
    pub fn join(&mut self, state: usize, pick: usize, pool: &HostPool) {
        let sequence = &mut self.sequences[state];
        sequence.stable = sequence.base + pick % (OWN_ROWS - 8);
        if !sequence.blocks.is_empty() {
            let n = sequence.blocks.len();
            sequence.blocks.rotate_left(pick % n);
        }
        for id in sequence.base..sequence.end() {
            self.write(state, id, pool);
        }
    }

    /// The host row of an id through a block table of `blocks`.
    pub fn host_row(&self, id: usize, blocks: &[i32]) -> Option<usize> {
        if self.page == 0 {
            return (id < self.pool_rows).then_some(id);
        }
        let block = usize::try_from(*blocks.get(id / self.page)?).ok()?;
        (block < self.pool_rows / self.page).then_some(block * self.page + id % self.page)
    }

    fn write(&mut self, state: usize, id: usize, pool: &HostPool) {
        let version = self.renew(state, id);
        let row = self.host_row(id, &self.sequences[state].blocks).expect("it owns this row");
        let mut bytes = vec![0; pool.format().bytes()];
        for layer in 0..pool.layers() {
            fill_row(id as i32, version + layer as u32, &mut bytes);
            pool.write_row(layer, row, &bytes).unwrap();
        }
    }

    /// Gives a row a version that was never used; the bytes are the caller's to bring to the pool.
    pub fn renew(&mut self, state: usize, id: usize) -> u32 {
        // A layer's contents differ from another's by the version.
        self.versions += 16;
        let sequence = &mut self.sequences[state];
        sequence.version[id - sequence.base] = self.versions;
        self.versions
    }

    /// The current version of an id.
    pub fn version(&self, state: usize, id: usize) -> u32 {
        let sequence = &self.sequences[state];
        sequence.version[id - sequence.base]
    }

    /// Every row of the pool is what this world says.
    pub fn expect_pool(&self, pool: &HostPool) {
        let (mut bytes, mut want) =
            (vec![0; pool.format().bytes()], vec![0; pool.format().bytes()]);
        for (state, sequence) in self.sequences.iter().enumerate() {
            for id in sequence.base..sequence.end() {
                let row = self.host_row(id, &sequence.blocks).expect("it owns this row");
                for layer in 0..pool.layers() {
                    pool.read_row(layer, row, &mut bytes).unwrap();
                    fill_row(id as i32, self.version(state, id) + layer as u32, &mut want);
                    assert!(bytes == want, "host row {row} of id {id}, state {state}");
                }
            }
        }
    }
}
