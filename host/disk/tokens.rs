//! The caller's data of each token, side by side in the file: a fixed number of bytes and a checksum.

use std::ops::Range;
use std::sync::PoisonError;

use super::aligned::Aligned;
use super::checksum;
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
        let block = self.records.layout.block();
        let file = self.records.number;
        for piece in self.token_pieces(&rows) {
            let (low, mut memory) = self.token_blocks(&piece)?;
            let last = memory.bytes().len() - block;
            for edge in [0, last].into_iter().take(1 + usize::from(last > 0)) {
                let bytes = &mut memory.bytes_mut()[edge..][..block];
                self.records.read(low + edge as u64, bytes)?;
            }
            for row in piece.clone() {
                let (at, from) = (self.token_at(row) - low, (row - rows.start) * len);
                let (to, data) = (&mut memory.bytes_mut()[at as usize..], &data[from..][..len]);
                let number = self.layout().row_count() + row;
                to[..len].copy_from_slice(data);
                to[len..][..checksum::BYTES].copy_from_slice(&checksum::of_row(file, number, data));
            }
            self.records.write(low, memory.bytes())?;
            piece.for_each(|row| self.records.present.set(self.layout().row_count() + row));
        }
        Ok(())
    }

    /// Reads the data of the tokens in the rows from `first` on.
    ///
    /// # Errors
    /// As for [`Self::write_tokens`], or if the data of a token is not whole.
    pub fn read_tokens(&self, first: usize, into: &mut [u8]) -> Result<()> {
        let (rows, len) = self.token_rows(first, into.len())?;
        for piece in self.token_pieces(&rows) {
            let (low, mut memory) = self.token_blocks(&piece)?;
            self.records.read(low, memory.bytes_mut())?;
            for row in piece {
                let from = &memory.bytes()[(self.token_at(row) - low) as usize..];
                let (data, number) = (&from[..len], self.layout().row_count() + row);
                let sum = checksum::of_row(self.records.number, number, data);
                if from[len..][..checksum::BYTES] != sum {
                    return Err(self.records.no_data(row));
                }
                into[(row - rows.start) * len..][..len].copy_from_slice(data);
            }
        }
        Ok(())
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

    fn token_at(&self, row: usize) -> u64 {
        self.tokens + row as u64 * (self.records.file.sessions.token_bytes + checksum::BYTES) as u64
    }

    fn token_pieces(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let each =
            (PIECE_BYTES / (self.records.file.sessions.token_bytes + checksum::BYTES)).max(1);
        let end = rows.end;
        rows.clone().step_by(each).map(move |start| start..end.min(start + each))
    }

    /// Returns the offset of the blocks that have the data of tokens, and memory for these blocks.
    fn token_blocks(&self, rows: &Range<usize>) -> Result<(u64, Aligned)> {
        let block = self.layout().block() as u64;
        let (start, end) = (self.token_at(rows.start), self.token_at(rows.end));
        let low = start - start % block;
        let bytes = (end.next_multiple_of(block) - low) as usize;
        Aligned::zeroed(WHAT, bytes).map(|memory| (low, memory))
    }
}
