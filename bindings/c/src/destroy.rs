//! Destruction of pools, engines and plans.

use crate::engine::avsg_engine;
use crate::handle;
use crate::plan::avsg_plan;
use crate::pool::{Pool, avsg_pool};
use crate::status::{avsg_status, enter};
use avsg::engine::Engine;
use avsg::plan::Plan;

/// Destroys the handle of a pool, whose memory lasts until every engine on it is destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_destroy(pool: *mut avsg_pool) -> avsg_status {
    enter(|| handle::destroy::<Pool>(pool))
}

/// Destroys an engine; its plans stay readable on the host. After AVSG_DEVICE, because the runtime
/// refused to release something, the handle is invalid, too.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_destroy(engine: *mut avsg_engine) -> avsg_status {
    enter(|| handle::destroy::<Engine>(engine))
}

/// Destroys a plan, which may hold a batch that no layer has (`avsg_engine_discard`). It waits for no call.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_plan_destroy(plan: *mut avsg_plan) -> avsg_status {
    enter(|| handle::destroy::<Plan>(plan))
}
