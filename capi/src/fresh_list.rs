//! The fresh rows of a list of layers, as C passes them.

use crate::arrays::{RawSegment, Segments, avsg_fresh, read_fresh};
use crate::contract::contract;
use crate::status::avsg_status::AVSG_SIZE;
use crate::status::{Failure, Result};

/// The most segments of fresh rows in all layers of a call. They are on the stack, because a step allocates
/// nothing.
const MAX_LIST_SEGMENTS: usize = 256;

/// The segments of the first layer of a list, then those of the second, and so on.
pub(crate) type ListSegments<T> = heapless::Vec<T, MAX_LIST_SEGMENTS>;

/// Reads the fresh rows of `count` layers, of which `convert` makes those of one, and returns whether `list`
/// has them: it may be NULL. The result is in `all`, because a thread may have a small stack.
///
/// # Safety
/// `list` is NULL or an array of `count` structs, each of which is valid for reads of the number of bytes in
/// its `size`.
pub(crate) unsafe fn read_list<T, const MOST: usize>(
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

#[cfg(test)]
mod tests;
