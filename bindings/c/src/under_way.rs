//! Transfers that are begun and waited for.

use std::ffi::c_void;

use crate::boundary::{OutPtr, enter};
use crate::engine::avsg_engine;
use crate::handle;
use crate::plan::avsg_plan;
use crate::status::avsg_status;
use crate::step::{avsg_fresh, transfer};
use avsg::engine::Engine;
use avsg::plan::Plan;

/// Begins an `avsg_engine_transfer`, with its arguments, and returns while the rows are read from a file or copied.
/// In a stream it is that call. Fresh rows are copied before it returns, and all others, too, by an engine with one
/// thread or an executor, and if they are so few that waking a thread takes longer. Over a file the kernel reads
/// meanwhile, and the wait copies; without io_uring the workers do both, without a limit of time.
///
/// Until `avsg_engine_wait` has succeeded, the slots of the plan's misses are not read in these layers. A plan, a load,
/// a fork and another transfer of its states for its indexer are AVSG_INVALID. All arrays of the plan and the slots
/// of its hits may be read, and everything else may be called, also for other plans. AVSG_BUSY if as many
/// transfers are under way as `under_way` of the engine says. A discard of the plan, a plan of another batch into
/// it, and the destruction of its engine end the transfer first, at most after the time limit of a file; so does the
/// engine's next call after the destruction of the plan. Memory that the kernel still writes to then stays allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_begin(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layers: *const usize,
    count: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    contract!(transfer(engine, plan, (layers, count, fresh), stream, Engine::begin))
}

/// Waits for the transfer of a plan that is under way, takes part in it, and returns what `avsg_engine_transfer`
/// would have. After any status it is no longer under way. AVSG_INVALID if none is, or if the plan was made in a
/// stream: use an event of your stream.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_wait(engine: *mut avsg_engine, plan: *mut avsg_plan) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        Ok(engine.wait(&mut *handle::exclusive::<Plan>(plan)?)?)
    })
}

/// Asks, without waiting, about a transfer that is under way: `done` receives 1 if `avsg_engine_wait` has nothing to
/// wait for that was begun, else 0. More records of a file than fit the memory for them are begun by that call. An
/// Ascend device is not asked: 1. AVSG_INVALID as for `avsg_engine_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_test(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    done: *mut i32,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("done", done, 0)?);
        let mut engine = handle::exclusive::<Engine>(engine)?;
        out.write(engine.is_done(&*handle::exclusive::<Plan>(plan)?)?.into());
        Ok(())
    })
}
