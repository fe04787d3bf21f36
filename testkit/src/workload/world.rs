//! What the requests' rows really hold, kept apart from the engine: whoever asks for the current
//! bytes of an id is answered from here.

use super::setting::Setting;
use crate::content::{check_row, fill_row};

/// Writes the row of a layer into the pool.
pub type Write<'a> = &'a mut dyn FnMut(usize, usize, &[u8]);

/// One request: its rows, and how far it has come.
pub struct Sequence {
    /// Its least id. Without block tables ids are rows, so every request has a range of its own.
    pub base: usize,
    /// Final tokens: `stable_len` of its next step.
    pub stable: usize,
    /// Its blocks in order; empty without block tables.
    pub blocks: Vec<i32>,
    /// Version of each of its rows.
    version: Vec<u32>,
}

impl Sequence {
    /// One past its largest possible id.
    pub fn end(&self) -> usize {
        self.base + self.version.len()
    }
}

/// All requests and the pool.
pub struct World {
    pub pool_rows: usize,
    /// By state.
    pub sequences: Vec<Sequence>,
    page: usize,
    layers: usize,
    row_bytes: usize,
    /// Every write of a row gets a number that was never used.
    versions: u32,
}

impl World {
    /// As many requests as states, each with rows in the pool, on a shuffled set of blocks.
    pub fn new(setting: &Setting, write: Write<'_>) -> Self {
        let Setting { states, own, layers, .. } = *setting;
        let page = setting.params.page as usize;
        let per = own.checked_div(page).unwrap_or(0);
        let blocks = (states * per) as i32;
        // 5 is coprime to every count of blocks here (2^a · 3^b): a permutation.
        let block = |i: usize| (i as i32 * 5 + 2) % blocks;
        let sequence = |s: usize| Sequence {
            base: if page == 0 { s * own } else { 0 },
            stable: 0,
            blocks: (s * per..(s + 1) * per).map(block).collect(),
            version: vec![0; own],
        };
        let (sequences, pool_rows) = ((0..states).map(sequence).collect(), setting.pool_rows());
        let row_bytes = setting.format.bytes();
        let mut world = Self { pool_rows, sequences, page, layers, row_bytes, versions: 0 };
        (0..states).for_each(|s| world.join(s, 0, write));
        world
    }

    /// A new request in place of another: new contents, a prompt of some length, other block order.
    pub fn join(&mut self, state: usize, pick: usize, write: Write<'_>) {
        let sequence = &mut self.sequences[state];
        sequence.stable = sequence.base + pick % (sequence.version.len() - 8);
        if !sequence.blocks.is_empty() {
            let n = sequence.blocks.len();
            sequence.blocks.rotate_left(pick % n);
        }
        let mut bytes = vec![0; self.row_bytes];
        for id in self.sequences[state].base..self.sequences[state].end() {
            let (version, row) = (self.renew(state, id), self.own_row(state, id));
            for layer in 0..self.layers {
                fill_row(id as i32, version + layer as u32, &mut bytes);
                write(layer, row, &bytes);
            }
        }
    }

    /// Where a request has an id's row.
    fn own_row(&self, state: usize, id: usize) -> usize {
        self.host_row(id, &self.sequences[state].blocks).expect("it owns this row")
    }

    /// The host row of an id through a block table of `blocks`.
    pub fn host_row(&self, id: usize, blocks: &[i32]) -> Option<usize> {
        if self.page == 0 {
            return (id < self.pool_rows).then_some(id);
        }
        let block = usize::try_from(*blocks.get(id / self.page)?).ok()?;
        (block < self.pool_rows / self.page).then_some(block * self.page + id % self.page)
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
    pub fn expect_pool(&self, mut read: impl FnMut(usize, usize, &mut [u8])) {
        let mut bytes = vec![0; self.row_bytes];
        for (state, sequence) in self.sequences.iter().enumerate() {
            for id in sequence.base..sequence.end() {
                let row = self.own_row(state, id);
                for layer in 0..self.layers {
                    read(layer, row, &mut bytes);
                    let version = self.version(state, id) + layer as u32;
                    assert!(
                        check_row(id as i32, version, &bytes),
                        "layer {layer}, host row {row} of id {id}, state {state}"
                    );
                }
            }
        }
    }
}
