//! Checks of batches whose arrays are in host memory: every mistake is reported before anything
//! changes.
//!
//! Ids are not checked here: the kernels treat an id that is out of range as padding and raise a
//! status bit.

use avsg_device::params::ID_LIMIT;

use crate::batch::{Batch, Fresh, MAX_REQUESTS};
use crate::plan::Plan;
use crate::pool::Role;
use crate::resources::Resources;
use crate::{Error, Result, ensure, invalid, rows};

/// Checks a batch and the plan that will hold its results.
pub(super) fn batch(
    resources: &Resources,
    named: &mut [bool],
    batch: &Batch<'_>,
    plan: &Plan,
) -> Result<()> {
    ensure!(plan.engine == resources.id, "plan" is "foreign", but "it was made by another engine";
        "make it with this engine's new_plan");
    // The number of requests is compared before an array of that length is read.
    let requests = batch.state.len();
    ensure!(requests <= plan.max_requests, "requests" is requests, but
        "the plan holds {}", plan.max_requests; "make a larger plan");
    shape(resources, named, batch, resources.config.params.tokens)?;
    ids(resources, batch)?;
    let rows = batch.cu_q[requests] as usize;
    rows::index("indexer", batch.indexer, resources.config.indexers.count())?;
    blocks(resources, batch.state)?;
    ensure!(rows <= plan.max_rows, "rows" is rows, but "the plan holds {}", plan.max_rows;
        "make a larger plan");
    Ok(())
}

/// Checks everything in a batch except its ids: requests, rows, states, lengths and block tables. A
/// request has at most `most` rows.
pub(super) fn shape(
    resources: &Resources,
    named: &mut [bool],
    batch: &Batch<'_>,
    most: u32,
) -> Result<()> {
    resources.check_process()?;
    let (config, requests) = (&resources.config, batch.state.len());
    self::requests(requests)?;
    let arrays = [
        ("cu_q length", batch.cu_q.len(), requests + 1),
        ("generation length", batch.generation.len(), requests),
        ("stable_len length", batch.stable_len.len(), requests),
        ("seq_len length", batch.seq_len.len(), requests),
    ];
    for (what, len, need) in arrays {
        ensure!(len == need, what is len, but "a batch of {requests} requests has {need}";
            "size the array by the length of `state`");
    }
    ensure!(batch.cu_q[0] == 0, "cu_q[0]" is batch.cu_q[0], but "the first row is 0"; "start at 0");
    for (request, pair) in batch.cu_q.windows(2).enumerate() {
        let tokens = i64::from(pair[1]) - i64::from(pair[0]);
        ensure!((0..=i64::from(most)).contains(&tokens), "tokens of a request" is tokens, but
            "request {request} may have 0..={most} tokens";
            "let cu_q ascend by at most N_q, or make an engine with a larger N_q");
    }
    named.fill(false);
    for request in 0..requests {
        let (state, stable, seq) =
            (batch.state[request], batch.stable_len[request], batch.seq_len[request]);
        ensure!(state >= -1 && state < config.states as i32, "state" is state, but
            "request {request}: the engine has states 0..{}", config.states;
            "map the request to a free state, or pass -1 for a padded one");
        if state < 0 {
            continue;
        }
        ensure!(!core::mem::replace(&mut named[state as usize], true), "state" is state, but
            "request {request} is the second to name it";
            "give every request of a batch its own state");
        ensure!((0..=ID_LIMIT).contains(&seq), "seq_len" is seq, but
            "request {request}: lengths are 0..={ID_LIMIT}"; "split or refuse longer contexts");
        ensure!(stable >= -1 && stable <= seq, "stable_len" is stable, but
            "request {request}: it must be -1..=seq_len ({seq})";
            "pass the tokens whose KV was final before this step, or -1");
        let tokens = batch.cu_q[request + 1] - batch.cu_q[request];
        ensure!(stable < 0 || seq <= stable.saturating_add(tokens), "seq_len" is seq, but
            "request {request}: stable_len {stable} and {tokens} tokens make at most {}",
            stable.saturating_add(tokens); "seq_len counts this step's tokens and no others");
    }
    if config.params.page != 0 {
        if batch.block_stride == 0 && batch.state.iter().any(|&state| state >= 0) {
            return Err(no_blocks(config.params.page));
        }
        // The product saturates because the caller chooses `block_stride`: a wrapped product would
        // pass.
        let need = requests.saturating_mul(batch.block_stride);
        ensure!(batch.block_table.len() >= need,
            "block_table length" is batch.block_table.len(), but
            "{requests} requests of {} entries need {need}", batch.block_stride; "pass them all");
    }
    Ok(())
}

