//! How fast a disk reads.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use avsg_testkit::content::fill_row;
use avsg_testkit::splitmix::SplitMix64;
use serde::Serialize;

use super::file::{Folder, direct, drop_from_page_cache};
use super::reader::{Read, Reader};

/// Bytes of the file that is read.
const FILE: usize = 128 << 20;
/// Bytes of a read that measures the bandwidth.
const LARGE: usize = 128 << 10;
/// The time of each measurement.
const TIME: Duration = Duration::from_millis(400);
/// Reads in flight for the reads per second, and for the bandwidth.
const DEPTH: usize = 256;
const LARGE_DEPTH: usize = 32;

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
    /// Measures reads of `bytes` bytes, a multiple of the block, in a file in `folder`. It takes about two
    /// seconds, and the file is gone afterwards.
    pub fn measure(folder: &Folder, bytes: usize) -> Result<Self> {
        let mut file = folder.unnamed_file()?;
        let mut part = vec![0; 1 << 20];
        for number in 0..(FILE / part.len()) as i32 {
            fill_row(number, 0, &mut part);
            let context =
                || format!("writing {FILE} bytes to a file in {}", folder.path().display());
            file.write_all(&part).with_context(context)?;
        }
        drop_from_page_cache(&file)?;
        let file = direct(&file)?;
        // Returns reads per second.
        let rate = |bytes: usize, depth: usize, batch: usize| -> Result<f64> {
            let mut reader = Reader::new(depth, depth * bytes)?;
            let mut random = SplitMix64::new(bytes as u64);
            let (mut count, start) = (0, Instant::now());
            while start.elapsed() < TIME {
                let read = |at: usize| {
                    let place = random.below(FILE / bytes);
                    Read { offset: (place * bytes) as u64, to: at % depth * bytes, bytes }
                };
                let reads: Vec<Read> = (0..batch).map(read).collect();
                reader.read(&file, &reads)?;
                count += batch;
            }
            Ok(count as f64 / start.elapsed().as_secs_f64())
        };
        Ok(Self {
            reads_per_second: rate(bytes, DEPTH, 8 * DEPTH)?,
            gbs: rate(LARGE, LARGE_DEPTH, 8 * LARGE_DEPTH)? * LARGE as f64 / 1e9,
            us: 1e6 / rate(bytes, 1, 16)?,
        })
    }
}
