//! Device buffers in memory of the caller, whose slots may be apart by any strides and in blocks of
//! any order.

use std::sync::Arc;

use super::layout::BufferConfig;
use super::table::BlockTable;
use crate::overlap::{Content, Grid, Grids};
use crate::rows::{RowFormat, Strides};
use crate::system::address::Address;
use crate::system::reserve;
use crate::{Result, ensure, invalid};

const WHAT: &str = "caller's device buffer";

/// The memory of a device buffer that the caller owns: process memory for an engine on the CPU, and
/// device memory for one on an Ascend device.
#[derive(Debug, Clone)]
pub struct CallerBuffer {
    bases: Arc<Vec<Address<u8>>>,
    strides: Arc<Vec<Strides>>,
    table: Option<BlockTable>,
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
        let mut copy = reserve::with_capacity(WHAT, bases.len())?;
        copy.extend(bases.iter().map(|&base| Address(base)));
        let strides = Arc::new(reserve::copied(WHAT, strides)?);
        Ok(Self { bases: Arc::new(copy), strides, table: None })
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

    pub(crate) fn bases(&self) -> &[Address<u8>] {
        &self.bases
    }

    pub(crate) fn strides(&self) -> &[Strides] {
        &self.strides
    }

    pub(crate) fn table(&self) -> Option<BlockTable> {
        self.table
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
        if let Some(at) = self.bases.iter().position(|base| base.0.is_null()) {
            return Err(invalid!(
                "buffer base" is format!("null in layer {}", at / segments.len()), but
                "it must be memory"; "pass its address"));
        }
        ensure!(self.strides.len() == segments.len(), "strides" is self.strides.len(), but
            "a row has {} segments", segments.len(); "pass one per segment");
        if let Some(strides) = self.strides.iter().find(|strides| {
            let blocks = strides.block_rows;
            blocks != self.strides[0].block_rows || (blocks != 0 && !slots.is_multiple_of(blocks))
        }) {
            return Err(invalid!("block slots" is strides.block_rows, but
                "all segments have the same, which divide S = {slots}"; "pass a power of two that divides S"));
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
            let bytes = 4 * shape.states * table.entries(shape.slots);
            let (at, whole) = (table.entries.0.addr(), [1, bytes]);
            Grid::of(Content::BlockTable, at, Strides::rows(0), whole)
        });
        self.slots(shape).chain(table)
    }

    /// Returns the memory of the slots alone.
    pub(crate) fn slots(&self, shape: &BufferConfig) -> impl Iterator<Item = Result<Grids>> {
        let segments = shape.format.as_slice();
        let count = match self.table {
            Some(table) => table.blocks.saturating_mul(self.strides[0].block_rows),
            None => shape.states.saturating_mul(shape.slots),
        };
        self.bases.iter().enumerate().map(move |(at, base)| {
            let (layer, segment) = (at / segments.len(), at % segments.len());
            let content = Content::Slots { layer, segment };
            let rows = [count, segments[segment].bytes];
            Grid::of(content, base.0.addr(), self.strides[segment], rows)
        })
    }
}
