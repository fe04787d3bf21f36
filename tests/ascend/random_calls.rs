//! Random calls of an engine on the CPU and of one on the simulated device, with every kind of table: both give the
//! same results and refuse the same calls, and every permitted transfer is exact.

use std::collections::BTreeMap;

use avsg::Result;
use avsg::device::params::{Lifetime, Params};
use avsg::device::state::header;
use avsg::engine::{Config, Engine, Indexers};
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact;
use avsg_testkit::held::Held;
use avsg_testkit::splitmix::SplitMix64;

use crate::caller::{Call, Caller};
use crate::harness::on_ascend;
use crate::small::{self, K, ids};

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

/// Makes a call and returns its number, if it has one, and that of the rows that it copied. Checks that
/// layers hold the rows of the plans that they get, that what a state held before is hit, that a plan changes the
/// tables of its indexer only, and that a refused call leaves all tables as they are.
fn run(caller: &mut Caller<'_>, call: &Call) -> Result<usize> {
    let held = match call {
        Call::Plan(_, owned) | Call::Step(_, owned, _) => Some(Held::before(caller.engine, owned)),
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
    assert!(tables(caller)[other..][..STATES] == before[other..][..STATES], "{call:?}");
    let (plan, owned) = (&caller.plans[at], &caller.batches[at]);
    number += held.map_or(0, |held| held.check(plan, owned));
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
        let slots =
            |tables: &[Vec<i32>]| -> Vec<i32> { tables.iter().flat_map(|t| slots(t)).collect() };
        let (before, after) = (slots(before), slots(after));
        let kept = before.iter().map(|id| if ids.contains(id) { -1 } else { (*id).max(-1) });
        assert!(kept.eq(after.iter().map(|&id| id.max(-1))), "{call:?}");
        assert_eq!(number, before.iter().filter(|id| ids.contains(id)).count());
    }
}

fn tables(caller: &mut Caller<'_>) -> Vec<Vec<i32>> {
    let all = (0..2).flat_map(|indexer| (0..STATES).map(move |state| (indexer, state)));
    all.map(|(n, state)| caller.engine.read_table(n, state).unwrap().to_vec()).collect()
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

fn pool() -> HostPool {
    small::pool_of(OF_LAYER.len())
}

#[test]
fn both_devices_permit_and_refuse_the_same_calls_and_every_transfer_is_exact() {
    let (indexers, config) = (Indexers::of_layers(&OF_LAYER).unwrap(), small::config(STATES));
    let mut rng = SplitMix64::new(77);
    let (mut permitted, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let [constant, learned] = [Lifetime::Constant(127), Lifetime::Learned]
        .map(|lifetime| Params { lifetime, ..config.params });
    for params in [constant, learned, Params::paper(K as u32, 2, 256)] {
        let config = Config { params, indexers: indexers.clone(), ..config.clone() };
        let mut cpu = Engine::new(config.clone(), pool()).unwrap();
        on_ascend(&config, pool, |engine, _, _| {
            let mut callers = [Caller::new(&mut cpu, PLANS), Caller::new(engine, PLANS)];
            for n in 0..1400 {
                let call = draw(&mut rng);
                let [cpu, ascend] = callers
                    .each_mut()
                    .map(|caller| run(caller, &call).map_err(|error| error.to_string()));
                assert_eq!(cpu, ascend, "call {n}: {call:?}");
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
                    let [cpu, ascend] = callers.each_ref().map(|caller| caller.result(at));
                    assert!(cpu == ascend, "plan {at} after call {n}: {call:?}");
                }
                let [cpu, ascend] = callers.each_mut().map(tables);
                assert!(cpu == ascend, "tables after call {n}: {call:?}");
            }
            let [cpu, ascend] = callers.each_ref().map(|caller| {
                let stats = caller.engine.stats();
                let [calls, ids] = [[stats.plans, stats.transfers], [stats.hits, stats.misses]];
                (calls, ids, stats.evictions, stats.transferred_bytes)
            });
            assert_eq!(cpu, ascend);
        });
    }
    for (kind, least) in LEAST_PERMITTED {
        assert!(permitted[kind] >= least, "{kind}: {permitted:?}");
    }
    assert!(REFUSALS.iter().all(|reason| refused[reason] > 20), "{refused:?}");
}
