//! Several indexers on one engine, on the CPU and on the simulated device: each indexer's tables are
//! those of an engine of its own, every row of every layer is exact, and a plan of one indexer is
//! refused by the layers of another.

use avsg::engine::{Config, Engine, Indexers};
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::splitmix::SplitMix64;

use crate::harness::{expect_refusal, on_both_devices, without_scratch};
use crate::small::{self, K, SLOTS, check, ids};

const STATES: usize = 3;
/// The indexer of each layer: the layers of one indexer need not be adjacent.
const OF_LAYER: [usize; 4] = [0, 1, 0, 2];

fn config(indexers: Indexers) -> Config {
    Config { indexers, ..small::config(STATES) }
}

fn pool() -> HostPool {
    small::pool_of(OF_LAYER.len())
}

fn several() -> Config {
    config(Indexers::of_layers(&OF_LAYER).unwrap())
}

/// Returns the layers of an indexer.
fn layers_of(indexer: usize) -> impl Iterator<Item = usize> {
    (0..OF_LAYER.len()).filter(move |&layer| OF_LAYER[layer] == indexer)
}

/// Returns a batch of two requests whose ids are those of one indexer in one step.
fn batch(rng: &mut SplitMix64, step: usize, indexer: usize) -> OwnedBatch {
    let mut owned = OwnedBatch { indexer, ..OwnedBatch::new(K, 0) };
    for request in 0..2 {
        // A state changes its request every seventh step.
        let (state, generation) = ((step + request) % STATES, 1 + step / 7);
        let mut row = |_| ids(rng.below(9) * 40);
        let rows: Vec<Vec<i32>> = (0..1 + step % 2).map(&mut row).collect();
        owned.push([state as i32, generation as i32, -1, 600], &rows);
    }
    owned
}

fn table(engine: &mut Engine, indexer: usize, state: usize) -> Vec<i32> {
    without_scratch(engine.read_table(indexer, state).unwrap(), SLOTS)
}

#[test]
fn each_indexer_has_the_tables_of_an_engine_of_its_own() {
    on_both_devices(&several(), pool, |engine| {
        let mut rng = SplitMix64::new(21);
        let alone = || Engine::new(config(Indexers::default()), pool()).unwrap();
        let mut others = [alone(), alone(), alone()];
        let mut plan = engine.new_plan(4, 2).unwrap();
        let mut other_plans = others.each_ref().map(|other| other.new_plan(4, 2).unwrap());
        for step in 0..20 {
            for indexer in 0..3 {
                let (other, other_plan) = (&mut others[indexer], &mut other_plans[indexer]);
                let mut owned = batch(&mut rng, step, indexer);
                let mut layers = layers_of(indexer);
                if step % 2 == 0 {
                    engine.plan(&owned.batch(), &mut plan).unwrap();
                } else {
                    let first = layers.next().unwrap();
                    engine.step(&owned.batch(), &mut plan, first, None).unwrap();
                    check(engine, &plan, &owned, first);
                }
                for layer in layers {
                    engine.transfer(&mut plan, layer, None).unwrap();
                    check(engine, &plan, &owned, layer);
                }
                assert_eq!(plan.indexer(), indexer);
                owned.indexer = 0;
                other.step(&owned.batch(), other_plan, 0, None).unwrap();
                (1..4).for_each(|layer| other.transfer(other_plan, layer, None).unwrap());
                assert!((0..owned.rows()).all(|row| plan.slots(row) == other_plan.slots(row)));
                for state in 0..STATES {
                    let table = table(engine, indexer, state);
                    assert!(table == self::table(other, 0, state), "{indexer}, {state}");
                }
            }
        }
    });
}

#[test]
fn indexers_that_do_not_cover_the_layers_are_refused() {
    expect_refusal(Indexers::of_layers(&[]), &["layers with an indexer is 0"]);
    expect_refusal(Indexers::of_layers(&[0, 2, 0]), &["indexer of a layer is 1", "without a gap"]);
    expect_refusal(Indexers::of_layers(&[0, 9]), &["indexer of a layer is 9", "there are 2"]);
    let few = Indexers::of_layers(&[0, 1]).unwrap();
    expect_refusal(Engine::new(config(few), pool()), &["is 2", "the pool has 4 layers"]);
    let each = Indexers::per_layer(4).unwrap();
    assert_eq!((each.count(), each.of(3)), (4, 3));
    assert_eq!(Indexers::of_layers(&[0, 1, 2, 3]).unwrap(), each);
    assert_eq!((Indexers::default().count(), Indexers::default().of(3)), (1, 0));
}
