//! How fast a disk reads.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use avsg::disk::PoolFile;
use avsg::pool::HostPool;
use serde::Serialize;

use super::every_row::RecordReader;
use super::kept::write_rows;
use super::places::FileShape;
use crate::splitmix::SplitMix64;

/// Bytes of the file that is read.
const FILE: usize = 128 << 20;
/// Bytes of a read that measures the bandwidth.
const LARGE: usize = 128 << 10;
/// The time of each measurement.
const TIME: Duration = Duration::from_millis(400);
/// Records of a list for the reads per second, and for the bandwidth. The queue of the library has 256 in flight.
const LIST: usize = 2048;
const LARGE_LIST: usize = 128;

/// Random reads past the page cache.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speeds {
    /// Reads per second with many of them in flight.
    pub reads_per_second: f64,
    /// Bandwidth of large reads in 10^9 bytes per second.
    pub gbs: f64,
    /// Microseconds of a read alone.
    pub us: f64,
}

impl Speeds {
    /// Measures reads of `bytes` bytes, a multiple of the block, in a file in `folder`. It takes a few
    /// seconds, and nothing is left afterwards.
    pub fn measure(folder: &Path, bytes: usize) -> Result<Self> {
        let small = pool(folder, bytes)?;
        let (reads_per_second, alone) = (rate(&small, LIST)?, rate(&small, 1)?);
        drop(small);
        let large = rate(&pool(folder, LARGE)?, LARGE_LIST)?;
        Ok(Self { reads_per_second, gbs: large * LARGE as f64 / 1e9, us: 1e6 / alone })
    }
}

/// Makes a private file with records of this length, and writes all of it, because what was never written is not read
/// from the disk.
fn pool(folder: &Path, bytes: usize) -> Result<HostPool> {
    // A row has a checksum of 8 bytes behind it.
    let (rows, row_bytes) = (FILE / bytes, bytes.saturating_sub(8));
    let shape = FileShape { layers: 1, indexers: 1, rows, row_bytes };
    let pool = HostPool::new(&shape.pool(Some(PoolFile::new(folder)))?)?;
    let written = write_rows(&pool).and_then(|()| Ok(pool.flush()?));
    written.with_context(|| format!("writing {FILE} bytes to a file in {}", folder.display()))?;
    Ok(pool)
}

/// Returns reads per second of lists of random records.
fn rate(pool: &HostPool, list: usize) -> Result<f64> {
    let mut reader = RecordReader::new(pool, list)?;
    let (mut random, mut count, start) = (SplitMix64::new(list as u64), 0, Instant::now());
    while start.elapsed() < TIME {
        reader.read(0, (0..list).map(|_| random.below(pool.rows())))?;
        count += list;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
