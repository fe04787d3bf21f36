//! Random workloads of requests, which proptest shrinks if they fail: joins, leaves, permuted and
//! swapped states, padded and read-only requests, rejected drafts, rewritten rows, invalid ids and
//! invalid block tables, on every kind of table, row format and CPU machine.

use crate::strategies::workload;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::disk::PoolFile;
use avsg::engine::{Engine, MachineChoice};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::workload::{Shape, Workload, run};
use proptest::prelude::*;
use proptest::test_runner::Config as ProptestConfig;

/// Generates any geometry.
fn shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(Shape::from)
}

/// Returns the machines that this CPU supports for an engine.
fn choices() -> Vec<MachineChoice> {
    let all = [MachineChoice::Emu, MachineChoice::Avx2, MachineChoice::Avx512, MachineChoice::Neon];
    all.into_iter().filter(|&c| Machine::find(c).is_ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Slots and miss lists depend neither on the machine, the number of cores, the strategy nor
    /// the row format. Each run checks that every returned slot holds its row.
    #[test]
    fn engines_with_other_machines_and_cores_give_the_same_lists(
        workload in workload(shape()),
        other in any::<[u8; 3]>(),
    ) {
        let first = run(&workload, workload.shape.engine(MachineChoice::Emu));
        for (i, choice) in choices().into_iter().enumerate() {
            let i = i as u8;
            let [cores, strategy, format] = other.map(|x| x.wrapping_add(i));
            let shape = Shape { cores, strategy, format, ..workload.shape };
            let again = run(&Workload { shape, ..workload.clone() }, shape.engine(choice));
            prop_assert!(first == again, "{choice:?}, cores {cores}, strategy {strategy}");
        }
    }

    /// Slots and miss lists do not depend on where the pool is.
    #[test]
    fn engines_over_pools_in_files_give_the_same_lists(workload in workload(shape())) {
        let folder = Scratch::new();
        let memory = run(&workload, workload.shape.engine(MachineChoice::Emu));
        let file = Some(adapted(PoolFile::new(folder.path())));
        let pool = HostPool::new(&PoolConfig { file, ..workload.shape.pool() }).unwrap();
        let engine = Engine::new(workload.shape.config(MachineChoice::Emu), pool).unwrap();
        prop_assert!(memory == run(&workload, engine));
    }

    /// Compares tables without an engine, on every machine and with every kind of gather.
    #[test]
    fn standalone_tables_give_the_same_lists_on_every_machine(
        shape in shape(),
        raw in prop::collection::vec(any::<u16>(), 1..400),
    ) {
        let params = shape.params();
        let (k, tokens) = (params.k as usize, params.tokens as usize);
        let table = || StandaloneTable::new(&params).expect("a valid geometry");
        let mut tables: Vec<_> = Machine::all().into_iter().map(|m| (m, table())).collect();
        for step in 0..8 {
            let id = |i: usize| i32::from(raw[(i * 7 + step * 31) % raw.len()] as i16) / 16;
            let ids: Vec<i32> = (0..k * tokens).map(id).collect();
            let results: Vec<_> = tables.iter_mut().map(|(machine, table)| {
                let misses = table.step_on(*machine, &ids, tokens, -1);
                (misses, table.slots().to_vec())
            }).collect();
            prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "step {step}");
        }
    }
}
