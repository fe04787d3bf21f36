//! Tests of the phases of a tape, and of the work that replays count in them.

use avsg::device::params::{Lifetime, Params, Table};
use avsg::device::request::record;
use avsg::device::state::{INVALID, header};
use avsg_linker::ascend::cost::Unit;
use avsg_linker::ascend::cost::calls::{Kernel, Life};
use avsg_linker::replay::{Execution, Replay};
use avsg_linker::tape::OpCode;

use super::{PHASES, Phase, Phases};
use crate::tests::left_out;

fn small(table: Table, lifetime: Lifetime) -> Params {
    let spread = if table == Table::Wide { 2 } else { 1 };
    Params { table, lifetime, spread, retries: 3, ..Params::wide(128, 1, 512) }
}

/// Replays a cold step on `ids`, in which all miss, and then the same step again, in which all hit.
fn run<'t>(kernel: &'t Kernel, p: &Params, ids: &[i32]) -> [Vec<Execution<'t>>; 2] {
    let mut words = vec![0; header::WORDS];
    words[header::THRESHOLD as usize] = -128;
    let mut replay = Replay::new(&kernel.tape, 64).unwrap();
    replay.record_executions();
    replay.bind("header", words).unwrap();
    replay.bind("id", vec![-1; p.slots as usize]).unwrap();
    replay.bind("link", vec![INVALID; p.links() as usize]).unwrap();
    replay.bind_life("life", vec![p.empty_life(); p.slots as usize]).unwrap();
    replay.bind("gm_ids", ids.to_vec()).unwrap();
    for name in ["gm_slot", "gm_miss_pos", "gm_miss_id", "gm_miss_slot", "gm_miss_row"] {
        replay.bind(name, vec![0; ids.len()]).unwrap();
    }
    replay.bind("gm_valid", vec![0]).unwrap();
    replay.bind("gm_record", vec![0; record::WORDS]).unwrap();
    replay.bind("gm_block_table", Vec::new()).unwrap();
    for param in &kernel.tape.params {
        let value = match param.name.as_str() {
            "tokens" => 1,
            "k" => ids.len() as i32,
            "generation" => 7,
            "stable" | "limit" | "rows" => 1 << 20,
            _ => 0,
        };
        replay.set(&param.name, value).unwrap();
    }
    [(); 2].map(|()| {
        replay.run().unwrap();
        replay.take_executions()
    })
}

fn lanes(phases: &Phases<'_>, ran: &[Execution<'_>], phase: Phase) -> usize {
    let sweep = |r: &&Execution<'_>| r.op.code == OpCode::Sweep && phases.of(r.op) == phase;
    ran.iter().filter(sweep).map(|r| r.lanes).sum()
}

#[test]
fn every_table_has_all_phases_in_order() {
    if left_out() {
        return;
    }
    for p in [
        small(Table::KNUTH_XXHASH, Lifetime::Constant(16)),
        small(Table::Wide, Lifetime::Constant(127)),
        small(Table::Wide, Lifetime::frequency()),
    ] {
        let kernel = Kernel::new(&p).unwrap();
        let phases = Phases::new(&kernel);
        let mut seen: Vec<Phase> = Vec::new();
        for op in kernel.tape.body.all() {
            let phase = phases.of(op);
            // Results are published between the other phases.
            if !matches!(phase, Phase::Publish | Phase::Prologue) && seen.last() != Some(&phase) {
                seen.push(phase);
            }
        }
        let expected: Vec<Phase> = PHASES
            .iter()
            .map(|p| p.0)
            .filter(|p| !matches!(p, Phase::Prologue | Phase::Publish))
            .collect();
        assert_eq!(seen, expected, "{:?}", p.table);
    }
}

#[test]
fn a_cold_step_works_in_update_state_and_a_warm_one_only_refreshes() {
    if left_out() {
        return;
    }
    let p = small(Table::Wide, Lifetime::Constant(127));
    let kernel = Kernel::new(&p).unwrap();
    let phases = Phases::new(&kernel);
    let ids: Vec<i32> = (0..128).map(|i| i * 37).collect();
    let [cold, warm] = run(&kernel, &p, &ids);
    // Two sweeps examine one of the four links of each id, after four sweeps that prepare the search
    // and before two that mark ids that are not valid.
    assert_eq!(lanes(&phases, &cold, Phase::Probe), 128 * (4 + 2 * 4 + 2));
    assert_eq!(lanes(&phases, &cold, Phase::Rounds), 128);
    assert!(lanes(&phases, &cold, Phase::UpdateState) >= 3 * 128);
    assert_eq!(lanes(&phases, &warm, Phase::UpdateState), 0);
    let scalars = |ran: &[Execution<'_>], phase: Phase| {
        phases.work(ran, Life::Narrow)[phase as usize].get(Unit::Scalars)
    };
    // All 128 hits are refreshed at once, with three accesses for two hits; the sweep adds one access.
    assert_eq!(scalars(&warm, Phase::Refresh), 192.0 + 1.0);
    assert_eq!(scalars(&cold, Phase::Refresh), 1.0);
    assert!(scalars(&cold, Phase::UpdateState) >= 128.0 * 5.0);
    // A packed lifetime is read before it is written, which adds an access per hit.
    let packed = phases.work(&warm, Life::Packed)[Phase::Refresh as usize];
    assert_eq!(packed.get(Unit::Scalars), 193.0 + 128.0);
}

#[test]
fn a_right_threshold_hint_needs_one_count() {
    if left_out() {
        return;
    }
    let p = small(Table::Wide, Lifetime::Constant(127));
    let kernel = Kernel::new(&p).unwrap();
    let ids: Vec<i32> = (0..128).map(|i| i * 37).collect();
    let [cold, warm] = run(&kernel, &p, &ids);
    let counts = |ran: &[Execution<'_>]| {
        ran.iter().filter(|r| r.op.code == OpCode::Threshold).map(|r| r.lanes).collect::<Vec<_>>()
    };
    // The hint of an empty table is right, because every slot is dead. A step without misses counts
    // nothing. No refresh is deferred here, so nothing is counted for the deferral either.
    assert_eq!((counts(&cold), counts(&warm)), (vec![1], vec![0]));
}
