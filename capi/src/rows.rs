//! Reads and writes of single rows of a host pool, by copy and by pointer.

use std::ffi::c_void;
use std::ptr;

use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::sized::{self, OutPtr};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result, avsg_status, enter};
use avsg::pool::{HostPool, Role};

/// Writes a row from `data`, which has its segments one after another. Another thread or process
/// that reads the row at the same time may read a mix of old and new bytes.
///
/// # Safety
/// The pointers keep the rule Pointers.
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
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let data = unsafe { sized::array::<u8>("data", data.cast(), bytes)? };
        Ok(pool.host.write_row(layer, row, data)?)
    })
}

/// Copies a row to `data`, with its segments one after another.
///
/// # Safety
/// The pointers keep the rule Pointers.
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
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let data = unsafe { sized::array_mut::<u8>("data", data.cast(), bytes)? };
        Ok(pool.host.read_row(layer, row, data)?)
    })
}

/// Returns the address of a segment of a row.
fn locate(pool: &HostPool, layer: usize, segment: usize, row: usize) -> Result<*const c_void> {
    let at = pool.view(layer, segment)?.ptr(row);
    if at.is_null() {
        let rows = pool.rows();
        let text = format!("row is {row}, but there are {rows}; pass an index below the count");
        return Err(Failure::new(AVSG_INVALID, text));
    }
    Ok(at.cast())
}

/// Gives the address of a segment of a row, for reads in place while no thread or process writes
/// the row.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_row(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *const c_void,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("data", data, ptr::null())? };
        out.write(locate(&handle::shared::<Pool>(pool)?.host, layer, segment, row)?);
        Ok(())
    })
}

/// Gives the address of a segment of a row as `avsg_pool_row` does, for writes in place.
/// AVSG_INVALID if this process is a reader.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_row_mut(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *mut c_void,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("data", data, ptr::null_mut())? };
        let pool = handle::shared::<Pool>(pool)?;
        if pool.host.role() == Role::Reader {
            let text = "pool role is reader, but only the writer writes rows; import the pool as \
                        AVSG_ROLE_WRITER after its writer has destroyed or demoted it";
            return Err(Failure::new(AVSG_INVALID, text.into()));
        }
        out.write(locate(&pool.host, layer, segment, row)?.cast_mut());
        Ok(())
    })
}
