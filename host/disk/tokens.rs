//! The caller's data of each token, side by side in the file: a fixed number of bytes and a checksum.

use std::ops::Range;
use std::sync::PoisonError;

use super::aligned::Aligned;
use super::record_layout::CHECKSUM;
use super::store::Store;
use crate::{Result, ensure, rows};

const WHAT: &str = "data of tokens";
/// The most bytes of a read or write, unless the data of a token is longer.
const PIECE_BYTES: usize = 1 << 20;

impl Store {
    /// Writes the data of the tokens in the rows from `first` on, which become durable with a flush.
    ///
    /// # Errors
    /// If the file has no data of tokens, there is no such row, a session keeps it, the length is not that of
    /// whole tokens, or a read or write fails.
    pub fn write_tokens(&self, first: usize, data: &[u8]) -> Result<()> {
        let (rows, len) = self.token_rows(first, data.len())?;
        rows.clone().try_for_each(|row| self.kept.check(row))?;
        // Two writers may change the same block.
        let _table = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut data = data.chunks_exact(len);
        self.token_pieces(&rows, |rows, low, tokens, blocks| {
            let (block, last) = (self.layout().block, blocks.len() - self.layout().block);
            for edge in [0, last].into_iter().take(1 + usize::from(last > 0)) {
                self.records.read(low + edge as u64, &mut blocks[edge..][..block])?;
            }
            let places = blocks[tokens].chunks_exact_mut(len + CHECKSUM);
            for ((row, place), data) in rows.clone().zip(places).zip(&mut data) {
                place[..len].copy_from_slice(data);
                self.records.seal(self.layout().row_count() + row, place);
            }
            self.records.write(low, blocks)?;
            rows.for_each(|row| self.records.present.set(self.layout().row_count() + row));
            Ok(())
        })
    }

    /// Reads the data of the tokens in the rows from `first` on.
    ///
    /// # Errors
    /// As for [`Self::write_tokens`], or if the data of a token is not whole.
    pub fn read_tokens(&self, first: usize, into: &mut [u8]) -> Result<()> {
        let (rows, len) = self.token_rows(first, into.len())?;
        let mut into = into.chunks_exact_mut(len);
        self.token_pieces(&rows, |rows, low, tokens, blocks| {
            self.records.read(low, blocks)?;
            let places = blocks[tokens].chunks_exact(len + CHECKSUM);
            for ((row, place), into) in rows.zip(places).zip(&mut into) {
                let data = self.records.sealed(self.layout().row_count() + row, place);
                into.copy_from_slice(data.ok_or_else(|| self.records.no_data(row))?);
            }
            Ok(())
        })
    }

    /// Checks rows of tokens by the bytes of their data, and returns them with the bytes of each.
    fn token_rows(&self, first: usize, bytes: usize) -> Result<(Range<usize>, usize)> {
        self.records.birth.check("pool")?;
        let len = self.records.file.sessions.token_bytes;
        ensure!(len != 0, "token_bytes" is len, but "the file has no data of tokens";
            "make the file with some");
        ensure!(bytes.is_multiple_of(len), "data of tokens" is format!("{bytes} bytes"), but
            "a token has {len}"; "pass whole tokens");
        let end = first.saturating_add(bytes / len);
        end.checked_sub(1).map_or(Ok(()), |last| rows::index("row", last, self.layout().rows()))?;
        Ok((first..end, len))
    }

    /// Calls `work` for one piece of the rows after the other, with the offset of the blocks that have the data of its
    /// tokens, where that is in the blocks, and memory for them.
    fn token_pieces(
        &self,
        rows: &Range<usize>,
        mut work: impl FnMut(Range<usize>, u64, Range<usize>, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (stride, block) =
            (self.records.file.sessions.token_bytes + CHECKSUM, self.layout().block);
        let each = (PIECE_BYTES / stride).max(1);
        for start in rows.clone().step_by(each) {
            let piece = start..rows.end.min(start + each);
            let from = self.tokens + (start * stride) as u64;
            let before = (from % block as u64) as usize;
            let tokens = before..before + piece.len() * stride;
            let mut blocks = Aligned::zeroed(WHAT, tokens.end.next_multiple_of(block))?;
            work(piece, from - before as u64, tokens, blocks.bytes_mut())?;
        }
        Ok(())
    }
}
