//! Checks of calls: every mistake is reported before anything changes.
//!
//! The contents of arrays in device memory are not known to the host. Ids are not checked in either case: the kernels
//! treat an id that is out of range as padding and raise a status bit.

use std::fmt::Arguments;
use std::ops::Range;

use avsg_device::params::ID_LIMIT;

use crate::call::{Batch, BatchArray, BatchOf, Call, CallArray, MAX_REQUESTS, Work, named};
use crate::plan::Plan;
use crate::pool::Role;
use crate::resources::Resources;
use crate::{Result, ensure, invalid, rows};

/// Checks a call, apart from the order of plans, and returns it as devices take it: with the number of its tokens, and
/// without the ids of an append. `seen` has a flag per state.
pub(super) fn call<'a, A: BatchArray, R: CallArray>(
    resources: &Resources,
    seen: &mut [bool],
    mut call: Call<'a, A, R>,
    plan: Option<&Plan>,
) -> Result<Call<'a, A, R>> {
    resources.birth.check("engine")?;
    let mut states = A::readable(&call.batch).map_or(&[][..], |batch| batch.state);
    if let Some(plan) = plan {
        own(resources, plan)?;
        if call.work == Work::Transfer {
            states = &plan.state[..plan.requests];
        } else {
            // The number of requests is compared before an array of that length is read.
            capacity("requests", call.batch.requests(), plan.max_requests)?;
        }
    }
    if call.work != Work::Transfer {
        call.tokens = batch(resources, seen, &call.batch, (call.work, call.tokens))?;
    }
    if call.work != Work::Append && !resources.buffer.has_device_table() {
        // Kernels read a table in device memory when they run.
        named(states).try_for_each(|(_, state)| resources.buffer.check_blocks(state))?;
    }
    if let Some(plan) = plan {
        capacity("tokens", call.tokens, plan.max_tokens)?;
    }
    layers(resources, &call, plan.is_some_and(|plan| plan.fresh))?;
    let params = &resources.config.params;
    if call.work == Work::Append {
        let k = params.k as usize;
        call.batch = BatchOf { ids: A::default(), ids_stride: k, k, ..call.batch };
    }
    if params.page == 0 {
        call.batch.block_stride = 0;
    }
    Ok(call)
}

/// Checks that a plan belongs to this engine.
fn own(resources: &Resources, plan: &Plan) -> Result<()> {
    ensure!(plan.engine == resources.id, "plan" is "foreign", but "it was made by another engine";
        "pass it to the engine whose new_plan made it");
    Ok(())
}

/// Checks that a plan belongs to this engine and holds a batch that was planned on the host.
pub(super) fn plan(resources: &Resources, plan: &Plan) -> Result<()> {
    resources.birth.check("engine")?;
    own(resources, plan)?;
    ensure!(!plan.is_queued(), "plan" is "planned in a stream", but "the host does not see what it missed";
        "call the engine with that stream, or give its requests a new generation");
    ensure!(plan.number != 0, "plan" is "empty", but "no batch was planned into it";
        "plan one first");
    Ok(())
}

/// Checks that a plan has room for the requests or for the tokens of a batch.
fn capacity(what: &'static str, n: usize, most: usize) -> Result<()> {
    ensure!(n <= most, what is n, but "the plan holds {most}";
        "make a larger plan, or pass a shorter array");
    Ok(())
}

/// Checks a batch and returns the number of its tokens; in a stream the most that `cu_q` may count, which is `given` in
/// an append that says it.
fn batch<A: BatchArray>(
    resources: &Resources,
    seen: &mut [bool],
    batch: &BatchOf<A>,
    (work, given): (Work, usize),
) -> Result<usize> {
    let params = &resources.config.params;
    let plans = work != Work::Append;
    arrays(resources, batch)?;
    let host = A::readable(batch);
    if let Some(host) = host {
        elements(resources, seen, host, if plans { params.tokens } else { i32::MAX as u32 })?;
    }
    let most = batch.requests().saturating_mul(params.tokens as usize);
    let has_ids = batch.k > 0 && batch.ids_stride > 0 && batch.ids.count() >= batch.k;
    let tokens = match host {
        Some(host) if !plans => host.tokens(),
        None if !plans && given > 0 => given,
        None if !plans && !has_ids => most,
        _ => {
            let (k, stride, most_ids) = (batch.k, batch.ids_stride, params.k as usize);
            ensure!((1..=most_ids).contains(&k), "k" is k, but
                "this engine's K is {most_ids}, so it must be 1..={most_ids}"; "pass 1..=K ids per token");
            ensure!(stride >= k, "ids_stride" is stride, but
                "a token has {k} ids, so it must be at least k"; "pass the words from token to token");
            let rest = batch.ids.count().checked_sub(k);
            let room = rest.map_or(0, |rest| (rest / stride).saturating_add(1).min(most));
            // On a device only kernels read `cu_q`, so that it is the number that `ids` has room for.
            let tokens = host.map_or(room, Batch::tokens);
            let (name, need) = (["ids", "ids length"], end(tokens, stride, k));
            array(batch.ids, name, need, false, format_args!("{tokens} tokens need"))?;
            tokens
        }
    };
    if plans {
        rows::index("indexer", batch.indexer, resources.config.indexers.count())?;
    }
    Ok(tokens)
}

