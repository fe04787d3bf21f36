//! Random workloads of requests, which proptest shrinks if they fail: joins, leaves, permuted and
//! swapped states, padded and read-only requests, rejected drafts, rewritten rows, invalid ids and
//! invalid block tables, on every kind of table, row format and CPU machine.

use crate::strategies::{self, workload};
use avsg::cpu::machine::Machine;
use avsg::disk::PoolFile;
use avsg::engine::{Engine, MachineChoice};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::workload::{Shape, Workload, run};
use proptest::prelude::*;

/// Generates any geometry.
fn shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 9]>().prop_map(Shape::from)
}

/// The machines of engines, of which a CPU supports some.
const MACHINES: [MachineChoice; 4] =
    [MachineChoice::Emu, MachineChoice::Avx2, MachineChoice::Avx512, MachineChoice::Neon];

proptest! {
    #![proptest_config(strategies::config(32))]

    /// Slots and miss lists depend neither on the machine, the number of cores nor the row format, nor on
    /// where the pool is. Each run checks that every returned slot holds its row.
    #[test]
    fn engines_with_other_machines_cores_and_pools_give_the_same_lists(
        workload in workload(shape()),
        other in any::<[u8; 2]>(),
    ) {
        let first = run(&workload, &mut workload.shape.engine(MachineChoice::Emu));
        for (i, choice) in (0..).zip(MACHINES).filter(|(_, choice)| Machine::find(*choice).is_ok()) {
            let [cores, format] = other.map(|x| x.wrapping_add(i));
            let shape = Shape { cores, format, ..workload.shape };
            let again = run(&Workload { shape, ..workload.clone() }, &mut shape.engine(choice));
            prop_assert!(first == again, "{choice:?}, cores {cores}");
        }
        let folder = Scratch::new();
        let io_uring = other[0].is_multiple_of(2);
        let file = adapted(PoolFile::new(folder.path()));
        // Reads one after the other are quick from the page cache.
        let buffered = file.buffered || !io_uring;
        let file = Some(PoolFile { io_uring, buffered, ..file });
        let pool = HostPool::new(&PoolConfig { file, ..workload.shape.pool() }).unwrap();
        let mut engine = Engine::new(workload.shape.config(MachineChoice::Emu), pool).unwrap();
        prop_assert!(first == run(&workload, &mut engine));
    }
}
