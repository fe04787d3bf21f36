//! A random workload in lockstep: testkit's, in steps of one form, so that a captured one can be replayed.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::owned::Context;
use avsg_sim::Session;
use avsg_testkit::exact::for_each_id;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::workload::{
    DEVICE_SHAPES, EngineSetting, FIXED_SIZE_FORM, Shape, StepInput, WorkloadDriver, random_step,
};

use super::lockstep::{Form, Pair};
use super::stand;

const REQUESTS: usize = 4;
const STATES: usize = 3;
/// Blocks of a request.
const BLOCKS: usize = 8;
pub const LAYERS: usize = 2;

/// The engines of such a workload: block tables, two segments, two layers. The geometry is one that other tests use
/// too, so that its kernels are compiled once.
pub fn form(cores: usize, one_launch: bool) -> Form {
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    let pool_rows = STATES * BLOCKS * params.page as usize;
    Form {
        params,
        states: STATES,
        cores,
        one_launch,
        requests: REQUESTS,
        rows: REQUESTS * params.tokens as usize,
        blocks: BLOCKS,
        layers: LAYERS,
        segments: &[40, 8],
        pool_rows,
        made: pool_rows,
    }
}

/// A workload on five cores by the session's own kernels.
pub fn workload(session: &Session, context: &Arc<Context>, seed: u64, one_launch: bool) -> Random {
    let form = form(5, one_launch);
    Random::new(&form, context, stand::kernels(session, &form.config()), seed)
}

/// The workload.
pub struct Random {
    pub pair: Pair,
    player: WorkloadDriver,
    dice: SplitMix64,
    turn: Option<StepInput>,
}

impl Random {
    /// On engines of [`form`].
    pub fn new(
        form: &Form,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
        seed: u64,
    ) -> Self {
        let pair = Pair::new(form, context, kernels);
        let setting = EngineSetting {
            params: form.params,
            states: STATES,
            layers: LAYERS,
            format: form.format(),
            rows_per_request: BLOCKS * form.params.page as usize,
            max_requests: REQUESTS,
        };
        let player = WorkloadDriver::new(setting, &mut write(&pair));
        Self { player, pair, dice: SplitMix64::new(seed), turn: None }
    }

    /// Draws the next step and brings its arrays to the device.
    pub fn next(&mut self) {
        let step = random_step(&mut self.dice, FIXED_SIZE_FORM, STATES, REQUESTS);
        self.turn = Some(self.player.next_step(&step, &mut write(&self.pair)));
        self.bring();
    }

    /// Brings the same step again, with a new generation of every request: what a runtime does when work
    /// in its stream has failed.
    pub fn renew(&mut self) {
        self.player.renew_generations(self.turn.as_mut().expect("a step"));
        self.bring();
    }

    fn bring(&mut self) {
        let turn = self.turn();
        let (batch, fresh) = (turn.batch.clone(), turn.fresh.clone());
        self.pair.bring(batch, fresh);
    }

    /// The last step.
    pub fn turn(&self) -> &StepInput {
        self.turn.as_ref().expect("a step")
    }

    /// Compares the step in a stream, which is done.
    pub fn compare(&mut self) {
        self.pair.compare();
        self.check();
    }

    /// The same where the device may have started cold since.
    pub fn compare_rows(&mut self) {
        self.pair.compare_rows();
        self.check();
    }

    /// What the CPU did, to which the device was compared, is what a step must do.
    pub fn check(&mut self) {
        let (turn, pair) = (self.turn.as_ref().expect("a step"), &self.pair);
        self.player.check(turn, &pair.cpu_found, |state, layer, slot, bytes| {
            pair.cpu.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        self.player.check_pool(|l, row, bytes| pair.cpu.pool().read_row(l, row, bytes).unwrap());
    }

    /// Whether every returned slot of a row that this step made holds it, on both layers: for gathers
    /// that read them from the pool.
    pub fn fresh_rows_arrived(&mut self) -> bool {
        self.pair.read();
        let (step, pair) = (&self.pair.step, &self.pair);
        let mut right = true;
        for layer in 0..LAYERS {
            for_each_id(
                &step.batch(),
                48,
                |row| pair.found.row(row),
                |state, slot, bytes| {
                    pair.ascend.buffer().slot_bytes(state, layer, slot, bytes).is_ok()
                },
                |request, id| self.player.content(self.turn(), request, layer, id),
                |seen| right &= seen.exact || !self.turn().is_fresh(seen.request, seen.id),
            );
        }
        right
    }
}

/// Writes a row into both pools.
fn write(pair: &Pair) -> impl FnMut(usize, usize, &[u8]) {
    |layer, row, bytes| {
        for engine in [&pair.ascend, &pair.cpu] {
            engine.pool().write_row(layer, row, bytes).unwrap();
        }
    }
}
