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
use crate::{Error, Result, rows};

fn invalid<T>(
    what: &'static str,
    value: impl ToString,
    limit: String,
    remedy: &'static str,
) -> Result<T> {
    Err(Error::invalid(what, value, limit, remedy))
}

/// Checks a batch and the plan that will hold its results.
pub(super) fn batch(
    resources: &Resources,
    named: &mut [bool],
    batch: &Batch<'_>,
    plan: &Plan,
) -> Result<()> {
    if plan.engine != resources.id {
        let limit = "it was made by another engine".to_string();
        return invalid("plan", "foreign", limit, "make it with this engine's new_plan");
    }
    // The number of requests is compared before an array of that length is read.
    let requests = batch.state.len();
    if requests > plan.max_requests {
        let limit = format!("the plan holds {}", plan.max_requests);
        return invalid("requests", requests, limit, "make a larger plan");
    }
    shape(resources, named, batch, resources.config.params.tokens)?;
    ids(resources, batch)?;
    let rows = batch.cu_q[requests] as usize;
    rows::index("indexer", batch.indexer, resources.config.indexers.count())?;
    blocks(resources, batch.state)?;
    if rows > plan.max_rows {
        let limit = format!("the plan holds {}", plan.max_rows);
        return invalid("rows", rows, limit, "make a larger plan");
    }
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
        if len != need {
            let limit = format!("a batch of {requests} requests has {need}");
            return invalid(what, len, limit, "size the array by the length of `state`");
        }
    }
    if batch.cu_q[0] != 0 {
        let limit = "the first row is 0".to_string();
        return invalid("cu_q[0]", batch.cu_q[0], limit, "start at 0");
    }
    for (request, pair) in batch.cu_q.windows(2).enumerate() {
        let tokens = i64::from(pair[1]) - i64::from(pair[0]);
        if !(0..=i64::from(most)).contains(&tokens) {
            let limit = format!("request {request} may have 0..={most} tokens");
            let remedy = "let cu_q ascend by at most N_q, or make an engine with a larger N_q";
            return invalid("tokens of a request", tokens, limit, remedy);
        }
    }
    named.fill(false);
    for request in 0..requests {
        let (state, stable, seq) =
            (batch.state[request], batch.stable_len[request], batch.seq_len[request]);
        if state < -1 || state >= config.states as i32 {
            let limit = format!("request {request}: the engine has states 0..{}", config.states);
            let remedy = "map the request to a free state, or pass -1 for a padded one";
            return invalid("state", state, limit, remedy);
        }
        if state < 0 {
            continue;
        }
        if core::mem::replace(&mut named[state as usize], true) {
            let limit = format!("request {request} is the second to name it");
            return invalid("state", state, limit, "give every request of a batch its own state");
        }
        if !(0..=ID_LIMIT).contains(&seq) {
            let limit = format!("request {request}: lengths are 0..={ID_LIMIT}");
            return invalid("seq_len", seq, limit, "split or refuse longer contexts");
        }
        if stable < -1 || stable > seq {
            let limit = format!("request {request}: it must be -1..=seq_len ({seq})");
            let remedy = "pass the tokens whose KV was final before this step, or -1";
            return invalid("stable_len", stable, limit, remedy);
        }
        let tokens = batch.cu_q[request + 1] - batch.cu_q[request];
        if stable >= 0 && seq > stable.saturating_add(tokens) {
            let limit = format!(
                "request {request}: stable_len {stable} and {tokens} tokens make at most {}",
                stable.saturating_add(tokens)
            );
            let remedy = "seq_len counts this step's tokens and no others";
            return invalid("seq_len", seq, limit, remedy);
        }
    }
    if config.params.page != 0 {
        if batch.block_stride == 0 && batch.state.iter().any(|&state| state >= 0) {
            return Err(no_blocks(config.params.page));
        }
        // The product saturates because the caller chooses `block_stride`: a wrapped product would
        // pass.
        let need = requests.saturating_mul(batch.block_stride);
        if batch.block_table.len() < need {
            let limit =
                format!("{requests} requests of {} entries need {need}", batch.block_stride);
            return invalid("block_table length", batch.block_table.len(), limit, "pass them all");
        }
    }
    Ok(())
}

