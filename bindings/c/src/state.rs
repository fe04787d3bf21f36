//! Changes of a state between steps.

use crate::boundary::{self, enter};
use crate::engine::avsg_engine;
use crate::handle;
use crate::plan::avsg_plan;
use crate::status::{Failure, Result, avsg_status, check_reserved};
use crate::step::avsg_i32s;
use avsg::device::params::ID_LIMIT;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;

/// Empties the slots of a state's ids from `first` to `end` - 1, because their rows in the pool were
/// rewritten under a live request. `end` is above `first` and at most 16777216, behind the last id. The next
/// plan that selects such an id copies its new row; other ids keep their slots. A plan that was made before
/// keeps its slots: transfer it first. On an Ascend device the call waits for the work of all streams, none
/// of which may be in a capture.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_invalidate(
    engine: *mut avsg_engine,
    state: usize,
    first: usize,
    end: usize,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        Ok(engine.invalidate(state, id("first", first)?..id("end", end)?).map(drop)?)
    })
}

/// The ids that `avsg_engine_load` puts into the slots of one state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_load {
    /// sizeof(avsg_load).
    pub size: usize,
    /// The ids, at most S of them, in host memory.
    pub ids: avsg_i32s,
    /// The pool's blocks of the request, in host memory; empty if the engine's `page` is 0.
    pub block_table: avsg_i32s,
    /// The indexer, whose layers get the rows.
    pub indexer: usize,
    /// The state that gets the rows.
    pub state: i32,
    /// The request's generation, as in `avsg_batch`.
    pub generation: i32,
    /// The sequence length. Ids at or above it are padding.
    pub seq_len: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// Puts the rows of chosen ids into the slots of a state without a selection, for example after a
/// restore: it plans K ids at a time into `plan`, which holds at least one token, and transfers them to
/// every layer of the indexer. The next plan hits these ids as those that `avsg_engine_get_held` tells of.
/// AVSG_INVALID, with nothing changed, if one of these layers lacks rows of an earlier plan of the state:
/// transfer that one first. After AVSG_OS of a pool in a file the last K ids are forgotten, and those before
/// them keep their slots. After AVSG_LOST_ROWS the state is empty for the indexer, and request 0 of `plan` has
/// the row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_load(
    engine: *mut avsg_engine,
    load: *const avsg_load,
    plan: *mut avsg_plan,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let load = contract!(boundary::read(load)?);
        check_reserved(load.reserved)?;
        let blocks = load.block_table;
        let batch = Batch {
            indexer: load.indexer,
            state: &[load.state],
            generation: &[load.generation],
            seq_len: &[load.seq_len],
            ids: contract!(boundary::array("ids", load.ids.data, load.ids.len))?,
            block_table: contract!(boundary::array("block_table", blocks.data, blocks.len))?,
            block_stride: blocks.len,
            ..Batch::default()
        };
        Ok(engine.load(&batch, &mut plan).map(drop)?)
    })
}

/// Copies the state `from` to `count` others, with its tables and slots, for a sequence that is forked: to[i]
/// gets the generation to_generation[i]. `from_generation` is that of the request that is forked, which need
/// not have a plan yet. A state is named once. "cpu" copies with all workers. AVSG_INVALID if a layer lacks
/// rows of the last plan of `from` in that generation. On an Ascend device the call waits as
/// `avsg_engine_invalidate` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_fork(
    engine: *mut avsg_engine,
    from: usize,
    from_generation: i32,
    to: *const i32,
    to_generation: *const i32,
    count: usize,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let to = contract!(boundary::array("to", to, count))?;
        let to_generation = contract!(boundary::array("to_generation", to_generation, count))?;
        Ok(engine.fork(from, from_generation, to, to_generation)?)
    })
}

/// Tells which ids from `first` to `end` - 1 (as in `avsg_engine_invalidate`) a state holds for an indexer:
/// bit i % 64 of bits[i / 64] is 1 if it holds id first + i. The first token of the state's next plan in
/// `generation` hits such an id and has no row to copy, if it selects it below `seq_len` and below a
/// `stable_len` other than -1. A later token of that plan may miss it, because an earlier one has evicted it,
/// and what later plans do is open. `bits` has `words` elements, at least one for 64 ids. On an Ascend device
/// the call waits as `avsg_engine_invalidate` does and reads the table back: it is not meant for the step
/// path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_held(
    engine: *mut avsg_engine,
    indexer: usize,
    state: usize,
    generation: i32,
    first: usize,
    end: usize,
    bits: *mut u64,
    words: usize,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let bits = contract!(boundary::array_mut("bits", bits, words))?;
        let ids = id("first", first)?..id("end", end)?;
        Ok(engine.held(indexer, state, generation, ids, bits).map(drop)?)
    })
}

/// Returns an id or the end of a range of ids.
fn id(what: &str, id: usize) -> Result<i32> {
    i32::try_from(id).map_err(|_| {
        Failure::invalid(format!(
            "{what} is {id}, but ids are below {ID_LIMIT}; pass a range of ids"
        ))
    })
}

/// Drops a planned batch whose transfers are not going to be made, or not to every layer, for
/// example because its drafts were abandoned. The ids that it missed lose their slots, so that the
/// next plan misses them again; the plan holds no batch afterwards. AVSG_INVALID, with nothing
/// changed, if the plan was made in a stream, or if a state of which it missed a row was planned
/// again or emptied since: discard newer plans first. On an Ascend device the call waits as
/// `avsg_engine_invalidate` does.
///
/// A batch that was planned with a NULL stream and that no layer has is discarded without this call: when the
/// next one is planned into its plan, for which an Ascend device waits only then, and once its plan was
/// destroyed in the engine's next call that plans or uses tables, which frees the plan's memory. While a
/// newer plan of a state needs its rows, planning into it is AVSG_INVALID, unless that empties the state, and
/// what was destroyed is kept. A batch that some layer has is overwritten and stays in that layer; a transfer
/// to another one is AVSG_INVALID then, and names every layer and state that lacks it, until the requests have
/// new generations.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_discard(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        Ok(engine.discard(&mut plan)?)
    })
}
