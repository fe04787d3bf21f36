//! An engine over a pool in a file gives what one over a pool in memory gives, and a failing disk makes no
//! slot wrong. Tests of the engine run it over a disk with faults.

mod engines;
mod faults;
mod lost;

use std::rc::Rc;
use std::time::Duration;

use avsg::Result;
use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::disk::{Direction, PoolFile};
use avsg::engine::{Config, Engine, Indexers, MachineChoice};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::faulty_disk::{Fault, Faults};
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::{exact, fixture, tier};

use crate::faults::patiently;

/// Rows of each layer.
const ROWS: usize = 512;
const K: usize = 24;
const STATES: usize = 3;
/// The indexer of each layer.
const OF_LAYER: [usize; 4] = [0, 1, 1, 2];

/// How an engine differs from others.
#[derive(Clone, Debug)]
struct Setting {
    /// Bytes and stride of each segment.
    segments: &'static [[usize; 2]],
    cores: usize,
    file: PoolFile,
    /// The folder of the file.
    folder: Rc<Scratch>,
}

impl Setting {
    /// Returns a setting with a private file.
    fn new(segments: &'static [[usize; 2]]) -> Self {
        let folder = Rc::new(Scratch::new());
        let file = adapted(PoolFile::new(folder.path()));
        Self { segments, cores: 2, file, folder }
    }

    fn format(&self) -> RowFormat {
        let of = |&[bytes, stride]: &[usize; 2]| Segment { bytes, stride };
        RowFormat::strided(&self.segments.iter().map(of).collect::<Vec<_>>()).unwrap()
    }

    fn config(&self) -> Config {
        let params = Params::wide(K as u32, 2, 128);
        // `Emu` is the only machine that an engine does not measure first.
        let (machine, indexers) = (MachineChoice::Emu, indexers());
        Config { cores: self.cores, machine, indexers, ..Config::new(params, STATES) }
    }

    /// Returns the configuration of the pool in a file.
    fn in_file(&self) -> PoolConfig {
        let (file, pages) = (Some(self.file.clone()), Pages::Plain);
        let config = PoolConfig::new(OF_LAYER.len(), ROWS, self.format());
        PoolConfig { file, pages, indexers: indexers(), ..config }
    }
}

fn indexers() -> Indexers {
    Indexers::of_layers(&OF_LAYER).unwrap()
}

/// Writes row x of layer l with the contents of id x at version l.
fn fill(pool: &HostPool) {
    fixture::fill(pool, ROWS, |layer, row| (row as i32, layer as u32));
}

/// Returns the bytes of each slot of a state in a layer.
fn slots_of(engine: &Engine, state: usize, layer: usize) -> Vec<Vec<u8>> {
    let slot = |slot| {
        let mut bytes = vec![0; engine.pool().format().bytes()];
        engine.buffer().slot_bytes(state, layer, slot, &mut bytes).unwrap();
        bytes
    };
    (0..engine.config().params.slots as usize).map(slot).collect()
}

/// Returns the bytes of the slots of a layer that a table lists an id for, with the id.
fn listed(engine: &mut Engine, layer: usize) -> Vec<(i32, Vec<u8>)> {
    let mut all = Vec::new();
    for state in 0..engine.config().states {
        let ids = engine.read_table(OF_LAYER[layer], state).unwrap()[header::WORDS..].to_vec();
        let slots = ids.into_iter().zip(slots_of(engine, state, layer));
        all.extend(slots.filter(|(id, _)| *id >= 0));
    }
    all
}

/// A format that is read through the engine's bounce buffer, and one that is read into slots.
const FORMATS: [&[[usize; 2]]; 2] = [&[[40, 47], [9, 9]], &[[1000, 1024]]];

/// Runs a test for each format, way to read and number of threads, on a layer with an indexer of its own or on
/// one that shares its indexer, and in the thorough tier on both.
fn everywhere(test: impl Fn(&Setting, usize)) {
    for (n, segments) in FORMATS.into_iter().cycle().take(4).enumerate() {
        let layer = [0, 2, 2, 0][n];
        for layer in [layer, 2 - layer].into_iter().take(if tier::thorough() { 2 } else { 1 }) {
            let mut setting = Setting::new(segments);
            setting.file = PoolFile { io_uring: n < 2, ..setting.file };
            setting.cores = 1 + n;
            test(&setting, layer);
        }
    }
}

const REQUESTS: usize = 8;

