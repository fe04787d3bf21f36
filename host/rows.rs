//! The format of a KV row: opaque bytes in one to four segments.
//!
//! The library does not interpret rows. A BF16 MLA row, for example, is one segment of 1152 bytes,
//! or two of 1024 and 128 bytes if the latent part and the rotary part are in tensors of their own.

use crate::{Result, ensure, invalid};

/// The largest number of segments that a row may have.
pub const MAX_SEGMENTS: usize = 4;

/// A contiguous part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of a row in this segment, which are copied.
    pub bytes: usize,
    /// Bytes from one row to the next, in the host pool and in the device buffer; at least `bytes`.
    pub stride: usize,
}

/// The segments of a row. Each has at least one byte, and its stride is at least its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFormat {
    segments: heapless::Vec<Segment, MAX_SEGMENTS>,
}

impl RowFormat {
    /// Returns a format of one segment of `bytes` bytes, with rows back to back.
    ///
    /// # Errors
    /// If `bytes` is 0.
    pub fn single(bytes: usize) -> Result<Self> {
        Self::segments(&[bytes])
    }

    /// Returns a format with one segment per entry of `bytes`, each with rows back to back.
    ///
    /// # Errors
    /// As for [`Self::strided`].
    pub fn segments(bytes: &[usize]) -> Result<Self> {
        Self::collect(bytes.iter().map(|&bytes| Segment { bytes, stride: bytes }))
    }

    /// Returns a format with these segments, for padded rows.
    ///
    /// # Errors
    /// If there are not 1 to [`MAX_SEGMENTS`] segments, a segment has no bytes, or a stride is
    /// below its segment's bytes.
    pub fn strided(segments: &[Segment]) -> Result<Self> {
        Self::collect(segments.iter().copied())
    }

    fn collect(from: impl ExactSizeIterator<Item = Segment> + Clone) -> Result<Self> {
        ensure!((1..=MAX_SEGMENTS).contains(&from.len()), "segment count" is from.len(), but
            "a row has 1 to {MAX_SEGMENTS} segments";
            "merge segments that are adjacent in memory");
        let mut total = 0usize;
        for segment in from.clone() {
            let Segment { bytes, stride } = segment;
            ensure!(bytes != 0, "segment bytes" is bytes, but "a segment holds at least 1 byte";
                "leave empty segments out");
            ensure!(stride >= bytes, "segment stride" is stride, but
                "the segment holds {bytes} bytes"; "pass a stride that covers them");
            total = total.checked_add(stride).ok_or_else(
                || invalid!("row bytes" is stride, but "a row must fit memory"; "pass fewer bytes"),
            )?;
        }
        Ok(Self { segments: from.collect() })
    }

    /// Returns the segments, in the order of the bytes of a whole row.
    pub fn as_slice(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the bytes and the stride of each segment, which [`Self::of_sizes`] takes.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.segments.iter().flat_map(|segment| [segment.bytes, segment.stride])
    }

    /// Returns the format of `count` segments, at most [`MAX_SEGMENTS`], whose sizes are these.
    pub(crate) fn of_sizes(count: usize, size: impl Fn(usize) -> Result<usize>) -> Result<Self> {
        let segment = |n| Ok(Segment { bytes: size(2 * n)?, stride: size(2 * n + 1)? });
        let segments = (0..count).map(segment);
        Self::strided(&segments.collect::<Result<heapless::Vec<_, MAX_SEGMENTS>>>()?)
    }

    /// Returns the bytes of a whole row: all segments back to back, without padding.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Cuts a whole row into its segments.
    pub(crate) fn row<'a>(&self, layer: usize, row: usize, mut bytes: &'a [u8]) -> Row<'a> {
        let mut parts = [&[][..]; MAX_SEGMENTS];
        for (part, segment) in parts.iter_mut().zip(&self.segments) {
            *part = bytes.split_off(..segment.bytes).unwrap_or(&[]);
        }
        Row { layer, row, parts }
    }

    pub(crate) fn expect_row(&self, given: usize) -> Result<()> {
        ensure!(given == self.bytes(), "row buffer" is format!("{given} bytes"), but
            "a row has {} bytes", self.bytes(); "pass all segments back to back");
        Ok(())
    }
}

/// The bytes of a row of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The layer.
    pub layer: usize,
    /// The number of the row.
    pub row: usize,
    /// The segments, and empty slices behind them.
    pub parts: [&'a [u8]; MAX_SEGMENTS],
}

/// The distances between the rows of a segment: row n is (n / block_rows) * block +
/// (n % block_rows) * row bytes behind row 0. Pages with padding of their own, rows of several
/// layers side by side, and rows back to back differ only in these numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strides {
    /// Rows of a block; a power of two, or 0 for rows without blocks.
    pub block_rows: usize,
    /// Bytes from one block to the next. Without blocks it is ignored.
    pub block: usize,
    /// Bytes from one row of a block to the next.
    pub row: usize,
}

impl Strides {
    /// Returns the distances of rows without blocks.
    pub fn rows(row: usize) -> Self {
        Self { block_rows: 0, block: 0, row }
    }

    /// Returns the distances in the form that copies use.
    pub(crate) fn steps(&self) -> Steps {
        let shift = self.block_rows.max(1).ilog2();
        let gap = match self.block_rows {
            0 => 0,
            rows => self.block.wrapping_sub(rows.wrapping_mul(self.row)).cast_signed(),
        };
        Steps { row: self.row, shift, gap }
    }
}

/// [`Strides`] without a division: row n is n * row + (n >> shift) * gap bytes behind row 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    pub row: usize,
    pub shift: u32,
    pub gap: isize,
}

impl Steps {
    /// Returns the bytes from row 0 to row `n`.
    #[inline]
    pub fn offset(&self, n: usize) -> usize {
        let gaps = (n >> self.shift).wrapping_mul(self.gap.cast_unsigned());
        n.wrapping_mul(self.row).wrapping_add(gaps)
    }
}

/// Returns an error if `value` is not below `count`.
///
/// # Errors
/// An [`Error::Invalid`](crate::Error::Invalid) about `what`.
pub fn index(what: &'static str, value: usize, count: usize) -> Result<()> {
    ensure!(value < count, what is value, but "there are {count}"; "pass an index below the count");
    Ok(())
}

pub(crate) fn at_least_one(what: &'static str, value: usize) -> Result<()> {
    ensure!(value > 0, what is value, but "at least 1 is needed"; "pass a positive count");
    Ok(())
}
