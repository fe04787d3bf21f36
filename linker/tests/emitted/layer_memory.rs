//! The memory of a layer: host chunks, device buffer and fresh rows, on which Stage Two and append
//! work.

use std::ptr::null_mut;

use avsg_device::params::Params;
use avsg_device::tiling::{Launch, Segment, Tiling};

use super::shim::{Kind, Launch as ShimLaunch};

/// Logarithms of the rows of a block in a chunk and of the slots of one in the device buffer.
pub const HOST_BLOCK_SHIFT: u32 = 2;
pub const KV_BLOCK_SHIFT: u32 = 3;

/// Returns the bytes between two blocks of a chunk. All rows are at multiples of 16 bytes if their stride is
/// one.
fn host_gap(stride: usize) -> usize {
    if stride.is_multiple_of(16) { 32 } else { 24 }
}

/// Returns the bytes between two blocks of the device buffer.
fn kv_gap(stride: usize) -> usize {
    if stride.is_multiple_of(16) { 48 } else { 40 }
}

/// SplitMix64, a random generator whose output depends on the seed only.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) % n.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}

/// Where the slots of the states are: in a row, or in the blocks that a table names; and the base of
/// returned slots.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The entries of every state; empty without a table.
    pub table: Vec<i32>,
    pub blocks: usize,
    pub base: Option<i32>,
}

impl Places {
    /// Draws a table with distinct blocks, of which the buffer has `spare` more, and some entries
    /// that are no blocks.
    pub fn random(random: &mut SplitMix64, p: &Params, states: usize, spare: usize) -> Self {
        let entries = states * (p.slots as usize >> KV_BLOCK_SHIFT);
        let blocks = entries + spare;
        let mut free: Vec<_> = (0..blocks as i32).collect();
        let wrong = [-1, i32::MIN, i32::MAX, blocks as i32];
        let entry = |_| match random.below(12) {
            0 => wrong[random.below(4)],
            _ => free.swap_remove(random.below(free.len())),
        };
        Self { table: (0..entries).map(entry).collect(), blocks, base: None }
    }

    /// Returns the number of slots that the device buffer has.
    pub fn slots(&self, p: &Params, states: usize) -> usize {
        match self.table.len() {
            0 => states * p.slots as usize,
            _ => self.blocks << KV_BLOCK_SHIFT,
        }
    }

    /// Returns the index of a slot among those of all states; `None` if it has no block.
    pub fn index(&self, p: &Params, state: usize, slot: usize) -> Option<usize> {
        let entries = p.slots as usize >> KV_BLOCK_SHIFT;
        if self.table.is_empty() {
            return Some(state * p.slots as usize + slot);
        }
        let block = usize::try_from(self.table[state * entries + (slot >> KV_BLOCK_SHIFT)]).ok();
        let block = block.filter(|&block| block < self.blocks)?;
        Some((block << KV_BLOCK_SHIFT) + slot % (1 << KV_BLOCK_SHIFT))
    }

    /// Replaces the slots of a state as a plan with a base returns them.
    pub fn globalize(&self, p: &Params, state: usize, slots: &mut [i32]) {
        let Some(base) = self.base else { return };
        for slot in slots.iter_mut().filter(|slot| **slot >= 0) {
            let index = self.index(p, state, *slot as usize);
            *slot = index.map_or(-1, |index| base + index as i32);
        }
    }

    /// Passes the table to a kernel.
    pub fn pass<'a>(&'a self, launch: ShimLaunch<'a>) -> ShimLaunch<'a> {
        match self.table.is_empty() {
            true => launch.raw(null_mut()),
            false => launch.input(&self.table),
        }
    }

    /// Sets the scalars that say where slots are.
    pub fn scalars<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        Launch { kv_blocks: self.blocks as u32, slot_base: self.base, ..launch }
    }
}

pub struct SegmentMemory {
    pub layout: Segment,
    pub chunks: Vec<Vec<u8>>,
    pub kv: Vec<u8>,
    pub fresh: Vec<u8>,
}

pub struct LayerMemory {
    pub segments: Vec<SegmentMemory>,
    /// Addresses of the chunks, segment by segment.
    pub pointers: Vec<u64>,
}

