//! Random calls of an engine on the CPU and of one on the simulated device: both give the same results
//! and refuse the same calls, and every permitted transfer is exact.

use std::collections::BTreeMap;
use std::ops::Range;

use avsg::Result;
use avsg::engine::{Config, Engine, Indexers, Load};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::exact;
use avsg_testkit::held::Held;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;

use crate::harness::{on_ascend, without_scratch};
use crate::small::{self, K, ROW, SLOTS, ids};

const STATES: usize = 3;
/// The indexer of each layer.
const OF_LAYER: [usize; 3] = [0, 1, 1];
const PLANS: usize = 4;

/// The reasons for which calls are refused.
const REFUSALS: [&str; 6] = [
    "lacks the rows of plan",
    "has the rows of plan",
    "no batch was planned into it",
    "the plan is of indexer",
    "discard the newest plan first",
    "a state is copied to another one",
];
/// How many calls of each kind are permitted at least.
const LEAST_PERMITTED: [(&str, i32); 8] = [
    ("Plan", 800),
    ("Step", 350),
    ("Transfer", 120),
    ("TransferLayers", 50),
    ("Discard", 240),
    ("Fork", 10),
    ("Load", 50),
    ("Rewrite", 90),
];

/// A call of an engine. Plans are numbers below [`PLANS`].
#[derive(Clone, Debug)]
enum Call {
    Plan(usize, OwnedBatch),
    Step(usize, OwnedBatch, usize),
    Transfer(usize, usize),
    /// Transfers a plan to every layer of its indexer.
    TransferLayers(usize),
    Discard(usize),
    /// From a state in a generation to another state, or to all others, in another generation.
    Fork([usize; 2], [i32; 2], bool),
    /// Loads ids for an indexer, with the plan of this number.
    Load(usize, usize, [i32; 2], Vec<i32>),
    /// Writes the next version of rows, and invalidates them in every state.
    Rewrite(Range<i32>),
}

/// An engine, its plans and the batches that they were made for.
struct Caller<'a> {
    engine: &'a mut Engine,
    plans: Vec<Plan>,
    batches: Vec<OwnedBatch>,
    /// Version of each row on layer 0; on layer l it is l more.
    versions: Vec<u32>,
}

impl<'a> Caller<'a> {
    fn new(engine: &'a mut Engine) -> Self {
        let plans = (0..PLANS).map(|_| engine.new_plan(4, 2).unwrap()).collect();
        Self { engine, plans, batches: vec![OwnedBatch::new(K, 0); PLANS], versions: vec![0; 600] }
    }

    /// Makes a call and returns its number, if it has one, or its error.
    fn call(&mut self, call: &Call) -> std::result::Result<usize, String> {
        self.run(call).map_err(|error| error.to_string())
    }

    fn run(&mut self, call: &Call) -> Result<usize> {
        let engine = &mut *self.engine;
        match call {
            Call::Plan(at, owned) => {
                let held = Held::before(engine, owned);
                engine.plan(&owned.batch(), &mut self.plans[*at])?;
                self.batches[*at] = owned.clone();
                return Ok(held.check(&self.plans[*at], owned));
            }
            Call::Step(at, owned, layer) => {
                let held = Held::before(engine, owned);
                engine.step(&owned.batch(), &mut self.plans[*at], *layer, None)?;
                self.batches[*at] = owned.clone();
                let hits = held.check(&self.plans[*at], owned);
                return Ok(hits + self.check(*at, *layer));
            }
            Call::Transfer(at, layer) => {
                engine.transfer(&mut self.plans[*at], *layer, None)?;
                return Ok(self.check(*at, *layer));
            }
            Call::TransferLayers(at) => {
                let indexer = self.plans[*at].indexer();
                let of_plan = |layer: &usize| OF_LAYER[*layer] == indexer;
                let layers: Vec<usize> = (0..OF_LAYER.len()).filter(of_plan).collect();
                engine.transfer_layers(&mut self.plans[*at], &layers, None)?;
                return Ok(layers.iter().map(|&layer| self.check(*at, layer)).sum());
            }
            Call::Discard(at) => {
                engine.discard(&mut self.plans[*at])?;
                self.batches[*at] = OwnedBatch::new(K, 0);
            }
            Call::Fork([from, to], [old, new], false) => engine.fork(*from, *old, *to, *new)?,
            Call::Fork([from, _], [old, new], true) => {
                let others: Vec<i32> =
                    (0..STATES as i32).filter(|&state| state != *from as i32).collect();
                engine.fork_to(*from, *old, &others, &[*new, *new + 1])?;
            }
            Call::Load(at, indexer, [state, generation], ids) => {
                let (state, generation, indexer) = (*state, *generation, *indexer);
                let load = Load { indexer, state, generation, seq_len: 600, ids, block_table: &[] };
                let loaded = engine.load(&load, &mut self.plans[*at])?;
                self.batches[*at] = OwnedBatch::new(K, 0);
                return Ok(loaded);
            }
            Call::Rewrite(ids) => return self.rewrite(ids.clone()),
        }
        Ok(0)
    }