/// An engine with a state for each request, and a plan.
struct Server {
    engine: Engine,
    plan: Plan,
    faults: Faults,
    /// The layer that is transferred first, and the other layers of its indexer.
    layers: Vec<usize>,
}

impl Server {
    /// Returns a server over a kept file that has all rows but these: layer and row. The file is made and filled without
    /// the setting's time limit.
    fn new(setting: &Setting, layer: usize, unwritten: &[(usize, usize)]) -> Self {
        let mut config = setting.in_file();
        let file = config.file.as_mut().unwrap();
        (file.keep, file.path) = (true, setting.folder.file(&setting.folder.count().to_string()));
        let timeout = std::mem::replace(&mut file.timeout, Duration::from_mins(1));
        let filled = HostPool::new(&config).unwrap();
        let all = (0..ROWS).flat_map(|row| (0..OF_LAYER.len()).map(move |layer| (layer, row)));
        all.filter(|at| !unwritten.contains(at)).for_each(|at| write(&filled, at));
        // Rows in the queue of writes would not be read from the disk.
        filled.flush().unwrap();
        drop(filled);
        config.file.as_mut().unwrap().timeout = timeout;
        let faults = Faults::default();
        let pool = HostPool::in_file(&config, false, &|disk| faults.wrap(disk)).unwrap();
        let config = Config { states: REQUESTS, ..setting.config() };
        let engine = Engine::new(config, pool).unwrap();
        let plan = engine.new_plan(REQUESTS, REQUESTS).unwrap();
        let beside = |other: &usize| *other != layer && OF_LAYER[*other] == OF_LAYER[layer];
        let layers = [layer].into_iter().chain((0..OF_LAYER.len()).filter(beside)).collect();
        Self { engine, plan, faults, layers }
    }

    /// Makes every read of a row bring a wrong bit.
    fn damage(&self, layer: usize, row: usize) {
        let layout = self.engine.pool().store().unwrap().layout();
        let record = layout.record_offset(layout.indexer_of(layer), row);
        let byte = record + layout.row_range(layer).start as u64;
        self.faults.set(Fault::Flip, Direction::Read, byte..byte + 1, usize::MAX);
    }

    /// Plans a batch and transfers it to the first layer.
    fn step(&mut self, owned: &OwnedBatch) -> Result<()> {
        self.engine.step(&owned.batch(), &mut self.plan, self.layers[0], None)
    }

    fn transfer(&mut self, layer: usize) -> Result<()> {
        self.engine.transfer(&mut self.plan, &[layer], None)
    }

    /// Transfers the plan of a batch to the other layers, and compares its rows and those of all slots that
    /// belong to an id. A slot that a failed read wrote belongs to none.
    fn finish(&mut self, owned: &OwnedBatch) {
        for layer in self.layers.clone() {
            if layer != self.layers[0] {
                patiently(|| self.transfer(layer));
            }
            self.check(&self.plan, owned, layer);
            for (id, bytes) in listed(&mut self.engine, layer) {
                assert!(check_row(id, layer as u32, &bytes), "layer {layer}, id {id}");
            }
        }
    }

    /// Compares the rows of all requests that did not fail.
    fn check(&self, plan: &Plan, owned: &OwnedBatch, layer: usize) {
        let compared =
            exact::check_step(&self.engine, plan, owned, layer, |_, id| (id, layer as u32));
        assert_eq!(compared, (REQUESTS - plan.failures().count()) * K);
    }
}

fn write(pool: &HostPool, (layer, row): (usize, usize)) {
    let mut bytes = vec![0; pool.format().bytes()];
    fill_row(row as i32, layer as u32, &mut bytes);
    pool.write_row(layer, row, &bytes).unwrap();
}

/// Returns an id that request `request` alone selects in step `step`, or one that requests 2 and 5 share.
fn id(step: usize, request: usize, lane: usize) -> i32 {
    let own = request * 60 + (step * 11 + lane) % 60;
    if lane == 3 && [2, 5].contains(&request) { 490 + step as i32 } else { own as i32 }
}

fn batch(step: usize, layer: usize) -> OwnedBatch {
    let mut owned = OwnedBatch { indexer: OF_LAYER[layer], ..OwnedBatch::new(K, 0) };
    for request in 0..REQUESTS {
        let ids = (0..K).map(|lane| id(step, request, lane)).collect();
        owned.push([request as i32, 1, -1, ROWS as i32], &[ids]);
    }
    owned
}
