//! The turns of the contenders of `avsg bench step`, and the steps that they take.

use std::ops::Range;

use anyhow::Result;
use serde::Serialize;

use crate::command::output;
use crate::contenders::{Contender, Shared, Sizes};
use crate::stats::summary;
use crate::trace::Trace;

/// Rows of a request from which its buffers are filled before the first step.
const HISTORY: usize = 64;
/// Steps that are not timed.
const WARM_UP: usize = 8;
/// Steps of a contender's turn. The first one is not timed, because it finds the caches full of what the
/// contender before it has used.
const BLOCK: usize = 5;
/// The most parts of a contender.
const MAX_PARTS: usize = 3;

/// The times of one part of a contender's steps.
#[derive(Serialize)]
pub struct Row {
    pub what: String,
    pub layers: usize,
    /// Tables or buffers that the contender has.
    pub buffers: usize,
    /// Median time of a step, divided by layers and requests.
    pub us_per_request: f64,
    /// The same of the first decile and of the ninth.
    pub us_first_decile: f64,
    pub us_ninth_decile: f64,
    /// Median time of a step.
    pub step_us: f64,
}

/// A contender, its name and its number of layers.
pub struct Entry {
    pub name: &'static str,
    pub layers: usize,
    pub contender: Contender,
}

/// Returns the rows of a request that the turns take, of which `steps` steps of `tokens` tokens are timed.
pub fn rows(steps: usize, tokens: usize) -> usize {
    HISTORY + (WARM_UP + steps.div_ceil(BLOCK - 1) * BLOCK) * tokens
}

/// Fills the buffers of all contenders, lets them take turns, and returns their times and the misses of the
/// server for each layer.
pub fn measure(
    entries: &mut [Entry],
    server: &Shared,
    traces: &[Trace],
    sizes: &Sizes,
    steps: usize,
    slots: usize,
) -> Result<(Vec<Row>, f64)> {
    let histories: Vec<Vec<i32>> = traces.iter().map(|trace| history(trace, slots)).collect();
    let k = traces[0].k;
    let chunks = slots.div_ceil(k);
    let mut untimed = vec![Vec::new(); MAX_PARTS];
    for entry in entries.iter_mut() {
        for chunk in 0..chunks {
            let ids = history_batch(&histories, sizes.tokens, &(chunk * k..(chunk + 1) * k));
            (entry.contender.step)(&ids, &mut untimed)?;
        }
        for step in 0..WARM_UP {
            let ids = batch(traces, sizes.tokens, step);
            (entry.contender.step)(&ids, &mut untimed)?;
        }
    }
    let mut times: Vec<Vec<Vec<f64>>> =
        entries.iter().map(|entry| vec![Vec::new(); entry.contender.parts.len()]).collect();
    let rounds = steps.div_ceil(BLOCK - 1);
    let (mut misses, mut counted) = (0, 0);
    let bar = output::progress(rounds, "step");
    for round in 0..rounds {
        for turn in 0..entries.len() {
            let index = (round + turn) % entries.len();
            for at in 0..BLOCK {
                let ids = batch(traces, sizes.tokens, WARM_UP + round * BLOCK + at);
                let times = if at == 0 { &mut untimed } else { &mut times[index] };
                (entries[index].contender.step)(&ids, times)?;
                if at > 0 && index == 0 {
                    misses += server.borrow().misses();
                    counted += 1;
                }
            }
        }
        bar.inc(1);
    }
    let mut rows = Vec::new();
    for (Entry { name, layers, contender }, times) in entries.iter().zip(&mut times) {
        for (part, times) in contender.parts.iter().zip(times) {
            let all = summary(times);
            let each = 1.0 / (layers * sizes.requests) as f64;
            let gap = if name.is_empty() { "" } else { ": " };
            rows.push(Row {
                what: format!("{name}{gap}{part}"),
                layers: *layers,
                buffers: contender.buffers,
                us_per_request: all.p50 * each,
                us_first_decile: all.p10 * each,
                us_ninth_decile: all.p90 * each,
                step_us: all.p50,
            });
        }
    }
    Ok((rows, misses as f64 / counted as f64))
}

/// Returns at most `slots` different ids that the first [`HISTORY`] rows of a trace select, those that were
/// selected last at the end.
fn history(trace: &Trace, slots: usize) -> Vec<i32> {
    let mut seen = vec![false; trace.largest_id().map_or(0, |id| id as usize + 1)];
    let mut all = Vec::new();
    for row in (0..HISTORY).rev() {
        for &id in trace.row(row, 0).iter().filter(|id| **id >= 0) {
            if all.len() < slots && !std::mem::replace(&mut seen[id as usize], true) {
                all.push(id);
            }
        }
    }
    all.reverse();
    all
}

/// Returns a batch in which every token of a request selects this part of its history.
fn history_batch(histories: &[Vec<i32>], tokens: usize, part: &Range<usize>) -> Vec<i32> {
    let row = |history: &Vec<i32>| -> Vec<i32> {
        part.clone().map(|at| history.get(at).copied().unwrap_or(-1)).collect()
    };
    histories.iter().flat_map(|history| row(history).repeat(tokens)).collect()
}

/// Returns a step's batch `[B, N_q, K]`: N_q rows of a request's trace, after its history, are the tokens of
/// a step.
fn batch(traces: &[Trace], tokens: usize, step: usize) -> Vec<i32> {
    let first = HISTORY + step * tokens;
    let rows = |trace| (first..first + tokens).flat_map(move |row| Trace::row(trace, row, 0));
    traces.iter().flat_map(rows).copied().collect()
}
