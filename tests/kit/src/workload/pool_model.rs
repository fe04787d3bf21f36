//! A model of the host pool: the rows of all requests and their current contents, independent of
//! the engine.

use super::shape::EngineSetting;
use crate::content::{check_row, fill_row};

/// Function that writes a row of the pool: layer, row and bytes.
pub type WriteRow<'a> = &'a mut dyn FnMut(usize, usize, &[u8]);

/// The rows of one request, and its number of final tokens.
pub struct Sequence {
    /// Lowest id. Without block tables ids are host rows, so each request has its own range of ids.
    pub base: usize,
    /// `stable_len` of the next step.
    pub stable: usize,
    /// Blocks of the request in order; empty without block tables.
    pub blocks: Vec<i32>,
    /// Current version of each row.
    version: Vec<u32>,
    /// Generation of the request.
    pub generation: i32,
    /// Whether the generation is new to the table.
    pub cold: bool,
}

impl Sequence {
    /// Returns the highest possible id plus 1.
    pub fn end(&self) -> usize {
        self.base + self.version.len()
    }
}

/// The rows of all requests in the pool.
pub struct PoolModel {
    pub setting: EngineSetting,
    /// Indexed by state.
    pub sequences: Vec<Sequence>,
    /// Last version; each write of a row gets a version that was never used.
    versions: u32,
    /// Number of generations made so far.
    generations: i32,
}

impl PoolModel {
    /// Returns one request per state, with its rows on permuted blocks, and writes all rows.
    pub fn new(setting: EngineSetting, write: WriteRow<'_>) -> Self {
        let EngineSetting { states, rows_per_request, .. } = setting;
        let page = setting.params.page as usize;
        let blocks_per_request = rows_per_request.checked_div(page).unwrap_or(0);
        let blocks = (states * blocks_per_request) as i32;
        // 5 is coprime to every number of blocks here (2^a · 3^b), so this is a permutation.
        let block = |i: usize| (i as i32 * 5 + 2) % blocks;
        let sequence = |s: usize| Sequence {
            base: if page == 0 { s * rows_per_request } else { 0 },
            stable: 0,
            blocks: (s * blocks_per_request..(s + 1) * blocks_per_request).map(block).collect(),
            version: vec![0; rows_per_request],
            generation: 0,
            cold: false,
        };
        let sequences = (0..states).map(sequence).collect();
        let mut pool_model = Self { setting, sequences, versions: 0, generations: 0 };
        (0..states).for_each(|s| pool_model.replace_request(s, 0, write));
        pool_model
    }

    /// Replaces the request of a state: new contents, another length of the prompt, and another
    /// order of the blocks.
    pub fn replace_request(&mut self, state: usize, choice: usize, write: WriteRow<'_>) {
        let sequence = &mut self.sequences[state];
        sequence.stable = sequence.base + choice % (sequence.version.len() - 8);
        let turn = choice % sequence.blocks.len().max(1);
        sequence.blocks.rotate_left(turn);
        let mut bytes = vec![0; self.setting.format.bytes()];
        for id in self.sequences[state].base..self.sequences[state].end() {
            let (version, row) = (self.new_version(state, id), self.own_row(state, id));
            for layer in 0..self.setting.layers {
                fill_row(id as i32, version + layer as u32, &mut bytes);
                write(layer, row, &bytes);
            }
        }
    }

    /// Returns the host row of one of the request's own ids.
    fn own_row(&self, state: usize, id: usize) -> usize {
        self.host_row(id, &self.sequences[state].blocks).expect("the request has this row")
    }

    /// Returns the host row of an id by the block table `blocks`, or none if it is outside of the
    /// pool.
    pub fn host_row(&self, id: usize, blocks: &[i32]) -> Option<usize> {
        let (page, rows) = (self.setting.params.page as usize, self.setting.pool_rows());
        if page == 0 {
            return (id < rows).then_some(id);
        }
        let block = usize::try_from(*blocks.get(id / page)?).ok()?;
        (block < rows / page).then_some(block * page + id % page)
    }

    /// Gives the request of a state a new generation.
    pub fn new_generation(&mut self, state: usize) {
        self.generations += 1;
        let sequence = &mut self.sequences[state];
        // The factor is odd, so the generations are distinct, and they have both signs.
        sequence.generation = self.generations.wrapping_mul(0x4000_0001);
        sequence.cold = true;
    }

    /// Gives a row a new version. The caller writes the bytes to the pool.
    pub fn new_version(&mut self, state: usize, id: usize) -> u32 {
        // Layer l has the contents of version + l, for up to 16 layers.
        self.versions += 16;
        let sequence = &mut self.sequences[state];
        sequence.version[id - sequence.base] = self.versions;
        self.versions
    }

    /// Returns the current version of an id.
    pub fn version(&self, state: usize, id: usize) -> u32 {
        let sequence = &self.sequences[state];
        sequence.version[id - sequence.base]
    }

    /// Checks that every row of the pool has its current contents.
    pub fn check_contents(&self, mut read: impl FnMut(usize, usize, &mut [u8])) {
        let mut bytes = vec![0; self.setting.format.bytes()];
        for (state, sequence) in self.sequences.iter().enumerate() {
            for id in sequence.base..sequence.end() {
                let row = self.own_row(state, id);
                for layer in 0..self.setting.layers {
                    read(layer, row, &mut bytes);
                    let version = self.version(state, id) + layer as u32;
                    let right = check_row(id as i32, version, &bytes);
                    assert!(right, "layer {layer}, host row {row} of id {id}, state {state}");
                }
            }
        }
    }
}
