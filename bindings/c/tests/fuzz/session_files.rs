//! What a random run knows of a kept file with sessions: what its rows, the data of its tokens and its sessions are to
//! be, and what a commit must answer.

use std::collections::BTreeSet;
use std::ffi::CString;

use avsg_capi::avsg_status;
use avsg_capi::avsg_status::*;
use avsg_capi_testkit::ROWS;

/// The file has this many sessions, of blocks with so many rows, and bytes of the caller for sessions and tokens.
pub const SESSIONS: usize = 3;
pub const BLOCK: usize = 16;
pub const BLOCKS: usize = ROWS / BLOCK;
pub const DATA: usize = 30;
pub const TOKEN: usize = 20;
/// The place of the data of tokens in [`SessionFile::content`], behind the two layers.
pub const TOKENS: usize = 2;

/// What a row of a layer, or the data of a token, has.
#[derive(Clone, Copy, PartialEq)]
pub enum Content {
    /// It was never written.
    Missing,
    /// It has the bytes of a version.
    Version(u32),
    /// It was written, and the pool was closed without a flush.
    Unknown,
}

/// What a session has.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Session {
    pub length: usize,
    pub blocks: Vec<i32>,
    pub data: Vec<u8>,
}

/// A kept file, and what it is to have.
pub struct SessionFile {
    pub path: CString,
    /// The handle of the pool.
    pub pool: usize,
    pub content: [[Content; ROWS]; 3],
    /// What was written since the last flush or commit.
    pub dirty: BTreeSet<(usize, usize)>,
    /// Whether the pool was opened, so that it does not know which rows were never written.
    pub reopened: bool,
    pub sessions: [Session; SESSIONS],
    pub version: u32,
}

impl SessionFile {
    /// Returns the number of rows of a block that no call may write.
    fn kept(&self, block: usize) -> usize {
        let place = |session: &Session| {
            let at = session.blocks.iter().position(|&b| b as usize == block)?;
            Some(session.length.saturating_sub(at * BLOCK).min(BLOCK))
        };
        let found: Vec<usize> = self.sessions.iter().filter_map(place).collect();
        if found.len() > 1 { BLOCK } else { found.first().map_or(0, |&rows| rows) }
    }

    /// Returns whether a session keeps a row.
    pub fn is_kept(&self, row: usize) -> bool {
        row % BLOCK < self.kept(row / BLOCK)
    }

    /// Returns what a commit must answer; `None` if it may succeed or find a row missing.
    pub fn commit_answer(&self, session: usize, to: &Session) -> Option<avsg_status> {
        let mut blocks = BTreeSet::new();
        let is_new = |&block: &i32| (0..BLOCKS as i32).contains(&block) && blocks.insert(block);
        let fits = to.length <= to.blocks.len() * BLOCK && to.data.len() <= DATA;
        if session >= SESSIONS || !fits || !to.blocks.iter().all(is_new) {
            return Some(AVSG_INVALID);
        }
        let row = |token: usize| to.blocks[token / BLOCK] as usize * BLOCK + token % BLOCK;
        let rows = (0..to.length).map(row);
        let of = |content| {
            rows.clone().any(|row| self.content.iter().any(|layer| layer[row] == content))
        };
        match (of(Content::Missing), of(Content::Unknown), self.reopened) {
            (true, _, false) => Some(AVSG_LOST_ROWS),
            (false, false, _) => Some(AVSG_OK),
            _ => None,
        }
    }
}
