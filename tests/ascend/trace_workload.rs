//! A recorded trace on a pair of engines: two requests decode it some steps apart and share the
//! rows of the pool.

use avsg::device::params::Params;
use avsg::rows::RowFormat;
use avsg_cli::trace::Trace;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fresh::FreshRows;

use super::engine_pair::{EnginePair, PairConfig};

/// Number of steps by which the second request is ahead of the first.
const AHEAD: usize = 3;
const ROW_BYTES: usize = 136;

/// Returns the configuration of engines for a trace from a step on: one layer, without a block
/// table.
pub fn pair_config(trace: &Trace, first: usize, slots: usize, cores: usize) -> PairConfig {
    let params = Params::wide(trace.k as u32, trace.tokens as u32, slots as u32);
    // With more than 4096 slots, four links per slot do not fit the memory of a vector core.
    let narrow = Params { spread: 2, retries: 7, ..params };
    let stable = trace.stable.as_ref().expect("a trace with lengths");
    let largest_id = trace.ids.iter().copied().chain(stable.iter().copied()).max().unwrap_or(0);
    PairConfig {
        params: if slots > 4096 { narrow } else { params },
        states: 2,
        cores,
        one_launch: false,
        requests: 2,
        max_rows: 2 * trace.tokens,
        blocks_per_request: 0,
        layers: 1,
        segments: &[ROW_BYTES],
        pool_rows: largest_id as usize + trace.tokens + 1,
        initial_rows: stable[first + AHEAD] as usize,
    }
}

/// A trace on a pair of engines.
pub struct TraceWorkload<'a> {
    pub pair: EnginePair,
    trace: &'a Trace,
    next: usize,
}

impl<'a> TraceWorkload<'a> {
    /// Starts at the step `first` of the trace.
    pub fn new(trace: &'a Trace, pair: EnginePair, first: usize) -> Self {
        Self { pair, trace, next: first }
    }

    /// Copies the next step to the device. The content of a row depends on its id only, so either
    /// request may append it.
    pub fn next_step(&mut self) {
        let (trace, tokens) = (self.trace, self.trace.tokens);
        let stable = trace.stable.as_ref().expect("a trace with lengths");
        let steps = [self.next, self.next + AHEAD];
        let mut batch = OwnedBatch::new(trace.k, 0);
        for (request, at) in steps.into_iter().enumerate() {
            let rows: Vec<Vec<i32>> = (0..tokens).map(|g| trace.row(at, g).to_vec()).collect();
            let stable = stable[at];
            batch.push([1 - request as i32, 7, stable, stable + tokens as i32], &rows);
        }
        let mut fresh = FreshRows::new(&RowFormat::single(ROW_BYTES).unwrap(), 2 * tokens);
        for row in 0..2 * tokens {
            fresh.put(row, stable[steps[row / tokens]] + (row % tokens) as i32, 0);
        }
        self.pair.upload_step(batch, vec![fresh]);
        self.next += 1;
    }

    /// Checks that every id of the step has a slot that holds its row.
    pub fn check_exact(&mut self) {
        let (pair, mut compared) = (&self.pair, 0);
        for_each_id(
            &pair.batch.batch(),
            ROW_BYTES,
            |row| pair.ascend_result.row(row),
            |state, slot, bytes| pair.ascend.buffer().slot_bytes(state, 0, slot, bytes).is_ok(),
            |_, id| (id, 0),
            |selected| compared += assert_exact(selected, 0),
        );
        assert_eq!(compared, pair.ascend_result.slots.len(), "no id of a trace is padding");
    }
}
