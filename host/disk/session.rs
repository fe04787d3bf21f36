//! The sessions of a kept file: how many of their tokens last, in which blocks of rows, and bytes of the caller.
//!
//! The file has two copies of each session. A commit makes rows and data of tokens durable, then the first copy,
//! and then it writes the second, which the next commit makes durable before it writes the first again. So one copy is
//! whole at any moment, and if both are, that of the higher generation is the last that was committed.
//!
//! Rows of a committed token cannot be written until a commit without it is durable in both copies, so that no
//! copy ever names a row that was written since.

use std::sync::atomic::{AtomicU32, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::aligned::Aligned;
use super::config::PoolSessions;
use super::records::Records;
use crate::system::reserve;
use crate::system::stored_words::{put, word};
use crate::{Result, ensure};

const WHAT: &str = "sessions of the pool file";
/// Bytes before the blocks: checksum, generation, length, number of blocks, bytes of the caller.
const HEAD: usize = 40;

/// Returns the bytes of a copy of a session in a file with so many rows.
pub(super) fn entry_bytes(sessions: &PoolSessions, rows: usize, block: usize) -> Option<usize> {
    let blocks = rows.checked_div(sessions.rows)?.checked_mul(4)?;
    blocks.checked_add(HEAD)?.checked_add(sessions.bytes)?.checked_next_multiple_of(block)
}

/// What a session has committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The number of tokens.
    pub length: usize,
    /// The blocks of rows that have them, in order.
    pub blocks: Vec<i32>,
    /// Bytes of the caller.
    pub bytes: Vec<u8>,
}

impl Session {
    /// Returns a session of these tokens.
    pub(super) fn new(length: usize, blocks: &[i32], bytes: &[u8]) -> Result<Self> {
        let (blocks, bytes) = (reserve::copied(WHAT, blocks)?, reserve::copied(WHAT, bytes)?);
        Ok(Self { length, blocks, bytes })
    }
}

/// What a copy in the file says.
#[derive(Clone, Default)]
pub(super) struct Saved {
    generation: u64,
    session: Session,
}

/// The rows of each block that cannot be written.
pub(crate) struct Kept {
    rows: usize,
    /// Rows from the first on, by block.
    of_block: Vec<AtomicU32>,
}

impl Kept {
    /// Checks that a row may be written.
    pub fn check(&self, row: usize) -> Result<()> {
        let Some(block) = row.checked_div(self.rows) else { return Ok(()) };
        let kept = self.of_block.get(block).map_or(0, |kept| kept.load(Ordering::Acquire));
        ensure!(row % self.rows >= kept as usize, "row" is row, but
            "a session keeps the first {kept} rows of block {block}";
            "commit the session without them first, or write to a block of its own");
        Ok(())
    }
}

/// The table of all sessions.
pub(super) struct SessionTable {
    /// Offset in the file.
    at: u64,
    /// What each session has; `None` if it is damaged.
    pub saved: Vec<Option<Saved>>,
    /// A copy that is read or written.
    one: Aligned,
    /// For each block 0, or one more than the rows that are kept.
    marks: Vec<u32>,
    /// Whether a copy may have been written that is not in `saved`.
    broken: bool,
}

impl SessionTable {
    /// Returns the bytes of memory of a table.
    pub fn plan_bytes(sessions: &PoolSessions, rows: usize, block: usize) -> usize {
        let entry = entry_bytes(sessions, rows, block).unwrap_or(0);
        let blocks = rows.checked_div(sessions.rows).unwrap_or(0);
        let each = entry.saturating_add(size_of::<Saved>());
        // A copy that is read or written, and a session that is committed.
        each.saturating_mul(sessions.count.saturating_add(2)).saturating_add(8 * blocks)
    }

    /// Returns a table of empty sessions, and the rows that they keep.
    pub fn new(records: &Records, at: u64) -> Result<(Self, Kept)> {
        let (sessions, layout) = (&records.file.sessions, &records.layout);
        let entry = entry_bytes(sessions, layout.rows(), layout.block).unwrap_or(0);
        let blocks = layout.rows().checked_div(sessions.rows).unwrap_or(0);
        let kept = Kept { rows: sessions.rows, of_block: reserve::defaults(WHAT, blocks)? };
        let (one, marks) = (Aligned::zeroed(WHAT, entry)?, reserve::filled(WHAT, blocks, 0)?);
        let saved = reserve::filled(WHAT, sessions.count, Some(Saved::default()))?;
        Ok((Self { at, saved, one, marks, broken: false }, kept))
    }

