//! Where the slots are, for attention.

use std::ffi::c_void;

use crate::boundary::{check_capacity, enter, give_struct};
use crate::engine::avsg_engine;
use crate::status::{Failure, avsg_status};
use crate::{boundary, handle};
use avsg::buffer::DeviceBuffer;
use avsg::engine::{Engine, MAX_REQUESTS};

/// The device buffer of one layer and segment. Slot s of state t is at
/// base + t * state_stride + s * slot_stride.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_buffer {
    /// sizeof(avsg_buffer).
    pub size: usize,
    /// Slot 0 of state 0 in the device's memory, and page 0 of page tables.
    pub base: *mut c_void,
    /// Bytes from one slot to the next: the segment's stride.
    pub slot_stride: usize,
    /// Bytes from one state to the next: S * slot_stride.
    pub state_stride: usize,
    /// Bytes of the segment in a row.
    pub bytes: usize,
}

/// Describes the device buffer of a layer and segment, which attention reads. Its memory is valid
/// until the engine is destroyed, and only the engine may write it. AVSG_INVALID for a buffer of the
/// caller whose slots are no single stride apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_buffer(
    engine: *const avsg_engine,
    layer: usize,
    segment: usize,
    buffer: *mut avsg_buffer,
) -> avsg_status {
    let describe = |buffer: &DeviceBuffer| {
        let (base, config) = (buffer.segment_base(layer, segment)?.cast(), buffer.config());
        let (state_stride, slot_stride) = buffer.strides(segment)?;
        let bytes = config.format.as_slice()[segment].bytes;
        Ok(avsg_buffer { size: 0, base, slot_stride, state_stride, bytes })
    };
    let find = || handle::fixed::<Engine, _>(engine, |(_, buffer, _)| describe(buffer));
    contract!(give_struct(buffer, find))
}

/// Fills the page table of a paged attention kernel, with pages of `page` slots (0 selects S). The
/// pages of a request's state are written from table[request * stride] on, as indices that count
/// from avsg_buffer.base, and S is written to lengths[request]. A state has S / page pages: slot s
/// is row s % page of the page at index s / page. A padded request (state -1) gets pages of -1 and
/// length 0. `states` and `lengths` have `requests` elements, at most 1048576, and `table` has requests *
/// stride; the three arrays do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_page_table(
    engine: *const avsg_engine,
    states: *const i32,
    requests: usize,
    page: usize,
    table: *mut i32,
    stride: usize,
    lengths: *mut i32,
) -> avsg_status {
    enter(|| {
        let engine = handle::shared::<Engine>(engine)?;
        let buffer = engine.buffer();
        // The table of state 0 checks `page` and gives the number of pages per state.
        let pages = buffer.block_table(0, page)?.len();
        check_capacity(pages, stride, "pages in a request's row")?;
        let total = requests.checked_mul(stride).filter(|_| requests <= MAX_REQUESTS);
        let total = total.ok_or_else(|| {
            Failure::invalid(format!(
                "requests is {requests}, but it must be 0..={MAX_REQUESTS}, and {stride} pages of each must \
                 fit memory; pass fewer"
            ))
        })?;
        let states = contract!(boundary::array("states", states, requests)?);
        for &state in states.iter().filter(|&&state| state != -1) {
            buffer.block_table(usize::try_from(state).unwrap_or(usize::MAX), page)?;
        }
        let table = contract!(boundary::array_mut("table", table, total)?);
        let lengths = contract!(boundary::array_mut("lengths", lengths, requests)?);
        for ((&state, length), row) in states.iter().zip(lengths).zip(table.chunks_mut(stride)) {
            let row = &mut row[..pages];
            *length = 0;
            row.fill(-1);
            if state >= 0 {
                *length = engine.config().params.slots as i32;
                let indices = buffer.block_table(state as usize, page)?;
                row.iter_mut().zip(indices).for_each(|(to, index)| *to = index);
            }
        }
        Ok(())
    })
}
