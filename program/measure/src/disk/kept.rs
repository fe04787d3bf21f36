//! A prompt in a kept file: its rows are written and committed, and read after the file was opened again.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{fs, io};

use anyhow::{Context, Result};
use avsg::disk::{DiskStats, PoolFile, PoolSessions};
use avsg::pool::{HostPool, PoolConfig, Role};
use tempfile::TempDir;

use super::places::FileShape;
use super::setting::Step;
use crate::content::{check_row, fill_row};
use crate::stats::us_since;

/// Tokens of a prompt whose rows are computed together.
pub const CHUNK: usize = 1024;
/// The most bytes of rows that are read by one call.
const READ_BYTES: usize = 16 << 20;
/// Bytes of the queue of writes of a file that is only read. They count as memory of AVSG.
const QUEUE_BYTES: usize = 1 << 16;

/// A kept file in a folder of its own, which is removed with it.
pub struct Kept {
    /// The shell removes the folder when this process ends before, also by a signal, which closes its input.
    folder: (TempDir, io::Result<Child>),
    shape: FileShape,
    file: PoolFile,
}

impl Kept {
    /// Makes the folder in that of `file`.
    pub fn new(file: &PoolFile, shape: FileShape) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("avsg-").tempdir_in(&file.path);
        let folder =
            folder.with_context(|| format!("making a folder in {}", file.path.display()))?;
        let shell = Command::new("sh")
            .args(["-c", r#"read -r line; rm -rf "$0""#])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        let sessions = PoolSessions { count: 1, rows: CHUNK, ..PoolSessions::default() };
        Ok(Self {
            folder: (folder, shell),
            shape,
            file: PoolFile { keep: true, sessions, ..file.clone() },
        })
    }

    /// Writes all rows to a new file and commits them, as a session. The time includes that in which the rows are made.
    pub fn write(&self) -> Result<Step> {
        match fs::remove_file(self.file(0).path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
        .context("removing the file of the turn before")?;
        // The default queue of writes has room for the records of a chunk.
        let pool = HostPool::new(&self.shape.pool(Some(self.file(0)))?)?;
        let blocks: Vec<i32> = (0..(pool.rows() / CHUNK) as i32).collect();
        let start = Instant::now();
        write_rows(&pool)?;
        pool.stored(Role::Writer)?.commit_session(0, pool.rows(), &blocks, &[])?;
        let us = us_since(start);
        let stats = pool.store().map(|store| store.stats()).unwrap_or_default();
        Ok(Step::of_file(us, [DiskStats::default(), stats], 0))
    }

    /// Returns the configuration of the pool that [`Self::open`] opens.
    pub fn config(&self) -> Result<PoolConfig> {
        self.shape.pool(Some(self.file(QUEUE_BYTES)))
    }

    fn file(&self, queue_bytes: usize) -> PoolFile {
        PoolFile { path: self.folder.0.path().join("rows"), queue_bytes, ..self.file.clone() }
    }

    /// Opens the file, which reads no rows.
    pub fn open(&self) -> Result<HostPool> {
        Ok(HostPool::open(&self.config()?)?)
    }

    /// Opens the file and reads all rows.
    pub fn read_all(&self) -> Result<Step> {
        let (pool, FileShape { indexers, rows, row_bytes, .. }) = (self.open()?, self.shape);
        let (mut us, mut wrong_rows) = (0.0, 0);
        for indexer in 0..indexers {
            let layers: Vec<usize> = self.shape.layers_of(indexer).collect();
            let most = (READ_BYTES / (layers.len() * row_bytes)).clamp(1, rows);
            let mut part = vec![0; most * layers.len() * row_bytes];
            for first in (0..rows).step_by(most) {
                let count = most.min(rows - first);
                let part = &mut part[..count * layers.len() * row_bytes];
                let start = Instant::now();
                pool.read_rows(&layers, first, part)?;
                us += us_since(start);
                for (&layer, rows) in layers.iter().zip(part.chunks_exact(count * row_bytes)) {
                    let rows = (first as i32..).zip(rows.chunks_exact(row_bytes));
                    let wrong = |&(id, row): &(i32, &[u8])| !check_row(id, layer as u32, row);
                    wrong_rows += rows.filter(wrong).count();
                }
            }
        }
        let stats = pool.store().map(|store| store.stats()).unwrap_or_default();
        Ok(Step::of_file(us, [DiskStats::default(), stats], wrong_rows))
    }
}

/// Makes and writes all rows of a pool in chunks of tokens, layer by layer.
pub fn write_rows(pool: &HostPool) -> Result<()> {
    let bytes = pool.format().bytes();
    let mut chunk = vec![0; CHUNK * bytes];
    for first in (0..pool.rows()).step_by(CHUNK) {
        let rows = &mut chunk[..CHUNK.min(pool.rows() - first) * bytes];
        for layer in 0..pool.layers() {
            let of_layer = (first as i32..).zip(rows.chunks_exact_mut(bytes));
            of_layer.for_each(|(id, row)| fill_row(id, layer as u32, row));
            pool.write_rows(&[layer], first, rows)?;
        }
    }
    Ok(())
}