    /// Writes the table of a new file on a device, where other bytes may be.
    pub fn clear(&self, records: &Records) -> Result<()> {
        let mut all = (0..self.saved.len()).flat_map(|session| [(session, 0), (session, 1)]);
        all.try_for_each(|(session, copy)| self.write(records, session, copy))
    }

    /// Reads the table of a file, and repairs the copies that do not count.
    pub fn read(&mut self, records: &Records, kept: &Kept) -> Result<()> {
        let mut repaired = false;
        for session in 0..self.saved.len() {
            let mut copies = [None, None];
            for (copy, found) in copies.iter_mut().enumerate() {
                records.read(self.offset(session, copy), self.one.bytes_mut())?;
                *found = decode(records, session, self.one.bytes())?;
            }
            let [first, second] = copies.each_ref().map(|it| it.as_ref().map(|it| it.generation));
            // If none is whole, the session is not.
            let [older, newer] = if second > first { [0, 1] } else { [1, 0] };
            self.saved[session] = copies[newer].take();
            if let Some(saved) = self.saved[session].as_ref().filter(|_| first != second) {
                encode(records, session, saved, self.one.bytes_mut());
                self.write(records, session, older)?;
                repaired = true;
            }
        }
        self.protect(kept, None);
        if repaired { records.sync() } else { Ok(()) }
    }

    /// Writes `one` as a copy of a session.
    fn write(&self, records: &Records, session: usize, copy: usize) -> Result<()> {
        let bytes = used(self.one.bytes()).next_multiple_of(records.layout.block);
        records.write(self.offset(session, copy), &self.one.bytes()[..bytes])
    }

    fn offset(&self, session: usize, copy: usize) -> u64 {
        self.at + ((2 * session + copy) * self.one.bytes().len()) as u64
    }

    /// Returns what a session has; `None` if it is damaged.
    pub fn get(&self, session: usize) -> Option<&Session> {
        self.saved[session].as_ref().map(|saved| &saved.session)
    }

    /// Sets the rows that cannot be written: those of the tokens of all sessions and, for a session that is to be
    /// `pending`, also of these tokens; and all rows of blocks that several sessions have.
    fn protect(&mut self, kept: &Kept, pending: Option<(usize, &Session)>) {
        let (rows, saved) = (kept.rows, self.saved.iter().enumerate());
        let saved = saved.filter_map(|(n, saved)| Some((n, &saved.as_ref()?.session)));
        let is_own = |&(n, _): &(usize, &Session)| pending.is_some_and(|(own, _)| n == own);
        let own = pending.into_iter().chain(saved.clone().filter(is_own));
        let all = own.chain(saved.filter(|session| !is_own(session)));
        self.marks.fill(0);
        for (n, session) in all {
            for (at, &block) in session.blocks.iter().enumerate() {
                let Some(mark) = self.marks.get_mut(block as usize) else { continue };
                let shared = *mark > 0 && !is_own(&(n, session));
                let of_block = session.length.saturating_sub(at * rows).min(rows);
                *mark = (*mark).max(if shared { rows } else { of_block } as u32 + 1);
            }
        }
        for (mark, kept) in self.marks.iter().zip(&kept.of_block) {
            kept.store(mark.saturating_sub(1), Ordering::Release);
        }
    }

