//! The part of the model for rows on a disk: a step reads the records of the rows that it misses.

use std::path::PathBuf;

use anyhow::Result;
use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};
use serde::Serialize;

use super::deployment::Deployment;
use crate::command::model::Model;
use crate::disk::{Speeds, folder_on_disk, layout};

/// The block of a disk whose speeds are given without one.
const BLOCK: usize = 4096;

/// The value of `--link`.
#[derive(Clone, Debug)]
pub enum Link {
    /// A disk that is measured in this folder, or in the usual one.
    Measured(Option<PathBuf>),
    /// Speeds of a disk, and its block.
    Given(Speeds, usize),
}

/// Parses `disk`, `disk:FOLDER` and `disk:READS,GB/S,US[,BLOCK]`.
pub fn link(text: &str) -> Result<Link, String> {
    let limit = || {
        "it must be disk, disk:FOLDER or disk:READS,GB/S,US[,BLOCK] with numbers above 0 and a block that is a power of \
         two from 512 to 65536, for example disk:400000,6,80"
            .to_owned()
    };
    if text == "disk" {
        return Ok(Link::Measured(None));
    }
    let rest = text.strip_prefix("disk:").filter(|rest| !rest.is_empty()).ok_or_else(limit)?;
    let numbers: Result<Vec<f64>, _> = rest.split(',').map(str::parse).collect();
    let (speeds, block) = match numbers.as_deref() {
        Err(_) => return Ok(Link::Measured(Some(rest.into()))),
        Ok(&[reads, gbs, us]) => ([reads, gbs, us], BLOCK),
        Ok(&[reads, gbs, us, block]) => ([reads, gbs, us], block as usize),
        Ok(_) => return Err(limit()),
    };
    let is_speed = |speed: &f64| speed.is_finite() && *speed > 0.0;
    let is_block = block.is_power_of_two() && (512..=65536).contains(&block);
    let [reads_per_second, gbs, us] = speeds;
    let given = Link::Given(Speeds { reads_per_second, gbs, us }, block);
    if speeds.iter().all(is_speed) && is_block { Ok(given) } else { Err(limit()) }
}

/// A disk, and the records that a deployment has on it.
#[derive(Serialize)]
pub struct Disk {
    #[serde(flatten)]
    pub speeds: Speeds,
    /// The folder where the speeds were measured; null if they are given.
    pub folder: Option<String>,
    pub block: usize,
    /// Bytes of the longest record: the rows of the layers of an indexer with their padding.
    pub record_bytes: usize,
    pub padding_percent: f64,
    /// Bytes of the files of all requests.
    pub file_bytes: u64,
    /// Bytes of the record of each indexer.
    #[serde(skip)]
    records: Vec<usize>,
    #[serde(skip)]
    requests: usize,
}

impl Disk {
    /// Returns the disk of an option; measures it if the option does not say how fast it is.
    pub fn new(link: &Link, deployment: &Deployment) -> Result<Self> {
        let Deployment { context, ref model, .. } = *deployment;
        let Model { layers, indexers, requests, ref format, .. } = *model;
        let plan = |block| layout([layers, indexers, context], format, block);
        let (speeds, folder, block) = match link {
            Link::Given(speeds, block) => (*speeds, None, *block),
            Link::Measured(folder) => {
                let folder = folder_on_disk("--link", folder.as_deref())?;
                let file = Some(PoolFile::new(&folder));
                let pool = PoolConfig { file, ..PoolConfig::new(1, 1, format.clone()) };
                let block = HostPool::new(&pool)?.store().map_or(BLOCK, |store| store.info().block);
                let speeds = Speeds::measure(&folder, plan(block)?.max_record_bytes())?;
                (speeds, Some(folder.display().to_string()), block)
            }
        };
        let layout = plan(block)?;
        Ok(Self {
            speeds,
            folder,
            block,
            record_bytes: layout.max_record_bytes(),
            padding_percent: 100.0 * layout.padding(),
            file_bytes: layout.end().saturating_mul(requests as u64),
            records: (0..layout.indexers()).map(|indexer| layout.record_bytes(indexer)).collect(),
            requests,
        })
    }

    /// Returns the milliseconds of the reads of a step in which each layer of each request misses `misses` rows: for
    /// each indexer all reads are in flight at once, so the step waits once for the first of
    /// them, and then for the reads per second or the bandwidth.
    pub fn wait_ms(&self, misses: f64) -> f64 {
        let Speeds { reads_per_second, gbs, us } = self.speeds;
        let reads = misses * self.requests as f64;
        let ms = |&record: &usize| {
            let by_count = reads / reads_per_second * 1e3;
            let by_bytes = reads * record as f64 / (gbs * 1e6);
            us / 1e3 * reads.min(1.0) + by_count.max(by_bytes)
        };
        self.records.iter().map(ms).sum()
    }
}
