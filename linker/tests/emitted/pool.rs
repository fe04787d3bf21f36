//! Rows in host chunks, in the device buffer and fresh, and a batch's scalars: what Stage Two and
//! append work on, and a plain model of both.

use avsg_device::params::Params;
use avsg_device::tiling::{Launch, Segment, Tiling};

use super::shim::{Kind, Launch as ShimLaunch};

/// A small generator: tests must not depend on the run.
pub struct Lot(pub u64);

impl Lot {
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

/// One segment's memory.
pub struct Lane {
    pub segment: Segment,
    pub chunks: Vec<Vec<u8>>,
    pub kv: Vec<u8>,
    pub fresh: Vec<u8>,
}

/// All memory of a layer.
pub struct Layer {
    pub lanes: Vec<Lane>,
    /// The chunks' addresses, segment by segment.
    pub pointers: Vec<u64>,
}

impl Layer {
    /// Random bytes everywhere. `format` is (bytes, stride) of each segment, `shift` log2 of a chunk's
    /// rows.
    pub fn new(
        lot: &mut Lot,
        format: &[(usize, usize)],
        rows: usize,
        shift: u32,
        slots: usize,
        batch_rows: usize,
    ) -> Self {
        let lane = |lot: &mut Lot, (s, &(bytes, stride)): (usize, &(usize, usize))| {
            let shift = shift + s as u32;
            let chunks = rows.div_ceil(1 << shift);
            let chunk = |lot: &mut Lot, c: usize| {
                let held = (rows - (c << shift)).min(1 << shift);
                lot.bytes(held * stride)
            };
            Lane {
                segment: Segment {
                    bytes: bytes as u32,
                    host_stride: stride as u32,
                    kv_stride: stride as u32 + 32,
                    fresh_stride: stride as u32 + 5,
                    chunk_shift: shift,
                    chunks: chunks as u32,
                },
                chunks: (0..chunks).map(|c| chunk(lot, c)).collect(),
                kv: lot.bytes(slots * (stride + 32)),
                fresh: lot.bytes(batch_rows * (stride + 5)),
            }
        };
        let lanes: Vec<_> = format.iter().enumerate().map(|f| lane(lot, f)).collect();
        let mut layer = Self { lanes, pointers: vec![] };
        let chunks = layer.lanes.iter_mut().flat_map(|lane| &mut lane.chunks);
        layer.pointers = chunks.map(|chunk| chunk.as_mut_ptr() as u64).collect();
        layer
    }

    pub fn segments(&self) -> Vec<Segment> {
        self.lanes.iter().map(|lane| lane.segment).collect()
    }

    /// Bytes of a host row's segment.
    pub fn host(&self, s: usize, row: usize) -> &[u8] {
        let Segment { bytes, host_stride, chunk_shift, .. } = self.lanes[s].segment;
        let within = row & ((1 << chunk_shift) - 1);
        let at = within * host_stride as usize;
        &self.lanes[s].chunks[row >> chunk_shift][at..at + bytes as usize]
    }
}

/// A launch's scalars.
pub fn tiling(p: &Params, launch: Launch<'_>) -> Vec<i32> {
    Tiling::new(p, &launch).expect("a launch within limits").words().to_vec()
}

/// Adds what kernels find by the chunks' addresses.
pub fn with_chunks<'a>(
    launch: ShimLaunch<'a>,
    chunks: impl Iterator<Item = &'a mut Vec<u8>>,
) -> ShimLaunch<'a> {
    chunks.fold(launch, |launch, chunk| launch.region(chunk, Kind::Host))
}
