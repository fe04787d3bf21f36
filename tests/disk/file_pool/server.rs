//! An engine over a disk with faults, and the steps that tests make with it.

use std::collections::BTreeSet;
use std::time::Duration;

use avsg::Result;
use avsg::disk::{Direction, PoolFile};
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::exact;
use avsg_testkit::faulty_disk::{Fault, Faults};

use super::pair::{self, K, OF_LAYER, ROWS, Setting};

pub const REQUESTS: usize = 8;

/// An engine with a state for each request, and a plan.
pub struct Server {
    pub engine: Engine,
    pub plan: Plan,
    pub faults: Faults,
    /// The layer that is transferred first, and the other layers of its indexer.
    pub layers: Vec<usize>,
}

impl Server {
    /// Returns a server whose pool has all rows but these: layer and row.
    pub fn new(setting: &Setting, layer: usize, unwritten: &[(usize, usize)]) -> Self {
        let faults = Faults::default();
        let pool = HostPool::new_through(&setting.in_file(), &|disk| faults.wrap(disk)).unwrap();
        let all = (0..ROWS).flat_map(|row| (0..OF_LAYER.len()).map(move |layer| (layer, row)));
        all.filter(|at| !unwritten.contains(at)).for_each(|at| write(&pool, at));
        // Rows in the queue of writes would not be read from the disk.
        pool.flush().unwrap();
        Self::over(setting, layer, pool, faults)
    }

    /// Returns a server over a pool whose file exists, with this time limit.
    pub fn with_limit(mut setting: Setting, layer: usize, timeout: Duration) -> Self {
        // The file is made and filled with a longer limit.
        let path = setting.file.path.join("kept");
        setting.file = PoolFile { keep: true, path, ..setting.file };
        let filled = HostPool::new(&setting.in_file()).unwrap();
        pair::fill(&filled);
        filled.flush().unwrap();
        drop(filled);
        setting.file.timeout = timeout;
        let faults = Faults::default();
        let pool = HostPool::open_through(&setting.in_file(), &|disk| faults.wrap(disk)).unwrap();
        Self::over(&setting, layer, pool, faults)
    }

    fn over(setting: &Setting, layer: usize, pool: HostPool, faults: Faults) -> Self {
        let config = Config { states: REQUESTS, ..setting.config() };
        let engine = Engine::new(config, pool).unwrap();
        let plan = engine.new_plan(REQUESTS, REQUESTS).unwrap();
        let layers = [layer].into_iter().chain(pair::layers_beside(layer)).collect();
        Self { engine, plan, faults, layers }
    }

    /// Makes every read of a row bring a wrong bit.
    pub fn damage(&self, layer: usize, row: usize) {
        let layout = self.engine.pool().store().unwrap().layout();
        let record = layout.record_offset(layout.indexer_of(layer), row);
        let byte = record + layout.row_range(layer).start as u64;
        self.faults.set(Fault::Flip, Direction::Read, byte..byte + 1, usize::MAX);
    }

    /// Plans a batch and transfers it to the first layer.
    pub fn step(&mut self, owned: &OwnedBatch) -> Result<()> {
        self.engine.step(&owned.batch(), &mut self.plan, self.layers[0], None)
    }

    pub fn transfer(&mut self, layer: usize) -> Result<()> {
        self.engine.transfer(&mut self.plan, layer, None)
    }

    /// Transfers the plan of a batch to the other layers, and compares its rows and those of all slots that
    /// belong to an id. A slot that a failed read wrote belongs to none.
    pub fn finish(&mut self, owned: &OwnedBatch) {
        for layer in self.layers.clone() {
            if layer != self.layers[0] {
                patiently(|| self.transfer(layer));
            }
            self.check(&self.plan, owned, layer);
            for (id, bytes) in pair::listed(&mut self.engine, layer) {
                assert!(check_row(id, layer as u32, &bytes), "layer {layer}, id {id}");
            }
        }
    }

    /// Compares the rows of all requests that did not fail.
    pub fn check(&self, plan: &Plan, owned: &OwnedBatch, layer: usize) {
        let failed: BTreeSet<_> = plan.failures().map(|failure| failure.request).collect();
        let mut compared = 0;
        exact::for_each_id(
            &owned.batch(),
            self.engine.pool().format().bytes(),
            |row| plan.slots(row),
            |state, slot, bytes| self.engine.buffer().slot_bytes(state, layer, slot, bytes).is_ok(),
            |_, id| (id, layer as u32),
            |selected| {
                if !failed.contains(&selected.request) {
                    compared += exact::assert_exact(selected, layer);
                }
            },
        );
        assert_eq!(compared, (REQUESTS - failed.len()) * K);
    }
}

/// Repeats a transfer as long as it runs out of time, which it may on a machine with other work.
pub fn patiently(mut transfer: impl FnMut() -> Result<()>) {
    let late = |error: &avsg::Error| error.to_string().contains("timed out");
    let result = (0..1000).map(|_| transfer()).find(|result| !result.as_ref().is_err_and(late));
    result.expect("an end of the waits").unwrap();
}

pub fn write(pool: &HostPool, (layer, row): (usize, usize)) {
    let mut bytes = vec![0; pool.format().bytes()];
    fill_row(row as i32, layer as u32, &mut bytes);
    pool.write_row(layer, row, &bytes).unwrap();
}

/// Returns an id that request `request` alone selects in step `step`, or one that requests 2 and 5 share.
pub fn id(step: usize, request: usize, lane: usize) -> i32 {
    let own = request * 60 + (step * 11 + lane) % 60;
    if lane == 3 && [2, 5].contains(&request) { 490 + step as i32 } else { own as i32 }
}

pub fn batch(step: usize, layer: usize) -> OwnedBatch {
    let mut owned = OwnedBatch { indexer: OF_LAYER[layer], ..OwnedBatch::new(K, 0) };
    for request in 0..REQUESTS {
        let ids = (0..K).map(|lane| id(step, request, lane)).collect();
        owned.push([request as i32, 1, -1, ROWS as i32], &[ids]);
    }
    owned
}
