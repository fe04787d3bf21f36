//! Pools over memory of the caller, and the memory of a pool's rows.

use super::geometry::PoolConfig;
use super::host::{Backing, HostPool, Role};
use super::layout::{DeviceStart, HostLayout};
use super::pages::Pages;
use crate::Result;
use crate::fork::Birth;
use crate::overlap::{self, Content, Grid, Grids};

impl HostPool {
    /// Makes a pool over memory that the caller laid out. `config.chunk_bytes`, `config.pages` and
    /// the strides of `config.format` are ignored, except that the fresh rows keep the latter. Such
    /// a pool cannot be exported.
    ///
    /// # Safety
    /// - Each region is valid for reads and writes of its length until the pool is dropped, and a
    ///   device address is that of registered memory as long.
    /// - No two rows overlap.
    /// - Other accesses to the rows keep the rules of the [module](super) for raw pointers.
    ///
    /// # Errors
    /// If a number is out of range, a region is not in the address space, a part does not fit its
    /// region, two rows overlap, or a row is in no part or in two.
    pub unsafe fn from_layout(config: &PoolConfig, layout: &HostLayout<'_>) -> Result<Self> {
        let (geometry, starts, chunks) = layout.resolve(config)?;
        let lens = layout.regions.iter().map(|region| region.memory.len());
        // Regions may overlap.
        let bytes = lens.fold(0, usize::saturating_add);
        let (backing, role, pages) = (Backing::Caller, Role::Writer, Pages::Caller);
        let (huge_bytes, birth) = (0, Birth::now());
        let pool =
            Self { geometry, chunks, starts, bytes, backing, role, pages, huge_bytes, birth };
        overlap::check(pool.grids(pool.starts.iter().map(|start| start.ptr.addr())))?;
        if layout.regions.iter().any(|region| region.device_address.is_some()) {
            overlap::check(pool.grids(pool.starts.iter().map(|start| match start.device {
                DeviceStart::Address(address) => address as usize,
                DeviceStart::Registered(..) => start.ptr.addr(),
            })))?;
        }
        Ok(pool)
    }

    /// Returns the memory of the rows if the chunks begin at these addresses.
    pub(crate) fn grids(
        &self,
        starts: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = Result<Grids>> {
        let geometry = &self.geometry;
        starts.enumerate().map(|(at, start)| {
            let (layer, segment, first) = geometry.of_chunk(at);
            let layout = &geometry.segments[segment];
            let rows = (geometry.rows - first).min(1 << layout.shift);
            Grid::of(Content::Rows { layer, segment }, start, layout.strides, [rows, layout.bytes])
        })
    }
}
