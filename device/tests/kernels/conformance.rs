//! The conformance suite: every machine is compared with plain loops, operation by operation, and
//! with `Emu<1>`, step by step. A machine that this CPU does not have is reported and skipped.

use super::one_request::{OneRequest, Order, Runner};
use super::register_ops::{LifeOps, RegisterOps};
use super::sequences;
use avsg_device::machine::emu::Emu;
use proptest::prelude::*;

/// Runs random sequences on `m`, or by another order of the work, and compares all state and outputs after each
/// step with those of `Emu<1>`, whatever values a request has learned.
fn steps_equal_the_scalar_machine(m: impl Runner, order: Order) {
    let mut runner = proptest::test_runner::TestRunner::new(sequences::config(192));
    let result = runner.run(&sequences::sequences(false), |(p, steps)| {
        let mut one = OneRequest::new(p);
        let mut other = one.clone();
        other.order = order;
        for (i, step) in steps.iter().enumerate() {
            other.shared = order == Order::VectorCore && i % 2 == 0;
            one.scramble(i as u32);
            other.scramble(i as u32);
            prop_assert_eq!(one.step(Emu::<1>, step), other.step(m, step), "step {}", i);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// The order of the work changes no result, neither deferred refreshes, searches of all links at once, nor sharing of
/// a token.
#[test]
fn every_order_equals_the_sequential_one() {
    steps_equal_the_scalar_machine(Emu::<16>, Order::VectorCore);
    steps_equal_the_scalar_machine(Emu::<16>, Order::Simt);
}

macro_rules! conform {
    ($name:ident, $machine:expr) => {
        #[test]
        fn $name() {
            let Some(m) = $machine else {
                return println!("skipped: this CPU is no {}", stringify!($name));
            };
            m.run(RegisterOps);
            m.run(LifeOps);
            steps_equal_the_scalar_machine(m, Order::Sequential);
        }
    };
}

conform!(emu_1, Some(Emu::<1>));
conform!(emu_3, Some(Emu::<3>));
conform!(emu_16, Some(Emu::<16>));
// Miri does not support most of these instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
conform!(avx2, avsg_device::machine::avx2::Avx2::<false>::detect());
#[cfg(all(target_arch = "x86_64", not(miri)))]
conform!(avx2_gather, avsg_device::machine::avx2::Avx2::<true>::detect());
#[cfg(all(target_arch = "x86_64", not(miri)))]
conform!(avx512, avsg_device::machine::avx512::Avx512::<false>::detect());
#[cfg(all(target_arch = "x86_64", not(miri)))]
conform!(avx512_gather, avsg_device::machine::avx512::Avx512::<true>::detect());
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)))]
conform!(neon, avsg_device::machine::neon::Neon::detect());
