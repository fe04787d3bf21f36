//! Random calls of an engine on the CPU, whose pool is in memory or in a file, and of one on the simulated device, with
//! every kind of table: all give the same results and refuse the same calls, and every permitted transfer is exact.

use std::collections::BTreeMap;
use std::ops::Range;

use avsg::Result;
use avsg::device::params::{Lifetime, Params};
use avsg::device::state::header;
use avsg::disk::PoolFile;
use avsg::engine::{Batch, Config, Engine, Indexers};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::held::Held;
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::{exact, fixture};

use crate::harness::on_ascend;
use crate::small::{self, K, ids};

const STATES: usize = 3;
/// The indexer of each layer.
const OF_LAYER: [usize; 3] = [0, 1, 1];
const PLANS: usize = 4;

/// The reasons for which calls are refused.
const REFUSALS: [&str; 7] = [
    "no layer has its rows, and plan",
    "lack the rows of plan",
    "has the rows of plan",
    "no batch was planned into it",
    "the plan is of indexer",
    "discard the newest plan first",
    "a state is copied to another one",
];
/// How many calls of each kind are permitted at least.
const LEAST_PERMITTED: [(&str, i32); 9] = [
    ("Plan", 800),
    ("Step", 350),
    ("Transfer", 120),
    ("TransferLayers", 50),
    ("Discard", 120),
    ("Drop", 150),
    ("Fork", 10),
    ("Load", 50),
    ("Rewrite", 90),
];

/// A call of an engine. Plans are numbers.
#[derive(Clone, Debug)]
enum Call {
    Plan(usize, OwnedBatch),
    Step(usize, OwnedBatch, usize),
    Transfer(usize, usize),
    /// Transfers a plan to every layer of its indexer in one call.
    TransferLayers(usize),
    Discard(usize),
    /// Drops a plan, whatever it holds.
    Drop(usize),
    /// From a state in a generation to other states in other generations.
    Fork(usize, i32, Vec<i32>, Vec<i32>),
    /// Loads ids for an indexer, with the plan of this number.
    Load(usize, usize, [i32; 2], Vec<i32>),
    /// Writes the next version of rows, and invalidates them in every state.
    Rewrite(Range<i32>),
}

/// An engine, its plans, and the batches that they were made for.
struct Caller<'a> {
    engine: &'a mut Engine,
    plans: [Plan; PLANS],
    batches: [OwnedBatch; PLANS],
    /// Whether some layer holds each plan.
    held: [bool; PLANS],
    /// Whether a batch that is overwritten is discarded by a call, which is to change nothing else.
    discards: bool,
    /// How often each row was rewritten, times 16.
    versions: Vec<u32>,
}

impl<'a> Caller<'a> {
    fn new(engine: &'a mut Engine) -> Self {
        let (batches, versions) = (Default::default(), vec![0; engine.pool().rows()]);
        let plans = [(); PLANS].map(|()| engine.new_plan(4, 2).unwrap());
        Self { engine, plans, batches, held: [true; PLANS], discards: false, versions }
    }

    /// Returns the layers of the indexer of a plan.
    fn layers_of(&self, at: usize) -> Vec<usize> {
        let indexer = self.plans[at].indexer();
        (0..OF_LAYER.len()).filter(|&layer| OF_LAYER[layer] == indexer).collect()
    }

