//! The shape of a KV row: opaque bytes in one to four segments.
//!
//! Nothing here knows what a row means. A BF16 MLA row is one segment of 1152 bytes, or 1024 + 128
//! where the latent and the rotary part live in tensors of their own.

use crate::{Error, Result};

/// The most segments a row may have.
pub const MAX_SEGMENTS: usize = 4;

/// One contiguous part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Bytes that are copied.
    pub bytes: usize,
    /// Bytes from one row's part to the next row's, in host memory and in the device buffer alike.
    pub stride: usize,
}

/// The segments of a row. Each holds at least one byte and its stride covers its bytes, so that
/// whoever has a `RowFormat` need not check again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFormat {
    segments: heapless::Vec<Segment, MAX_SEGMENTS>,
}

impl RowFormat {
    /// One segment of `bytes`, rows packed back to back.
    pub fn single(bytes: usize) -> Result<Self> {
        Self::segments(&[bytes])
    }

    /// One segment for each entry of `bytes`, each packed back to back.
    pub fn segments(bytes: &[usize]) -> Result<Self> {
        Self::collect(bytes.iter().map(|&bytes| Segment { bytes, stride: bytes }), bytes.len())
    }

    /// Segments with strides of their own, for rows that are padded.
    pub fn strided(segments: &[Segment]) -> Result<Self> {
        Self::collect(segments.iter().copied(), segments.len())
    }

    fn collect(from: impl Iterator<Item = Segment>, count: usize) -> Result<Self> {
        let mut segments = heapless::Vec::new();
        let mut total = 0usize;
        for segment in from {
            let Segment { bytes, stride } = segment;
            if bytes == 0 {
                return Err(Error::invalid(
                    "segment bytes",
                    bytes,
                    "a segment holds at least 1 byte",
                    "leave empty segments out",
                ));
            }
            if stride < bytes {
                return Err(Error::invalid(
                    "segment stride",
                    stride,
                    format!("the segment holds {bytes} bytes"),
                    "pass a stride that covers them",
                ));
            }
            total = total.checked_add(stride).ok_or_else(|| {
                Error::invalid("row bytes", stride, "a row must fit memory", "pass fewer bytes")
            })?;
            segments.push(segment).map_err(|_| Self::bad_count(count))?;
        }
        if segments.is_empty() { Err(Self::bad_count(count)) } else { Ok(Self { segments }) }
    }

    fn bad_count(count: usize) -> Error {
        Error::invalid(
            "segment count",
            count,
            format!("a row has 1 to {MAX_SEGMENTS} segments"),
            "merge segments that are adjacent in memory",
        )
    }

    /// The segments, in the order in which a whole row's bytes are given.
    pub fn as_slice(&self) -> &[Segment] {
        &self.segments
    }

    /// Bytes of a whole row, all segments back to back, without padding.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Refuses a buffer that does not hold exactly one row.
    pub(crate) fn expect_row(&self, given: usize) -> Result<()> {
        if given == self.bytes() {
            return Ok(());
        }
        Err(Error::invalid(
            "row buffer",
            format!("{given} bytes"),
            format!("a row has {} bytes", self.bytes()),
            "pass all segments back to back",
        ))
    }
}

/// Refuses an index outside `0..count`.
pub fn index(what: &'static str, value: usize, count: usize) -> Result<()> {
    if value < count {
        return Ok(());
    }
    Err(Error::invalid(what, value, format!("there are {count}"), "pass an index below the count"))
}

/// Refuses a count of zero.
pub(crate) fn at_least_one(what: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::invalid(what, value, "at least 1 is needed", "pass a positive count"))
}
