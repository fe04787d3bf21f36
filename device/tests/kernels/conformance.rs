//! The conformance suite: every machine is compared with plain loops, operation by operation, and
//! with `Emu<1>`, step by step. A machine that this CPU does not have is reported and skipped.

use super::one_request::{OneRequest, Order};
use super::register_ops::{OnColumns, Operations};
use super::sequences;
use avsg_device::machine::emu::Emu;
use avsg_device::one_request::Compiled;
use proptest::prelude::*;

/// Runs random sequences by another order of the work, or on another machine, and compares all state and outputs after
/// each step with those of one lane, whatever values a request has learned.
fn steps_equal_the_scalar_machine(order: Order) {
    let mut runner = proptest::test_runner::TestRunner::new(sequences::config(192));
    let result = runner.run(&sequences::sequences(false), |(p, steps)| {
        let mut one = OneRequest::new(p);
        let mut other = one.clone();
        other.order = order;
        for (i, step) in steps.iter().enumerate() {
            other.shared = i % 2 == 0;
            one.scramble(i as u32);
            other.scramble(i as u32);
            prop_assert_eq!(one.step(step), other.step(step), "step {}", i);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// The order of the work changes no result, neither deferred refreshes, searches of all links at once, nor sharing of
/// a token.
#[test]
fn every_order_equals_the_sequential_one() {
    steps_equal_the_scalar_machine(Order::VectorCore);
}

#[test]
fn emu() {
    Emu::<1>.run(Operations);
    Emu::<2>.run(Operations);
    Emu::<16>.run(Operations);
    steps_equal_the_scalar_machine(Order::Cpu(|stage_one| Emu::<2>.run(stage_one)));
}

/// Tests a machine by its steps, which the library has compiled for it, and its operations.
macro_rules! conform {
    ($name:ident, $machine:ty, $operations:expr) => {
        #[test]
        fn $name() {
            let Some(m) = <$machine>::detect() else {
                return println!("skipped: this CPU is no {}", stringify!($name));
            };
            m.run($operations);
            steps_equal_the_scalar_machine(Order::Cpu(|stage_one| {
                <$machine>::detect().expect("it was found").stage_one(stage_one);
            }));
        }
    };
}

// Miri does not support most of these instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::*;
    use avsg_device::machine::{avx2::Avx2, avx512::Avx512};

    // The forms of a gather differ in nothing but the gather.
    conform!(avx2, Avx2<false>, Operations);
    conform!(avx2_gather, Avx2<true>, OnColumns);
    conform!(avx512, Avx512<false>, Operations);
    conform!(avx512_gather, Avx512<true>, OnColumns);
}
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)))]
conform!(neon, avsg_device::machine::neon::Neon, Operations);