    /// Makes a call and returns its number, if it has one.
    fn run(&mut self, call: &Call) -> Result<usize> {
        let engine = &mut *self.engine;
        match call {
            Call::Plan(at, owned) => {
                engine.plan(&owned.batch(), &mut self.plans[*at])?;
                self.batches[*at] = owned.clone();
                self.held[*at] = false;
            }
            Call::Step(at, owned, layer) => {
                engine.step(&owned.batch(), &mut self.plans[*at], *layer, None)?;
                self.batches[*at] = owned.clone();
                self.held[*at] = true;
            }
            Call::Transfer(at, layer) => {
                engine.transfer(&mut self.plans[*at], &[*layer], None)?;
                self.held[*at] = true;
            }
            Call::TransferLayers(at) => {
                let layers = self.layers_of(*at);
                self.engine.transfer(&mut self.plans[*at], &layers, None)?;
                self.held[*at] = true;
            }
            Call::Drop(at) => self.renew(*at),
            Call::Discard(at) => {
                engine.discard(&mut self.plans[*at])?;
                self.batches[*at] = OwnedBatch::default();
                self.held[*at] = true;
            }
            Call::Fork(from, old, to, new) => engine.fork(*from, *old, to, new)?,
            Call::Load(at, indexer, [state, generation], ids) => {
                let (state, generation) = (&[*state], &[*generation]);
                let (seq_len, indexer) = (&[engine.pool().rows() as i32], *indexer);
                let load = Batch { indexer, state, generation, seq_len, ids, ..Batch::default() };
                let loaded = engine.load(&load, &mut self.plans[*at])?;
                self.batches[*at] = OwnedBatch::default();
                self.held[*at] = true;
                return Ok(loaded);
            }
            Call::Rewrite(ids) => return self.rewrite(ids.clone()),
        }
        Ok(0)
    }

    /// Makes a plan anew.
    fn renew(&mut self, at: usize) {
        self.plans[at] = self.engine.new_plan(4, 2).unwrap();
        (self.batches[at], self.held[at]) = (OwnedBatch::default(), true);
    }

    fn rewrite(&mut self, ids: Range<i32>) -> Result<usize> {
        let mut bytes = vec![0; self.engine.pool().format().bytes()];
        for id in ids.clone() {
            self.versions[id as usize] += 16;
            for layer in 0..OF_LAYER.len() {
                fill_row(id, self.versions[id as usize] + layer as u32, &mut bytes);
                self.engine.pool().write_row(layer, id as usize, &bytes)?;
            }
        }
        (0..STATES).map(|state| self.engine.invalidate(state, ids.clone())).sum()
    }

    /// Returns everything about a plan that devices have in common.
    fn result(&self, at: usize) -> Option<StepResult> {
        let (plan, owned) = (&self.plans[at], &self.batches[at]);
        (plan.requests() + 1 == owned.cu_q.len()).then(|| StepResult::from_plan(plan, &owned.cu_q))
    }
}

/// Makes a call and returns its number, if it has one, and that of the rows that it copied. Checks that
/// layers hold the rows of the plans that they get, that what a state held before is hit, that a plan changes the
/// tables of its indexer only, and that a refused call leaves all tables as they are.
fn run(caller: &mut Caller<'_>, call: &Call) -> Result<usize> {
    if let Call::Rewrite(_) = call {
        // Plans from before are not used again, because a hit of theirs may be a row of the old version.
        (0..PLANS).for_each(|at| caller.renew(at));
    }
    // What is overwritten and no layer holds may be held before, and is not hit.
    let mut overwrites = match call {
        Call::Plan(at, _) | Call::Step(at, ..) | Call::Load(at, ..) => !caller.held[*at],
        _ => false,
    };
    let counts = !overwrites;
    if let Call::Plan(at, _) = call
        && caller.discards
        && overwrites
        && caller.engine.discard(&mut caller.plans[*at]).is_ok()
    {
        (caller.held[*at], overwrites) = (true, false);
    }
    let held = match call {
        Call::Plan(_, owned) | Call::Step(_, owned, _) if !overwrites => {
            Some(Held::before(caller.engine, owned))
        }
        _ => None,
    };
    let before = tables(caller);
    let result = caller.run(call);
    let Ok(mut number) = result else {
        assert!(tables(caller) == before, "{call:?}");
        return result;
    };
    let (at, layers) = match call {
        Call::Plan(at, _) => (*at, vec![]),
        Call::Step(at, _, layer) | Call::Transfer(at, layer) => (*at, vec![*layer]),
        Call::TransferLayers(at) => (*at, caller.layers_of(*at)),
        _ => {
            let slots = caller.engine.config().params.slots;
            check_tables((call, number), slots, &before, &tables(caller));
            return Ok(number);
        }
    };
    let other = (1 - caller.plans[at].indexer()) * STATES;
    let unchanged = tables(caller)[other..][..STATES] == before[other..][..STATES];
    assert!(unchanged || overwrites, "{call:?}");
    let (plan, owned) = (&caller.plans[at], &caller.batches[at]);
    let hits = held.map_or(0, |held| held.check(plan, owned));
    number += if counts { hits } else { 0 };
    for layer in layers {
        let content = |_, id: i32| (id, caller.versions[id as usize] + layer as u32);
        number += exact::check_step(caller.engine, plan, owned, layer, content);
    }
    Ok(number)
}