/// Returns an error if no batch has so many requests.
pub(super) fn requests(count: usize) -> Result<()> {
    ensure!(count <= MAX_REQUESTS, "requests" is count, but "it must be 0..={MAX_REQUESTS}";
        "split the batch");
    Ok(())
}

/// Returns the error of a batch without block tables on an engine that needs them.
pub(super) fn no_blocks(page: u32) -> Error {
    invalid!("block_stride" is 0, but
        "this engine's page is {page}, so each request has at least one block";
        "pass the elements from request to request")
}

fn ids(resources: &Resources, batch: &Batch<'_>) -> Result<()> {
    let k = resources.config.params.k as usize;
    ensure!(batch.k != 0 && batch.k <= k, "k" is batch.k, but "this engine's K is {k}";
        "pass 1..=K ids per row");
    let rows = batch.cu_q[batch.state.len()] as usize;
    ensure!(batch.ids_stride >= batch.k, "ids_stride" is batch.ids_stride, but
        "a row has {} ids", batch.k; "pass the words from row to row");
    let need = match rows {
        0 => 0,
        _ => (rows - 1).saturating_mul(batch.ids_stride).saturating_add(batch.k),
    };
    ensure!(batch.ids.len() >= need, "ids length" is batch.ids.len(), but "{rows} rows need {need}";
        "pass all rows that cu_q counts");
    Ok(())
}

/// Checks that a plan belongs to this engine and holds a planned batch.
pub(super) fn plan(resources: &Resources, plan: &Plan) -> Result<()> {
    resources.check_process()?;
    ensure!(plan.engine == resources.id, "plan" is "foreign", but "it was made by another engine";
        "transfer it on the engine that planned it");
    ensure!(plan.number != 0, "plan" is "empty", but "no batch was planned into it";
        "plan one first");
    Ok(())
}

/// Checks the caller's table of blocks, if the slots have one, for some states. A table in device
/// memory is read by the kernels when they run.
pub(super) fn blocks(resources: &Resources, states: &[i32]) -> Result<()> {
    if resources.buffer.has_device_table() {
        return Ok(());
    }
    let mut named = states.iter().filter_map(|&state| usize::try_from(state).ok());
    named.try_for_each(|state| resources.buffer.check_blocks(state))
}

/// Checks that an existing layer belongs to the indexer of a plan.
pub(super) fn indexer(resources: &Resources, layer: usize, planned: usize) -> Result<()> {
    let indexer = resources.config.indexers.of(layer);
    ensure!(indexer == planned, "layer" is layer, but
        "its ids come from indexer {indexer}, and the plan is of indexer {planned}";
        "plan once per indexer, transfer per layer");
    Ok(())
}

/// Checks a layer and the fresh rows of a batch of `batch_rows` rows; `needed` refuses their
/// absence.
pub(super) fn fresh(
    resources: &Resources,
    layer: usize,
    batch_rows: usize,
    fresh: Option<&Fresh<'_>>,
    needed: bool,
) -> Result<()> {
    rows::index("layer", layer, resources.pool.layers())?;
    let segments = resources.pool.format().as_slice();
    let Some(fresh) = fresh else {
        ensure!(!needed, "fresh rows" is "none", but
            "ids >= stable_len are rows that only this step has";
            "pass this layer's fresh rows, or stable_len -1 if the pool has them all");
        return Ok(());
    };
    ensure!(fresh.segments.len() == segments.len(), "fresh segments" is fresh.segments.len(), but
        "a row has {}", segments.len(); "pass one slice each");
    for (have, segment) in fresh.segments.iter().zip(segments) {
        // The product saturates: a stride that only the fresh rows have may be any.
        let before = batch_rows.saturating_sub(1).saturating_mul(segment.stride);
        let need = before.saturating_add(if batch_rows == 0 { 0 } else { segment.bytes });
        ensure!(have.len() >= need, "fresh bytes" is have.len(), but
            "{batch_rows} rows of stride {} need {need}", segment.stride;
            "pass one row per row of the batch");
    }
    Ok(())
}

/// Returns an error if this process may only read the pool.
pub(super) fn writer(resources: &Resources) -> Result<()> {
    ensure!(resources.pool.role() != Role::Reader, "pool role" is "reader", but
        "a reader's mapping is read only"; "append in the writer process");
    Ok(())
}
