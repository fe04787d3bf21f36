//! Making the store of a new file or of one that was kept.

use std::sync::{Arc, PoisonError};

use spin::Mutex;

use super::aligned::ALIGNMENT;
use super::bits::Bits;
use super::config::{PoolFile, PoolSessions};
use super::header::{self, Header, MAX_LAYERS, Places};
use super::info::{DiskCounters, DiskInfo};
use super::open::{self, Opened};
use super::record_layout::{Layout, Shape};
use super::records::{Records, Stamps};
use super::session::SessionTable;
use super::store::{Store, Wrap};
use super::write_queue::{self, MAX_BYTES, WriteQueue};
use crate::system::fork::Birth;
use crate::{Result, ensure, invalid};

impl Store {
    /// Makes the file at its full size. An error leaves nothing behind.
    ///
    /// # Errors
    /// If the geometry is invalid, the path names something that exists and is no block device, the file
    /// system lacks space (the error has the missing bytes) or refuses O_DIRECT, or a system call fails.
    pub fn create(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        let mut opened = Opened::open(file, true)?;
        if file.keep || opened.device {
            opened.lock()?;
        }
        let store = Self::make(shape, file, &opened, (opened.block, 2), None, wrap)?;
        if file.keep {
            let records = &store.records;
            if opened.device {
                store.sessions.lock().unwrap_or_else(PoisonError::into_inner).clear(records)?;
            }
            let (number, sessions) = (records.number, file.sessions.clone());
            let (shape, block) = (shape.clone(), opened.block);
            let header = Header { shape, block, number, copies: 2, sessions };
            header.write(records, 1)?;
            header.write(records, 0)?;
            records.sync()?;
            if !opened.device {
                opened.sync_folder()?;
            }
        }
        // From here on the file keeps its name.
        opened.created = false;
        Ok(store)
    }

    /// Opens a file that was kept, and makes this process its only writer.
    ///
    /// # Errors
    /// If the file is no pool file of this version, is damaged or too short, has another geometry, another
    /// process or pool has it open, or a system call fails.
    pub fn open(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        let opened = Opened::open(file, false)?;
        opened.lock()?;
        let (header, damaged) = Self::header(&opened)?;
        header.check(shape)?;
        let file = &PoolFile { sessions: header.sessions.clone(), ..file.clone() };
        ensure!(file.buffered || header.block.is_multiple_of(opened.block), "block of the pool file" is
            header.block, but "this device reads blocks of {}", opened.block;
            "set buffered, or move the file back to a device like the one that it was made on");
        let places = (header.block, header.copies);
        let mut store = Self::make(shape, file, &opened, places, Some(header.number), wrap)?;
        let sessions = store.sessions.get_mut().unwrap_or_else(PoisonError::into_inner);
        sessions.read(&store.records, &store.kept)?;
        if let Some(copy) = damaged {
            header.write(&store.records, copy)?;
            store.records.sync()?;
        }
        Ok(store)
    }

    /// Returns the bytes of memory that a store of this shape allocates: its queue of writes, and bits of
    /// its rows.
    ///
    /// # Errors
    /// If the geometry is invalid.
    pub fn plan_bytes(shape: &Shape, file: &PoolFile) -> Result<usize> {
        let (layout, _) = Self::lay_out(shape, file, (ALIGNMENT, 2))?;
        let sessions = SessionTable::plan_bytes(&file.sessions, shape.rows, ALIGNMENT);
        let (record, layers) = (layout.max_record_bytes(), layout.max_group_layers());
        let queue = write_queue::plan_bytes(record, layers, file.queue_bytes);
        let rows = Bits::words_for(layout.row_count() + layout.rows()) * 8;
        let records = Bits::words_for(layout.indexers() * layout.rows()) * 8;
        Ok(queue + rows + records + sessions + Stamps::BYTES)
    }

    /// Returns the shape that a kept file was made with.
    ///
    /// # Errors
    /// If the file cannot be read, or its header is not one of this version.
    pub fn stored_shape(file: &PoolFile) -> Result<Shape> {
        let file = PoolFile { buffered: true, ..file.clone() };
        Ok(Self::header(&Opened::open(&file, false)?)?.0.shape)
    }

    /// Returns the layout that [`Self::create`] gives a store of this shape.
    ///
    /// # Errors
    /// If the geometry is invalid, or the path cannot be looked at.
    pub(crate) fn plan_layout(shape: &Shape, file: &PoolFile) -> Result<Layout> {
        Ok(Self::lay_out(shape, file, (open::block_of(file)?, 2))?.0)
    }

