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
use std::sync::Arc;
use std::{fmt, ptr};

use layout::BufferLayout;
use memory::{Memory, StateBlocks, StateEntries};

use crate::rows::{self, MAX_SEGMENTS, Steps, Strides};
use crate::system::address::Address;
use crate::system::allocator::{Allocated, Allocator};
use crate::system::array::ProcessMemory;
use crate::system::{available_memory, reserve};
use crate::{Result, ensure, invalid};

pub use layout::BufferConfig;
pub(crate) use memory::{BlockTable, SlotMemory};
pub use memory::{CallerBuffer, SlotView};

const WHAT: &str = "device buffer";

/// The slots of every state and layer, zeroed at first.
///
/// The threads that run the AI cores share it, so no Rust reference into it exists. Code that
/// writes through [`Self::slot_ptr`] or a [`SlotView`] must ensure that nothing else reads or
/// writes that slot meanwhile, [`Self::slot_bytes`] included.
pub struct DeviceBuffer {
    config: BufferConfig,
    /// `[layers, segments]`, the addresses that slots are counted from.
    bases: Box<[Address<u8>]>,
    /// The distances of the slots of each segment.
    steps: heapless::Vec<Steps, MAX_SEGMENTS>,
    memory: Memory,
}

impl DeviceBuffer {
    /// Returns the bytes that [`Self::new`] allocates.
    ///
    /// # Errors
    /// If a number is 0 or the buffer does not fit the address space.
    pub fn bytes_needed(config: &BufferConfig) -> Result<usize> {
        BufferLayout::new(config).map(|layout| layout.total)
    }

    /// Allocates a zeroed and populated buffer in process memory.
    ///
    /// # Errors
    /// As for [`Self::bytes_needed`], or if less memory is available; nothing is allocated then.
    pub fn new(config: &BufferConfig) -> Result<Self> {
        available_memory::check(WHAT, Self::bytes_needed(config)?)?;
        Self::in_process(config, None)
    }

    /// Allocates a zeroed buffer in process memory, without a check of what is available.
    pub(crate) fn in_process(
        config: &BufferConfig,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let layout = BufferLayout::new(config)?;
        let memory = ProcessMemory::zeroed(WHAT, layout.total, Allocated::LINE, allocator)?;
        Self::with_layout(config, &layout, memory.ptr(), Memory::Process(memory))
    }

    /// Makes a buffer in device memory that `zeroed` allocates, which returns its device address.
    /// [`Self::slot_bytes`] copies from the device.
    pub(crate) fn on_device(
        config: &BufferConfig,
        zeroed: impl FnOnce(usize) -> Result<(u64, Box<dyn SlotMemory>)>,
    ) -> Result<Self> {
        let layout = BufferLayout::new(config)?;
        let (base, memory) = zeroed(layout.total)?;
        let memory = Memory::Device(memory, layout.total);
        Self::with_layout(config, &layout, base as *mut u8, memory)
    }

    fn with_layout(
        config: &BufferConfig,
        layout: &BufferLayout,
        base: *mut u8,
        memory: Memory,
    ) -> Result<Self> {
        let of_layer = |layer: usize| {
            let first = base.wrapping_add(layer * layout.layer_len);
            layout.offsets.iter().map(move |at| Address(first.wrapping_add(*at)))
        };
        let segments = config.format.as_slice();
        let mut bases = reserve::with_capacity(WHAT, config.layers * segments.len())?;
        bases.extend((0..config.layers).flat_map(of_layer));
        let steps = segments.iter().map(|s| Strides::rows(s.stride).steps()).collect();
        Ok(Self { config: config.clone(), bases: bases.into(), steps, memory })
    }

