//! What is read beside an engine's calls: its description, its buffer and its counters.

use std::ffi::c_char;
use std::sync::Arc;

use crate::boundary::{array_mut, check_capacity, enter, give_struct};
use crate::c_text::c_chars;
use crate::engine::avsg_engine;
use crate::handle;
use crate::handle::Object;
use crate::status::{Result, avsg_status};
use avsg::buffer::DeviceBuffer;
use avsg::device::params::{Lifetime, Table};
use avsg::engine::{Config, Engine, StatsReader};

/// The description of an engine: its configuration with the defaults filled in, and what creation
/// measured.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_info {
    /// sizeof(avsg_engine_info).
    pub size: usize,
    /// The name of the device.
    pub device: [c_char; 16],
    /// The vector instructions, such as "avx512"; "none" on an Ascend device.
    pub machine: [c_char; 32],
    /// The method that copies rows, such as "stream+8"; "none" on an Ascend device.
    pub copier: [c_char; 32],
    /// K, the most ids that a token selects.
    pub k: u32,
    /// N_q, the most tokens of a request in one step.
    pub tokens: u32,
    /// S, the number of slots per state and layer.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// An `avsg_lifetime`, but not AVSG_LIFETIME_AUTO.
    pub lifetime: i32,
    /// The constant lifetime in decode steps; 0 with AVSG_LIFETIME_LEARNED.
    pub life: i32,
    /// Links per slot.
    pub spread: u32,
    /// R, the number of links probed after the first.
    pub retries: u32,
    /// Tokens per block of the host's block tables; 0 if there are none.
    pub page: u32,
    /// Cores in use.
    pub cores: u32,
    /// Request states.
    pub states: usize,
    /// Layers of the pool.
    pub layers: usize,
    /// Bytes of the device buffer.
    pub buffer_bytes: usize,
    /// Threads that run a launch on "cpu", the caller's included; 0 on an Ascend device.
    pub threads: u32,
    /// The most transfers that are under way at once.
    pub under_way: u32,
    /// Indexers: the tables of each state.
    pub indexers: usize,
}

fn engine_info(engine: &Engine) -> avsg_engine_info {
    let Config { params, states, cores, ref indexers, .. } = *engine.config();
    let cpu = engine.cpu();
    avsg_engine_info {
        size: 0,
        device: c_chars(&engine.device()),
        machine: c_chars(&cpu.map_or("none", |cpu| cpu.machine)),
        copier: cpu.map_or_else(|| c_chars(&"none"), |cpu| c_chars(&cpu.copier)),
        k: params.k,
        tokens: params.tokens,
        slots: params.slots,
        table: i32::from(params.table != Table::Wide),
        lifetime: if matches!(params.lifetime, Lifetime::Constant(_)) { 1 } else { 2 },
        life: match params.lifetime {
            Lifetime::Constant(life) => life.into(),
            Lifetime::Learned => 0,
        },
        spread: params.spread,
        retries: params.retries,
        page: params.page,
        cores: cores as u32,
        states,
        layers: engine.pool().layers(),
        buffer_bytes: engine.buffer().bytes(),
        threads: cpu.map_or(0, |cpu| cpu.threads) as u32,
        under_way: engine.config().transfers() as u32,
        indexers: indexers.count(),
    }
}

impl Object for Engine {
    type C = avsg_engine;
    const KIND: u64 = 2;
    const NAME: &'static str = "engine";
    type Fixed = (avsg_engine_info, Arc<DeviceBuffer>, StatsReader);

    fn fixed(&self) -> Self::Fixed {
        (engine_info(self), Arc::clone(self.buffer()), self.stats_reader())
    }

    fn end(self) -> Result<()> {
        Ok(self.close()?)
    }
}

/// Describes an engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_info(
    engine: *const avsg_engine,
    info: *mut avsg_engine_info,
) -> avsg_status {
    let describe = || handle::fixed::<Engine, _>(engine, |&(info, ..)| Ok(info));
    contract!(give_struct(info, describe))
}

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
            plan_ns: all.plan_ns,
            transfer_ns: all.transfer_ns,
            step_ns: all.step_ns,
            append_ns: all.append_ns,
            read_wait_ns: all.read_wait_ns,
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
