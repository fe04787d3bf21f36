//! Folders on a disk, and where the rows of a deployment are in a file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use avsg::disk::{Layout, PoolFile, Shape};
use avsg::indexers::Indexers;
use avsg::pool::PoolConfig;
use avsg::rows::RowFormat;
use rustix::fs::statfs;
use serde::Serialize;

use crate::checks::require;

/// File systems that keep their files in memory: the numbers of tmpfs and ramfs (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Checks that the folder that `option` names is not in memory, or takes the first of the system's temporary
/// folder and `/var/tmp` that is not.
///
/// # Errors
/// If the folder cannot be read or lies in memory.
pub fn folder_on_disk(option: &'static str, folder: Option<&Path>) -> Result<PathBuf> {
    let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
    let chosen = match folder {
        Some(folder) => folder,
        None => usual.iter().find(|f| in_memory(f).is_ok_and(|yes| !yes)).unwrap_or(&usual[0]),
    };
    let in_memory = in_memory(chosen).with_context(|| format!("{option} {}", chosen.display()))?;
    let limit = "it must be on a disk, and this file system is in memory";
    require(!in_memory, option, chosen.display(), limit, "pass a folder on a disk")?;
    Ok(chosen.to_owned())
}

fn in_memory(folder: &Path) -> std::io::Result<bool> {
    Ok(IN_MEMORY.contains(&(statfs(folder)?.f_type as u64)))
}

/// Returns the layout of a file with blocks of `block` bytes, in which `indexers` indexers
/// share the layers evenly.
///
/// # Errors
/// If a number is out of range.
pub fn layout(
    [layers, indexers, rows]: [usize; 3],
    format: &RowFormat,
    block: usize,
) -> Result<Layout> {
    let indexers = even(layers, indexers)?;
    let shape = Shape { layers, rows, format: format.clone(), indexers };
    Ok(Layout::new(&shape, block, 0)?)
}

/// Returns indexers that share the layers evenly.
fn even(layers: usize, indexers: usize) -> Result<Indexers> {
    let of_layer: Vec<usize> = (0..layers).map(|layer| layer * indexers / layers).collect();
    Ok(Indexers::of_layers(&of_layer)?)
}

/// The rows of a pool whose indexers share the layers evenly.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FileShape {
    /// The number of layers.
    pub layers: usize,
    /// The number of indexers.
    pub indexers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// Bytes of a row of one layer.
    pub row_bytes: usize,
}

impl FileShape {
    /// Returns the layers of an indexer.
    pub fn layers_of(&self, indexer: usize) -> Range<usize> {
        let first = |indexer: usize| (indexer * self.layers).div_ceil(self.indexers);
        first(indexer)..first(indexer + 1)
    }

    /// Returns the configuration of a pool in a file, or in memory.
    pub fn pool(&self, file: Option<PoolFile>) -> Result<PoolConfig> {
        let format = RowFormat::single(self.row_bytes)?;
        let indexers = even(self.layers, self.indexers)?;
        Ok(PoolConfig { file, indexers, ..PoolConfig::new(self.layers, self.rows, format) })
    }
}
