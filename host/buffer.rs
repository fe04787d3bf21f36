//! The device buffer: the slots of every request state, in process memory on the CPU device.
//!
//! For each layer and segment there is one base address, and below it the slots of all states, one
//! state after the other: the layout of a paged KV cache whose pages `state * S / page ..` belong to
//! a state. The page size is only a way to look at it, so any that divides S will do.

use std::ops::Range;
use std::{fmt, ptr};

use crate::mapping::Mapping;
use crate::rows::{self, MAX_SEGMENTS, RowFormat};
use crate::{Error, Result, memory};

const WHAT: &str = "device buffer";
/// Bases begin on a cache line, whatever the rows before them.
const ALIGN: usize = 64;

/// What a device buffer is to be.
#[derive(Debug, Clone)]
pub struct BufferConfig {
    /// Request states.
    pub states: usize,
    /// Layers.
    pub layers: usize,
    /// Slots of each state and layer, S in the paper.
    pub slots: usize,
    /// The shape of a row.
    pub format: RowFormat,
}

/// The slots of every state and layer, zeroed at first.
///
/// It is shared by the threads that play the AI cores, so no reference into it exists. Whoever
/// writes through [`Self::slot_ptr`] or a [`SlotView`] promises that nobody reads or writes that
/// slot meanwhile, [`Self::slot_bytes`] included.
pub struct DeviceBuffer {
    config: BufferConfig,
    plan: Layout,
    memory: Memory,
}

/// Memory of a device that this process cannot read by itself.
pub(crate) trait DeviceMemory: Send + Sync {
    /// Where it begins, in the device's addresses.
    fn address(&self) -> u64;
    /// Its bytes.
    fn bytes(&self) -> usize;
    /// Copies bytes that begin at `from` to this process.
    fn read(&self, from: usize, into: &mut [u8]) -> Result<()>;
}

/// Whose memory it is.
enum Memory {
    Process(Mapping),
    Device(Box<dyn DeviceMemory>),
}

impl DeviceBuffer {
    /// Bytes that [`Self::new`] takes, to be shown before they are taken.
    pub fn bytes_needed(config: &BufferConfig) -> Result<usize> {
        Layout::new(config).map(|layout| layout.total)
    }

    /// Takes the memory, zeroed and present. Fails with nothing taken when it is more than the
    /// machine can give.
    pub fn new(config: &BufferConfig) -> Result<Self> {
        let plan = Layout::new(config)?;
        memory::check(WHAT, plan.total)?;
        let memory = Memory::Process(Mapping::anonymous(WHAT, plan.total)?);
        Ok(Self { config: config.clone(), plan, memory })
    }

    /// The same in zeroed memory of a device. Addresses are the device's then, and [`Self::slot_bytes`]
    /// copies from there.
    pub(crate) fn on_device<M: DeviceMemory + 'static>(
        config: &BufferConfig,
        zeroed: impl FnOnce(usize) -> Result<M>,
    ) -> Result<Self> {
        let plan = Layout::new(config)?;
        let memory = Memory::Device(Box::new(zeroed(plan.total)?));
        Ok(Self { config: config.clone(), plan, memory })
    }

    fn base(&self) -> *mut u8 {
        match &self.memory {
            Memory::Process(mapping) => mapping.ptr(),
            Memory::Device(memory) => memory.address() as *mut u8,
        }
    }

    /// What it was made from.
    pub fn config(&self) -> &BufferConfig {
        &self.config
    }

    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(mapping) => mapping.len(),
            Memory::Device(memory) => memory.bytes(),
        }
    }

    /// Bytes of it that transparent hugepages map right now.
    pub fn huge_bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(mapping) => mapping.huge_bytes(),
            Memory::Device(_) => 0,
        }
    }

    /// The base that the page indices of [`Self::block_table`] count from.
    pub fn segment_base(&self, layer: usize, segment: usize) -> Result<*mut u8> {
        rows::index("layer", layer, self.config.layers)?;
        rows::index("segment", segment, self.config.format.as_slice().len())?;
        let at = layer * self.plan.layer_len + self.plan.offsets[segment];
        Ok(self.base().wrapping_add(at))
    }

    /// The slots of one state, layer and segment.
    pub fn view(&self, state: usize, layer: usize, segment: usize) -> Result<SlotView> {
        rows::index("state", state, self.config.states)?;
        let base = self.segment_base(layer, segment)?;
        let stride = self.config.format.as_slice()[segment].stride;
        let slots = self.config.slots;
        Ok(SlotView { base: base.wrapping_add(state * slots * stride), slots, stride })
    }

    /// Where a segment of a slot begins, or null when there is no such slot. Dereferencing it is a
    /// promise: see [`DeviceBuffer`].
    pub fn slot_ptr(&self, state: usize, layer: usize, segment: usize, slot: usize) -> *mut u8 {
        self.view(state, layer, segment).map_or(ptr::null_mut(), |view| view.ptr(slot))
    }

    /// Reads the row in a slot into `into`, its segments back to back.
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
            // SAFETY: the slot exists (`rows::index` above, and `view`), its `segment.bytes` bytes
            // are initialised (`Mapping::anonymous` is zeroed), `part` has as many and is not in the
            // mapping, and a writer of the slot has promised to be alone.
            unsafe { ptr::copy_nonoverlapping(from, part.as_mut_ptr(), segment.bytes) };
            rest = after;
        }
        Ok(())
    }

    /// The block table of a state for pages of `page` slots: page indices that count from
    /// [`Self::segment_base`], slot s being row s % page of the page at index s / page. A `page` of 0
    /// means one page of S slots. The length of the range is the number of pages.
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

/// The slots of one state, layer and segment, without the buffer: it does not keep it alive.
#[derive(Debug, Clone, Copy)]
pub struct SlotView {
    base: *mut u8,
    slots: usize,
    stride: usize,
}

// SAFETY: an address and two numbers; dereferencing the address is a promise of whoever does it.
unsafe impl Send for SlotView {}
// SAFETY: as for Send.
unsafe impl Sync for SlotView {}

impl SlotView {
    /// Where `slot` begins, or null when there is no such slot.
    #[inline]
    pub fn ptr(&self, slot: usize) -> *mut u8 {
        if slot < self.slots { self.base.wrapping_add(slot * self.stride) } else { ptr::null_mut() }
    }
}

/// Offsets of a checked [`BufferConfig`]: nothing overflows below.
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
                // Cannot fail: a format has no more segments than this holds.
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