/// Returns an error if no batch has so many requests.
pub(super) fn requests(count: usize) -> Result<()> {
    if count <= MAX_REQUESTS {
        return Ok(());
    }
    invalid("requests", count, format!("it must be 0..={MAX_REQUESTS}"), "split the batch")
}

/// Returns the error of a batch without block tables on an engine that needs them.
pub(super) fn no_blocks(page: u32) -> Error {
    let limit = format!("this engine's page is {page}, so each request has at least one block");
    Error::invalid("block_stride", 0, limit, "pass the elements from request to request")
}

fn ids(resources: &Resources, batch: &Batch<'_>) -> Result<()> {
    let k = resources.config.params.k as usize;
    if batch.k == 0 || batch.k > k {
        let limit = format!("this engine's K is {k}");
        return invalid("k", batch.k, limit, "pass 1..=K ids per row");
    }
    let rows = batch.cu_q[batch.state.len()] as usize;
    if batch.ids_stride < batch.k {
        let limit = format!("a row has {} ids", batch.k);
        return invalid("ids_stride", batch.ids_stride, limit, "pass the words from row to row");
    }
    let need = match rows {
        0 => 0,
        _ => (rows - 1).saturating_mul(batch.ids_stride).saturating_add(batch.k),
    };
    if batch.ids.len() < need {
        let limit = format!("{rows} rows need {need}");
        return invalid("ids length", batch.ids.len(), limit, "pass all rows that cu_q counts");
    }
    Ok(())
}

/// Checks that a plan belongs to this engine and holds a planned batch.
pub(super) fn plan(resources: &Resources, plan: &Plan) -> Result<()> {
    resources.check_process()?;
    if plan.engine != resources.id {
        let limit = "it was made by another engine".to_string();
        return invalid("plan", "foreign", limit, "transfer it on the engine that planned it");
    }
    if plan.number == 0 {
        let limit = "no batch was planned into it".to_string();
        return invalid("plan", "empty", limit, "plan one first");
    }
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
    if indexer == planned {
        return Ok(());
    }
    let limit =
        format!("its ids come from indexer {indexer}, and the plan is of indexer {planned}");
    invalid("layer", layer, limit, "plan once per indexer, transfer per layer")
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
        if needed {
            let limit = "ids >= stable_len are rows that only this step has".to_string();
            let remedy = "pass this layer's fresh rows, or stable_len -1 if the pool has them all";
            return invalid("fresh rows", "none", limit, remedy);
        }
        return Ok(());
    };
    if fresh.segments.len() != segments.len() {
        let limit = format!("a row has {}", segments.len());
        return invalid("fresh segments", fresh.segments.len(), limit, "pass one slice each");
    }
    for (have, segment) in fresh.segments.iter().zip(segments) {
        // The product saturates: a stride that only the fresh rows have may be any.
        let before = batch_rows.saturating_sub(1).saturating_mul(segment.stride);
        let need = before.saturating_add(if batch_rows == 0 { 0 } else { segment.bytes });
        if have.len() < need {
            let limit = format!("{batch_rows} rows of stride {} need {need}", segment.stride);
            return invalid("fresh bytes", have.len(), limit, "pass one row per row of the batch");
        }
    }
    Ok(())
}

/// Returns an error if this process may only read the pool.
pub(super) fn writer(resources: &Resources) -> Result<()> {
    if resources.pool.role() == Role::Reader {
        let limit = "a reader's mapping is read only".to_string();
        return invalid("pool role", "reader", limit, "append in the writer process");
    }
    Ok(())
}
