//! The memory of a device buffer: that of the engine, or the caller's, whose slots may be apart by any strides and in
//! blocks of any order, which a table names.

use std::ptr;
use std::sync::Arc;

use super::layout::BufferConfig;
use crate::overlap::{Content, Grid, Grids};
use crate::rows::{self, RowFormat, Steps, Strides};
use crate::system::address::Address;
use crate::system::reserve;
use crate::{Result, ensure, invalid};

const WHAT: &str = "caller's device buffer";

/// The memory of a device buffer that the caller owns: process memory for an engine on the CPU, and
/// device memory for one on an Ascend device.
#[derive(Debug, Clone)]
pub struct CallerBuffer {
    pub(super) bases: Arc<Vec<Address<u8>>>,
    pub(crate) strides: Arc<Vec<Strides>>,
    pub(crate) table: Option<BlockTable>,
}

impl CallerBuffer {
    /// Describes the memory: `bases` is `[layers, segments]`, and `strides` has one entry per
    /// segment. Slot s of state t has the index n = t * S + s, and is the [`Strides`] of row n
    /// behind the base. So the slots of a state are in a row if there are no blocks, and a block of
    /// S slots per state gives the states a stride of their own.
    ///
    /// # Safety
    /// - Every slot of every state is valid for reads and writes until the engine is dropped, and
    ///   initialised. No two slots overlap.
    /// - Other accesses keep the rules of [`DeviceBuffer`](crate::buffer::DeviceBuffer). One buffer
    ///   serves one engine.
    ///
    /// # Errors
    /// If there is no memory for a copy of the arguments, which are checked when an engine is made:
    /// neither slots nor the table may overlap each other or a row of the pool.
    pub unsafe fn new(bases: &[*mut u8], strides: &[Strides]) -> Result<Self> {
        let bases = reserve::collected(WHAT, bases.len(), bases.iter().map(|&base| Address(base)))?;
        let strides = Arc::new(reserve::copied(WHAT, strides)?);
        Ok(Self { bases: Arc::new(bases), strides, table: None })
    }

    /// Puts the blocks of a state in any order: slot s of state t is slot s % B of the block with the
    /// number `entries[t * (S / B) + s / B]`, where B is the strides' `block_rows`, and the buffer
    /// has `blocks` blocks.
    ///
    /// The entries are where the slots are: in process memory for an engine on the CPU, and in device
    /// memory for one on an Ascend device. They are read by the work of every call that plans or
    /// transfers. An entry of a state may change only together with the state's generation, or if
    /// the caller has moved the block's rows, and not between a plan and its transfers.
    ///
    /// On the CPU a call that names a state with an entry outside of 0..`blocks` is refused. Device
    /// kernels read the entries when they run, in a replay too, so they leave out the rows of such a
    /// block: the slots of that generation then hold other rows.
    ///
    /// # Safety
    /// `entries` is valid for reads of `len` words until the engine is dropped and its work is done,
    /// and is not written while work that reads it runs. Two states have no block in common.
    #[must_use]
    pub unsafe fn with_block_table(self, entries: *const i32, len: usize, blocks: usize) -> Self {
        let block_slots = self.strides.first().map_or(0, |strides| strides.block_rows);
        let shift = block_slots.max(1).ilog2();
        let entries = Address(entries.cast_mut());
        Self { table: Some(BlockTable { entries, len, blocks, shift }), ..self }
    }

    /// Checks the number of bases of a buffer, before one is read.
    ///
    /// # Errors
    /// If there is not one base for each segment of each layer.
    pub fn check_base_count(count: usize, layers: usize, format: &RowFormat) -> Result<()> {
        let segments = format.as_slice().len();
        let need = layers.saturating_mul(segments);
        ensure!(count == need, "buffer bases" is count, but
            "{layers} layers of {segments} segments need {need}";
            "pass one for each segment of each layer");
        Ok(())
    }

    /// Checks the description of a buffer, except that slots may overlap ([`Self::grids`]).
    pub(crate) fn check(&self, shape: &BufferConfig) -> Result<()> {
        let (slots, segments) = (shape.slots, shape.format.as_slice());
        Self::check_base_count(self.bases.len(), shape.layers, &shape.format)?;
        for (at, base) in self.bases.iter().enumerate() {
            ensure!(!base.0.is_null(), "buffer base" is format!("null in layer {}", at / segments.len()),
                but "it must be memory"; "pass its address");
        }
        ensure!(self.strides.len() == segments.len(), "strides" is self.strides.len(), but
            "a row has {} segments", segments.len(); "pass one per segment");
        for blocks in self.strides.iter().map(|strides| strides.block_rows) {
            let same = blocks == self.strides[0].block_rows;
            ensure!(same && (blocks == 0 || slots.is_multiple_of(blocks)), "block slots" is blocks, but
                "all segments have the same, which divide S = {slots}"; "pass a power of two that divides S");
        }
        match self.table {
            Some(table) => table.check(self.strides[0].block_rows, shape.states, slots),
            None => Ok(()),
        }
    }

