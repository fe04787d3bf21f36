//! A pool whose rows are in a file.

use std::sync::Arc;

use super::geometry::{DIRECT, Geometry, Pages, PoolConfig, shape};
use super::host::{Backing, HostPool, Role};
use crate::disk::{Layout, PoolFile, Shape, Store, Wrap};
use crate::rows::{Segment, Strides};
use crate::{Result, ensure, invalid};

impl PoolConfig {
    /// Returns the geometry of the pool that [`HostPool::new`] makes, in memory, by a layout or in a file.
    pub(crate) fn geometry(&self) -> Result<Geometry> {
        match (&self.layout, &self.file) {
            (Some(laid_out), _) => Ok(laid_out.geometry.clone()),
            (None, None) => Geometry::new(self),
            (None, Some(file)) => geometry(self, Store::plan_layout(&shape(self)?, file)?),
        }
    }

    /// Returns the configuration of the pool that a kept file holds.
    ///
    /// # Errors
    /// If the file cannot be read, or is no pool file of this version.
    pub fn stored_in(file: &PoolFile) -> Result<Self> {
        let Shape { layers, rows, format, indexers } = Store::stored_shape(file)?;
        Ok(Self { indexers, file: Some(file.clone()), ..Self::new(layers, rows, format) })
    }
}

impl HostPool {
    /// Opens the file of a pool that was kept ([`PoolFile::keep`]) and makes this process its only writer.
    /// A row that is not whole is an error when it is read.
    ///
    /// # Errors
    /// If `config` names no file or has another geometry than the file, the file is no pool file of this
    /// version, is damaged or too short, another process has it open, or a system call fails.
    pub fn open(config: &PoolConfig) -> Result<Self> {
        Self::in_file(config, false, DIRECT)
    }

    /// Is [`Self::new`] or, if the pool is not `new`, [`Self::open`] for a pool in a file, with another
    /// [`Disk`](crate::disk::Disk) between the pool and its file.
    ///
    /// # Errors
    /// As for these, or if `config` names no file.
    pub fn in_file(config: &PoolConfig, new: bool, wrap: Wrap<'_>) -> Result<Self> {
        let file = config.file.as_ref().ok_or_else(|| {
            invalid!("pool file" is "not set", but "the rows of this pool are in memory";
                "name a file, one that was kept if it is to be opened")
        })?;
        ensure!(new || file.keep, "keep" is file.keep, but "a file that is opened is a kept one";
            "set keep, or make a new pool");
        let make = if new { Store::create } else { Store::open };
        Self::in_store(config, make(&shape(config)?, file, wrap)?)
    }

    /// Makes the pool of a store. The function is one of its own, because a thread may have a small stack.
    fn in_store(config: &PoolConfig, store: Store) -> Result<Self> {
        let bytes = store.info().queue_bytes;
        let geometry = geometry(config, store.layout().clone())?;
        let (backing, pages) = (Backing::Disk(Arc::new(store)), (Pages::Plain, 0));
        let pool = Self::in_chunks(geometry, Box::default(), backing, Role::Writer, pages)?;
        Ok(Self { bytes, ..pool })
    }

    /// Returns the store of a pool in a file; `None` if the rows are in memory.
    pub fn store(&self) -> Option<&Arc<Store>> {
        match &self.backing {
            Backing::Disk(store) => Some(store),
            _ => None,
        }
    }

    /// Makes all rows durable that were written before the call ([`Store::flush`]). It does nothing for a pool in
    /// memory.
    ///
    /// # Errors
    /// If a write or `fdatasync` fails, or the pool belongs to the process that forked this one.
    pub fn flush(&self) -> Result<()> {
        self.store().map_or(Ok(()), |store| store.flush())
    }

    /// Checks that no session of the pool's file keeps a row.
    pub(crate) fn check_kept(&self, row: usize) -> Result<()> {
        self.store().map_or(Ok(()), |store| store.kept.check(row))
    }

    /// Returns the store of a pool in a file, for its sessions and its data of tokens.
    ///
    /// # Errors
    /// If the rows are in memory, or the store is to be written ([`Role::Writer`]) and this process may only read.
    pub fn stored(&self, role: Role) -> Result<&Arc<Store>> {
        if role == Role::Writer {
            self.check_writer()?;
        }
        self.store().ok_or_else(|| {
            invalid!("pool" is "in memory", but "only a file has sessions and data of tokens";
                "make the pool in a file that is kept")
        })
    }
}

/// Returns a geometry without chunks.
fn geometry(config: &PoolConfig, layout: Layout) -> Result<Geometry> {
    let part = |segment: &Segment| Ok((config.rows, Strides::rows(segment.stride)));
    let parts = config.format.as_slice().iter().map(part);
    Ok(Geometry { disk: Some(layout), ..Geometry::of_parts(config, parts)? })
}
