//! The device buffer: the slots of every state in every layer. On the CPU device it is process
//! memory.
//!
//! Each layer and segment has one base address, which is followed by the slots of all states, one
//! state after the other. This is the layout of a paged KV cache in which `S / page` consecutive
//! pages belong to each state. Any page size that divides S is possible.

use std::ops::Range;
use std::{fmt, ptr};

use crate::mapping::Mapping;
use crate::rows::{self, MAX_SEGMENTS, RowFormat};
use crate::{Error, Result, memory};

const WHAT: &str = "device buffer";
/// The alignment of base addresses in bytes: a cache line.
const ALIGN: usize = 64;

/// The size and layout of a device buffer.
#[derive(Debug, Clone)]
pub struct BufferConfig {
    /// Number of states.
    pub states: usize,
    /// Number of layers.
    pub layers: usize,
    /// S, the number of slots of each state in each layer.
    pub slots: usize,
    /// The format of a row.
    pub format: RowFormat,
}

/// The slots of every state and layer, zeroed at first.
///
/// The threads that run the AI cores share it, so no Rust reference into it exists. Code that
/// writes through [`Self::slot_ptr`] or a [`SlotView`] must ensure that nothing else reads or
/// writes that slot meanwhile, [`Self::slot_bytes`] included.
pub struct DeviceBuffer {
    config: BufferConfig,
    layout: Layout,
    memory: Memory,
}

/// Device memory, which this process cannot read directly.
pub(crate) trait DeviceMemory: Send + Sync {
    /// Returns the device address of the first byte.
    fn address(&self) -> u64;
    /// Returns the length in bytes.
    fn bytes(&self) -> usize;
    /// Copies the bytes from offset `from` on to `into`.
    fn read(&self, from: usize, into: &mut [u8]) -> Result<()>;
}

enum Memory {
    Process(Mapping),
    Device(Box<dyn DeviceMemory>),
}

impl DeviceBuffer {
    /// Returns the bytes that [`Self::new`] allocates.
    ///
    /// # Errors
    /// If a number is 0 or the buffer does not fit the address space.
    pub fn bytes_needed(config: &BufferConfig) -> Result<usize> {
        Layout::new(config).map(|layout| layout.total)
    }

    /// Allocates a zeroed and populated buffer in process memory.
    ///
    /// # Errors
    /// As for [`Self::bytes_needed`], or if less memory is available; nothing is allocated then.
    pub fn new(config: &BufferConfig) -> Result<Self> {
        let layout = Layout::new(config)?;
        memory::check(WHAT, layout.total)?;
        let memory = Memory::Process(Mapping::anonymous(WHAT, layout.total)?);
        Ok(Self { config: config.clone(), layout, memory })
    }

