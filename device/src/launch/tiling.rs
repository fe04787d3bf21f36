//! The scalars of a launch on a device: one plain struct that each core reads once.
//!
//! The host fills it, and emitted kernels declare the same struct. Both are made from the one list
//! below, and the emitted text asserts every offset.

use core::mem::{offset_of, size_of};

use super::sharers::{share_len, sharers};
use crate::table::params::Params;

/// The largest number of segments of a row that a device kernel supports.
pub const MAX_SEGMENTS: usize = 2;
/// The largest number of pointers to host chunks per layer that a core keeps in fast memory.
pub const MAX_CHUNKS: u32 = 2048;
/// The largest number of entries of a state in a table of the device buffer's blocks.
pub const MAX_SLOT_BLOCKS: u32 = 512;
/// The largest number of rows in one half of the staging area, all of which are in flight before
/// one wait.
pub const MAX_HALF_ROWS: u32 = 32;
/// The size of one half of the staging area, in bytes.
pub const HALF_BYTES: u32 = 64 * 1024;

/// A field of [`Tiling`], for code that declares the struct in another language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Field {
    pub name: &'static str,
    pub doc: &'static str,
    /// The offset of the field, in bytes.
    pub offset: usize,
    /// The length of an array in words; 0 for a field that is one word.
    pub array: usize,
}

/// A type of a field: one or more signed words.
trait FieldType {
    const ARRAY: usize;
}

impl FieldType for i32 {
    const ARRAY: usize = 0;
}

impl FieldType for [i32; MAX_SEGMENTS] {
    const ARRAY: usize = MAX_SEGMENTS;
}

macro_rules! tiling {
    ($($doc:literal $name:ident: $type:ty,)*) => {
        /// The scalars of a launch.
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tiling {
            $(#[doc = $doc] pub $name: $type,)*
        }

        impl Tiling {
            /// The fields in order.
            pub const FIELDS: &'static [Field] = &[$(Field {
                name: stringify!($name),
                doc: $doc,
                offset: offset_of!(Tiling, $name),
                array: <$type as FieldType>::ARRAY,
            },)*];

            /// Returns the struct as the words that a kernel reads.
            pub fn words(&self) -> [i32; size_of::<Tiling>() / 4] {
                // SAFETY: the struct consists of words, and has no padding between them.
                unsafe { core::mem::transmute(*self) }
            }
        }
    };
}

tiling! {
    "The number of requests of the batch, including padded ones." requests: i32,
    "The number of ids per row, 1..=K of the geometry." k: i32,
    "Words from one row of ids to the next." ids_stride: i32,
    "The number of entries of a request in the block table; 0 without one." block_stride: i32,
    "The number of rows (without block table) or blocks (with one) of the host pool." pool_units: i32,
    "The number of request states, each of which is a table and S slots." states: i32,
    "The number of cores that copy; all launched cores if there are fewer." copy_cores: i32,
    "The number of cores that probe for each request of a step; 1 without sharing." sharers: i32,
    "The number of ids in the share of each sharer but the last." share_len: i32,
    "The number of segments of a row, 1 or 2." segments: i32,
    "Bytes of each segment." bytes: [i32; MAX_SEGMENTS],
    "The index of each segment's first pointer in hostChunks." chunk_first: [i32; MAX_SEGMENTS],
    "The logarithm of the rows per chunk of each segment." chunk_shift: [i32; MAX_SEGMENTS],
    "The number of pointers in hostChunks." chunks: i32,
    "The number of rows staged in one half of the staging area." half_rows: i32,
    "Bytes from one row to the next in a host chunk." host_stride: [i32; MAX_SEGMENTS],
    "Bytes from one slot to the next in the device buffer." kv_stride: [i32; MAX_SEGMENTS],
    "Bytes from one row to the next of the fresh rows." fresh_stride: [i32; MAX_SEGMENTS],
    "The logarithm of the rows of a block in a host chunk." host_block_shift: i32,
    "Bytes between two blocks of a host chunk, in addition to their rows." host_gap: [i32; MAX_SEGMENTS],
    "The logarithm of the slots of a block in the device buffer." kv_block_shift: i32,
    "Bytes between two blocks of the device buffer, in addition to their slots." kv_gap: [i32; MAX_SEGMENTS],
    "The number of blocks of the device buffer, of which slotBlocks names those of each state; 0 without that table." kv_blocks: i32,
    "The index of slot 0 of state 0, if returned slots are indices among the slots of all states; -1 if they are not." slot_base: i32,
}

const _: () = assert!(size_of::<Tiling>() == 128);

/// One segment of a layer's rows, as a device accesses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the others are documented by the fields of `Tiling` of their names"
)]
pub struct Segment {
    pub bytes: u32,
    pub host_stride: u32,
    pub host_gap: i32,
    pub kv_stride: u32,
    pub kv_gap: i32,
    pub fresh_stride: u32,
    /// The logarithm of the rows per chunk: a chunk holds `1 << chunk_shift` rows.
    pub chunk_shift: u32,
    /// The number of chunks of this segment in this layer; their pointers follow those of the
    /// previous segment.
    pub chunks: u32,
}