    /// Plans from before are not used again, because a hit of theirs may be a row of the old version.
    fn rewrite(&mut self, ids: Range<i32>) -> Result<usize> {
        let mut row = [0; ROW];
        for id in ids.clone() {
            self.versions[id as usize] += 16;
            for layer in 0..OF_LAYER.len() {
                fill_row(id, self.versions[id as usize] + layer as u32, &mut row);
                self.engine.pool().write_row(layer, id as usize, &row)?;
            }
        }
        let engine = &mut *self.engine;
        self.plans = (0..PLANS).map(|_| engine.new_plan(4, 2)).collect::<Result<_>>()?;
        (0..STATES).map(|state| engine.invalidate(state, ids.clone())).sum()
    }

    /// Checks that a layer holds the rows of a plan, and returns their number.
    fn check(&self, at: usize, layer: usize) -> usize {
        let content = |_, id: i32| (id, self.versions[id as usize] + layer as u32);
        exact::check_step(self.engine, &self.plans[at], &self.batches[at], layer, content)
    }

    /// Returns everything about a plan that devices have in common.
    fn result(&self, at: usize) -> Option<StepResult> {
        let (plan, owned) = (&self.plans[at], &self.batches[at]);
        (plan.requests() + 1 == owned.cu_q.len()).then(|| StepResult::from_plan(plan, &owned.cu_q))
    }

    fn tables(&mut self) -> Vec<Vec<i32>> {
        let all = (0..2).flat_map(|indexer| (0..STATES).map(move |state| (indexer, state)));
        let table = |(indexer, state)| {
            without_scratch(self.engine.read_indexer_table(indexer, state).unwrap(), SLOTS)
        };
        all.map(table).collect()
    }
}

fn draw(rng: &mut SplitMix64) -> Call {
    let (at, layer, indexer) = (rng.below(PLANS), rng.below(OF_LAYER.len()), rng.below(2));
    let states = [rng.below(STATES), rng.below(STATES)];
    // Most requests are of generation 1.
    let mut generation = || if rng.below(8) == 0 { rng.below(1 << 20) as i32 } else { 1 };
    let generations = [generation(), generation()];
    let mut owned = OwnedBatch { indexer, ..OwnedBatch::new(K, 0) };
    for (request, generation) in generations.into_iter().enumerate() {
        let state = (states[0] + request) % STATES;
        let state = if rng.below(4) == 0 { -1 } else { state as i32 };
        let rows = [ids(rng.below(8) * 17), ids(rng.below(500))];
        owned.push([state, generation, -1, 600], &rows[..rng.below(2)]);
    }
    let first = rng.below(500) as i32;
    match rng.below(42) {
        0..9 => Call::Plan(at, owned),
        9..18 => Call::Step(at, OwnedBatch { indexer: OF_LAYER[layer], ..owned }, layer),
        18..28 => Call::Transfer(at, layer),
        28..32 => Call::TransferLayers(at),
        32..37 => Call::Discard(at),
        37 => Call::Fork(states, generations, false),
        40 => Call::Fork(states, generations, true),
        38 | 41 => {
            let ids = (first..first + rng.below(60) as i32).collect();
            Call::Load(at, indexer, [states[0] as i32, generations[0]], ids)
        }
        _ => Call::Rewrite(first..first + 1 + rng.below(40) as i32),
    }
}

fn pool() -> HostPool {
    small::pool_of(OF_LAYER.len())
}

#[test]
fn both_devices_permit_and_refuse_the_same_calls_and_every_transfer_is_exact() {
    let indexers = Indexers::of_layers(&OF_LAYER).unwrap();
    let config = Config { indexers, ..small::config(STATES) };
    let mut cpu = Engine::new(config.clone(), pool()).unwrap();
    on_ascend(&config, pool, |engine, _, _| {
        let mut rng = SplitMix64::new(77);
        let mut callers = [Caller::new(&mut cpu), Caller::new(engine)];
        let (mut permitted, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for n in 0..4000 {
            let call = draw(&mut rng);
            let [cpu, ascend] = callers.each_mut().map(|caller| caller.call(&call));
            assert_eq!(cpu, ascend, "call {n}: {call:?}");
            match cpu {
                Ok(_) => {
                    let text = format!("{call:?}");
                    let kind = text.split('(').next().expect("a name").to_owned();
                    *permitted.entry(kind).or_insert(0) += 1;
                }
                Err(text) => {
                    let reason = REFUSALS.iter().find(|reason| text.contains(**reason));
                    *refused.entry(*reason.unwrap_or_else(|| panic!("{text}"))).or_insert(0) += 1;
                }
            }
            for at in 0..PLANS {
                let [cpu, ascend] = callers.each_ref().map(|caller| caller.result(at));
                assert!(cpu == ascend, "plan {at} after call {n}: {call:?}");
            }
            let [cpu, ascend] = callers.each_mut().map(Caller::tables);
            assert!(cpu == ascend, "tables after call {n}: {call:?}");
        }
        for (kind, least) in LEAST_PERMITTED {
            assert!(permitted[kind] >= least, "{kind}: {permitted:?}");
        }
        assert!(REFUSALS.iter().all(|reason| refused[reason] > 20), "{refused:?}");
    });
}
