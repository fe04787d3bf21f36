//! Layers that share an indexer use one plan and a transfer each. A transfer writes the slots of its own
//! layer only, and the bytes of its rows only.

use avsg::device::params::Params;
use avsg::engine::{Engine, Fresh};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::{fixture, memory};

const K: usize = 24;

fn engine(layers: usize, cores: usize) -> Engine {
    let segments = [Segment { bytes: 40, stride: 47 }, Segment { bytes: 9, stride: 9 }];
    let pool = fixture::pool(layers, 600, RowFormat::strided(&segments).unwrap());
    fixture::engine(Params::wide(K as u32, 2, 128), 3, cores, pool)
}

/// Returns the K distinct ids of a step, all below 500.
fn ids(step: usize) -> Vec<i32> {
    (0..K).map(|i| ((step * 11 + i * 17) % 500) as i32).collect()
}

/// Returns all bytes of the device buffer's slots, including the gaps of the strides.
fn slot_bytes(engine: &Engine) -> Vec<u8> {
    (0..engine.buffer().config().layers).flat_map(|l| memory::read_slots(engine, None, l)).collect()
}

fn host_bytes(engine: &Engine) -> Vec<u8> {
    let pool = engine.pool();
    let mut bytes = vec![0; pool.layers() * pool.rows() * pool.format().bytes()];
    for (at, row) in bytes.chunks_exact_mut(pool.format().bytes()).enumerate() {
        pool.read_row(at / pool.rows(), at % pool.rows(), row).unwrap();
    }
    bytes
}

/// Returns a batch of two active requests and a padded one between them.
fn two_requests(step: usize) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 2);
    owned.push([2, 1, -1, 600], &[ids(step), ids(step + 1)]);
    owned.push([-1, 1, -1, 600], &[ids(step)]);
    owned.push([0, 1, -1, 600], &[ids(step + 40)]);
    owned
}

#[test]
fn a_transfer_writes_only_the_missed_rows_of_its_layer() {
    let mut engine = engine(2, 4);
    let mut plan = engine.new_plan(4, 3).unwrap();
    for step in 0..20 {
        let owned = two_requests(step);
        let (mut expected, before) = (slot_bytes(&engine), host_bytes(&engine));
        engine.plan(&owned.batch(), &mut plan).unwrap();
        assert!(slot_bytes(&engine) == expected, "a plan copies nothing");
        engine.transfer(&mut plan, 1, None).unwrap();
        let (config, mut row) = (engine.buffer().config().clone(), [0; 49]);
        let base = engine.buffer().segment_base(0, 0).unwrap();
        assert!(plan.total_misses() > 0);
        for r in [0, 2] {
            for (&id, &slot) in plan.misses(r).id.iter().zip(plan.misses(r).slot) {
                fill_row(id, 1, &mut row);
                let at = owned.state[r] as usize * config.slots + slot as usize;
                // `slot_bytes` packs layers and segments without the padding between them.
                let rows = config.states * config.slots;
                let layer = rows * (47 + 9);
                expected[layer + at * 47..][..40].copy_from_slice(&row[..40]);
                expected[layer + rows * 47 + at * 9..][..9].copy_from_slice(&row[40..]);
            }
        }
        assert!(!base.is_null() && slot_bytes(&engine) == expected, "step {step}");
        engine.transfer(&mut plan, 0, None).unwrap();
        assert!(host_bytes(&engine) == before, "step {step}: the host pool is only read");
    }
}

#[test]
fn a_step_equals_a_plan_and_a_transfer() {
    let (mut a, mut b) = (engine(1, 2), engine(1, 5));
    let (mut plan_a, mut plan_b) = (a.new_plan(9, 9).unwrap(), b.new_plan(4, 3).unwrap());
    for step in 0..25 {
        let owned = two_requests(step * 3 / 2);
        a.step(&owned.batch(), &mut plan_a, 0, None).unwrap();
        b.plan(&owned.batch(), &mut plan_b).unwrap();
        b.transfer(&mut plan_b, 0, None).unwrap();
        assert!((0..4).all(|row| plan_a.slots(row) == plan_b.slots(row)));
        assert!((0..3).all(|r| plan_a.misses(r).slot == plan_b.misses(r).slot));
        assert!(slot_bytes(&a) == slot_bytes(&b) && plan_a.valid() == plan_b.valid());
        assert!((0..3).all(|state| a.table(state) == b.table(state)));
    }
}

#[test]
fn a_padded_batch_copies_nothing() {
    let mut engine = engine(1, 3);
    let mut plan = engine.new_plan(6, 3).unwrap();
    engine.step(&two_requests(0).batch(), &mut plan, 0, None).unwrap();
    let before = (
        slot_bytes(&engine),
        host_bytes(&engine),
        engine.table(0).to_vec(),
        engine.table(2).to_vec(),
    );
    let mut owned = OwnedBatch::new(K, 1);
    // The other values of a padded request are not checked.
    owned.push([-1, 3, 77, -9], &[ids(3), ids(4)]);
    owned.push([-1, 1, -1, i32::MAX], &[]);
    let fresh = [&[][..], &[][..]];
    let long = [&[0; 600][..], &[0; 600][..]];
    engine.plan(&owned.batch(), &mut plan).unwrap();
    engine.transfer(&mut plan, 0, None).unwrap();
    engine.step(&owned.batch(), &mut plan, 0, Some(&Fresh { segments: &long })).unwrap();
    engine.append(&owned.batch(), 0, &Fresh { segments: &long }).unwrap();
    assert!(engine.step(&owned.batch(), &mut plan, 0, Some(&Fresh { segments: &fresh })).is_err());
    assert!(plan.total_misses() == 0 && plan.valid() == [0, 0] && plan.status(0) == 0);
    assert!(before.0 == slot_bytes(&engine) && before.1 == host_bytes(&engine));
    assert!(before.2 == engine.table(0) && before.3 == engine.table(2));
}