/// Checks that a copy has the slots of the original in the generation that was copied, and none of another
/// one, that ids that were loaded have slots, and that rows that were rewritten have none, and all others those that
/// they had.
fn check_tables(
    (call, number): (&Call, usize),
    slots: u32,
    before: &[Vec<i32>],
    after: &[Vec<i32>],
) {
    let generation = |table: &[i32]| table[header::GENERATION as usize];
    let slots = |table: &'_ [i32]| table[header::WORDS..][..slots as usize].to_vec();
    if let Call::Fork(from, old, to, new) = call {
        let copies = |first| to.iter().zip(new).map(move |(&state, &new)| (first, state, new));
        for (first, state, new) in [0, STATES].into_iter().flat_map(copies) {
            let (original, copy) = (&before[first + from], &after[first + state as usize]);
            assert_eq!(generation(copy), new);
            let none = || slots(copy).iter().all(|&id| id < 0);
            let same = generation(original) == *old && slots(copy) == slots(original);
            assert!(same || generation(original) != *old && none(), "{call:?}");
        }
    }
    if let Call::Load(_, indexer, [state, _], ids) = call {
        let loaded = slots(&after[indexer * STATES + *state as usize]);
        let mut valid = ids.iter().filter(|id| (0..600).contains(*id));
        assert!(valid.all(|id| loaded.contains(id)), "{call:?}");
    }
    if let Call::Rewrite(ids) = call {
        let all = |tables: &[Vec<i32>]| tables.iter().flat_map(|t| slots(t)).collect::<Vec<_>>();
        let (before, after) = (all(before), all(after));
        let kept = before.iter().map(|id| if ids.contains(id) { -1 } else { (*id).max(-1) });
        assert!(kept.eq(after.iter().map(|&id| id.max(-1))), "{call:?}");
        assert_eq!(number, before.iter().filter(|id| ids.contains(id)).count());
    }
}

fn tables(caller: &mut Caller<'_>) -> Vec<Vec<i32>> {
    let all = (0..2).flat_map(|indexer| (0..STATES).map(move |state| (indexer, state)));
    all.map(|(n, state)| caller.engine.read_table(n, state).unwrap().to_vec()).collect()
}

/// Checks the slots in use that engines tell. A device does not see which ones a discard or an invalidation emptied.
fn check_used_slots(callers: &[Caller<'_>; 3], tables: &[Vec<i32>]) {
    let [cpu, file, ascend] = callers.each_ref().map(|caller| {
        let reader = caller.engine.stats_reader();
        let of =
            |indexer| reader.used_slots(indexer).unwrap().map(Option::unwrap).collect::<Vec<_>>();
        [of(0), of(1)].concat()
    });
    let slots = callers[0].engine.config().params.slots as usize;
    let ids = tables.iter().map(|table| &table[header::WORDS..][..slots]);
    let used = ids.map(|ids| ids.iter().filter(|&&id| id >= 0).count());
    assert!(used.eq(cpu.iter().copied()) && cpu == file, "{cpu:?}, {file:?}");
    assert!(cpu.iter().zip(&ascend).all(|(exact, most)| exact <= most), "{cpu:?}, {ascend:?}");
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
        32..35 => Call::Discard(at),
        35..37 => Call::Drop(at),
        37 => Call::Fork(states[0], generations[0], vec![states[1] as i32], vec![generations[1]]),
        40 => {
            let others = (0..STATES).filter(|&state| state != states[0]).map(|state| state as i32);
            let new = vec![generations[1], generations[1] + 1];
            Call::Fork(states[0], generations[0], others.collect(), new)
        }
        38 | 41 => {
            // Padding, an id twice and one that is no token among them.
            let mut ids: Vec<i32> = (first..first + rng.below(60) as i32).collect();
            ids.extend([&ids[..ids.len().min(1)], &[-1, 600]].concat());
            ids.rotate_right(rng.below(4));
            Call::Load(at, indexer, [states[0] as i32, generations[0]], ids)
        }
        _ => Call::Rewrite(first..first + 1 + rng.below(40) as i32),
    }
}

