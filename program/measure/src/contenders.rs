//! What `avsg bench step` times: each contender does the work of one decode step for all layers of a model.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use crate::batch::OwnedBatch;
use anyhow::Result;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};
use avsg::device::stage_two::share_start;
use avsg::engine::{Batch, Config, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};

use crate::baseline::ResidentLru;
use crate::disk::FileShape;
use crate::stats::us_since;
use crate::turns::Contender;

/// Bytes of a pool's row where no row is copied.
const SHORT_ROW: usize = 8;

/// The model and the batch of a step.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The layers of the model.
    pub layers: usize,
    /// The numbers of selections that a step has: layer l follows selection l · indexers / layers.
    pub indexers: usize,
    /// B, the requests of a batch.
    pub requests: usize,
    /// N_q, the tokens of a request in one step.
    pub tokens: usize,
    /// The threads of each contender, the caller's included.
    pub threads: usize,
    /// The number of ids, which are below it.
    pub ids: usize,
    /// Bytes of a row; `None` times plans alone.
    pub row_bytes: Option<usize>,
}

/// A contender behind the number of its layers and that of its buffers, one for each table. Its steps have ids `[B, N_q, K]`,
/// which every layer selects from rows and buffers of its own.
pub type Entry = (usize, usize, Contender<'static>);

/// Returns the contender whose steps are those of a server.
pub fn server(name: &str, server: &Shared) -> Entry {
    let of = server.borrow();
    let (layers, parts, buffers) =
        (of.layers.concat().len(), of.parts(), of.engine.config().tables());
    let server = Rc::clone(server);
    let step = move |ids: &[i32], us: &mut [f64]| server.borrow_mut().step(ids, us);
    (layers, buffers, Contender::new(name, parts, step))
}

/// Returns a loop that reads one word of each line of a server's tables, in order.
pub fn read_tables(sizes: &Sizes, server: &Shared) -> Entry {
    let (buffers, server) = (server.borrow().engine.config().tables(), Rc::clone(server));
    let work = move |_: &[i32]| {
        let Server { engine, .. } = &mut *server.borrow_mut();
        let (indexers, states) = (engine.config().indexers.count(), engine.config().states);
        for indexer in 0..indexers {
            for state in 0..states {
                let table = engine.read_table(indexer, state)?;
                black_box(table.iter().step_by(16).fold(0, |all, word| all | word));
            }
        }
        Ok(())
    };
    let contender = Contender::timed("a loop that reads the tables in order", work);
    (sizes.layers, buffers, contender)
}

/// Returns a loop on as many threads as a server has that copies every selected row of `bytes` bytes of
/// every layer to the same place, as without a buffer.
pub fn copy_rows(server: &Shared, sizes: &Sizes, k: usize, bytes: usize) -> Result<Entry> {
    let rows = sizes.requests * sizes.tokens * k;
    let workers = WorkerPool::new(&WorkerConfig::new(sizes.threads))?;
    let (server, mut to) = (Rc::clone(server), vec![1u8; rows * bytes]);
    let work = move |ids: &[i32]| {
        let server = server.borrow();
        let pool = server.engine.pool();
        let (to, threads) = (to.as_mut_ptr().addr(), workers.threads());
        for layer in 0..pool.layers() {
            let rows = pool.view(layer, 0)?;
            let copy = |thread: usize, _: usize| {
                let from = share_start(ids.len(), thread, threads);
                let end = share_start(ids.len(), thread + 1, threads);
                for (at, &id) in (from..end).zip(&ids[from..end]).filter(|(_, id)| **id >= 0) {
                    let to = std::ptr::with_exposed_provenance_mut::<u8>(to + at * bytes);
                    // SAFETY: ids are below the number of the pool's rows, which have `bytes`
                    // bytes each; `to` has room for as many rows as `ids` has ids, and no other
                    // thread writes the rows of this share.
                    unsafe { rows.ptr(id as usize).copy_to_nonoverlapping(to, bytes) };
                }
            };
            workers.launch(u64::MAX, [None, Some(Stage { pieces: threads, run: &copy })], None)?;
        }
        Ok(())
    };
    let contender = Contender::timed("a loop that copies every selected row", work);
    Ok((sizes.layers, 0, contender))
}

/// Returns vLLM-Ascend's planner: every token has a buffer of `slots` slots of its own for each indexer.
pub fn per_token_lru(sizes: &Sizes, k: usize, slots: usize) -> Result<Entry> {
    let (rows, indexers) = (sizes.requests * sizes.tokens, sizes.indexers);
    let mut lru = ResidentLru::new(rows * indexers, k, slots, sizes.ids, sizes.threads)?;
    let work = move |ids: &[i32]| {
        for indexer in 0..indexers {
            lru.step(indexer * rows, ids)?;
        }
        Ok(())
    };
    let contender = Contender::timed("lru_resident_compact", work);
    Ok((sizes.layers, rows * indexers, contender))
}

/// This operator's engine, called as a server calls it: a plan for each indexer, and a transfer for each
/// layer.
pub struct Server {
    engine: Engine,
    plan: Plan,
    /// The batch of every step but its ids.
    batch: OwnedBatch,
    /// The layers of each indexer.
    layers: Vec<Vec<usize>>,
    copies: bool,
    /// Whether the next transfers are one call for all layers of an indexer.
    one_call: bool,
    /// Rows that missed in a layer of each step.
    misses: Vec<usize>,
}

impl Server {
    /// Creates an engine for `config.states` states whose rows have `config.params.tokens` tokens.
    pub fn shared(config: Config, sizes: &Sizes) -> Result<Shared> {
        let (p, states) = (config.params, config.states);
        let shape = sizes.shape();
        let layers = (0..sizes.indexers).map(|indexer| shape.layers_of(indexer).collect());
        let (layers, pool) = (layers.collect(), sizes.pool()?);
        let config = Config { indexers: pool.indexers.clone(), ..config };
        let (pool, copies) = (HostPool::new(&pool)?, sizes.row_bytes.is_some());
        let batch = OwnedBatch::uniform(p.k as usize, states, p.tokens as usize, sizes.ids);
        let engine = Engine::new(config, pool)?;
        let plan = engine.new_plan(batch.rows(), states)?;
        let misses = Vec::new();
        let server = Self { plan, engine, batch, layers, copies, one_call: false, misses };
        Ok(Rc::new(RefCell::new(server)))
    }

    /// Returns the name of the vector machine that runs the kernels.
    pub fn machine(&self) -> &'static str {
        self.engine.cpu().map_or("none", |cpu| cpu.machine)
    }

    /// Returns the mean of the rows that missed in a layer of a step, without the first `steps` steps.
    pub fn misses_after(&self, steps: usize) -> f64 {
        let misses = &self.misses[steps..];
        misses.iter().sum::<usize>() as f64 / misses.len() as f64
    }

    fn shares_indexers(&self) -> bool {
        self.layers.iter().any(|layers| layers.len() > 1)
    }

    fn step(&mut self, ids: &[i32], us: &mut [f64]) -> Result<()> {
        let (mut plans, mut transfers) = (0.0, 0.0);
        for (indexer, layers) in self.layers.iter().enumerate() {
            let batch = Batch { ids, indexer, ..self.batch.batch() };
            let start = Instant::now();
            self.engine.plan(&batch, &mut self.plan)?;
            plans += us_since(start);
            // The engine forgets the slots of a plan that no layer has when the next one overwrites it, so that there is a
            // transfer also where none is timed.
            let start = Instant::now();
            if self.one_call {
                self.engine.transfer(&mut self.plan, layers, None)?;
            } else {
                for &layer in layers {
                    self.engine.transfer(&mut self.plan, &[layer], None)?;
                }
            }
            transfers += us_since(start);
        }
        us[0] = plans;
        us[1 + usize::from(self.one_call)] = transfers;
        self.misses.push(self.plan.total_misses());
        self.one_call = !self.one_call && self.shares_indexers();
        Ok(())
    }

    fn parts(&self) -> Vec<&'static str> {
        let count = if self.copies { 2 + usize::from(self.shares_indexers()) } else { 1 };
        let all = ["plan", "transfer", "transfer, one call for the layers of an indexer"];
        all[..count].to_vec()
    }
}

/// A server that several contenders use.
pub type Shared = Rc<RefCell<Server>>;

impl Sizes {
    /// Returns the rows of the pool, which are short if none is copied.
    fn shape(&self) -> FileShape {
        let &Self { layers, indexers, ids, row_bytes, .. } = self;
        FileShape { layers, indexers, rows: ids, row_bytes: row_bytes.unwrap_or(SHORT_ROW) }
    }

    /// Returns the configuration of the pool.
    pub fn pool(&self) -> Result<PoolConfig> {
        Ok(PoolConfig { pages: Pages::Plain, ..self.shape().pool(None)? })
    }
}
