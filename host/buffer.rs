//! The device buffer: the slots of every state in every layer. On the CPU device it is process
//! memory.
//!
//! Each layer and segment has one base address, which is followed by the slots of all states, one
//! state after the other. This is the layout of a paged KV cache in which `S / page` consecutive
//! pages belong to each state. Any page size that divides S is possible. A buffer of the caller
//! ([`CallerBuffer`]) may have other strides and blocks in any order.

mod layout;
mod memory;

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use crate::rows::{self, MAX_SEGMENTS, Steps, Strides};
use crate::system::address::Address;
use crate::system::allocator::{Allocated, Allocator};
use crate::system::mapping::Mapping;
use crate::system::reserve;
use crate::{Result, ensure, invalid};

pub use layout::BufferConfig;
pub(crate) use memory::{BlockTable, ReadSlots};
pub use memory::{CallerBuffer, SlotView};

const WHAT: &str = "device buffer";

/// The slots of every state and layer, zeroed at first.
///
/// The threads that run the AI cores share it, so no Rust reference into it exists. Code that
/// writes through a [`SlotView`] must ensure that nothing else reads or
/// writes that slot meanwhile, [`Self::slot_bytes`] included.
pub struct DeviceBuffer {
    config: BufferConfig,
    /// `[layers, segments]`, the addresses that slots are counted from.
    bases: Box<[Address<u8>]>,
    /// The distances of the slots of each segment.
    steps: heapless::Vec<Steps, MAX_SEGMENTS>,
    /// Bytes of the engine's own memory; 0 in memory of the caller, who has not said them.
    bytes: usize,
    /// The engine's own memory, unless it is on a device.
    _process: Option<Mapping>,
    /// The way to the device that holds the slots and the caller's table; `None` for process memory.
    device: Option<ReadSlots>,
    /// The table of the caller's buffer.
    table: Option<BlockTable>,
}

impl DeviceBuffer {
    /// Allocates a zeroed and populated buffer in process memory, without a check of what is available.
    pub(crate) fn in_process(
        config: &BufferConfig,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let memory = Mapping::zeroed(WHAT, config.bytes()?, Allocated::LINE, allocator)?;
        let buffer = Self::at(config, memory.ptr())?;
        Ok(Self { _process: Some(memory), ..buffer })
    }

    /// Makes a buffer in zeroed device memory from `base` on, which `device` reads and owns.
    pub(crate) fn on_device(config: &BufferConfig, base: u64, device: ReadSlots) -> Result<Self> {
        Ok(Self { device: Some(device), ..Self::at(config, base as *mut u8)? })
    }

    /// Makes a buffer of a checked configuration in memory of the engine from `base` on.
    fn at(config: &BufferConfig, base: *mut u8) -> Result<Self> {
        let (config, bytes, mut at) = (config.clone(), config.bytes()?, base);
        let segments = config.format.as_slice();
        let mut bases = reserve::with_capacity(WHAT, config.layers * segments.len())?;
        for segment in (0..config.layers).flat_map(|_| segments) {
            bases.push(Address(at));
            at = at.wrapping_add(config.segment_bytes(segment));
        }
        let steps = segments.iter().map(|s| Strides::rows(s.stride).steps()).collect();
        let (_process, device, table) = (None, None, None);
        Ok(Self { config, bases: bases.into(), steps, bytes, _process, device, table })
    }

