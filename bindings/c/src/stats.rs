//! Counters and times of an engine.

use std::time::Duration;

use crate::engine::avsg_engine;
use crate::engine_info::avsg_engine_info;
use crate::handle;
use crate::sized::{array_mut, check_capacity, give_struct};
use crate::status::{avsg_status, enter};
use avsg::engine::{Engine, StatsReader};

/// What an engine has done since it was made. Every number only grows; while a call runs, they may be of
/// different instants. A load counts as its plans and transfers. The host does not see what work in a
/// caller's stream plans and copies: of such calls only `queued` is counted. Times are those of the calling
/// thread, in nanoseconds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_stats {
    /// sizeof(avsg_engine_stats).
    pub size: usize,
    /// Batches planned, with or without a transfer in the same call.
    pub plans: u64,
    /// Transfers of a plan to a layer, with or without a plan in the same call.
    pub transfers: u64,
    /// Appends to a layer.
    pub appends: u64,
    /// Calls that were put into a caller's stream; one for several layers counts for each.
    pub queued: u64,
    /// Selected ids that had a slot.
    pub hits: u64,
    /// Selected ids that got a slot.
    pub misses: u64,
    /// Those of the misses whose slot an earlier id had been given since the state was last empty:
    /// the id was evicted, or had been invalidated.
    pub evictions: u64,
    /// Bytes that transfers copied to slots, from the pool or from fresh rows.
    pub transferred_bytes: u64,
    /// Bytes of the fresh rows of appends.
    pub appended_bytes: u64,
    /// Time in Stage One.
    pub plan_ns: u64,
    /// Time in Stage Two.
    pub transfer_ns: u64,
    /// Time of steps on an Ascend device, whose stages the host cannot tell apart.
    pub step_ns: u64,
    /// Time in appends.
    pub append_ns: u64,
    /// Time of transfers, also failed ones, in which nothing was done but to wait for reads of a file; without
    /// io_uring also that of the copies.
    pub read_wait_ns: u64,
}

/// Gives the counters and times of an engine's calls so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_stats(
    engine: *const avsg_engine,
    stats: *mut avsg_engine_stats,
) -> avsg_status {
    let count = |(_, _, reader): &(_, _, StatsReader)| {
        let all = reader.stats();
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Ok(avsg_engine_stats {
            size: 0,
            plans: all.plans,
            transfers: all.transfers,
            appends: all.appends,
            queued: all.queued,
            hits: all.hits,
            misses: all.misses,
            evictions: all.evictions,
            transferred_bytes: all.transferred_bytes,
            appended_bytes: all.appended_bytes,
            plan_ns: nanoseconds(all.plan_time),
            transfer_ns: nanoseconds(all.transfer_time),
            step_ns: nanoseconds(all.step_time),
            append_ns: nanoseconds(all.append_time),
            read_wait_ns: nanoseconds(all.read_wait),
        })
    };
    contract!(give_struct(stats, || handle::fixed::<Engine, _>(engine, count)))
}

/// Gives the slots in use of each state for an indexer: used[t] is that of state t. "cpu" knows it exactly. An
/// Ascend device may have less, because the host does not see which slots `stable_len`, a discard or an
/// invalidation emptied. -1 once a stream has planned, because the host does not see which states it planned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_used_slots(
    engine: *const avsg_engine,
    indexer: usize,
    used: *mut i64,
    capacity: usize,
) -> avsg_status {
    let give = |(info, _, reader): &(avsg_engine_info, _, StatsReader)| {
        let all = reader.used_slots(indexer)?;
        check_capacity(info.states, capacity, "states")?;
        let used = contract!(array_mut("used", used, info.states))?;
        used.iter_mut().zip(all).for_each(|(to, n)| *to = n.map_or(-1, |n| n as i64));
        Ok(())
    };
    enter(|| handle::fixed::<Engine, _>(engine, give))
}
