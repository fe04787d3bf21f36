//! A recorded trace in lockstep: two requests decode it some steps apart, on the same rows of a pool.

use avsg::device::params::Params;
use avsg::rows::RowFormat;
use avsg_cli::trace::Trace;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fresh::FreshRows;

use super::lockstep::{Form, Pair};

/// Steps that the second request is ahead.
const AHEAD: usize = 3;
/// Bytes of a row.
const ROW: usize = 136;

/// The engines of a trace from a step on: one layer, rows by id.
pub fn form(trace: &Trace, first: usize, slots: usize, cores: usize) -> Form {
    let params = Params::wide(trace.k as u32, trace.tokens as u32, slots as u32);
    // What fits a vector core where four links for each slot do not.
    let narrow = Params { spread: 2, retries: 7, ..params };
    let stable = trace.stable.as_ref().expect("a trace with lengths");
    let most = trace.ids.iter().copied().chain(stable.iter().copied()).max().unwrap_or(0);
    Form {
        params: if slots > 4096 { narrow } else { params },
        states: 2,
        cores,
        one_launch: false,
        requests: 2,
        rows: 2 * trace.tokens,
        blocks: 0,
        layers: 1,
        segments: &[ROW],
        pool_rows: most as usize + trace.tokens + 1,
        made: stable[first + AHEAD] as usize,
    }
}

/// The trace on both engines.
pub struct Traced<'a> {
    pub pair: Pair,
    trace: &'a Trace,
    at: usize,
    /// Rows that were verified.
    pub verified: usize,
}

impl<'a> Traced<'a> {
    /// From a step on.
    pub fn new(trace: &'a Trace, pair: Pair, first: usize) -> Self {
        Self { pair, trace, at: first, verified: 0 }
    }

    /// Brings the next step to the device. What a row holds depends on its id alone, so that it does
    /// not matter which request appended it.
    pub fn next(&mut self) {
        let (trace, tokens) = (self.trace, self.trace.tokens);
        let stable = trace.stable.as_ref().expect("a trace with lengths");
        let steps = [self.at, self.at + AHEAD];
        let mut step = OwnedBatch::new(trace.k, 0);
        for (request, at) in steps.into_iter().enumerate() {
            let rows: Vec<Vec<i32>> = (0..tokens).map(|g| trace.row(at, g).to_vec()).collect();
            let stable = stable[at];
            step.push([1 - request as i32, 7, stable, stable + tokens as i32], &rows);
        }
        let mut fresh = FreshRows::new(&RowFormat::single(ROW).unwrap(), 2 * tokens);
        for row in 0..2 * tokens {
            fresh.put(row, stable[steps[row / tokens]] + (row % tokens) as i32, 0);
        }
        self.pair.bring(step, vec![fresh]);
        self.at += 1;
    }

    /// Every id of the step has a slot that holds its row.
    pub fn expect_exact(&mut self) {
        let (pair, mut compared) = (&self.pair, 0);
        for_each_id(
            &pair.step.batch(),
            ROW,
            |row| pair.found.row(row),
            |state, slot, bytes| pair.ascend.buffer().slot_bytes(state, 0, slot, bytes).is_ok(),
            |_, id| (id, 0),
            |seen| compared += assert_exact(seen, 0),
        );
        assert_eq!(compared, pair.found.slots.len(), "no id of a trace is padding");
        self.verified += compared;
    }
}
