//! An engine over a pool in memory and one over a pool in a file, with the same rows.

use std::rc::Rc;

use avsg::Result;
use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine, Indexers, MachineChoice};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::fixture;
use avsg_testkit::scratch::{Scratch, adapted};

/// Rows of each layer.
pub const ROWS: usize = 512;
pub const K: usize = 24;
pub const STATES: usize = 3;
/// The indexer of each layer.
pub const OF_LAYER: [usize; 4] = [0, 1, 1, 2];

/// How a pair differs from others.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Bytes and stride of each segment.
    pub segments: &'static [[usize; 2]],
    pub page: u32,
    pub cores: usize,
    pub file: PoolFile,
    /// The folder of the file.
    _folder: Rc<Scratch>,
}

impl Setting {
    /// Returns a setting with a private file.
    pub fn new(segments: &'static [[usize; 2]]) -> Self {
        let folder = Rc::new(Scratch::new());
        let file = adapted(PoolFile::new(folder.path()));
        Self { segments, page: 0, cores: 2, file, _folder: folder }
    }

    pub fn format(&self) -> RowFormat {
        let of = |&[bytes, stride]: &[usize; 2]| Segment { bytes, stride };
        RowFormat::strided(&self.segments.iter().map(of).collect::<Vec<_>>()).unwrap()
    }

    pub fn config(&self) -> Config {
        let params = Params { page: self.page, ..Params::wide(K as u32, 2, 128) };
        // `Emu` is the only machine that an engine does not measure first.
        let (machine, indexers) = (MachineChoice::Emu, indexers());
        Config { cores: self.cores, machine, indexers, ..Config::new(params, STATES) }
    }

    /// Returns the configuration of the pool in memory.
    pub fn in_memory(&self) -> PoolConfig {
        let config = PoolConfig::new(OF_LAYER.len(), ROWS, self.format());
        PoolConfig { pages: Pages::Plain, ..config }
    }

    /// Returns the configuration of the pool in a file.
    pub fn in_file(&self) -> PoolConfig {
        PoolConfig { file: Some(self.file.clone()), indexers: indexers(), ..self.in_memory() }
    }
}

pub fn indexers() -> Indexers {
    Indexers::of_layers(&OF_LAYER).unwrap()
}

/// Writes row x of layer l with the contents of id x at version l.
pub fn fill(pool: &HostPool) {
    fixture::fill(pool, ROWS, |layer, row| (row as i32, layer as u32));
}

/// Returns an engine over a pool of this configuration that is filled.
pub fn engine(setting: &Setting, pool: &PoolConfig) -> Result<Engine> {
    let pool = HostPool::new(pool)?;
    fill(&pool);
    Engine::new(setting.config(), pool)
}

/// Returns the bytes of all slots, without what lies between them.
pub fn slots(engine: &Engine) -> Vec<u8> {
    let states = 0..engine.config().states;
    let of_state = |layer| states.clone().flat_map(move |state| slots_of(engine, state, layer));
    (0..engine.pool().layers()).flat_map(of_state).flatten().collect()
}

/// Returns the bytes of each slot of a state in a layer.
pub fn slots_of(engine: &Engine, state: usize, layer: usize) -> Vec<Vec<u8>> {
    let slot = |slot| {
        let mut bytes = vec![0; engine.pool().format().bytes()];
        engine.buffer().slot_bytes(state, layer, slot, &mut bytes).unwrap();
        bytes
    };
    (0..engine.config().params.slots as usize).map(slot).collect()
}

/// Returns the other layers of a layer's indexer.
pub fn layers_beside(layer: usize) -> impl Iterator<Item = usize> {
    let others = (0..OF_LAYER.len()).filter(move |&other| OF_LAYER[other] == OF_LAYER[layer]);
    others.filter(move |&other| other != layer)
}

/// Returns the bytes of the slots of a layer that a table lists an id for, with the id.
pub fn listed(engine: &mut Engine, layer: usize) -> Vec<(i32, Vec<u8>)> {
    let mut all = Vec::new();
    for state in 0..engine.config().states {
        let ids = engine.read_table(OF_LAYER[layer], state).unwrap()[header::WORDS..].to_vec();
        let slots = ids.into_iter().zip(slots_of(engine, state, layer));
        all.extend(slots.filter(|(id, _)| *id >= 0));
    }
    all
}

/// A format that is read through the engine's bounce buffer, and one that is read into slots.
pub const FORMATS: [&[[usize; 2]]; 2] = [&[[40, 47], [9, 9]], &[[1000, 1024]]];

/// Runs a test for each format, way to read and number of threads, on a layer with an indexer of its own and on
/// one that shares its indexer.
pub fn everywhere(test: impl Fn(&Setting, usize)) {
    for (n, segments) in FORMATS.into_iter().cycle().take(4).enumerate() {
        for layer in [0, 2] {
            let mut setting = Setting::new(segments);
            setting.file = PoolFile { io_uring: n < 2, ..setting.file };
            setting.cores = 1 + n;
            test(&setting, layer);
        }
    }
}