    /// Makes a buffer in device memory that `zeroed` allocates. Its addresses are device addresses,
    /// and [`Self::slot_bytes`] copies from the device.
    pub(crate) fn on_device<M: DeviceMemory + 'static>(
        config: &BufferConfig,
        zeroed: impl FnOnce(usize) -> Result<M>,
    ) -> Result<Self> {
        let layout = Layout::new(config)?;
        let memory = Memory::Device(Box::new(zeroed(layout.total)?));
        Ok(Self { config: config.clone(), layout, memory })
    }

    fn base(&self) -> *mut u8 {
        match &self.memory {
            Memory::Process(mapping) => mapping.ptr(),
            Memory::Device(memory) => memory.address() as *mut u8,
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &BufferConfig {
        &self.config
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(mapping) => mapping.len(),
            Memory::Device(memory) => memory.bytes(),
        }
    }

    /// Returns the bytes that transparent hugepages map at the moment; 0 in device memory.
    pub fn huge_bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(mapping) => mapping.huge_bytes(),
            Memory::Device(_) => 0,
        }
    }

    /// Returns the base address of a layer and segment, from which the page indices of
    /// [`Self::block_table`] count.
    ///
    /// # Errors
    /// If there is no such layer or segment.
    pub fn segment_base(&self, layer: usize, segment: usize) -> Result<*mut u8> {
        rows::index("layer", layer, self.config.layers)?;
        rows::index("segment", segment, self.config.format.as_slice().len())?;
        let at = layer * self.layout.layer_len + self.layout.offsets[segment];
        Ok(self.base().wrapping_add(at))
    }

    /// Returns the slots of one state, layer and segment.
    ///
    /// # Errors
    /// If there is no such state, layer or segment.
    pub fn view(&self, state: usize, layer: usize, segment: usize) -> Result<SlotView> {
        rows::index("state", state, self.config.states)?;
        let base = self.segment_base(layer, segment)?;
        let stride = self.config.format.as_slice()[segment].stride;
        let slots = self.config.slots;
        Ok(SlotView { base: base.wrapping_add(state * slots * stride), slots, stride })
    }

    /// Returns the address of one segment of a slot; null if there is no such slot.
    /// [`DeviceBuffer`] says when it may be written.
    pub fn slot_ptr(&self, state: usize, layer: usize, segment: usize, slot: usize) -> *mut u8 {
        self.view(state, layer, segment).map_or(ptr::null_mut(), |view| view.ptr(slot))
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
        self.config.format.expect_row(into.len())?;
        let mut rest = into;
        for (index, segment) in self.config.format.as_slice().iter().enumerate() {
            let from = self.view(state, layer, index)?.ptr(slot);
            let (part, after) = rest.split_at_mut(segment.bytes);
            if let Memory::Device(memory) = &self.memory {
                memory.read(from.addr() - self.base().addr(), part)?;
                rest = after;
                continue;
            }
            // SAFETY: `rows::index` and `view` checked that the slot exists. Its `segment.bytes`
            // bytes are initialised, because the mapping is zeroed. `part` has the same length and
            // is not in the mapping, and code that writes a slot ensures that nothing else accesses
            // it ([`DeviceBuffer`]).
            unsafe { ptr::copy_nonoverlapping(from, part.as_mut_ptr(), segment.bytes) };
            rest = after;
        }
        Ok(())
    }

    /// Returns the block table of a state for pages of `page` slots: page indices that count from
    /// [`Self::segment_base`]. Slot s is row s % page of the page at index s / page. A `page` of 0
    /// means one page of S slots.
    ///
    /// # Errors
    /// If there is no such state, `page` does not divide S, or an index does not fit int32.
    pub fn block_table(&self, state: usize, page: usize) -> Result<Range<i32>> {
        rows::index("state", state, self.config.states)?;
        let slots = self.config.slots;
        let page = if page == 0 { slots } else { page };
        if !slots.is_multiple_of(page) {
            let limit = format!("it must divide the {slots} slots");
            return Err(Error::invalid("page", page, limit, "pass a power of two up to S, or 0"));
        }
        let pages = slots / page;
        let index = |state: usize| {
            i32::try_from(state * pages).map_err(|_| {
                let limit = format!("page indices are int32, and {pages} pages belong to each");
                Error::invalid("state", state, limit, "pass larger pages")
            })
        };
        Ok(index(state)?..index(state + 1)?)
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("config", &self.config)
            .field("bytes", &self.bytes())
            .finish()
    }
}

/// The slots of one state, layer and segment. It does not borrow the buffer: its addresses are
/// valid until the buffer is dropped.
#[derive(Debug, Clone, Copy)]
pub struct SlotView {
    base: *mut u8,
    slots: usize,
    stride: usize,
}

// SAFETY: the view is an address and two numbers. Code that dereferences the address keeps the
// rules of [`DeviceBuffer`].
unsafe impl Send for SlotView {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for SlotView {}

impl SlotView {
    /// Returns the address of `slot`; null if there is no such slot.
    #[inline]
    pub fn ptr(&self, slot: usize) -> *mut u8 {
        if slot < self.slots { self.base.wrapping_add(slot * self.stride) } else { ptr::null_mut() }
    }
}

/// The layout of a checked [`BufferConfig`]; products of its numbers do not overflow.
struct Layout {
    offsets: heapless::Vec<usize, MAX_SEGMENTS>,
    layer_len: usize,
    total: usize,
}

impl Layout {
    fn new(config: &BufferConfig) -> Result<Self> {
        let BufferConfig { states, layers, slots, ref format } = *config;
        rows::at_least_one("states", states)?;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("slots", slots)?;
        let checked = || {
            let (mut offsets, mut layer_len) = (heapless::Vec::new(), 0usize);
            for segment in format.as_slice() {
                // This cannot fail: the vector has room for the most segments that a format may
                // have.
                let _ = offsets.push(layer_len);
                let len = states.checked_mul(slots)?.checked_mul(segment.stride)?;
                layer_len = layer_len.checked_add(len.checked_next_multiple_of(ALIGN)?)?;
            }
            let total = layer_len.checked_mul(layers)?;
            (total <= isize::MAX as usize).then_some(Self { offsets, layer_len, total })
        };
        checked().ok_or_else(|| {
            Error::invalid(
                "buffer geometry",
                format!("{states} states of {layers} layers of {slots} slots"),
                "the buffer must fit the address space",
                "ask for fewer states or slots",
            )
        })
    }
}
