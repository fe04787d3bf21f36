//! The sessions of a kept file: how many of their tokens last, in which blocks of rows, and bytes of the caller.
//!
//! The file has two copies of each session. A commit makes rows and data of tokens durable, then the first copy,
//! and then it writes the second, which the next commit makes durable before it writes the first again. So one copy is
//! whole at any moment, and if both are, that of the higher generation is the last that was committed.
//!
//! Rows of a committed token cannot be written until a commit without it is durable in both copies, so that no
//! copy ever names a row that was written since.

use std::sync::atomic::{AtomicU32, Ordering};

use super::aligned::Aligned;
use super::checksum;
use super::config::PoolSessions;
use super::records::Records;
use crate::system::reserve;
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

/// A copy of a session in memory.
struct Copy<'a> {
    generation: u64,
    length: usize,
    blocks: &'a [[u8; 4]],
    bytes: &'a [u8],
}

impl Copy<'_> {
    fn blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().map(|block| u32::from_le_bytes(*block) as usize)
    }

    /// Returns the blocks with the rows that tokens have in each.
    fn kept(&self, rows: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let kept = move |n: usize| self.length.saturating_sub(n * rows).min(rows) as u32;
        self.blocks().enumerate().map(move |(n, block)| (block, kept(n)))
    }
}

/// The rows of each block that cannot be written.
pub(super) struct Kept {
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
    sessions: PoolSessions,
    /// Offset in the file.
    at: u64,
    /// Bytes of a copy.
    entry: usize,
    /// The copy of each session that counts.
    copies: Vec<u8>,
    /// A copy that is read or written.
    one: Aligned,
    /// For each block 0, or one more than the rows that are kept.
    marks: Vec<u32>,
    /// Whether a copy may have been written that is not in `copies`.
    broken: bool,
}

impl SessionTable {
    /// Returns the bytes of memory of a table.
    pub fn plan_bytes(sessions: &PoolSessions, rows: usize, block: usize) -> usize {
        let entry = entry_bytes(sessions, rows, block).unwrap_or(0);
        let blocks = rows.checked_div(sessions.rows).unwrap_or(0);
        entry.saturating_mul(sessions.count + 1).saturating_add(8 * blocks)
    }

    /// Returns a table of empty sessions, and the rows that they keep.
    pub fn new(records: &Records, sessions: &PoolSessions, at: u64) -> Result<(Self, Kept)> {
        let (rows, block) = (records.layout.rows(), records.layout.block());
        let entry = entry_bytes(sessions, rows, block).unwrap_or(0);
        let blocks = rows.checked_div(sessions.rows).unwrap_or(0);
        let table = Self {
            copies: reserve::filled(WHAT, entry * sessions.count, 0)?,
            one: Aligned::zeroed(WHAT, entry)?,
            marks: reserve::filled(WHAT, blocks, 0)?,
            broken: false,
            sessions: sessions.clone(),
            at,
            entry,
        };
        let of_block = reserve::defaults(WHAT, blocks)?;
        Ok((table, Kept { rows: sessions.rows, of_block }))
    }

    /// Writes the table of a new file on a device, where other bytes may be.
    pub fn clear(&self, records: &Records) -> Result<()> {
        let mut all = (0..self.sessions.count).flat_map(|session| [(session, 0), (session, 1)]);
        all.try_for_each(|(session, copy)| self.write(records, session, copy))
    }

    /// Reads the table of a file, and repairs the copies that do not count.
    pub fn read(&mut self, records: &Records, kept: &Kept) -> Result<()> {
        let mut repaired = false;
        for session in 0..self.sessions.count {
            let range = session * self.entry..(session + 1) * self.entry;
            let mut generations = [None; 2];
            for copy in [0, 1] {
                records.read(self.offset(session, copy), self.one.bytes_mut())?;
                let found = decode(records, session, self.one.bytes());
                generations[copy] = found.map(|found| found.generation);
                // If none is whole, the session is not.
                if copy == 0 || generations[1] > generations[0] {
                    self.copies[range.clone()].copy_from_slice(self.one.bytes());
                }
            }
            if generations[0] != generations[1] {
                self.one.bytes_mut().copy_from_slice(&self.copies[range]);
                self.write(records, session, usize::from(generations[1] < generations[0]))?;
                repaired = true;
            }
        }
        self.protect(records, kept, None);
        if repaired { records.sync() } else { Ok(()) }
    }

    /// Writes `one` as a copy of a session.
    fn write(&self, records: &Records, session: usize, copy: usize) -> Result<()> {
        let bytes = used(self.one.bytes()).next_multiple_of(records.layout.block());
        records.write(self.offset(session, copy), &self.one.bytes()[..bytes])
    }

    fn offset(&self, session: usize, copy: usize) -> u64 {
        self.at + (2 * session + copy) as u64 * self.entry as u64
    }

    /// Returns the number of sessions.
    pub fn count(&self) -> usize {
        self.sessions.count
    }

    /// Returns what a session has; `None` if it is damaged.
    pub fn session(&self, records: &Records, session: usize) -> Result<Option<Session>> {
        let Some(found) = self.get(records, session) else { return Ok(None) };
        let mut blocks = reserve::with_capacity(WHAT, found.blocks.len())?;
        blocks.extend(found.blocks().map(|block| block as i32));
        let bytes = reserve::copied(WHAT, found.bytes)?;
        Ok(Some(Session { length: found.length, blocks, bytes }))
    }

