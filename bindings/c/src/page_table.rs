//! The page table of a paged attention kernel.

use crate::engine::avsg_engine;
use crate::handle;
use crate::sized::{self, check_capacity};
use crate::status::{Failure, avsg_status, enter};
use avsg::engine::{Engine, MAX_REQUESTS};

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
        let states = contract!(sized::array("states", states, requests)?);
        for &state in states.iter().filter(|&&state| state != -1) {
            buffer.block_table(usize::try_from(state).unwrap_or(usize::MAX), page)?;
        }
        let table = contract!(sized::array_mut("table", table, total)?);
        let lengths = contract!(sized::array_mut("lengths", lengths, requests)?);
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