/// Checks the number of requests, the arrays that are sized by it, and the size of block tables.
fn arrays<A: BatchArray>(resources: &Resources, batch: &BatchOf<A>) -> Result<()> {
    let (requests, page) = (batch.requests(), resources.config.params.page);
    ensure!(requests <= MAX_REQUESTS, "requests" is requests, but "it must be 0..={MAX_REQUESTS}";
        "split the batch");
    for (name, of_batch, need) in [
        (["cu_q", "cu_q length"], batch.cu_q, requests + 1),
        (["state", "state length"], batch.state, requests),
        (["generation", "generation length"], batch.generation, requests),
        (["stable_len", "stable_len length"], batch.stable_len, requests),
        (["seq_len", "seq_len length"], batch.seq_len, requests),
    ] {
        array(of_batch, name, need, true, format_args!("a batch of {requests} requests has"))?;
    }
    if page == 0 {
        return Ok(());
    }
    let names_none = A::readable(batch).map_or(requests == 0, |b| named(b.state).next().is_none());
    ensure!(batch.block_stride != 0 || names_none, "block_stride" is 0, but
        "this engine's page is {page}, so each request has at least one block";
        "pass the elements from request to request");
    let (stride, name) = (batch.block_stride, ["block_table", "block_table length"]);
    let rule = format_args!("{requests} requests of {stride} entries need");
    array(batch.block_table, name, requests.saturating_mul(stride), false, rule)
}