    /// Checks what does not depend on the file system, and returns the layout of a file with blocks of `block` bytes,
    /// which begins with so many headers if it is kept.
    fn lay_out(
        shape: &Shape,
        file: &PoolFile,
        (block, headers): (usize, usize),
    ) -> Result<(Layout, Places)> {
        ensure!(!file.timeout.is_zero(), "timeout" is format!("{:?}", file.timeout), but
            "every read takes some time"; "pass the longest time that the device may take");
        ensure!(!file.keep || headers == 1 || shape.layers <= MAX_LAYERS, "layers" is
            shape.layers, but "a kept file has at most {MAX_LAYERS}"; "do not keep the file");
        let PoolSessions { count, rows, token_bytes, .. } = file.sessions;
        ensure!(file.keep || (count == 0 && token_bytes == 0), "sessions" is count, but
            "only a file that is kept has sessions and data of tokens"; "set keep");
        ensure!(count == 0 || (1..=shape.rows.min(i32::MAX as usize)).contains(&rows),
            "rows of a session's block" is rows, but "the pool has {} rows", shape.rows;
            "pass the rows of a block of your block table");
        ensure!(file.queue_bytes <= MAX_BYTES, "queue_bytes" is file.queue_bytes, but
            "a queue of writes has at most {MAX_BYTES}"; "pass fewer bytes");
        let headers = if file.keep { headers } else { 0 };
        let places = Places::new(headers, &file.sessions, shape.rows, block);
        let places = places.ok_or_else(|| {
            invalid!("sessions" is format!("{:?}", file.sessions), but
                "a file has fewer than 2^63 bytes"; "ask for fewer sessions or bytes")
        })?;
        Ok((Layout::new(shape, block, places.records)?, places))
    }

    /// Returns the header of a file, and the number of the copy that is damaged.
    fn header(opened: &Opened<'_>) -> Result<(Header, Option<usize>)> {
        let read = |copy| opened.header(copy).and_then(|header| Header::decode(header.bytes()));
        match (read(0), read(1)) {
            // A file of version 2 has records behind its header.
            (Ok(first), second) => {
                let damaged = first.copies == 2 && second.is_err();
                Ok((first, damaged.then_some(1)))
            }
            (Err(_), Ok(second)) if second.copies == 2 => Ok((second, Some(0))),
            (Err(error), _) => Err(error),
        }
    }

    /// Makes the store of a file that is open, with a layout as for [`Self::lay_out`]; `stored` is the random number
    /// of one that was kept.
    fn make(
        shape: &Shape,
        file: &PoolFile,
        opened: &Opened<'_>,
        layout: (usize, usize),
        stored: Option<u64>,
        wrap: Wrap<'_>,
    ) -> Result<Self> {
        let (layout, places) = Self::lay_out(shape, file, layout)?;
        opened.reserve(layout.end(), stored.is_none())?;
        ensure!(!opened.device || stored.is_some() || !header::is_header(opened.header(0)?.bytes()),
            "pool file" is file.path.display(), but
            "this device holds a pool that was kept, and nothing is overwritten";
            "open it, or clear its first 16 KiB");
        let tokens = if file.sessions.token_bytes == 0 { 0 } else { layout.rows() };
        let (rows, records) = (layout.row_count() + tokens, layout.indexers() * layout.rows());
        let records = Arc::new(Records {
            disk: wrap(opened.file.clone()),
            file: file.clone(),
            memory_alignment: opened.memory_alignment,
            number: stored.unwrap_or_else(open::random),
            present: Bits::new("bits of rows", rows, stored.is_some())?,
            queued: Bits::new("bits of queued records", records, false)?,
            counters: DiskCounters::default(),
            birth: Birth::now(),
            layout,
        });
        let (sessions, kept) = SessionTable::new(&records, places.sessions)?;
        let queue = WriteQueue::new(&records)?;
        let layout = &records.layout;
        let info = DiskInfo {
            file: file.clone(),
            io_uring: queue.flight.queue.is_some(),
            block: layout.block,
            memory_alignment: records.memory_alignment,
            file_bytes: layout.end(),
            record_bytes: layout.max_record_bytes(),
            record_layers: layout.max_group_layers(),
            padding: layout.padding(),
            queue_bytes: queue.entries.memory.len(),
            queue_records: queue.entries.all.len(),
        };
        Ok(Self {
            info,
            format: shape.format.clone(),
            queue: Mutex::new(queue),
            stamps: Stamps::new()?,
            sessions: sessions.into(),
            kept,
            tokens: places.tokens,
            records,
        })
    }
}