    /// Returns the memory of the slots, and of the table, of a checked buffer. What is not in the
    /// address space, or overlaps itself, is an error.
    pub(crate) fn grids(&self, shape: &BufferConfig) -> impl Iterator<Item = Result<Grids>> {
        let table = self.table.map(|table| {
            let bytes = 4 * shape.states * table.count(shape.slots);
            let (at, whole) = (table.entries.0.addr(), [1, bytes]);
            Grid::of(Content::BlockTable, at, Strides::rows(0), whole)
        });
        let segments = shape.format.as_slice();
        let count = match self.table {
            Some(table) => table.blocks.saturating_mul(self.strides[0].block_rows),
            None => shape.states.saturating_mul(shape.slots),
        };
        let slots = self.bases.iter().enumerate().map(move |(at, base)| {
            let (layer, segment) = (at / segments.len(), at % segments.len());
            let content = Content::Of("slots", [layer, segment]);
            let rows = [count, segments[segment].bytes];
            Grid::of(content, base.0.addr(), self.strides[segment], rows)
        });
        slots.chain(table)
    }
}

/// A table of the blocks of each state, or of one state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockTable {
    pub entries: Address<i32>,
    len: usize,
    /// The number of blocks of the buffer.
    pub blocks: usize,
    shift: u32,
}

impl BlockTable {
    fn check(&self, block_slots: usize, states: usize, slots: usize) -> Result<()> {
        ensure!(block_slots != 0, "block slots" is 0, but "a table has blocks";
            "set the strides' block_rows");
        let need = states.saturating_mul(slots / block_slots);
        // As many words as memory cannot have are more than the table has.
        ensure!(self.len >= need && need <= isize::MAX as usize / 4 && !self.entries.0.is_null()
            && self.entries.0.is_aligned(), "table of blocks" is self.len, but
            "{states} states of {} blocks need {need} words", slots / block_slots;
            "pass an array of int32");
        rows::at_least_one("blocks of the buffer", self.blocks)
    }

    /// Returns the number of entries of a state.
    pub fn count(&self, slots: usize) -> usize {
        slots >> self.shift
    }

    /// Returns the entries of a state below the number of states.
    pub fn of(self, state: usize, slots: usize) -> Self {
        Self { entries: Address(self.entries.0.wrapping_add(state * self.count(slots))), ..self }
    }

    /// Returns the number of indices that slots may have.
    pub fn indices(&self) -> usize {
        self.blocks << self.shift
    }

    /// Returns the index of a slot below S of the state whose entries these are, in process memory; `None` if its
    /// block is not in the buffer.
    #[inline]
    pub(super) fn index(&self, slot: usize) -> Option<usize> {
        let Self { blocks, shift, .. } = *self;
        // SAFETY: the table has the entries of every slot of a state (`BlockTable::check`), and they are
        // valid for reads and not written while work reads them (`with_block_table`). A copy has as many.
        let block = unsafe { *self.entries.0.add(slot >> shift) };
        let block = usize::try_from(block).ok().filter(|&block| block < blocks)?;
        Some((block << shift) + (slot & ((1 << shift) - 1)))
    }

    /// Returns an error if some block of the state is not in the buffer.
    pub(super) fn check_blocks(&self, state: usize, slots: usize) -> Result<()> {
        for block in 0..self.count(slots) {
            if self.index(block << self.shift).is_none() {
                // SAFETY: as in `index`.
                let value = unsafe { *self.entries.0.add(block) };
                return Err(invalid!("block" is value, but
                    "entry {block} of state {state}: the buffer has {} blocks", self.blocks;
                    "correct the table of blocks"));
            }
        }
        Ok(())
    }
}

/// The slots of one state, layer and segment. It does not borrow the buffer: its addresses are
/// valid until the buffer is dropped. Code that dereferences one keeps the rules of
/// [`DeviceBuffer`](super::DeviceBuffer).
#[derive(Debug, Clone, Copy)]
pub struct SlotView {
    pub(super) base: Address<u8>,
    pub(super) slots: usize,
    /// The index of slot 0 in a buffer without a table.
    pub(super) first: usize,
    pub(super) steps: Steps,
    pub(super) entries: Option<BlockTable>,
}

impl SlotView {
    /// Returns the address of `slot`; null if there is no such slot, or its block is not in the
    /// buffer.
    #[inline]
    pub fn ptr(&self, slot: usize) -> *mut u8 {
        if slot >= self.slots {
            return ptr::null_mut();
        }
        let index = match &self.entries {
            None => Some(self.first + slot),
            Some(entries) => entries.index(slot),
        };
        index.map_or(ptr::null_mut(), |at| self.base.0.wrapping_add(self.steps.offset(at)))
    }
}

/// The way to memory of a device, which this process cannot read directly: copies the bytes from a device address
/// on. It keeps memory of the engine allocated.
pub(crate) type ReadSlots = Box<dyn Fn(u64, &mut [u8]) -> Result<()> + Send + Sync>;