impl LayerMemory {
    /// Fills all memory with random bytes. `format` holds the bytes and the stride of each segment,
    /// and `shift` is the log2 of the rows of a chunk of the first segment.
    pub fn new(
        random: &mut SplitMix64,
        format: &[(usize, usize)],
        rows: usize,
        shift: u32,
        slots: usize,
        batch_rows: usize,
    ) -> Self {
        let segment = |random: &mut SplitMix64, (s, &(bytes, stride)): (usize, &(usize, usize))| {
            let shift = shift + s as u32;
            let chunks = rows.div_ceil(1 << shift);
            let fresh_gap = if stride.is_multiple_of(16) { 16 } else { 5 };
            let chunk = |random: &mut SplitMix64, c: usize| {
                let rows = (rows - (c << shift)).min(1 << shift);
                with_gaps(
                    random.bytes(rows * stride),
                    (rows >> HOST_BLOCK_SHIFT) * host_gap(stride),
                )
            };
            SegmentMemory {
                layout: Segment {
                    bytes: bytes as u32,
                    host_stride: stride as u32,
                    host_gap: host_gap(stride) as i32,
                    kv_stride: stride as u32 + 32,
                    kv_gap: kv_gap(stride) as i32,
                    fresh_stride: (stride + fresh_gap) as u32,
                    chunk_shift: shift,
                    chunks: chunks as u32,
                },
                chunks: (0..chunks).map(|c| chunk(random, c)).collect(),
                kv: with_gaps(
                    random.bytes(slots * (stride + 32)),
                    (slots >> KV_BLOCK_SHIFT) * kv_gap(stride),
                ),
                fresh: random.bytes(batch_rows * (stride + fresh_gap)),
            }
        };
        let segments: Vec<_> = format.iter().enumerate().map(|f| segment(random, f)).collect();
        let mut layer = Self { segments, pointers: vec![] };
        let chunks = layer.segments.iter_mut().flat_map(|segment| &mut segment.chunks);
        layer.pointers = chunks.map(|chunk| chunk.as_mut_ptr() as u64).collect();
        layer
    }

    pub fn layouts(&self) -> Vec<Segment> {
        self.segments.iter().map(|segment| segment.layout).collect()
    }

    /// Passes the arguments hostChunks, kv0, kv1, slotBlocks, fresh0 and fresh1, of which those of a
    /// missing second segment are null, and registers the chunks.
    pub fn pass<'a>(&'a mut self, launch: ShimLaunch<'a>, places: &'a Places) -> ShimLaunch<'a> {
        let single = self.segments.len() == 1;
        let (mut launch, mut fresh) = (launch.input(&self.pointers), vec![]);
        for segment in &mut self.segments {
            launch = with_chunks(launch.device(&mut segment.kv), &mut segment.chunks);
            fresh.push(&segment.fresh);
        }
        launch = places.pass(if single { launch.raw(null_mut()) } else { launch });
        launch = fresh.into_iter().fold(launch, |launch, fresh| launch.input(fresh));
        if single { launch.raw(null_mut()) } else { launch }
    }

    /// Returns the bytes of a segment of a host row.
    pub fn host_row(&self, s: usize, row: usize) -> &[u8] {
        let Segment { bytes, host_stride, chunk_shift, .. } = self.segments[s].layout;
        let at = host_offset(row & ((1 << chunk_shift) - 1), host_stride);
        &self.segments[s].chunks[row >> chunk_shift][at..at + bytes as usize]
    }
}

/// Appends the bytes that the gaps between blocks take, without drawing random numbers.
fn with_gaps(mut bytes: Vec<u8>, gaps: usize) -> Vec<u8> {
    bytes.extend((0..gaps).map(|at| (at * 89 + at / 256) as u8));
    bytes
}

/// Returns the offset of a row in its chunk.
pub fn host_offset(within: usize, host_stride: u32) -> usize {
    within * host_stride as usize + (within >> HOST_BLOCK_SHIFT) * host_gap(host_stride as usize)
}

/// Returns the offset of a slot in the device buffer; slots of all states are counted.
pub fn kv_offset(slot: usize, kv_stride: u32) -> usize {
    slot * kv_stride as usize + (slot >> KV_BLOCK_SHIFT) * kv_gap(kv_stride as usize)
}

pub fn tiling(p: &Params, launch: Launch<'_>) -> Vec<i32> {
    Tiling::new(p, &launch).expect("a launch within limits").words().to_vec()
}

/// Registers the chunks, which kernels reach by their addresses in memory.
pub fn with_chunks<'a>(launch: ShimLaunch<'a>, chunks: &'a mut [Vec<u8>]) -> ShimLaunch<'a> {
    chunks.iter_mut().fold(launch, |launch, chunk| launch.region(chunk, Kind::Host))
}
