//! Memory of the caller: pools in layouts of many kinds, and device buffers whose slots have strides of many kinds, in order or
//! in blocks that a table names. A number chooses the kind. Each place is known by the formula of the documentation.

use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, DeviceMemory, Registration};
use avsg::buffer::CallerBuffer;
use avsg::engine::{Config, Engine};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::Strides;
use avsg_testkit::memory;
use avsg_testkit::splitmix::SplitMix64;

/// Returns the offset of row n.
fn offset(strides: Strides, n: usize) -> usize {
    match strides.block_rows {
        0 => n * strides.row,
        rows => n / rows * strides.block + n % rows * strides.row,
    }
}

/// Returns whole pages of zeroed memory, at least `bytes` bytes, which are never freed.
fn pages(bytes: usize) -> &'static mut [u8] {
    let len = bytes.next_multiple_of(4096);
    let memory = vec![0; len + 4096].leak();
    let at = memory.as_ptr().align_offset(4096);
    &mut memory[at..at + len]
}

/// A layout of a pool, in memory that is never freed.
pub struct Layout {
    pub regions: Vec<Region>,
    pub strides: Vec<Strides>,
    pub parts: Vec<Part>,
    _registrations: Vec<Registration>,
}

impl Layout {
    /// Lays rows out side by side or in blocks of three sizes; with all layers and segments in a region or each in
    /// regions of its own, which have all rows or 128 each; packed or with gaps. With a context the regions are registered.
    pub fn new(config: &PoolConfig, kind: usize, register: Option<&Arc<Context>>) -> Self {
        let (layers, segments) = (config.layers, config.format.as_slice());
        let (block_rows, together) = ([0, 1, 16, 64][kind % 4], (kind / 4).is_multiple_of(2));
        let (per_region, gap) = ([config.rows, 128][kind / 8 % 2], kind / 16 % 2);
        // The rows of a segment that are side by side.
        let unit = block_rows.max(1);
        let bytes = |segment: usize| unit * (segments[segment].bytes + gap);
        let of_layer: usize = (0..segments.len()).map(bytes).sum();
        let block = |segment| if together { layers * of_layer } else { bytes(segment) } + 5 * gap;
        let strides = (0..segments.len()).map(|segment| match block_rows {
            0 => Strides::rows(block(segment)),
            _ => Strides { block_rows, block: block(segment), row: bytes(segment) / unit },
        });
        let mut layout = Self {
            regions: Vec::new(),
            strides: strides.collect(),
            parts: Vec::new(),
            _registrations: Vec::new(),
        };
        for first in (0..config.rows).step_by(per_region) {
            let rows = first..(first + per_region).min(config.rows);
            let units = rows.len().div_ceil(unit);
            for n in 0..if together { 1 } else { layers * segments.len() } {
                let (layer, of) = (n / segments.len(), n % segments.len());
                let (held, of) = match together {
                    true => (0..layers, 0..segments.len()),
                    false => (layer..layer + 1, of..of + 1),
                };
                let mut offset = 3;
                for segment in of.clone() {
                    let (layers, rows, region) = (held.clone(), rows.clone(), layout.regions.len());
                    let layer_stride = of_layer;
                    layout.parts.push(Part { segment, layers, rows, region, offset, layer_stride });
                    offset += bytes(segment);
                }
                layout.add_region(3 + units * block(of.start), register);
            }
        }
        layout
    }

    /// Adds a region some odd bytes behind the start of a page.
    fn add_region(&mut self, len: usize, register: Option<&Arc<Context>>) {
        let before = 13 * self.regions.len() + 5;
        let pages = pages(before + len);
        let device_address = register.map(|context| {
            // SAFETY: the memory is never freed.
            let new = unsafe { Registration::new(context, pages.as_mut_ptr(), pages.len()) };
            self._registrations.push(new.unwrap());
            self._registrations.last().unwrap().address() + before as u64
        });
        let memory = Chunk::new(pages[before..].as_mut_ptr(), len).unwrap();
        self.regions.push(Region { memory, device_address });
    }

    /// Makes a pool, whose every row is where the formula says.
    pub fn pool(&self, config: &PoolConfig) -> Result<HostPool> {
        let Self { regions, strides, parts, .. } = self;
        let layout = HostLayout { regions, strides, parts };
        // SAFETY: the memory is never freed, and the tests access rows only between steps.
        let pool = HostPool::new(&unsafe { config.clone().with_layout(&layout) }?)?;
        for part in parts {
            for (layer, row) in
                part.layers.clone().flat_map(|l| part.rows.clone().map(move |r| (l, r)))
            {
                let within = (layer - part.layers.start) * part.layer_stride
                    + offset(strides[part.segment], row - part.rows.start);
                let at = regions[part.region].memory.ptr().wrapping_add(part.offset + within);
                assert_eq!(pool.view(layer, part.segment).unwrap().ptr(row), at, "{part:?}");
            }
        }
        Ok(pool)
    }
}

/// The slots of an engine in device memory of the caller.
pub struct Slots {
    config: Config,
    /// Bytes of each segment.
    bytes: Vec<usize>,
    layers: usize,
    strides: Vec<Strides>,
    /// The blocks of each state; empty if the slots are in order.
    table: Vec<i32>,
    blocks: usize,
    /// Bytes of a layer and segment.
    room: usize,
    memory: DeviceMemory,
    table_memory: DeviceMemory,
}