    /// Makes a buffer over memory of the caller, whose description was checked for this shape; `device`
    /// reads it if it is on a device.
    pub(crate) fn from_caller(
        config: &BufferConfig,
        caller: &CallerBuffer,
        device: Option<ReadSlots>,
    ) -> Result<Self> {
        let steps = caller.strides.iter().map(Strides::steps).collect();
        let (config, bases) = (config.clone(), reserve::copied(WHAT, &caller.bases)?.into());
        let table = caller.table;
        Ok(Self { config, bases, steps, bytes: 0, _process: None, device, table })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &BufferConfig {
        &self.config
    }

    /// Returns the length in bytes; 0 in memory of the caller, which has not said it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the base address of a layer and segment, from which the page indices of
    /// [`Self::block_table`] count.
    ///
    /// # Errors
    /// If there is no such layer or segment.
    pub fn segment_base(&self, layer: usize, segment: usize) -> Result<*mut u8> {
        rows::index("layer", layer, self.config.layers)?;
        rows::index("segment", segment, self.config.format.as_slice().len())?;
        Ok(self.bases[layer * self.config.format.as_slice().len() + segment].0)
    }

    /// Returns the bytes from the first slot of a state to that of the next, and from a slot to the
    /// next, in a segment.
    ///
    /// # Errors
    /// If there is no such segment, or the slots of a state are no single stride apart in a buffer
    /// of the caller.
    pub fn strides(&self, segment: usize) -> Result<(usize, usize)> {
        rows::index("segment", segment, self.config.format.as_slice().len())?;
        self.check_no_table()?;
        let (steps, slots) = (self.steps[segment], self.config.slots);
        ensure!(steps.gap == 0 || 1 << steps.shift >= slots, "block slots" is 1 << steps.shift, but
            "the slots of a state must be one stride apart";
            "use the strides of the caller's buffer");
        Ok((steps.offset(slots), steps.row))
    }

    fn check_no_table(&self) -> Result<()> {
        ensure!(self.table.is_none(), "blocks of a state" is "in any order", but
            "the caller's table says where they are"; "look slots up in that table");
        Ok(())
    }

    /// Returns the index of a slot of a state among the slots of all states, which
    /// [`Config::slot_base`](crate::engine::Config::slot_base) is added to: state * S + slot, or the
    /// place that the caller's table gives it. `None` if there is no such slot or its block is not
    /// in the buffer. A table in device memory is copied from there, which waits.
    pub fn index(&self, state: usize, slot: usize) -> Option<usize> {
        self.indices(state).ok()?(slot)
    }

    /// Returns [`Self::index`] of the slots of one state.
    pub(crate) fn indices(&self, state: usize) -> Result<impl Fn(usize) -> Option<usize>> {
        let (slots, blocks) = (self.config.slots, self.state_blocks(state)?);
        Ok(move |slot| {
            // The closure must own all of it, because the entries may be in a copy that is a field beside them.
            let blocks = &blocks;
            match blocks.0 {
                _ if slot >= slots => None,
                None => Some(state * slots + slot),
                Some(entries) => entries.index(slot),
            }
        })
    }

    /// Returns an error if the caller's table has an entry of an existing state that is no block.
    /// Entries in device memory are copied, which waits.
    pub(crate) fn check_blocks(&self, state: usize) -> Result<()> {
        let (entries, _copy) = self.state_blocks(state)?;
        entries.map_or(Ok(()), |entries| entries.check_blocks(state, self.config.slots))
    }

    /// Returns whether the caller's table of blocks is in device memory.
    pub(crate) fn has_device_table(&self) -> bool {
        self.table.is_some() && self.device.is_some()
    }

    /// Returns the slots of one state, layer and segment.
    ///
    /// # Errors
    /// If there is no such state, layer or segment, or the caller's table of blocks is in device
    /// memory.
    pub fn view(&self, state: usize, layer: usize, segment: usize) -> Result<SlotView> {
        ensure!(!self.has_device_table(), "blocks of a state" is "on the device", but
            "a view reads the table, which is in device memory";
            "read that table where it is");
        rows::index("state", state, self.config.states)?;
        self.segment_base(layer, segment)?;
        Ok(self.checked_view(state, layer, segment))
    }

    /// Returns [`Self::view`] of a state, a layer and a segment that were checked, in process memory.
    ///
    /// # Panics
    /// If there is no such state, layer or segment.
    pub(crate) fn checked_view(&self, state: usize, layer: usize, segment: usize) -> SlotView {
        let states = self.config.states;
        assert!(state < states, "state {state} of {states}");
        let entries = self.table.map(|table| table.of(state, self.config.slots));
        self.view_by(entries, state, layer, segment)
    }

    /// Returns the entries of a state in the caller's table, if there is one. Those of a table in device memory are in
    /// the copy beside them, which allocates, and are valid for as long as it.
    fn state_blocks(&self, state: usize) -> Result<(Option<BlockTable>, Vec<i32>)> {
        const WHAT: &str = "block table";
        rows::index("state", state, self.config.states)?;
        let slots = self.config.slots;
        let (mut table, mut copy) = (self.table.map(|table| table.of(state, slots)), Vec::new());
        if let (Some(table), Some(read)) = (&mut table, &self.device) {
            copy = reserve::filled(WHAT, table.count(slots), 0)?;
            let mut bytes = reserve::filled(WHAT, 4 * copy.len(), 0)?;
            read(table.entries.0.addr() as u64, &mut bytes)?;
            for (entry, bytes) in copy.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *entry = i32::from_ne_bytes(*bytes);
            }
            table.entries = Address(copy.as_mut_ptr());
        }
        Ok((table, copy))
    }