/// The quantities from which the scalars of a launch are computed.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "the others are documented by the fields of `Tiling` of their names"
)]
pub struct Launch<'a> {
    pub requests: u32,
    /// The largest number of rows (tokens) of the batch.
    pub rows: u32,
    pub k: u32,
    pub ids_stride: u32,
    pub block_stride: u32,
    pub pool_units: u32,
    pub states: u32,
    /// The number of cores that the kernel is launched on.
    pub cores: u32,
    pub copy_cores: u32,
    /// The logarithm of the rows of a block in a host chunk; any without gaps.
    pub host_block_shift: u32,
    /// The logarithm of the slots of a block in the device buffer; any without gaps.
    pub kv_block_shift: u32,
    /// The number of blocks of the device buffer, if a table names those of each state; otherwise 0.
    pub kv_blocks: u32,
    /// The index of slot 0 of state 0, if returned slots are indices among the slots of all states.
    pub slot_base: Option<i32>,
    pub segments: &'a [Segment],
}

/// A quantity that a kernel cannot count or stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The quantity.
    pub what: &'static str,
    /// Its value in the launch.
    pub value: u64,
    /// The least and the largest value that a kernel takes.
    pub limits: (u64, u64),
    /// What the caller can do.
    pub remedy: &'static str,
}

/// Checks that a quantity is in its range.
fn check(
    what: &'static str,
    value: u64,
    limits: (u64, u64),
    remedy: &'static str,
) -> Result<(), Fault> {
    let fits = (limits.0..=limits.1).contains(&value);
    if fits { Ok(()) } else { Err(Fault { what, value, limits, remedy }) }
}

impl Tiling {
    /// Fills the struct for a geometry.
    ///
    /// # Errors
    /// If a quantity exceeds what a kernel can count or stage.
    pub fn new(p: &Params, launch: &Launch<'_>) -> Result<Self, Fault> {
        const WORD: u64 = i32::MAX as u64;
        let word =
            |n: u64| check("words of an array", n, (0, WORD), "split the batch").map(|()| n as i32);
        let shift = |n: u32| {
            let rows = 1u64.checked_shl(n).unwrap_or(u64::MAX);
            let remedy = "pass a smaller chunk_bytes to the pool";
            check("rows of a chunk", rows, (1, 1 << 30), remedy).map(|()| n as i32)
        };
        let segments = launch.segments;
        let (count, most) = (segments.len() as u64, (1, MAX_SEGMENTS as u64));
        check("segments", count, most, "merge segments that are adjacent in memory")?;
        check("cores", launch.copy_cores.into(), (1, WORD), "pass more cores")?;
        let most = (1, launch.ids_stride.min(p.k).into());
        check("k", launch.k.into(), most, "pass 1..=K ids per token")?;
        let staged = segments.iter().map(|s| u64::from(s.bytes).next_multiple_of(32)).sum();
        let most = (1, HALF_BYTES.into());
        check("row bytes", staged, most, "split the row into several layers")?;
        // The offsets of a kernel into these arrays are 32-bit words.
        let (rows, requests) = (u64::from(launch.rows), u64::from(launch.requests));
        let units = u64::from(launch.pool_units) * u64::from(p.page.max(1));
        for words in [
            rows * u64::from(launch.ids_stride.max(p.k)),
            requests * u64::from(launch.block_stride),
            requests * 16,
            units,
        ] {
            word(words)?;
        }
        let sharers = sharers(launch.requests as usize, launch.k as usize, launch.cores as usize);
        let mut tiling = Self {
            requests: word(requests)?,
            k: word(launch.k.into())?,
            ids_stride: word(launch.ids_stride.into())?,
            block_stride: word(launch.block_stride.into())?,
            pool_units: word(launch.pool_units.into())?,
            states: word(launch.states.into())?,
            copy_cores: word(launch.copy_cores.into())?,
            sharers: word(sharers as u64)?,
            share_len: word(share_len(launch.k as usize, sharers) as u64)?,
            segments: segments.len() as i32,
            half_rows: (u64::from(HALF_BYTES) / staged).min(MAX_HALF_ROWS.into()) as i32,
            ..Self::default()
        };
        tiling.host_block_shift = shift(launch.host_block_shift)?;
        tiling.kv_block_shift = shift(launch.kv_block_shift)?;
        let entries = p.slots >> launch.kv_block_shift;
        if launch.kv_blocks > 0 {
            let most = (0, MAX_SLOT_BLOCKS.into());
            check("blocks of a state", entries.into(), most, "pass larger blocks of slots")?;
        }
        tiling.kv_blocks = word(launch.kv_blocks.into())?;
        tiling.slot_base = launch.slot_base.unwrap_or(-1);
        let mut chunks = 0u64;
        for (i, segment) in segments.iter().enumerate() {
            tiling.bytes[i] = word(segment.bytes.into())?;
            tiling.chunk_first[i] = word(chunks)?;
            tiling.chunk_shift[i] = shift(segment.chunk_shift)?;
            tiling.host_stride[i] = word(segment.host_stride.into())?;
            tiling.kv_stride[i] = word(segment.kv_stride.into())?;
            (tiling.host_gap[i], tiling.kv_gap[i]) = (segment.host_gap, segment.kv_gap);
            tiling.fresh_stride[i] = word(segment.fresh_stride.into())?;
            chunks += u64::from(segment.chunks);
        }
        let most = (0, MAX_CHUNKS.into());
        check("chunks of a layer", chunks, most, "pass a larger chunk_bytes to the pool")?;
        tiling.chunks = chunks as i32;
        Ok(tiling)
    }
}

#[cfg(test)]
mod tests;
