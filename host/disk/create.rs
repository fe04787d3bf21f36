//! Making the store of a new file or of one that was kept.

use std::sync::Arc;

use rustix::io::retry_on_intr;
use spin::Mutex;

use super::aligned::{ALIGNMENT, Aligned};
use super::bits::Bits;
use super::config::PoolFile;
use super::header::{self, Header, MAX_LAYERS};
use super::info::{DiskCounters, DiskInfo};
use super::layout::{Layout, Shape};
use super::open::{self, Opened};
use super::records::{Records, check_len};
use super::stamps::Stamps;
use super::store::{DEPTH, Store, Wrap};
use super::write_queue::{self, MAX_BYTES, WriteQueue};
use crate::system::fork::Birth;
use crate::{Error, Result, ensure};

impl Store {
    /// Makes the file at its full size. An error leaves nothing behind.
    ///
    /// # Errors
    /// If the geometry is invalid, the path names something that exists and is no block device, the file
    /// system lacks space (the error has the missing bytes) or refuses O_DIRECT, or a system call fails.
    pub fn create(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        let opened = Opened::create(file)?;
        if file.keep || opened.device {
            opened.lock(&file.path)?;
        }
        let layout = Self::lay_out(shape, file, opened.block)?;
        opened.reserve(&file.path, layout.end())?;
        let mut block = Aligned::zeroed("header of the pool file", header::BYTES)?;
        let records = Self::records(file, layout, None, &opened, wrap)?;
        if opened.device {
            records.read(0, block.bytes_mut())?;
            ensure!(!header::is_header(block.bytes()), "pool file" is file.path.display(), but
                "this device holds a pool that was kept, and nothing is overwritten";
                "open it, or clear its first 16 KiB");
        }
        if file.keep {
            let (shape, number) = (shape.clone(), records.number);
            Header { shape, block: opened.block, number }.encode(&mut block);
            records.write(0, block.bytes())?;
            records.sync()?;
            if !opened.device {
                opened.sync_folder(&file.path)?;
            }
        }
        let store = Self::assemble(shape, file, records)?;
        opened.finish();
        Ok(store)
    }

    /// Opens a file that was kept, and makes this process its only writer.
    ///
    /// # Errors
    /// If the file is no pool file of this version, is damaged or too short, has another geometry, another
    /// process or pool has it open, or a system call fails.
    pub fn open(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        let opened = Opened::existing(file)?;
        opened.lock(&file.path)?;
        let header = Self::header(&opened, file)?;
        header.check(shape)?;
        ensure!(file.buffered || header.block.is_multiple_of(opened.block), "block of the pool file" is
            header.block, but "this device reads blocks of {}", opened.block;
            "set buffered, or move the file back to a device like the one that it was made on");
        let layout = Self::lay_out(shape, file, header.block)?;
        check_len(&*opened.file, &file.path, layout.end())?;
        let records = Self::records(file, layout, Some(header.number), &opened, wrap)?;
        let store = Self::assemble(shape, file, records)?;
        opened.finish();
        Ok(store)
    }

    /// Returns the bytes of memory that a store of this shape allocates: its queue of writes, and bits of
    /// its rows.
    ///
    /// # Errors
    /// If the geometry is invalid.
    pub fn plan_bytes(shape: &Shape, file: &PoolFile) -> Result<usize> {
        let layout = Self::lay_out(shape, file, ALIGNMENT)?;
        let (record, layers) = (layout.max_record_bytes(), layout.max_group_layers());
        let queue = write_queue::plan_bytes(record, layers, file.queue_bytes);
        let rows = Bits::words_for(layout.row_count()) * 8;
        let records = Bits::words_for(layout.indexers() * layout.rows()) * 8;
        Ok(queue + rows + records + Stamps::BYTES)
    }

    /// Returns the shape that a kept file was made with.
    ///
    /// # Errors
    /// If the file cannot be read, or its header is not one of this version.
    pub fn stored_shape(file: &PoolFile) -> Result<Shape> {
        let opened = Opened::existing(&PoolFile { buffered: true, ..file.clone() })?;
        Ok(Self::header(&opened, file)?.shape)
    }

    /// Returns the layout that [`Self::create`] gives a store of this shape.
    ///
    /// # Errors
    /// If the geometry is invalid, or the path cannot be looked at.
    pub(crate) fn plan_layout(shape: &Shape, file: &PoolFile) -> Result<Layout> {
        Self::lay_out(shape, file, open::block_of(file)?)
    }

    /// Checks what does not depend on the file system, and returns the layout of a file, which begins with a
    /// header if it is kept.
    fn lay_out(shape: &Shape, file: &PoolFile, block: usize) -> Result<Layout> {
        ensure!(!file.timeout.is_zero(), "timeout" is format!("{:?}", file.timeout), but
            "every read takes some time"; "pass the longest time that the device may take");
        ensure!(!file.keep || shape.layers <= MAX_LAYERS, "layers" is shape.layers, but
            "a kept file has at most {MAX_LAYERS}"; "do not keep the file");
        ensure!(file.queue_bytes <= MAX_BYTES, "queue_bytes" is file.queue_bytes, but
            "a queue of writes has at most {MAX_BYTES}"; "pass fewer bytes");
        let start = if file.keep { header::BYTES.next_multiple_of(block) } else { 0 };
        Layout::new(shape, block, start as u64)
    }

    fn header(opened: &Opened, file: &PoolFile) -> Result<Header> {
        let mut block = Aligned::zeroed("header of the pool file", header::BYTES)?;
        // What lies behind the end of a shorter file is 0 here, as in no header.
        let read = retry_on_intr(|| rustix::io::pread(&opened.file.fd, block.bytes_mut(), 0));
        read.map_err(|error| {
            let remedy = "name another path";
            Error::os("read", file.path.display().to_string(), error, remedy)
        })?;
        Header::decode(block.bytes())
    }

    fn records(
        file: &PoolFile,
        layout: Layout,
        stored_number: Option<u64>,
        opened: &Opened,
        wrap: Wrap<'_>,
    ) -> Result<Arc<Records>> {
        Ok(Arc::new(Records {
            disk: wrap(opened.file.clone()),
            path: file.path.clone(),
            memory_alignment: opened.memory_alignment,
            unit: if file.buffered { 1 } else { layout.block() },
            keep: file.keep,
            io_uring: file.io_uring,
            timeout: file.timeout,
            number: stored_number.unwrap_or_else(open::random),
            present: Bits::new("bits of rows", layout.row_count(), stored_number.is_some())?,
            queued: Bits::new("bits of queued records", layout.indexers() * layout.rows(), false)?,
            counters: DiskCounters::default(),
            birth: Birth::now(),
            layout,
        }))
    }

    fn assemble(shape: &Shape, file: &PoolFile, records: Arc<Records>) -> Result<Self> {
        let (queue, io_uring) = Self::operations(&records, DEPTH)?;
        let queue = WriteQueue::new(&records, queue, file.queue_bytes)?;
        let layout = &records.layout;
        let info = DiskInfo {
            path: file.path.display().to_string(),
            keep: file.keep,
            direct: !file.buffered,
            io_uring,
            block: layout.block(),
            memory_alignment: records.memory_alignment,
            file_bytes: layout.end(),
            record_bytes: layout.max_record_bytes(),
            record_layers: layout.max_group_layers(),
            padding: layout.padding(),
            queue_bytes: queue.entries.memory.len(),
            queue_records: queue.entries.all.len(),
        };
        let (queue, stamps) = (Mutex::new(queue), Stamps::new()?);
        Ok(Self { records, info, format: shape.format.clone(), queue, stamps })
    }
}