    /// Returns a view of an existing state, layer and segment that is valid for as long as `entries`.
    fn view_by(
        &self,
        entries: Option<BlockTable>,
        state: usize,
        layer: usize,
        segment: usize,
    ) -> SlotView {
        let (slots, steps) = (self.config.slots, self.steps[segment]);
        let base = self.bases[layer * self.steps.len() + segment];
        SlotView { base, slots, first: state * slots, steps, entries }
    }

    /// Calls `copy` with the source address, the target address and the length of each segment of
    /// some slots of an existing layer, for a copy from one state to another. In a buffer that is not the
    /// caller's one call copies all slots of a segment.
    pub(crate) fn for_each_copy(
        &self,
        layer: usize,
        [from, to]: [usize; 2],
        slots: &[u32],
        mut copy: impl FnMut(*mut u8, *mut u8, usize) -> Result<()>,
    ) -> Result<()> {
        let blocks = [self.state_blocks(from)?, self.state_blocks(to)?];
        for (index, segment) in self.config.format.as_slice().iter().enumerate() {
            let from = self.view_by(blocks[0].0, from, layer, index);
            let to = self.view_by(blocks[1].0, to, layer, index);
            if self.bytes > 0 {
                copy(from.ptr(0), to.ptr(0), self.config.slots * segment.stride)?;
                continue;
            }
            for &slot in slots {
                let (from, to) = (from.ptr(slot as usize), to.ptr(slot as usize));
                if !from.is_null() && !to.is_null() {
                    copy(from, to, segment.bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the row in a slot into `into`, its segments back to back.
    ///
    /// # Errors
    /// If there is no such slot, the length of `into` is not that of a row, or a copy from the
    /// device fails.
    pub fn slot_bytes(
        &self,
        state: usize,
        layer: usize,
        slot: usize,
        into: &mut [u8],
    ) -> Result<()> {
        rows::index("slot", slot, self.config.slots)?;
        rows::index("layer", layer, self.config.layers)?;
        self.config.format.expect_row(into.len())?;
        let ((entries, _copy), mut rest) = (self.state_blocks(state)?, into);
        for (index, segment) in self.config.format.as_slice().iter().enumerate() {
            let from = self.view_by(entries, state, layer, index).ptr(slot);
            let (part, after) = rest.split_at_mut(segment.bytes);
            ensure!(!from.is_null(), "slot" is slot, but "its block is not in the buffer";
                "correct the table of blocks");
            match &self.device {
                Some(read) => read(from.addr() as u64, part)?,
                // SAFETY: `rows::index` and `state_blocks` checked that the slot exists. Its
                // `segment.bytes` bytes are initialised, because memory of the engine is zeroed and
                // memory of the caller is initialised (`CallerBuffer::new`). `part` has the same length and is
                // not in the buffer, and code that writes a slot ensures that nothing else accesses it.
                None => unsafe {
                    ptr::copy_nonoverlapping(from, part.as_mut_ptr(), segment.bytes);
                },
            }
            rest = after;
        }
        Ok(())
    }

    /// Returns the block table of a state for pages of `page` slots: page indices that count from
    /// [`Self::segment_base`]. Slot s is row s % page of the page at index s / page. A `page` of 0
    /// means one page of S slots.
    ///
    /// # Errors
    /// If there is no such state, `page` does not divide S or is not the block of the caller's
    /// buffer, the blocks are in any order, or an index does not fit int32.
    pub fn block_table(&self, state: usize, page: usize) -> Result<Range<i32>> {
        rows::index("state", state, self.config.states)?;
        let slots = self.config.slots;
        let page = if page == 0 { slots } else { page };
        ensure!(slots.is_multiple_of(page), "page" is page, but "it must divide the {slots} slots";
            "pass a power of two that divides S, or 0");
        self.check_no_table()?;
        for steps in &self.steps {
            ensure!(steps.gap == 0 || page == 1 << steps.shift, "page" is page, but
                "the buffer's blocks have {} slots", 1usize << steps.shift;
                "pass the slots of a block");
        }
        let pages = slots / page;
        let index = |state: usize| {
            i32::try_from(state * pages).map_err(|_| {
                invalid!("state" is state, but
                    "page indices are int32, and {pages} pages belong to each"; "pass larger pages")
            })
        };
        Ok(index(state)?..index(state + 1)?)
    }
}
