//! The packed entry of the paper, and the shifts and masks of the kernels beside it, for every m.
//!
//! Miri skips this file: `register_ops` covers loads and stores, and splitting a word has no unsafe
//! code.

#![cfg(not(miri))]

use avsg_device::hash;
use avsg_device::machine::emu::Emu;
use avsg_device::machine::{Kernel, Machine, cpu::Cpu};
use avsg_device::params::{ID_LIMIT, MAX_SLOTS, MIN_SLOTS, Params};
use avsg_device::state::{EMPTY, INVALID};
use bitfield::bitfield;

bitfield! {
    /// One packed entry. Fingerprint and slot share 23 bits; the boundary depends on m.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Entry(u64);
    impl Debug;
    u32;
    /// The id in the slot of this index, -1 for none.
    pub i32, id, set_id: 63, 32;
    /// The lifetime of the slot of this index.
    pub i8, life, set_life: 31, 24;
    /// Whether the link of this index was never used.
    pub invalid, set_invalid: 23;
    /// Fingerprint (high) and slot (low m bits) of the link of this index.
    pub u32, fingerprint_and_slot, set_fingerprint_and_slot: 22, 0;
}

impl Entry {
    /// Packs an entry from the three planes.
    pub fn pack(id: i32, life: i8, link: i32) -> Self {
        let mut entry = Self(0);
        entry.set_id(id);
        entry.set_life(life);
        entry.set_invalid(link & INVALID != 0);
        entry.set_fingerprint_and_slot((link & (INVALID - 1)) as u32);
        entry
    }

    /// Returns the 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the word of the link plane.
    pub fn link(self) -> i32 {
        self.fingerprint_and_slot() as i32 | if self.invalid() { INVALID } else { 0 }
    }

    /// Returns the slot, for m slot bits.
    pub fn slot(self, m: u32) -> u32 {
        self.fingerprint_and_slot() & ((1 << m) - 1)
    }

    /// Returns the fingerprint, for m slot bits.
    pub fn fingerprint(self, m: u32) -> u32 {
        self.fingerprint_and_slot() >> m
    }
}

impl From<u64> for Entry {
    fn from(bits: u64) -> Self {
        Self(bits)
    }
}

#[test]
fn the_planes_survive_packing() {
    for id in [EMPTY, 0, 1, 1 << 21, ID_LIMIT - 1, i32::MAX] {
        for life in i8::MIN..=i8::MAX {
            for link in [0, 1, INVALID - 1, INVALID, INVALID | 0x5A5A5, INVALID | (INVALID - 1)] {
                let entry = Entry::pack(id, life, link);
                assert_eq!((entry.id(), entry.life(), entry.link()), (id, life, link));
                let bits = u64::from(id as u32) << 32
                    | u64::from(life as u8) << 24
                    | u64::from(link as u32);
                assert_eq!(entry.bits(), bits, "the order of the paper's fields");
                assert_eq!(Entry::from(bits), entry);
            }
        }
    }
    assert_eq!(Entry::pack(EMPTY, -1, INVALID).bits(), 0xFFFF_FFFF_FF80_0000, "the paper's empty");
}

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
fn the_link_word_of_a_kernel_is_the_link_of_an_entry() {
    // Every number of bits of a slot; `paper` has none of the last one.
    for m in MIN_SLOTS.ilog2()..=MAX_SLOTS.ilog2() {
        let uneven = Params::wide(1, 1, (1 << m) / 4 * 3);
        let all = [Params::paper(1, 1, 1 << m), Params::wide(1, 1, 1 << m), uneven];
        for p in all.into_iter().filter(|p| p.check().is_ok()) {
            let m = p.slot_bits();
            for x in (0..ID_LIMIT).step_by(16_411).chain([ID_LIMIT - 1]) {
                for slot in [0, 1, p.slots as i32 / 2, p.slots as i32 - 1] {
                    let [word, fingerprint] = Emu::<1>.run(Word(x, slot, p));
                    let entry = Entry::pack(x, 0, word);
                    let fields = [entry.slot(m), entry.fingerprint(m)].map(|field| field as i32);
                    assert_eq!(fields, [slot, fingerprint]);
                    assert!(!entry.invalid() && entry.link() == word);
                    if p.spread == 1 {
                        assert_eq!(fingerprint, x % (1 << (23 - m)), "the paper's phi");
                    }
                }
            }
        }
    }
}
