//! This kernel branches on run-time scalars.
use avsg_device::machine::Machine;

fn kernel<M: Machine>(m: M, life: &mut M::Life<'_>, list: &M::List<'_, 1>) {
    if m.len(list) > m.scalar(0) {
        m.age(life, m.scalar(1), m.scalar(-128));
    }
    if m.len(list) == m.scalar(0) {
        m.age(life, m.scalar(2), m.scalar(-128));
    }
}

fn main() {}
