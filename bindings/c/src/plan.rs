//! Plans: creation and destruction.

use crate::engine::avsg_engine;
use crate::handle;
use crate::status::{Failure, Result, avsg_status, avsg_status::AVSG_UNSUPPORTED};
use avsg::engine::Engine;

/// The outputs of Stage One for a batch, reused in every step. An engine may have several plans.
pub struct avsg_plan;

/// Creates a plan for batches of at most these tokens and requests, each 1 to 1048576.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_create(
    engine: *const avsg_engine,
    max_tokens: usize,
    max_requests: usize,
    plan: *mut *mut avsg_plan,
) -> avsg_status {
    let make = || Ok(handle::shared::<Engine>(engine)?.new_plan(max_tokens, max_requests)?);
    contract!(handle::give(plan, make))
}

/// Refuses a plan that was made in a stream, whose outputs the host cannot read.
pub(crate) fn check_readable(queued: bool) -> Result<()> {
    if !queued {
        return Ok(());
    }
    let text = "plan is in device memory, because it was made in a stream; read \
                the arrays of AVSG_MEMORY_DEVICE, or plan with a NULL stream";
    Err(Failure::new(AVSG_UNSUPPORTED, text.into()))
}
