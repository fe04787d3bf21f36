//! Rows in host chunks, in the device buffer and fresh, and a batch's scalars: what Stage Two and
//! append work on, and a plain model of both.

#![allow(dead_code, reason = "every test uses its own part")]

use avsg_device::params::Params;
use avsg_device::tiling::{Launch, Segment, Tiling};

use super::run::{Array, Kind};

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
    pub chunks: Vec<Array>,
    pub kv: Array,
    pub fresh: Array,
}

/// All memory of a layer.
pub struct Layer {
    pub lanes: Vec<Lane>,
    pub pointers: Array,
    pub rows: usize,
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
                Array::bytes(&lot.bytes(held * stride), Kind::Host)
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
                kv: Array::bytes(&lot.bytes(slots * (stride + 32)), Kind::Device),
                fresh: Array::bytes(&lot.bytes((batch_rows * (stride + 5)).max(1)), Kind::Device),
            }
        };
        let lanes: Vec<_> = format.iter().enumerate().map(|f| lane(lot, f)).collect();
        let all = lanes.iter().flat_map(|lane| &lane.chunks).map(Array::address);
        let pointers: Vec<_> = all.flat_map(u64::to_le_bytes).collect();
        Self { lanes, pointers: Array::bytes(&pointers, Kind::ReadOnly), rows }
    }

    pub fn segments(&self) -> Vec<Segment> {
        self.lanes.iter().map(|lane| lane.segment).collect()
    }

    /// A launch's scalars.
    pub fn tiling(&self, p: &Params, launch: Launch<'_>) -> Array {
        let t = Tiling::new(p, &launch).expect("a launch within limits");
        Array::ints(&t.words(), Kind::ReadOnly)
    }

    pub fn chunks(&self) -> Vec<&Array> {
        self.lanes.iter().flat_map(|lane| &lane.chunks).collect()
    }

    pub fn kv(&self, s: usize) -> &Array {
        &self.lanes[s.min(self.lanes.len() - 1)].kv
    }

    pub fn fresh(&self, s: usize) -> &Array {
        &self.lanes[s.min(self.lanes.len() - 1)].fresh
    }

    /// Bytes of a host row's segment.
    pub fn host(&self, s: usize, row: usize) -> &[u8] {
        let Segment { bytes, host_stride, chunk_shift, .. } = self.lanes[s].segment;
        let within = row & ((1 << chunk_shift) - 1);
        let at = within * host_stride as usize;
        &self.lanes[s].chunks[row >> chunk_shift].as_bytes()[at..at + bytes as usize]
    }
}
