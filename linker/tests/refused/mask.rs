//! This kernel branches on a mask.
use avsg_device::machine::Machine;

fn kernel<M: Machine>(m: M, n: M::Scalar, x: &mut M::Column<'_>) {
    m.sweep(n, |t| {
        let v = m.load(t, x);
        if m.is_negative(v) {
            m.store(t, x, v * -1);
        }
    });
}

fn main() {}
