//! Verifies the exactness of a step: every selected id has a slot that contains its row, byte for
//! byte, and lanes that select nothing have no slot.

use avsg::engine::Engine;
use avsg::plan::Plan;
pub use avsg_measure::exact::{SelectedId, for_each_id};

use crate::batch::OwnedBatch;

/// Checks every id of a step of an engine on one layer but those of requests that transfers left out, and returns the
/// number of rows compared. `content(request, id)` returns the id and the version of the row that the request's id selects.
///
/// # Panics
/// If a slot does not contain the row of its id, or a lane that selects nothing has a slot.
pub fn check_step(
    engine: &Engine,
    plan: &Plan,
    owned: &OwnedBatch,
    layer: usize,
    content: impl Fn(usize, i32) -> (i32, u32),
) -> usize {
    let failed: Vec<_> = plan.failures().map(|failure| failure.request).collect();
    let mut checked = 0;
    for_each_id(
        &owned.batch(),
        engine.pool().format().bytes(),
        |row| plan.slots(row),
        |state, slot, bytes| engine.buffer().slot_bytes(state, layer, slot, bytes).is_ok(),
        content,
        |selected| {
            if !failed.contains(&selected.request) {
                checked += assert_exact(selected, layer);
            }
        },
    );
    checked
}

/// Asserts that one id is exact. Returns the number of rows compared for it, 0 or 1.
pub fn assert_exact(selected: &SelectedId<'_>, layer: usize) -> usize {
    let SelectedId { request, row, lane, id, slot, bytes, exact } = selected;
    let place = format_args!("request {request}, row {row}, lane {lane}");
    assert!(*exact, "layer {layer}, {place}, id {id}, slot {slot}");
    usize::from(!bytes.is_empty())
}
