//! The fresh rows of a list of layers, as C passes them.

use std::ptr;

use crate::arrays::{RawSegment, Segments, avsg_fresh, device_segments, host_segments, read_fresh};
use crate::contract::contract;
use crate::overlap;
use crate::sized;
use crate::status::{Failure, Result};
use avsg::engine::DeviceRows;
use avsg::plan::Plan;

/// The most segments of fresh rows in all layers of a call. They are on the stack, because a step allocates
/// nothing.
const MAX_LIST_SEGMENTS: usize = 256;

/// The segments of the first layer of a list, then those of the second, and so on.
pub(crate) type ListSegments<T> = heapless::Vec<T, MAX_LIST_SEGMENTS>;

/// Returns the list of one layer; NULL for NULL.
pub(crate) fn list_of_one(fresh: &*const avsg_fresh) -> *const *const avsg_fresh {
    if fresh.is_null() { ptr::null() } else { fresh }
}

/// Borrows the fresh rows of `count` layers in host memory, and returns whether `list` has those of each
/// layer: an empty one may be NULL. If the call transfers `plan`, they must not be where it writes. The result is in `all`, because
/// a thread may have a small stack.
///
/// # Safety
/// `list` is NULL or valid for reads of `count` pointers, each of which is as [`read_fresh`] demands. While
/// `all` is in use each segment is NULL or valid for reads of its bytes, and not written.
pub(crate) unsafe fn host_list(
    list: *const *const avsg_fresh,
    count: usize,
    plan: Option<&Plan>,
    all: &mut ListSegments<&[u8]>,
) -> Result<bool> {
    contract!(read_list(list, count, plan, |segments| host_segments(segments), all))
}

/// Returns the fresh rows of `count` layers in device memory as [`host_list`] does.
///
/// # Safety
/// `list` is NULL or valid for reads of `count` pointers, each of which is as [`read_fresh`] demands.
pub(crate) unsafe fn device_list(
    list: *const *const avsg_fresh,
    count: usize,
    plan: Option<&Plan>,
    all: &mut ListSegments<DeviceRows>,
) -> Result<bool> {
    contract!(read_list(list, count, plan, device_segments, all))
}

/// Reads the fresh rows of layers, of which `convert` makes those of one.
///
/// # Safety
/// As for [`device_list`].
unsafe fn read_list<T>(
    list: *const *const avsg_fresh,
    count: usize,
    plan: Option<&Plan>,
    convert: impl Fn(&[RawSegment]) -> Result<Segments<T>>,
    all: &mut ListSegments<T>,
) -> Result<bool> {
    if list.is_null() {
        return Ok(count == 0);
    }
    let mut first = 0;
    for (index, &fresh) in contract!(sized::array("fresh", list, count))?.iter().enumerate() {
        let fresh = contract!(read_fresh(fresh))?;
        let fresh = fresh.ok_or_else(|| sized::null_error(&format!("fresh[{index}]")))?;
        plan.map_or(Ok(()), |plan| overlap::check_fresh(&fresh, plan))?;
        let segments = fresh.len();
        first = if index == 0 { segments } else { first };
        if segments != first {
            return Failure::refuse(format!(
                "fresh[{index}] has {segments} segments, but fresh[0] has {first}; pass those of the pool"
            ));
        }
        if convert(&fresh)?.into_iter().any(|segment| all.push(segment).is_err()) {
            return Failure::refuse(format!(
                "count is {count}, but fresh rows of {segments} segments are taken for {} layers; pass \
                 the other layers in another call",
                MAX_LIST_SEGMENTS / segments
            ));
        }
    }
    Ok(true)
}
