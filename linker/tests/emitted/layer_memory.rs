//! The memory of a layer: host chunks, device buffer and fresh rows, on which Stage Two and append
//! work.

use std::ptr::null_mut;

use super::{HOST_BLOCK_SHIFT, KV_BLOCK_SHIFT, RegionKind, ShimLaunch, SplitMix64, optional};
use avsg_device::params::Params;
use avsg_device::tiling::{Launch, Segment, Tiling};

/// Returns the bytes between two blocks, or between two fresh rows. All rows are at multiples of 16 bytes if their stride is
/// one.
fn gap(stride: usize, aligned: usize, other: usize) -> usize {
    if stride.is_multiple_of(16) { aligned } else { other }
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
    /// that are no blocks; without `spare` there is no table.
    pub fn random(
        random: &mut SplitMix64,
        p: &Params,
        states: usize,
        spare: Option<usize>,
    ) -> Self {
        let Some(spare) = spare else { return Self::default() };
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
        // The bytes of the gaps between blocks are not drawn.
        let mut memory = |rows: usize, stride: usize, block_shift: u32, gap: usize| -> Vec<u8> {
            let gaps = (rows >> block_shift) * gap;
            let gaps = (0..gaps).map(|at| (at * 89 + at / 256) as u8);
            let words = std::iter::repeat_with(|| random.below(usize::MAX).to_le_bytes());
            words.flatten().take(rows * stride).chain(gaps).collect()
        };
        let segment = |(shift, &(bytes, stride)): (u32, &(usize, usize))| {
            let (host_gap, kv_gap) = (gap(stride, 32, 24), gap(stride, 48, 40));
            let (kv_stride, fresh_stride) = (stride + 32, stride + gap(stride, 16, 5));
            let chunks = (0..rows).step_by(1 << shift).map(|first| (rows - first).min(1 << shift));
            let layout = Segment {
                bytes: bytes as u32,
                host_stride: stride as u32,
                host_gap: host_gap as i32,
                kv_stride: kv_stride as u32,
                kv_gap: kv_gap as i32,
                fresh_stride: fresh_stride as u32,
                chunk_shift: shift,
                chunks: chunks.len() as u32,
            };
            let chunk = |rows| memory(rows, stride, HOST_BLOCK_SHIFT, host_gap);
            let chunks = chunks.map(chunk).collect();
            let kv = memory(slots, kv_stride, KV_BLOCK_SHIFT, kv_gap);
            let fresh = memory(batch_rows, fresh_stride, 0, 0);
            SegmentMemory { layout, chunks, kv, fresh }
        };
        let mut segments: Vec<_> = (shift..).zip(format).map(segment).collect();
        let chunks = segments.iter_mut().flat_map(|segment| &mut segment.chunks);
        let pointers = chunks.map(|chunk| chunk.as_mut_ptr() as u64).collect();
        Self { segments, pointers }
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
        launch = optional(if single { launch.raw(null_mut()) } else { launch }, &places.table);
        launch = fresh.into_iter().fold(launch, |launch, fresh| launch.input(fresh));
        if single { launch.raw(null_mut()) } else { launch }
    }
}

pub fn tiling(p: &Params, launch: Launch<'_>) -> Vec<i32> {
    Tiling::new(p, &launch).expect("a launch within limits").words().to_vec()
}

/// Registers the chunks, which kernels reach by their addresses in memory.
pub fn with_chunks<'a>(launch: ShimLaunch<'a>, chunks: &'a mut [Vec<u8>]) -> ShimLaunch<'a> {
    chunks.iter_mut().fold(launch, |launch, chunk| launch.region(chunk, RegionKind::Host))
}
