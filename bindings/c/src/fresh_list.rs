//! The fresh rows of a list of layers, as C passes them.

use crate::arrays::{RawSegment, Segments, avsg_fresh, device_segments, host_segments, read_fresh};
use crate::status::{Failure, Result, avsg_status::AVSG_SIZE};
use avsg::engine::{DeviceFresh, Fresh};

/// The most segments that the fresh rows of a call have in all its layers: 256 layers of one segment, or 64
/// of 4.
pub const AVSG_MAX_LIST_SEGMENTS: usize = 256;

/// Reads the fresh rows of `count` layers, of which `convert` makes those of one, and returns whether `list`
/// has them: it may be NULL. The result is in `all`, because a thread may have a small stack.
///
/// # Safety
/// `list` is NULL or an array of `count` structs, each of which is valid for reads of the number of bytes in
/// its `size`.
unsafe fn read_list<T, const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    convert: impl Fn(&[RawSegment]) -> Result<Segments<T>>,
    all: &mut heapless::Vec<T, MOST>,
) -> Result<bool> {
    if list.is_null() || count == 0 {
        return Ok(count == 0);
    }
    let (size, first) = contract!(read_fresh(list))?;
    let segments = first.len();
    if count > MOST / segments {
        return Failure::refuse(format!(
            "count is {count}, but fresh rows of {segments} segments are taken for {} layers; pass the other \
             layers in another call",
            MOST / segments
        ));
    }
    for index in 0..count {
        // The caller's version of the struct may have more bytes than this one.
        let (own, fresh) = contract!(read_fresh(list.byte_add(index * size)))?;
        if own != size {
            let text = format!(
                "fresh[{index}].size is {own}, but fresh[0].size is {size}; set both to sizeof(avsg_fresh)"
            );
            return Err(Failure::new(AVSG_SIZE, text));
        }
        if fresh.len() != segments {
            let own = fresh.len();
            return Failure::refuse(format!(
                "fresh[{index}] has {own} segments, but fresh[0] has {segments}; pass those of the pool"
            ));
        }
        // This cannot fail: `count` is at most what fits.
        all.extend(convert(&fresh)?);
    }
    Ok(true)
}

/// Runs `run` with the fresh rows of `count` layers in host memory: the segments of the first layer, then those
/// of the second, and so on; None if `list` is NULL.
///
/// # Safety
/// As for [`read_list`]; during the call each segment is NULL or valid for reads of its bytes, and not
/// written.
pub(crate) unsafe fn with_host_rows<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    run: impl FnOnce(Option<&Fresh<'_>>) -> Result<()>,
) -> Result<()> {
    let mut all = heapless::Vec::<_, MOST>::new();
    let given = contract!(read_list(list, count, |segments| host_segments(segments), &mut all))?;
    run(given.then_some(Fresh { segments: &all }).as_ref())
}

/// Runs `run` as [`with_host_rows`] does, with fresh rows in device memory. It is not inlined, because the stack
/// of its caller has a list of its own.
///
/// # Safety
/// As for [`read_list`].
#[inline(never)]
pub(crate) unsafe fn with_device_rows<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    run: impl FnOnce(Option<&DeviceFresh<'_>>) -> Result<()>,
) -> Result<()> {
    let mut all = heapless::Vec::<_, MOST>::new();
    let given = contract!(read_list(list, count, device_segments, &mut all))?;
    run(given.then_some(DeviceFresh { segments: &all }).as_ref())
}

#[cfg(test)]
mod tests;
