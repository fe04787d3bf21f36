//! Reading arrays that must not overlap the outputs of the plan that the call writes.

use crate::arrays::{avsg_batch, avsg_i32s};
use crate::plan::device_arrays;
use crate::sized;
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result};
use avsg::plan::Plan;

/// Copies the struct of a batch that the call plans into `plan`.
///
/// # Safety
/// `batch` is NULL or valid for reads of the number of bytes in its `size`.
pub(crate) unsafe fn read_batch(batch: *const avsg_batch, plan: &Plan) -> Result<avsg_batch> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let batch = unsafe { sized::read(batch)? };
    let inputs = [
        ("ids", batch.ids),
        ("cu_q", batch.cu_q),
        ("state", batch.state),
        ("generation", batch.generation),
        ("stable_len", batch.stable_len),
        ("seq_len", batch.seq_len),
        ("block_table", batch.block_table),
    ];
    check(&inputs, plan)?;
    Ok(batch)
}

/// Refuses an array that overlaps an output of the plan, in host memory and in the device's. Both
/// are compared whatever memory the array is in: their addresses are never equal.
pub(crate) fn check(inputs: &[(&str, avsg_i32s)], plan: &Plan) -> Result<()> {
    let host = plan.arrays();
    let device = device_arrays(plan);
    let outputs = [
        ("slot", host.slot, device.slot),
        ("valid", host.valid, device.valid),
        ("cu_q", host.cu_q, device.cu_q),
        ("record", host.record, device.record),
        ("miss_position", host.miss.position, device.miss_position),
        ("miss_id", host.miss.id, device.miss_id),
        ("miss_slot", host.miss.slot, device.miss_slot),
        ("miss_row", host.miss.row, device.miss_row),
    ];
    for &(input, array) in inputs {
        let hit = |base: *const i32, len| overlaps(array, avsg_i32s { data: base, len });
        let found = outputs.iter().find(|(_, on_host, on_device)| {
            hit(on_host.as_ptr(), on_host.len()) || hit(*on_device, on_host.len())
        });
        if let Some((output, ..)) = found {
            let text = format!(
                "{input} has {} elements at {:p}, but the call writes the plan's {output} there; \
                 pass an array of its own, and its length in elements",
                array.len, array.data
            );
            return Err(Failure::new(AVSG_INVALID, text));
        }
    }
    Ok(())
}

/// Returns whether two arrays share an element. NULL, empty arrays and arrays that are longer than
/// memory, which are refused elsewhere, share none.
fn overlaps(a: avsg_i32s, b: avsg_i32s) -> bool {
    let end = |array: avsg_i32s| array.data.addr().saturating_add(array.len.saturating_mul(4));
    let real = |array: avsg_i32s| {
        !array.data.is_null() && array.len > 0 && end(array) <= isize::MAX as usize
    };
    real(a) && real(b) && a.data.addr() < end(b) && b.data.addr() < end(a)
}