    /// Makes a buffer over memory of the caller, whose description was checked for this shape; `reader`
    /// reads it if it is on a device.
    pub(crate) fn from_caller(
        config: &BufferConfig,
        caller: &CallerBuffer,
        reader: Option<Box<dyn SlotMemory>>,
    ) -> Result<Self> {
        let steps = caller.strides().iter().map(Strides::steps).collect();
        let (config, bases) = (config.clone(), reserve::copied(WHAT, caller.bases())?.into());
        Ok(Self { config, bases, steps, memory: Memory::Caller(caller.clone(), reader) })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &BufferConfig {
        &self.config
    }

    /// Returns the length in bytes; 0 in memory of the caller, which has not said it.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(memory) => memory.len(),
            Memory::Device(_, bytes) => *bytes,
            Memory::Caller(..) => 0,
        }
    }

    /// Returns the bytes that transparent hugepages map at the moment; 0 in device memory, in memory
    /// of the caller and in that of an allocator.
    pub fn huge_bytes(&self) -> usize {
        if let Memory::Process(memory) = &self.memory { memory.huge_bytes() } else { 0 }
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
        ensure!(self.memory.table().is_none(), "blocks of a state" is "in any order", but
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
            match blocks.entries {
                _ if slot >= slots => None,
                None => Some(state * slots + slot),
                Some(entries) => entries.index(slot),
            }
        })
    }

    /// Returns an error if the caller's table has an entry of an existing state that is no block.
    /// Entries in device memory are copied, which waits.
    pub(crate) fn check_blocks(&self, state: usize) -> Result<()> {
        let slots = self.config.slots;
        let blocks = self.memory.state_blocks(state, slots)?;
        blocks.entries.map_or(Ok(()), |entries| entries.check(state, slots))
    }

    /// Returns whether the caller's table of blocks is in device memory.
    pub(crate) fn has_device_table(&self) -> bool {
        self.memory.table().is_some() && self.memory.device().is_some()
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
        let BufferConfig { states, slots, .. } = self.config;
        assert!(state < states, "state {state} of {states}");
        self.view_by(self.memory.entries(state, slots), state, layer, segment)
    }

    fn state_blocks(&self, state: usize) -> Result<StateBlocks> {
        rows::index("state", state, self.config.states)?;
        self.memory.state_blocks(state, self.config.slots)
    }

    /// Returns a view of an existing state, layer and segment that is valid for as long as `entries`.
    fn view_by(
        &self,
        entries: Option<StateEntries>,
        state: usize,
        layer: usize,
        segment: usize,
    ) -> SlotView {
        let (slots, steps) = (self.config.slots, self.steps[segment]);
        let base = self.bases[layer * self.steps.len() + segment];
        SlotView { base, slots, first: state * slots, steps, entries }
    }

    /// Returns the address of one segment of a slot; null if there is no such slot, or its block is not in
    /// the buffer. [`DeviceBuffer`] says when it may be written.
    pub fn slot_ptr(&self, state: usize, layer: usize, segment: usize, slot: usize) -> *mut u8 {
        let blocks = self.segment_base(layer, segment).and_then(|_| self.state_blocks(state));
        let at =
            |blocks: StateBlocks| self.view_by(blocks.entries, state, layer, segment).ptr(slot);
        blocks.map_or(ptr::null_mut(), at)
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
            let from = self.view_by(blocks[0].entries, from, layer, index);
            let to = self.view_by(blocks[1].entries, to, layer, index);
            if self.memory.caller().is_none() {
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
        let (blocks, mut rest) = (self.state_blocks(state)?, into);
        for (index, segment) in self.config.format.as_slice().iter().enumerate() {
            let from = self.view_by(blocks.entries, state, layer, index).ptr(slot);
            let (part, after) = rest.split_at_mut(segment.bytes);
            ensure!(!from.is_null(), "slot" is slot, but "its block is not in the buffer";
                "correct the table of blocks");
            match self.memory.device() {
                Some(device) => device.read(from.addr() as u64, part)?,
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
        if let Some(steps) =
            self.steps.iter().find(|steps| steps.gap != 0 && page != 1 << steps.shift)
        {
            return Err(invalid!("page" is page, but
                "the buffer's blocks have {} slots", 1usize << steps.shift;
                "pass the slots of a block"));
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

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer").field("config", &self.config).finish_non_exhaustive()
    }
}
