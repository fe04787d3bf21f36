//! The ids of the steps of `avsg bench step`.

use crate::trace::Trace;

/// Rows of a request from which its buffers are filled before the first step.
pub const HISTORY: usize = 64;

/// The requests of a batch, and what fills their buffers.
pub struct Selections<'a> {
    traces: &'a [Trace],
    tokens: usize,
    /// The ids of each request's first rows.
    histories: Vec<Vec<i32>>,
    /// Steps that select the histories.
    pub fills: usize,
}

impl<'a> Selections<'a> {
    /// Takes a trace for each request, which has `tokens` tokens in a step, for buffers of `slots` slots.
    pub fn new(traces: &'a [Trace], tokens: usize, slots: usize) -> Self {
        let histories = traces.iter().map(|trace| history(trace, slots)).collect();
        Self { traces, tokens, histories, fills: slots.div_ceil(traces[0].k) }
    }

    /// Returns the ids `[B, N_q, K]` of a step. In the first ones every token of a request selects the next K ids of
    /// its history; N_q rows of a request's trace, after its history, are the tokens of each later step.
    pub fn step(&self, step: usize) -> Vec<i32> {
        let (k, tokens) = (self.traces[0].k, self.tokens);
        let Some(step) = step.checked_sub(self.fills) else {
            let part = step * k..(step + 1) * k;
            let id = |history: &Vec<i32>, at| history.get(at).copied().unwrap_or(-1);
            let row = |history| part.clone().map(|at| id(history, at)).collect::<Vec<i32>>();
            return self.histories.iter().flat_map(|h| row(h).repeat(tokens)).collect();
        };
        let first = HISTORY + step * tokens;
        let rows = |trace| (first..first + tokens).flat_map(move |row| Trace::row(trace, row, 0));
        self.traces.iter().flat_map(rows).copied().collect()
    }
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
