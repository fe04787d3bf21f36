//! Rows of a host pool: by copy, and by pointer.

use std::ffi::c_void;
use std::ptr;

use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::sized::{self, Out};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Fail, Result, avsg_status, enter};
use avsg::pool::{HostPool, Role};

/// Writes a whole row, its segments back to back in `data`. Beside a reader of the same row (another
/// thread or process) the reader may see a mix of old and new bytes.
///
/// # Safety
/// `data` has `bytes` bytes.
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
        // SAFETY: the contract.
        let data = unsafe { sized::array::<u8>("data", data.cast(), bytes)? };
        Ok(pool.0.write_row(layer, row, data)?)
    })
}

/// Reads a whole row into `data`, its segments back to back.
///
/// # Safety
/// `data` has room for `bytes` bytes.
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
        // SAFETY: the contract.
        let data = unsafe { sized::array_mut::<u8>("data", data.cast(), bytes)? };
        Ok(pool.0.read_row(layer, row, data)?)
    })
}

/// A row's address, or the mistake.
fn locate(pool: &HostPool, layer: usize, segment: usize, row: usize) -> Result<*const c_void> {
    let at = pool.view(layer, segment)?.ptr(row);
    if at.is_null() {
        let rows = pool.rows();
        let text = format!("row is {row}, but there are {rows}; pass an index below the count");
        return Err(Fail::new(AVSG_INVALID, text));
    }
    Ok(at.cast())
}

/// Where a segment of a row begins, to read it in place. Whoever does so makes sure that no thread or
/// process writes the row meanwhile. Valid as long as the pool's memory.
///
/// # Safety
/// `data` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_row(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *const c_void,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("data", data, ptr::null())? };
        out.set(locate(&handle::shared::<Pool>(pool)?.0, layer, segment, row)?);
        Ok(())
    })
}

/// `avsg_pool_row` for writing in place. AVSG_INVALID for a reader, whose memory is read-only.
///
/// # Safety
/// `data` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_row_mut(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *mut c_void,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("data", data, ptr::null_mut())? };
        let pool = handle::shared::<Pool>(pool)?;
        if pool.0.role() == Role::Reader {
            let text = "pool role is reader, but only the writer writes rows; import the pool as \
                        AVSG_ROLE_WRITER once its writer has let go";
            return Err(Fail::new(AVSG_INVALID, text.into()));
        }
        out.set(locate(&pool.0, layer, segment, row)?.cast_mut());
        Ok(())
    })
}
