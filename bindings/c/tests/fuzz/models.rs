//! What a random run knows of its pools and engines: the bytes of every row, where the caller's
//! memory has them, and where a slot is.

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

use avsg_capi_testkit::{Handles, ROW, ROWS};
use avsg_testkit::content::fill_row;

/// The lengths of the two segments of a row.
pub const SEGMENTS: [usize; 2] = [24, 16];

/// Memory of the caller. The bytes that no row uses must keep their value, which is checked when the
/// memory is freed.
pub struct Memory {
    bytes: Vec<AtomicU8>,
    used: Vec<bool>,
}

const UNUSED: u8 = 0xA5;

impl Memory {
    /// Allocates `len` bytes, of which rows use the given ranges (start and length).
    pub fn new(len: usize, rows: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut used = vec![false; len];
        for (start, row) in rows {
            let range = &mut used[start..][..row];
            assert!(!range.contains(&true), "rows overlap");
            range.fill(true);
        }
        Self { bytes: (0..len).map(|_| AtomicU8::new(UNUSED)).collect(), used }
    }

    /// Returns the address of a byte.
    pub fn address(&self, at: usize) -> *mut u8 {
        self.bytes[at].as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let unused = self.bytes.iter().zip(&self.used).filter(|(_, used)| !**used);
        let wrong = unused.filter(|(byte, _)| byte.load(Ordering::Relaxed) != UNUSED).count();
        assert!(wrong == 0 || std::thread::panicking(), "{wrong} bytes between rows were written");
    }
}

/// A pool of two layers with [`ROWS`] rows.
pub struct PoolModel {
    /// The handle.
    pub handle: usize,
    /// How often each row was rewritten.
    rewrites: [AtomicU32; ROWS],
    /// Whether each row of each layer was written. Rows in memory are zeros before.
    written: [[AtomicBool; ROWS]; 2],
    /// The indexers of a pool in a file.
    pub indexers_of_file: Option<usize>,
    _memory: Option<Memory>,
}

impl PoolModel {
    /// Describes a new pool; `memory` is None if the library allocated it.
    pub fn new(handle: usize, indexers_of_file: Option<usize>, _memory: Option<Memory>) -> Self {
        let rewrites = [const { AtomicU32::new(0) }; ROWS];
        let written = [(); 2].map(|()| [(); ROWS].map(|()| indexers_of_file.is_none().into()));
        Self { handle, rewrites, written, indexers_of_file, _memory }
    }

    /// Returns whether a row was written, so that it can be read.
    pub fn is_written(&self, layer: usize, index: usize) -> bool {
        self.written[layer][index].load(Ordering::Relaxed)
    }

    /// Notes that a row was written.
    pub fn note_written(&self, layer: usize, index: usize) {
        self.written[layer][index].store(true, Ordering::Relaxed);
    }

    /// Writes a row of the pool.
    pub fn write(&self, layer: usize, index: usize, bytes: &[u8]) {
        let pool = without_provenance_mut(self.handle);
        Handles::from_raw(pool, null_mut(), null_mut()).write_row(layer, index, bytes);
        self.note_written(layer, index);
    }

    /// Writes the bytes that a row of the pool shall have.
    pub fn restore(&self, layer: usize, index: usize) {
        self.write(layer, index, &self.row(layer, index));
    }

    /// Returns the version of a row for `fill_row`.
    pub fn version(&self, layer: usize, index: usize) -> u32 {
        2 * self.rewrites[index].load(Ordering::Relaxed) + layer as u32
    }

    /// Returns the bytes of a row.
    pub fn row(&self, layer: usize, index: usize) -> [u8; ROW] {
        let mut bytes = [0; ROW];
        fill_row(index as i32, self.version(layer, index), &mut bytes);
        bytes
    }

    /// Gives a row other bytes in both layers.
    pub fn rewrite(&self, index: usize) {
        self.rewrites[index].fetch_add(1, Ordering::Relaxed);
    }
}

/// Where the slots of an engine are. Place n of a segment is at
/// base + n / block_slots * block_stride + n % block_slots * slot_stride.
pub struct Slots {
    /// The addresses of place 0 of the two segments of layer 0, and of those of layer 1.
    pub bases: [usize; 4],
    pub block_slots: usize,
    pub block_stride: [usize; 2],
    pub slot_stride: [usize; 2],
    /// The blocks of the first state and those of the second one.
    pub table: Vec<AtomicI32>,
    /// Blocks of the memory: more than the states have if the library reads the table.
    pub blocks: usize,
    /// The caller's memory; None if the library allocated the slots.
    pub _memory: Option<Memory>,
}

pub struct EngineModel {
    pub pool: Arc<PoolModel>,
    /// N_q.
    pub tokens: usize,
    /// Where slots are.
    pub slots: Slots,
    /// Whether batches have block tables.
    pub paged: bool,
    /// Indexers: one, or one for each of the two layers.
    pub indexers: usize,
    /// The `slot_base` of an engine that returns global slots.
    pub global: Option<i32>,
}

impl EngineModel {
    pub fn indexer(&self, layer: usize) -> usize {
        if self.indexers == 2 { layer % 2 } else { 0 }
    }

    /// Returns the block table of every request; empty without pages.
    pub fn blocks(paged: bool) -> Vec<i32> {
        if paged { (0..ROWS as i32 / 16).rev().collect() } else { Vec::new() }
    }

    /// Returns the row of the pool that an id below [`ROWS`] has, or the id of a row.
    pub fn host_row(&self, id: usize) -> usize {
        if self.paged { (ROWS / 16 - 1 - id / 16) * 16 + id % 16 } else { id }
    }

    /// Returns the blocks of a state's slots.
    fn blocks_of(&self, state: usize) -> impl Iterator<Item = usize> {
        let of_state = self.slots.table.len() / 2;
        let blocks = self.slots.table[state * of_state..][..of_state].iter();
        blocks.map(|block| block.load(Ordering::Relaxed) as usize)
    }

    /// Returns the place of a slot of a state.
    pub fn place_in_state(&self, state: usize, slot: usize) -> Option<usize> {
        let n = self.slots.block_slots;
        Some(self.blocks_of(state).nth(slot / n)? * n + slot % n)
    }

    /// Returns the place of a slot that a plan returned, if it is one of the state.
    pub fn place(&self, state: usize, slot: usize) -> Option<usize> {
        let Some(base) = self.global else { return self.place_in_state(state, slot) };
        let place = slot.checked_sub(base as usize)?;
        self.blocks_of(state).any(|block| block == place / self.slots.block_slots).then_some(place)
    }

    /// Copies the row in a slot that a plan returned; false if the slot is not one of the state. No
    /// call on the engine may be in progress.
    pub fn read(&self, layer: usize, state: usize, slot: usize, row: &mut [u8]) -> bool {
        let Some(place) = self.place(state, slot) else { return false };
        let (slots, mut rest) = (&self.slots, row);
        for (segment, bytes) in SEGMENTS.into_iter().enumerate() {
            let at = slots.bases[2 * layer + segment]
                + place / slots.block_slots * slots.block_stride[segment]
                + place % slots.block_slots * slots.slot_stride[segment];
            let (part, after) = rest.split_at_mut(bytes);
            let from = std::ptr::with_exposed_provenance::<u8>(at);
            // SAFETY: `place` is a slot of the engine, whose buffer has that many bytes there, and
            // no call on the engine is in progress.
            unsafe { std::ptr::copy_nonoverlapping(from, part.as_mut_ptr(), bytes) };
            rest = after;
        }
        true
    }
}