/// Checks that an array has `need` elements, or at least as many if it is in device memory or need not be `exact`.
/// `rule` is the reason for their number.
fn array(
    array: impl CallArray,
    [what, length]: [&'static str; 2],
    need: usize,
    exact: bool,
    rule: Arguments<'_>,
) -> Result<()> {
    let (len, address) = (array.count(), array.device_address());
    let more = len > need && !(exact && address.is_none());
    ensure!(len == need || more, length is len, but "{rule} {need}";
        "size it by the length of `state`, the tokens of `cu_q` and the strides");
    let Some(address) = address.filter(|_| need > 0) else { return Ok(()) };
    let end = (len as u64).checked_mul(4).and_then(|bytes| address.checked_add(bytes));
    ensure!(address != 0 && address.is_multiple_of(4) && end.is_some(), what is address, but
        "it must be the device address of the whole array and a multiple of 4";
        "pass an array of int32");
    Ok(())
}

/// Checks tokens, states and lengths. A request has at most `most` tokens.
fn elements(resources: &Resources, seen: &mut [bool], batch: &Batch<'_>, most: u32) -> Result<()> {
    ensure!(batch.cu_q[0] == 0, "cu_q[0]" is batch.cu_q[0], but "the first token is 0"; "start at 0");
    for (request, pair) in batch.cu_q.windows(2).enumerate() {
        let tokens = i64::from(pair[1]) - i64::from(pair[0]);
        ensure!((0..=i64::from(most)).contains(&tokens), "tokens of a request" is tokens, but
            "request {request} may have 0..={most} tokens";
            "let cu_q ascend by at most N_q, or make an engine with a larger N_q");
    }
    seen.fill(false);
    for request in 0..batch.requests() {
        let (state, stable, seq) =
            (batch.state[request], batch.stable_len[request], batch.seq_len[request]);
        ensure!(state >= -1 && state < resources.config.states as i32, "state" is state, but
            "request {request}: the engine has states 0..{}", resources.config.states;
            "map the request to a free state, or pass -1 for a padded one");
        if state < 0 {
            continue;
        }
        ensure!(!core::mem::replace(&mut seen[state as usize], true), "state" is state, but
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
    Ok(())
}

/// Returns the end of what some tokens have, each `len` long. It saturates, because the caller chooses the stride: a
/// wrapped number would pass.
fn end(tokens: usize, stride: usize, len: usize) -> usize {
    tokens.checked_sub(1).map_or(0, |before| before.saturating_mul(stride).saturating_add(len))
}

/// Checks the layers of a call whose batch was checked, and their fresh rows; `missed` tells whether the plan missed some.
fn layers<A: BatchArray, R: CallArray>(
    resources: &Resources,
    call: &Call<'_, A, R>,
    missed: bool,
) -> Result<()> {
    let Call { work, tokens, layers, .. } = *call;
    for (index, &layer) in layers.iter().enumerate() {
        rows::index("layer", layer, resources.pool.layers())?;
        ensure!(index == 0 || layers[index - 1] < layer, "layer" is layer, but
            "it comes after layer {} in the list", layers[index - 1];
            "list each layer once, in ascending order");
        let (indexer, planned) = (resources.config.indexers.of(layer), call.batch.indexer);
        ensure!(work == Work::Append || indexer == planned, "layer" is layer, but
            "its ids come from indexer {indexer}, and the plan is of indexer {planned}";
            "plan once per indexer, transfer per layer");
    }
    ensure!(work != Work::Append || resources.pool.role() != Role::Reader, "pool role" is "reader", but
        "a reader's mapping is read only"; "append in the writer process");
    let segments = resources.pool.format().as_slice();
    let Some(fresh) = call.fresh else {
        let needed = match work {
            Work::Plan => false,
            Work::Transfer => missed,
            Work::Step => {
                A::readable(&call.batch).is_some_and(|b| b.stable_len.iter().any(|&s| s >= 0))
            }
            Work::Append => true,
        };
        ensure!(!needed, "fresh rows" is "none", but
            "ids >= stable_len are rows that only this step has";
            "pass this layer's fresh rows, or stable_len -1 if the pool has them all");
        return Ok(());
    };
    ensure!(fresh.len() == layers.len() * segments.len(), "fresh segments" is fresh.len(), but
        "a row has {}, in each of {} layers", segments.len(), layers.len();
        "pass the pool's number for each layer");
    let of_layers = layers.iter().flat_map(|layer| segments.iter().map(move |s| (layer, s)));
    for (rows, (layer, segment)) in fresh.iter().zip(of_layers) {
        let need = end(tokens, segment.stride, segment.bytes);
        ensure!(rows.count() >= need, "fresh bytes" is rows.count(), but
            "layer {layer}: {tokens} rows of stride {} need {need}", segment.stride;
            "pass one row per token of the batch");
        if let Some(address) = rows.device_address() {
            let end = address.checked_add(rows.count() as u64);
            ensure!(address != 0 && end.is_some(), "address of fresh rows" is address, but
                "it must be that of all fresh rows in device memory";
                "pass the address of the first row");
        }
    }
    Ok(())
}

/// Checks a range of ids.
pub(super) fn id_range(ids: &Range<i32>) -> Result<()> {
    ensure!(ids.start >= 0 && ids.end <= ID_LIMIT && !ids.is_empty(),
        "ids" is format!("{}..{}", ids.start, ids.end), but "ids are 0..{ID_LIMIT}";
        "pass a range of at least one id");
    Ok(())
}

/// Checks the states that a state is copied to, and the number of their generations.
pub(super) fn fork_targets(
    seen: &mut [bool],
    from: usize,
    to: &[i32],
    generations: &[i32],
) -> Result<()> {
    ensure!(generations.len() == to.len(), "generations" is generations.len(), but
        "{} states are named", to.len(); "pass a generation for each state");
    seen.fill(false);
    for &state in to {
        let at = usize::try_from(state).ok().filter(|&at| at < seen.len());
        let at = at.ok_or_else(|| {
            invalid!("state" is state, but "there are {}", seen.len(); "pass a number below that, from 0")
        })?;
        ensure!(at != from, "state" is state, but "a state is copied to another one";
            "pass two different states");
        ensure!(!core::mem::replace(&mut seen[at], true), "state" is state, but
            "the list names it twice"; "list each state once");
    }
    Ok(())
}