impl Slots {
    /// Places slots in a row or in blocks of three sizes; packed, or with gaps; with the slots of a block or the blocks side by
    /// side; and in order or by a table, whose entry 4 may be `bad`.
    pub fn new(
        context: &Arc<Context>,
        (config, pool): (&Config, &PoolConfig),
        kind: usize,
        bad: Option<i32>,
    ) -> Self {
        let (slots, layers) = (config.params.slots as usize, pool.layers);
        let bytes: Vec<_> = pool.format.as_slice().iter().map(|segment| segment.bytes).collect();
        let block_rows = [0, 1, 16, 1 << slots.trailing_zeros()][kind % 4];
        let (gap, by_block, by_table) =
            (kind / 4 % 2, (kind / 8).is_multiple_of(2), kind / 16 % 2 == 1);
        let used = config.states * slots / block_rows.max(1);
        let mut order: Vec<i32> = (0..used as i32 + 3).collect();
        SplitMix64::new(kind as u64).shuffle(&mut order);
        let (blocks, mut table) = match block_rows {
            1.. if by_table => (used + 3, order[..used].to_vec()),
            _ => (used, Vec::new()),
        };
        bad.into_iter().for_each(|bad| table[4] = bad);
        let strides = bytes.iter().map(|bytes| match (block_rows, bytes + 3 * gap) {
            (0, row) => Strides::rows(row),
            (_, row) if by_block => Strides { block_rows, block: block_rows * row + gap, row },
            (_, block) => Strides { block_rows, block, row: blocks * block },
        });
        let strides: Vec<Strides> = strides.collect();
        let room = blocks * block_rows.max(1) * (bytes.iter().max().unwrap() + 4);
        let memory = DeviceMemory::zeroed(context, layers * bytes.len() * room).unwrap();
        let words = [&table[..], &[0]].concat();
        let words: Vec<u8> = words.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let table_memory = DeviceMemory::copied(context, &words).unwrap();
        let config = config.clone();
        Self { config, bytes, layers, strides, table, blocks, room, memory, table_memory }
    }

    /// Returns the offset of a layer and segment. The layers are behind each other in reverse order.
    fn base(&self, layer: usize, segment: usize) -> usize {
        ((self.layers - layer) * self.bytes.len() - 1 - segment) * self.room
    }

    /// Returns the configuration of an engine with these slots, which are alive until it is dropped.
    pub fn config(&self, slot_base: Option<i32>) -> Config {
        let base = |n: usize| self.base(n / self.bytes.len(), n % self.bytes.len());
        let at = |n| (self.memory.address() as *mut u8).wrapping_add(base(n));
        let bases: Vec<_> = (0..self.layers * self.bytes.len()).map(at).collect();
        // SAFETY: the tests keep the memory until the engine is dropped, and every kind fits it.
        let mut caller = unsafe { CallerBuffer::new(&bases, &self.strides).unwrap() };
        if !self.table.is_empty() {
            let (at, len) = (self.table_memory.address() as *const i32, self.table.len());
            // SAFETY: the tests keep the table until the engine is dropped, and nothing writes it.
            caller = unsafe { caller.with_block_table(at, len, self.blocks) };
        }
        Config { buffer: Some(caller), slot_base, ..self.config.clone() }
    }

    /// Returns the index of a slot; `None` if its block is not in the buffer.
    pub fn index(&self, state: usize, slot: usize) -> Option<usize> {
        let slots = self.config.params.slots as usize;
        let size = self.strides[0].block_rows;
        let Some(entries) = self.table.chunks(slots.checked_div(size).unwrap_or(1)).nth(state)
        else {
            return Some(state * slots + slot);
        };
        let block = usize::try_from(entries[slot / size]).ok()?;
        (block < self.blocks).then_some(block * size + slot % size)
    }

    /// Checks that the rows of the engine's slots are where they must be, and that no other byte was written.
    pub fn check(&self, engine: &Engine, context: &Context) {
        let (at, len) =
            (self.memory.address() as *const u8, self.layers * self.bytes.len() * self.room);
        // SAFETY: the memory has this many bytes, and nothing runs.
        let mut found = unsafe { memory::read_bytes(Some(context), at.cast(), len) };
        let mut row = vec![0; self.bytes.iter().sum()];
        let slots = self.config.params.slots as usize;
        for n in 0..self.config.states * slots {
            let (state, slot) = (n / slots, n % slots);
            let index = self.index(state, slot);
            assert_eq!(engine.buffer().index(state, slot), index, "state {state}, slot {slot}");
            for layer in 0..self.layers {
                let read = engine.buffer().slot_bytes(state, layer, slot, &mut row);
                assert_eq!(read.is_ok(), index.is_some(), "state {state}, slot {slot}");
                let (Some(index), mut rest) = (index, &row[..]) else { continue };
                for (segment, &bytes) in self.bytes.iter().enumerate() {
                    let at = self.base(layer, segment) + offset(self.strides[segment], index);
                    let (part, after) = rest.split_at(bytes);
                    assert!(found[at..][..bytes] == *part, "state {state}, slot {slot}");
                    found[at..][..bytes].fill(0);
                    rest = after;
                }
            }
        }
        assert!(found.iter().all(|&byte| byte == 0), "bytes between the slots were written");
    }
}