    fn get(&self, records: &Records, session: usize) -> Option<Copy<'_>> {
        decode(records, session, &self.copies[session * self.entry..][..self.entry])
    }

    /// Sets the rows that cannot be written: those of the tokens of all sessions and, for the session `pending`, also
    /// of its tokens in `one`; and all rows of blocks that several sessions have.
    fn protect(&mut self, records: &Records, kept: &Kept, pending: Option<usize>) {
        let Self { copies, one, marks, entry, sessions, .. } = self;
        let copy = |session: usize| (session, &copies[session * *entry..][..*entry]);
        let own = pending.map(|session| [copy(session), (session, one.bytes())]);
        let others = (0..sessions.count).filter(|&session| Some(session) != pending).map(copy);
        marks.fill(0);
        for (n, (session, bytes)) in own.into_iter().flatten().chain(others).enumerate() {
            let Some(found) = decode(records, session, bytes) else { continue };
            for (block, rows) in found.kept(sessions.rows) {
                let Some(mark) = marks.get_mut(block) else { continue };
                let shared = *mark > 0 && !(pending.is_some() && n < 2);
                *mark = (*mark).max(if shared { sessions.rows as u32 } else { rows } + 1);
            }
        }
        for (mark, kept) in marks.iter().zip(&kept.of_block) {
            kept.store(mark.saturating_sub(1), Ordering::Release);
        }
    }

    /// Checks what a session is to be, and returns whether it only adds to what the session is.
    pub fn check(
        &mut self,
        records: &Records,
        session: usize,
        length: usize,
        blocks: &[i32],
        bytes: &[u8],
    ) -> Result<bool> {
        let (rows, count) = (self.sessions.rows, self.marks.len());
        ensure!(!self.broken, "session" is session, but "an earlier commit of the file has failed";
            "drop the pool and open it again");
        ensure!(bytes.len() <= self.sessions.bytes, "bytes of the session" is bytes.len(), but
            "the file was made for {}", self.sessions.bytes; "pass fewer");
        ensure!(length <= blocks.len().saturating_mul(rows), "length" is length, but
            "{} blocks have {rows} rows each", blocks.len(); "pass a block for each token");
        self.marks.fill(0);
        for &block in blocks {
            let mark = usize::try_from(block).ok().and_then(|block| self.marks.get_mut(block));
            let new = mark.is_some_and(|mark| std::mem::replace(mark, 1) == 0);
            ensure!(new, "block of the session" is block, but
                "the file has {count}, each at most once in a session"; "pass the session's blocks");
        }
        let old = self.get(records, session);
        let needed = old.as_ref().map_or(0, |old| old.length.div_ceil(rows));
        let same = old.as_ref().is_some_and(|old| {
            let given = blocks.iter().map(|&block| block as usize);
            old.length <= length && old.blocks().take(needed).eq(given.take(needed))
        });
        let layout = &records.layout;
        for token in old.filter(|_| same).map_or(0, |old| old.length)..length {
            let row = blocks[token / rows] as usize * rows + token % rows;
            for layer in 0..layout.layers() {
                if !records.is_present(layer, row) {
                    return Err(records.not_whole(layer, row));
                }
            }
            let has_data = self.sessions.token_bytes != 0;
            if has_data && !records.present.get(layout.row_count() + row) {
                return Err(records.no_data(row));
            }
        }
        Ok(same)
    }

    /// Makes a session what was checked, durably. All rows and data of tokens are.
    pub fn commit(
        &mut self,
        records: &Records,
        kept: &Kept,
        session: usize,
        (length, blocks, bytes): (usize, &[i32], &[u8]),
        adds: bool,
    ) -> Result<()> {
        let generation = self.get(records, session).map_or(0, |old| old.generation) + 1;
        let to = self.one.bytes_mut();
        to.fill(0);
        let head = [generation, length as u64, blocks.len() as u64, bytes.len() as u64];
        let words = head.into_iter().flat_map(u64::to_le_bytes);
        let all = words.chain(blocks.iter().flat_map(|block| block.to_le_bytes()));
        to[8..].iter_mut().zip(all.chain(bytes.iter().copied())).for_each(|(to, byte)| *to = byte);
        let sum = sum(records, session, to);
        to[..8].copy_from_slice(&sum.to_le_bytes());
        // The rows of both states are kept until it is known which one the file has.
        self.protect(records, kept, Some(session));
        self.broken = true;
        self.write(records, session, 0)?;
        records.sync()?;
        self.write(records, session, 1)?;
        if !adds {
            records.sync()?;
        }
        self.copies[session * self.entry..][..self.entry].copy_from_slice(self.one.bytes());
        self.broken = false;
        self.protect(records, kept, None);
        Ok(())
    }
}

fn word(entry: &[u8], at: usize) -> u64 {
    entry.as_chunks().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns the bytes of a copy that are not padding; as many as no copy has if the numbers are damaged.
fn used(entry: &[u8]) -> usize {
    let blocks = word(entry, 3).saturating_mul(4);
    blocks.saturating_add(word(entry, 4)).saturating_add(HEAD as u64) as usize
}

/// Returns the checksum of a copy whose numbers are right.
fn sum(records: &Records, session: usize, entry: &[u8]) -> u64 {
    checksum::of_block(records.number.wrapping_add(session as u64), &entry[8..used(entry)])
}

/// Returns a copy of a session if it is whole. One that was never written is all zeros.
fn decode<'a>(records: &Records, session: usize, entry: &'a [u8]) -> Option<Copy<'a>> {
    let empty = entry[..HEAD] == [0; HEAD];
    let whole =
        used(entry) <= entry.len() && (empty || word(entry, 0) == sum(records, session, entry));
    whole.then(|| {
        let (blocks, bytes) = entry[HEAD..used(entry)].split_at(4 * word(entry, 3) as usize);
        let (generation, length) = (word(entry, 1), word(entry, 2) as usize);
        Copy { generation, length, blocks: blocks.as_chunks().0, bytes }
    })
}