    /// Checks what a session is to be, and returns whether it only adds to what the session is.
    pub fn check(&mut self, records: &Records, session: usize, next: &Session) -> Result<bool> {
        let Session { length, blocks, bytes } = next;
        let PoolSessions { rows, bytes: most, token_bytes, .. } = records.file.sessions;
        let count = self.marks.len();
        ensure!(!self.broken, "session" is session, but "an earlier commit of the file has failed";
            "drop the pool and open it again");
        ensure!(bytes.len() <= most, "bytes of the session" is bytes.len(), but
            "the file was made for {most}"; "pass fewer");
        ensure!(*length <= blocks.len().saturating_mul(rows), "length" is length, but
            "{} blocks have {rows} rows each", blocks.len(); "pass a block for each token");
        self.marks.fill(0);
        for &block in blocks {
            let mark = usize::try_from(block).ok().and_then(|block| self.marks.get_mut(block));
            let new = mark.is_some_and(|mark| std::mem::replace(mark, 1) == 0);
            ensure!(new, "block of the session" is block, but
                "the file has {count}, each at most once in a session"; "pass the session's blocks");
        }
        let same = self.get(session).filter(|old| {
            let needed = old.length.div_ceil(rows);
            old.length <= *length && old.blocks.get(..needed) == blocks.get(..needed)
        });
        for token in same.map_or(0, |old| old.length)..*length {
            let row = blocks[token / rows] as usize * rows + token % rows;
            for layer in 0..records.layout.layers() {
                if !records.is_present(layer, row) {
                    return Err(records.not_whole(layer, row));
                }
            }
            if token_bytes != 0 && !records.present.get(records.layout.row_count() + row) {
                return Err(records.no_data(row));
            }
        }
        Ok(same.is_some())
    }

    /// Makes a session what was checked, durably. All rows and data of tokens are.
    pub fn commit(
        &mut self,
        records: &Records,
        kept: &Kept,
        (session, next): (usize, Session),
        adds: bool,
    ) -> Result<()> {
        let generation = self.saved[session].as_ref().map_or(0, |old| old.generation) + 1;
        // The rows of both states are kept until it is known which one the file has.
        self.protect(kept, Some((session, &next)));
        let saved = Saved { generation, session: next };
        encode(records, session, &saved, self.one.bytes_mut());
        self.broken = true;
        self.write(records, session, 0)?;
        records.sync()?;
        self.write(records, session, 1)?;
        if !adds {
            records.sync()?;
        }
        self.saved[session] = Some(saved);
        self.broken = false;
        self.protect(kept, None);
        Ok(())
    }
}

/// Returns the bytes of a copy that are not padding; as many as no copy has if the numbers are damaged.
fn used(entry: &[u8]) -> usize {
    let blocks = word(entry, 3).saturating_mul(4);
    blocks.saturating_add(word(entry, 4)).saturating_add(HEAD as u64) as usize
}

/// Returns the checksum of a copy whose numbers are right.
fn sum(records: &Records, session: usize, entry: &[u8]) -> u64 {
    xxh3_64_with_seed(&entry[8..used(entry)], records.number.wrapping_add(session as u64))
}

/// Makes `entry` a copy of a session.
fn encode(records: &Records, session: usize, saved: &Saved, entry: &mut [u8]) {
    let Saved { generation, session: Session { length, blocks, bytes } } = saved;
    entry.fill(0);
    put(entry, 1, [*generation, *length as u64, blocks.len() as u64, bytes.len() as u64]);
    let (of_blocks, rest) = entry[HEAD..].split_at_mut(4 * blocks.len());
    let places = of_blocks.as_chunks_mut().0.iter_mut();
    places.zip(blocks).for_each(|(place, block)| *place = block.to_le_bytes());
    rest[..bytes.len()].copy_from_slice(bytes);
    let sum = sum(records, session, entry);
    put(entry, 0, [sum]);
}

/// Returns what a copy says if it is whole. One that was never written is all zeros.
fn decode(records: &Records, session: usize, entry: &[u8]) -> Result<Option<Saved>> {
    let empty = entry[..HEAD] == [0; HEAD];
    if used(entry) > entry.len() || !empty && word(entry, 0) != sum(records, session, entry) {
        return Ok(None);
    }
    let (of_blocks, bytes) = entry[HEAD..used(entry)].split_at(4 * word(entry, 3) as usize);
    let blocks = of_blocks.as_chunks().0.iter().map(|block| i32::from_le_bytes(*block));
    let blocks = reserve::collected(WHAT, of_blocks.len() / 4, blocks)?;
    let (length, bytes) = (word(entry, 2) as usize, reserve::copied(WHAT, bytes)?);
    let session = Session { length, blocks, bytes };
    Ok(Some(Saved { generation: word(entry, 1), session }))
}
