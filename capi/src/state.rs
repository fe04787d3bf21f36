//! Changes of a state between steps.

use crate::engine::avsg_engine;
use crate::handle;
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, avsg_status, enter};
use avsg::engine::Engine;

/// Empties the slots of a state's ids from `first` to `end` - 1, because their rows in the pool were
/// rewritten under a live request. The next plan that selects such an id copies its new row; other
/// ids keep their slots. A plan that was made before keeps its slots: transfer it first. On an
/// Ascend device the call waits for the work of all streams, none of which may be in a capture.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_invalidate(
    engine: *mut avsg_engine,
    state: usize,
    first: usize,
    end: usize,
) -> avsg_status {
    enter(|| {
        let id = |what: &str, id: usize| {
            i32::try_from(id).map_err(|_| {
                let text =
                    format!("{what} is {id}, but ids are below 4194304; pass a range of ids");
                Failure::new(AVSG_INVALID, text)
            })
        };
        let mut engine = handle::exclusive::<Engine>(engine)?;
        engine.invalidate(state, id("first", first)?..id("end", end)?)?;
        Ok(())
    })
}