/// Returns a pool whose first layer is read from a file into slots, which have room for a block, and the others through
/// a buffer of the engine.
fn pool() -> HostPool {
    let wide = Segment { bytes: 64, stride: 512 };
    fixture::pool(OF_LAYER.len(), 600, RowFormat::strided(&[wide]).unwrap())
}

/// Returns such a pool in a file, which is in the page cache, where thousands of calls are quick.
fn pool_in_file(indexers: &Indexers) -> HostPool {
    let (folder, indexers) = (Scratch::new(), indexers.clone());
    let file = Some(PoolFile { buffered: true, ..PoolFile::new(folder.path()) });
    let config = PoolConfig::new(OF_LAYER.len(), 600, pool().format().clone());
    let pool = HostPool::new(&PoolConfig { file, indexers, ..config }).unwrap();
    fixture::fill(&pool, 600, |layer, row| (row as i32, layer as u32));
    pool
}

#[test]
fn engines_permit_and_refuse_the_same_calls_and_every_transfer_is_exact() {
    let (indexers, config) = (Indexers::of_layers(&OF_LAYER).unwrap(), small::config(STATES));
    let mut rng = SplitMix64::new(77);
    let (mut permitted, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let [constant, learned] = [Lifetime::Constant(127), Lifetime::Learned]
        .map(|lifetime| Params { lifetime, ..config.params });
    for params in [constant, learned, Params::paper(K as u32, 2, 256)] {
        let config = Config { params, indexers: indexers.clone(), ..config.clone() };
        let mut cpu = Engine::new(config.clone(), pool()).unwrap();
        let mut file = Engine::new(config.clone(), pool_in_file(&indexers)).unwrap();
        on_ascend(&config, pool, |engine, _, _| {
            let mut callers = [&mut cpu, &mut file, engine].map(Caller::new);
            callers[1].discards = true;
            for n in 0..1400 {
                let call = draw(&mut rng);
                let [cpu, file, ascend] = callers
                    .each_mut()
                    .map(|caller| run(caller, &call).map_err(|error| error.to_string()));
                assert_eq!((&cpu, &cpu), (&file, &ascend), "call {n}: {call:?}");
                match cpu {
                    Ok(_) => {
                        let text = format!("{call:?}");
                        let kind = text.split('(').next().expect("a name").to_owned();
                        *permitted.entry(kind).or_insert(0) += 1;
                    }
                    Err(text) => {
                        let reason = REFUSALS.iter().find(|reason| text.contains(**reason));
                        let reason = *reason.unwrap_or_else(|| panic!("{text}"));
                        *refused.entry(reason).or_insert(0) += 1;
                    }
                }
                for at in 0..PLANS {
                    let [cpu, file, ascend] = callers.each_ref().map(|caller| caller.result(at));
                    assert!(cpu == file && cpu == ascend, "plan {at} after call {n}: {call:?}");
                }
                let [cpu, file, ascend] = callers.each_mut().map(tables);
                assert!(cpu == file && cpu == ascend, "tables after call {n}: {call:?}");
                check_used_slots(&callers, &cpu);
            }
            let [cpu, file, ascend] = callers.each_ref().map(|caller| {
                let stats = caller.engine.stats();
                let [calls, ids] = [[stats.plans, stats.transfers], [stats.hits, stats.misses]];
                (calls, ids, stats.evictions, stats.transferred_bytes)
            });
            assert_eq!((cpu, cpu), (file, ascend));
        });
    }
    for (kind, least) in LEAST_PERMITTED {
        assert!(permitted[kind] >= least, "{kind}: {permitted:?}");
    }
    assert!(REFUSALS.iter().all(|reason| refused[reason] > 20), "{refused:?}");
}
