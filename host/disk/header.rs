//! The header of a kept file: what its rows are, with a checksum.

use super::aligned::Aligned;
use super::config::PoolSessions;
use super::record_layout::{CHECKSUM as CHECKSUM_BYTES, Shape};
use super::records::Records;
use super::session;
use crate::indexers::Indexers;
use crate::rows::{MAX_SEGMENTS, RowFormat};
use crate::system::reserve;
use crate::system::stored_words::{checksum, put, word};
use crate::{Result, ensure, invalid};

/// Bytes of a header.
pub(super) const BYTES: usize = 16384;
/// The places of the file's number and of the sizes among the words, and of the segments behind them.
const NUMBER: usize = 3;
const SIZES: usize = 4;
const HEAD: usize = 8;
const WORDS: usize = HEAD + 2 * MAX_SEGMENTS;
const MAGIC: u64 = u64::from_le_bytes(*b"AVSGFILE");
const VERSION: u64 = 3;
/// The version before: one header, and no sessions.
const ONE_HEADER: u64 = 2;
/// The place of the last words, the numbers of the sessions.
const TAIL: usize = BYTES / 8 - 4;
/// The place of the checksum among the words.
const CHECKSUM: usize = 2;
/// The most layers of a kept file: the header has the indexer of each.
pub(super) const MAX_LAYERS: usize = (TAIL - WORDS) * 2;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub shape: Shape,
    /// The block that records are padded to.
    pub block: usize,
    /// The random number of the file.
    pub number: u64,
    /// The copies of the header in the file.
    pub copies: usize,
    pub sessions: PoolSessions,
}

/// Where the parts of a kept file begin: two headers, two copies of each session, the data of tokens, the records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub sessions: u64,
    pub tokens: u64,
    pub records: u64,
}

impl Places {
    /// Returns the places in a file with so many headers; `None` if they are beyond every file.
    pub fn new(headers: usize, sessions: &PoolSessions, rows: usize, block: usize) -> Option<Self> {
        let start = (headers * BYTES).next_multiple_of(block);
        let entry = match sessions.count {
            0 => 0,
            _ => session::entry_bytes(sessions, rows, block)?,
        };
        let tokens = entry.checked_mul(2)?.checked_mul(sessions.count)?.checked_add(start)?;
        let of_token = match sessions.token_bytes {
            0 => 0,
            bytes => bytes.checked_add(CHECKSUM_BYTES)?,
        };
        let bytes = of_token.checked_mul(rows)?.checked_next_multiple_of(block)?;
        let records = tokens.checked_add(bytes)? as u64;
        Some(Self { sessions: start as u64, tokens: tokens as u64, records })
    }
}

/// What the memory of a header is for.
pub(super) const WHAT: &str = "header of the pool file";

/// Returns whether these bytes begin as the header of a kept file.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

impl Header {
    /// Writes a copy of the header: words of 64 bits, then the indexer of each layer, at most [`MAX_LAYERS`], in 32
    /// bits, little-endian.
    pub fn write(&self, records: &Records, copy: usize) -> Result<()> {
        let Self { shape, block, number, sessions, .. } = self;
        let mut memory = Aligned::zeroed(WHAT, BYTES)?;
        let (bytes, format) = (memory.bytes_mut(), &shape.format);
        let sizes = [shape.layers, shape.rows, *block, format.as_slice().len()];
        put(bytes, 0, [MAGIC, VERSION]);
        put(bytes, NUMBER, [*number]);
        put(bytes, SIZES, sizes.into_iter().chain(format.sizes()).map(|size| size as u64));
        let indexers = bytes[WORDS * 8..].as_chunks_mut::<4>().0.iter_mut();
        for (layer, place) in indexers.take(shape.layers).enumerate() {
            *place = (shape.indexers.of(layer) as u32).to_le_bytes();
        }
        let PoolSessions { count, rows, bytes: most, token_bytes } = *sessions;
        put(bytes, TAIL, [count, rows, most, token_bytes].map(|size| size as u64));
        let sum = checksum(bytes, CHECKSUM);
        put(bytes, CHECKSUM, [sum]);
        records.write((copy * BYTES) as u64, bytes)
    }

    /// Reads a header of [`BYTES`] bytes.
    ///
    /// # Errors
    /// If it is none, has another version, or is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = |what: String| {
            invalid!(WHAT is what, but "it must be what a kept pool wrote";
                "name a file that was kept by this version of avsg, or make the pool anew")
        };
        if !is_header(bytes) {
            return Err(bad("not that of a pool".into()));
        }
        let version = word(bytes, 1);
        if ![ONE_HEADER, VERSION].contains(&version) {
            return Err(bad(format!("of version {version}, not {VERSION}")));
        }
        if word(bytes, CHECKSUM) != checksum(bytes, CHECKSUM) {
            return Err(bad("damaged".into()));
        }
        // The checksum says that a header was written so, and these errors that it was not by this code.
        let size = |at| word(bytes, at) as usize;
        let [layers, rows, block, count] = [0, 1, 2, 3].map(|n| size(SIZES + n));
        let known =
            layers <= (BYTES - WORDS * 8) / 4 && count <= MAX_SEGMENTS && block.is_power_of_two();
        if !known {
            return Err(bad("that of an impossible pool".into()));
        }
        let of_layer = bytes[WORDS * 8..].as_chunks().0[..layers].iter();
        let indexers = of_layer.map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let indexers = reserve::collected("indexers of layers", layers, indexers)?;
        let format = RowFormat::of_sizes(count, |n| Ok(size(HEAD + n)))?;
        let indexers = Indexers::of_layers(&indexers)?;
        let shape = Shape { layers, rows, format, indexers };
        let copies = if version == VERSION { 2 } else { 1 };
        let tail = [0, 1, 2, 3].map(|n| if copies == 2 { size(TAIL + n) } else { 0 });
        let [count, rows, bytes_of, token_bytes] = tail;
        let sessions = PoolSessions { count, rows, bytes: bytes_of, token_bytes };
        Ok(Self { shape, block, number: word(bytes, NUMBER), copies, sessions })
    }

    /// Checks that a file with this header holds the rows of `shape`.
    pub fn check(&self, shape: &Shape) -> Result<()> {
        for ((what, given), (_, stored)) in numbers(shape).zip(numbers(&self.shape)) {
            ensure!(given == stored, what is given, but "the pool file was made with {stored}";
                "pass the geometry that the file was made with, or name another file");
        }
        Ok(())
    }
}

/// Returns the numbers that a file was made with: those that say how many others there are come first.
fn numbers(shape: &Shape) -> impl Iterator<Item = (&'static str, usize)> + '_ {
    let Shape { layers, rows, format, indexers } = shape;
    let segments = format.as_slice();
    let counts = [("layers", *layers), ("rows", *rows), ("segments", segments.len())];
    let parts = segments.iter().map(|segment| ("segment bytes", segment.bytes));
    let indexers = (0..*layers).map(|layer| ("indexer of a layer", indexers.of(layer)));
    counts.into_iter().chain(parts).chain(indexers)
}
