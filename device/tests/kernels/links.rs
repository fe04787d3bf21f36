//! The words of links, for every number of bits of a slot.
//!
//! Miri skips this file: `register_ops` covers loads and stores, and splitting a word has no unsafe
//! code.

#![cfg(not(miri))]

use avsg_device::hash;
use avsg_device::machine::emu::Emu;
use avsg_device::machine::{Kernel, Machine, cpu::Cpu};
use avsg_device::params::{ID_LIMIT, MAX_SLOTS, MIN_SLOTS, Params};

/// The kernel that returns `hash::link_word` of an id and a slot, and its fingerprint.
struct Word(i32, i32, Params);

impl Kernel for Word {
    type Out = [i32; 2];
    fn run<C: Cpu>(self, m: C) -> Self::Out {
        let Self(x, slot, p) = &self;
        let x = hash::mixed(m, p, Machine::splat(m, *x));
        let link = hash::link_word(m, p, x, Machine::splat(m, *slot));
        [link, hash::fingerprint(m, p, x)].map(|v| {
            let mut out = [0; 64];
            v.store(&mut out, 0);
            out[0]
        })
    }
}

#[test]
fn a_link_word_has_the_fingerprint_above_the_slot() {
    // Every number of bits of a slot; `paper` has none of the last one.
    for m in MIN_SLOTS.ilog2()..=MAX_SLOTS.ilog2() {
        let uneven = Params::wide(1, 1, (1 << m) / 4 * 3);
        let all = [Params::paper(1, 1, 1 << m), Params::wide(1, 1, 1 << m), uneven];
        for p in all.into_iter().filter(|p| p.check().is_ok()) {
            let m = p.slot_bits();
            for x in (0..ID_LIMIT).step_by(16_411).chain([ID_LIMIT - 1]) {
                for slot in [0, 1, p.slots as i32 / 2, p.slots as i32 - 1] {
                    let [word, fingerprint] = Emu::<1>.run(Word(x, slot, p));
                    // Both have 23 bits together, above which an empty link has a bit.
                    assert_eq!([word & ((1 << m) - 1), word >> m], [slot, fingerprint]);
                    assert!((0..1 << 23).contains(&word));
                    if p.spread == 1 {
                        assert_eq!(fingerprint, x % (1 << (23 - m)), "the paper's phi");
                    }
                }
            }
        }
    }
}
