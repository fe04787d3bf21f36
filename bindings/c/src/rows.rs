//! Reads and writes of single rows of a host pool, by copy and by pointer.

use std::ffi::c_void;
use std::ptr;

use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::sized::{self, OutPtr};
use crate::status::{avsg_status, enter};
use avsg::rows;

/// Writes a row from `data`, which has its segments one after another. The caller must not write a row
/// while another thread writes it or an engine copies it; another read may get a mix of old and new bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_write_row(
    pool: *const avsg_pool,
    layer: usize,
    row: usize,
    data: *const c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(sized::array::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.write_row(layer, row, data)?)
    })
}

/// Copies a row to `data`, with its segments one after another. AVSG_LOST_ROWS if it is not whole in the file
/// of the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_read_row(
    pool: *const avsg_pool,
    layer: usize,
    row: usize,
    data: *mut c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(sized::array_mut::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.read_row(layer, row, data)?)
    })
}

/// Gives the address of a segment of a row, for reads and, in the pool's writer, writes in place
/// while no other thread or process writes the row. A reader's memory is mapped without writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_row(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *mut c_void,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("data", data, ptr::null_mut())?);
        let pool = &handle::shared::<Pool>(pool)?.host;
        let at = pool.view(layer, segment)?.ptr(row);
        rows::index("row", row, pool.rows())?;
        out.write(at.cast_mut().cast());
        Ok(())
    })
}
