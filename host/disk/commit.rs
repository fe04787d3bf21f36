//! Commits of the sessions of a store.

use std::sync::{MutexGuard, PoisonError};

use super::session::{Session, SessionTable};
use super::store::Store;
use crate::{Result, invalid, rows};

impl Store {
    /// Returns what a session has committed; a session that never was has no tokens.
    ///
    /// # Errors
    /// If there is no such session, or it is damaged in both copies.
    pub fn session(&self, session: usize) -> Result<Session> {
        let table = self.table(session)?;
        let Some(Session { length, blocks, bytes }) = table.get(session) else {
            return Err(invalid!("session" is session, but "it is damaged in the file";
                "commit it anew"));
        };
        Session::new(*length, blocks, bytes)
    }

    /// Makes all rows and data of tokens durable, and then what a session has: `length` tokens, of which token t is
    /// row t % n of block `blocks[t / n]` for blocks of n rows, and `bytes`. After an error that tells of no system
    /// call nothing has changed. 0 tokens without blocks remove it.
    ///
    /// # Errors
    /// If there is no such session, a block is none or is listed twice, the bytes are too many, a row or the data
    /// of a new token is known to be missing, or a system call fails.
    pub fn commit_session(
        &self,
        session: usize,
        length: usize,
        blocks: &[i32],
        bytes: &[u8],
    ) -> Result<()> {
        let mut table = self.table(session)?;
        let next = Session::new(length, blocks, bytes)?;
        let adds = table.check(&self.records, session, &next)?;
        self.flush()?;
        table.commit(&self.records, &self.kept, (session, next), adds)
    }

    fn table(&self, session: usize) -> Result<MutexGuard<'_, SessionTable>> {
        self.records.birth.check("pool")?;
        let table = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        rows::index("session", session, table.count())?;
        Ok(table)
    }
}
