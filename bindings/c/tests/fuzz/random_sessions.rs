//! The sessions of a kept file. Each thread has a file of its own and a model of it, which says what every call must
//! answer, with valid and with invalid arguments.

use std::ffi::CString;
use std::ptr::{null_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::c_path;
use avsg_capi_testkit::*;
use avsg_testkit::content::fill_row;

use super::random_caller::RandomCaller;
use super::session_files::{
    BLOCK, BLOCKS, Content, DATA, SESSIONS, Session, SessionFile, TOKEN, TOKENS,
};
use super::shared_handles::remove;

impl RandomCaller<'_> {
    /// Counts a call that must have an answer; `None` is success or a missing row.
    fn answer(&mut self, status: avsg_status, expected: Option<avsg_status>) -> bool {
        let text = last_error();
        match expected {
            Some(expected) => assert_eq!(status, expected, "{text}"),
            None => assert!(matches!(status, AVSG_OK | AVSG_LOST_ROWS), "{text}"),
        }
        self.record(status)
    }

    /// Creates a file.
    fn create_sessions(&mut self) -> SessionFile {
        let path = c_path(&self.shared.folder.file(&format!("{:x}", self.word())));
        let (file, mut pool) = (self.file_of(&path), null_mut());
        let config = avsg_pool_config { file: &file, ..pool_config() };
        // SAFETY: the structs have their `size` set, and `path` outlives the call.
        self.expect(unsafe { avsg_pool_create(&config, &mut pool) });
        let (pool, content) = (pool.addr(), [[Content::Missing; ROWS]; 3]);
        let (dirty, reopened, sessions, version) = Default::default();
        SessionFile { path, pool, content, dirty, reopened, sessions, version }
    }

    fn file_of(&mut self, path: &CString) -> avsg_pool_file {
        avsg_pool_file {
            path: path.as_ptr(),
            keep: 1,
            buffered: self.shared.buffered.into(),
            queue_bytes: [0, 1, 9000][self.below(3)],
            sessions: SESSIONS,
            session_rows: BLOCK,
            session_bytes: DATA,
            token_bytes: TOKEN,
            ..sized()
        }
    }

    /// Destroys the pool of the thread's file, and removes its name.
    pub(super) fn end_sessions(&mut self) {
        if let Some(file) = self.sessions.take() {
            self.expect(avsg_pool_destroy(without_provenance_mut(file.pool)));
            remove(&file.path);
        }
    }

    /// Makes a call on the thread's file.
    pub(super) fn session(&mut self) {
        if self.rarely(150) {
            self.end_sessions();
        }
        let file = self.sessions.take();
        let mut file = file.unwrap_or_else(|| self.create_sessions());
        match self.below(38) {
            0..12 => {
                let what: Vec<usize> = (0..self.below(4)).map(|_| self.index(2)).collect();
                let what = if self.rarely(3) { vec![TOKENS] } else { what };
                let (first, rows) = (self.index(ROWS), self.below(20));
                let unit = if what == [TOKENS] { TOKEN } else { ROW };
                let bytes = self.mostly(rows * what.len() * unit);
                let write = self.rarely(2);
                self.transfer(&mut file, write, &what, first, bytes);
            }
            12..28 => self.commit(&mut file),
            28..34 => {
                let session = self.index(SESSIONS);
                self.check_session(&file, session);
            }
            34..37 => self.open_sessions(&mut file),
            _ => {
                self.expect(avsg_pool_flush(without_provenance_mut(file.pool)));
                file.dirty.clear();
            }
        }
        self.sessions = Some(file);
    }

    /// Writes or reads rows of layers or, if `what` is [`TOKENS`], the data of tokens.
    fn transfer(
        &mut self,
        file: &mut SessionFile,
        write: bool,
        what: &[usize],
        first: usize,
        bytes: usize,
    ) {
        let (tokens, count) = (what == [TOKENS], what.len());
        let unit = if tokens { TOKEN } else { ROW };
        let each = count * unit;
        let rows = bytes.checked_div(each).unwrap_or(0);
        let end = first.saturating_add(rows);
        let fits = end <= ROWS || (rows == 0 && !tokens);
        let whole = bytes.checked_rem(each).unwrap_or(bytes) == 0;
        let valid = fits && whole && (tokens || what.iter().all(|&layer| layer < 2));
        // A length that is wrong may be more than any memory has.
        let mut data = vec![0; if valid { bytes } else { 80 * ROW }];
        let version = |at: usize| file.version + at as u32;
        let fill = |row: usize, version: u32, to: &mut [u8]| fill_row(row as i32, version, to);
        let all = (0..if valid { rows * count } else { 0 }).map(|n| (n / rows, n % rows));
        if write {
            for (at, n) in all.clone() {
                fill(first + n, version(at), &mut data[(at * rows + n) * unit..][..unit]);
            }
        }
        let content = |(at, n): (usize, usize)| file.content[what[at]][first + n];
        let expected = if !valid || (write && (first..end).any(|row| rows > 0 && file.is_kept(row)))
        {
            Some(AVSG_INVALID)
        } else if !write && all.clone().any(|at| content(at) == Content::Missing) {
            Some(AVSG_LOST_ROWS)
        } else if !write && all.clone().any(|at| content(at) == Content::Unknown) {
            None
        } else {
            Some(AVSG_OK)
        };
        let (pool, at) = (without_provenance_mut(file.pool), data.as_mut_ptr().cast());
        // SAFETY: the lists have the lengths beside them, or a length that the library refuses before it reads.
        let status = unsafe {
            match (tokens, write) {
                (true, true) => avsg_pool_write_tokens(pool, first, at, bytes),
                (true, false) => avsg_pool_read_tokens(pool, first, at, bytes),
                (_, true) => avsg_pool_write_rows(pool, what.as_ptr(), count, first, at, bytes),
                (_, false) => avsg_pool_read_rows(pool, what.as_ptr(), count, first, at, bytes),
            }
        };
        if !self.answer(status, expected) {
            return;
        }
        for (at, n) in all {
            let (layer, row) = (what[at], first + n);
            let version = file.version + at as u32;
            if write {
                file.content[layer][row] = Content::Version(version);
                file.dirty.insert((layer, row));
            } else if let Content::Version(version) = file.content[layer][row] {
                let mut right = vec![0; unit];
                fill(row, version, &mut right);
                assert!(
                    data[(at * rows + n) * unit..][..unit] == right,
                    "layer {layer}, row {row}"
                );
                self.checked += 1;
            }
        }
        file.version += count as u32;
    }

    /// Commits a session that grows, is cut, is removed, takes blocks of another one, or is anything.
    fn commit(&mut self, file: &mut SessionFile) {
        let session = self.index(SESSIONS);
        let mut to = file.sessions.get(session).cloned().unwrap_or_default();
        let mut written = 0..0;
        match self.below(8) {
            0 => to.length = self.below(to.length + 1),
            1 => to = Session::default(),
            2 => {
                to.clone_from(&file.sessions[self.below(SESSIONS)]);
                to.length = self.below(to.length + 1);
                to.blocks.truncate(to.length.div_ceil(BLOCK));
            }
            3 => {
                to.blocks = (0..self.below(4)).map(|_| self.index(BLOCKS) as i32).collect();
                to.length = self.below(to.blocks.len() * BLOCK + 2);
            }
            _ => {
                let old = to.length;
                to.length += self.below(20);
                while to.blocks.len() * BLOCK < to.length && to.blocks.len() < BLOCKS {
                    let free = |block: &i32| !to.blocks.contains(block);
                    let free: Vec<i32> = (0..BLOCKS as i32).filter(free).collect();
                    to.blocks.push(free[self.below(free.len())]);
                }
                to.length = to.length.min(to.blocks.len() * BLOCK);
                written = if self.rarely(6) { 0..0 } else { old..to.length };
            }
        }
        while !written.is_empty() {
            let (block, at) = (to.blocks[written.start / BLOCK] as usize, written.start % BLOCK);
            let rows = written.len().min(BLOCK - at);
            let layers = if self.rarely(12) { &[0][..] } else { &[0, 1] };
            self.transfer(file, true, layers, block * BLOCK + at, layers.len() * rows * ROW);
            if !self.rarely(12) {
                self.transfer(file, true, &[TOKENS], block * BLOCK + at, rows * TOKEN);
            }
            written.start += rows;
        }
        let most = if self.rarely(20) { DATA + 9 } else { DATA };
        to.data = (0..self.below(most + 1)).map(|_| self.word() as u8).collect();
        let c = avsg_session {
            length: to.length,
            blocks: to.blocks.as_mut_ptr(),
            block_count: to.blocks.len(),
            data: to.data.as_mut_ptr().cast(),
            bytes: to.data.len(),
            ..sized()
        };
        let expected = file.commit_answer(session, &to);
        // SAFETY: the struct has its `size` set, and its arrays the lengths beside them.
        let status =
            unsafe { avsg_pool_commit_session(without_provenance_mut(file.pool), session, &c) };
        if self.answer(status, expected) {
            file.dirty.clear();
            file.sessions[session] = to;
            self.check_session(file, session);
        }
    }

    /// Checks what a session is, with room for it, too little, or none.
    fn check_session(&mut self, file: &SessionFile, session: usize) {
        let (mut blocks, mut data) = ([-7; BLOCKS], [7u8; DATA]);
        let rooms = [[BLOCKS, 0, self.below(BLOCKS)], [DATA, 0, self.below(DATA)]];
        let [block_count, bytes] = rooms.map(|rooms| rooms[self.below(3)]);
        let mut got = avsg_session {
            blocks: blocks.as_mut_ptr(),
            block_count,
            data: data.as_mut_ptr().cast(),
            bytes,
            ..sized()
        };
        // SAFETY: the struct has its `size` set, and the arrays have the room that it names.
        let status =
            unsafe { avsg_pool_get_session(without_provenance_mut(file.pool), session, &mut got) };
        let right = file.sessions.get(session).filter(|right| {
            let room = |room: usize, needed: usize| room == 0 || needed <= room;
            room(block_count, right.blocks.len()) && room(bytes, right.data.len())
        });
        if !self.answer(status, Some(right.map_or(AVSG_INVALID, |_| AVSG_OK))) {
            return;
        }
        let Some(right) = right else { return };
        let numbers = (right.length, right.blocks.len(), right.data.len());
        assert_eq!((got.length, got.block_count, got.bytes), numbers);
        assert!(block_count == 0 || blocks[..right.blocks.len()] == right.blocks);
        assert!(bytes == 0 || data[..right.data.len()] == right.data);
        self.checked += 1;
    }

    /// Closes the file, with or without a flush, and opens it: each session is as its last commit left it.
    fn open_sessions(&mut self, file: &mut SessionFile) {
        let mut again = self.file_of(&file.path);
        again.sessions = self.index(9);
        again.session_rows = self.index(9);
        let mut pool = null_mut();
        // The attempt waits a second for the other writer, and is a small part of a long run.
        if self.rarely(2000) {
            // SAFETY: the struct has its `size` set, and `file` owns its path.
            let status = unsafe { avsg_pool_open(&again, &mut pool) };
            assert!(!self.record(status), "the file has two writers");
        }
        if self.rarely(2) {
            self.expect(avsg_pool_flush(without_provenance_mut(file.pool)));
            file.dirty.clear();
        }
        self.expect(avsg_pool_destroy(without_provenance_mut(file.pool)));
        // SAFETY: as above.
        self.expect(unsafe { avsg_pool_open(&again, &mut pool) });
        // SAFETY: the struct has its `size` set.
        let info = self.filled(|to| unsafe { avsg_pool_get_info(pool, to) });
        let sizes = [info.sessions, info.session_rows, info.session_bytes, info.token_bytes];
        assert_eq!(sizes, [SESSIONS, BLOCK, DATA, TOKEN], "those that the file was made with");
        (file.pool, file.reopened) = (pool.addr(), true);
        while let Some((layer, row)) = file.dirty.pop_first() {
            file.content[layer][row] = Content::Unknown;
        }
        for session in 0..SESSIONS {
            self.check_session(file, session);
            let Session { length, blocks, .. } = file.sessions[session].clone();
            for (n, block) in blocks.into_iter().enumerate().take(length.div_ceil(BLOCK)) {
                let (first, rows) = (block as usize * BLOCK, (length - n * BLOCK).min(BLOCK));
                self.transfer(file, false, &[0, 1], first, 2 * rows * ROW);
                self.transfer(file, false, &[TOKENS], first, rows * TOKEN);
            }
        }
    }
}
