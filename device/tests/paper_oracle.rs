//! The paper in plain scalar Rust, sharing no code with the kernels: its packed 64-bit Hash-State, its
//! arithmetic in `u64`, Algorithm 1 lane by lane. The `paper` table must equal it bit for bit, races
//! included: of two misses that take one link, the later lane's word stays.

#[path = "rig/one_request.rs"]
mod one_request;
#[path = "rig/sequences.rs"]
mod sequences;

use avsg_device::machine::emu::Emu;
use avsg_device::params::{Lifetime, Params, Table};
use avsg_device::state::Entry;
use one_request::{OneRequest, Step};
use proptest::prelude::*;

/// The paper's Hash-State: c (32) | lifetime (8) | invalid (1) | print (23-m) | slot (m).
struct HashState {
    m: u64,
    retries: u64,
    life: i64,
    a1: u64,
    a2: u64,
    entries: Vec<u64>,
    generation: i32,
}

struct Seen {
    slots: Vec<i64>,
    hits: Vec<bool>,
}

const NEVER_USED: u64 = 0xFFFF_FFFF_FF80_0000;

impl HashState {
    fn new(p: &Params) -> Self {
        let (Table::Paper { a1, a2 }, Lifetime::Constant(life)) = (p.table, p.lifetime) else {
            panic!("the paper's table")
        };
        Self {
            m: p.slots.trailing_zeros().into(),
            retries: p.retries.into(),
            life: life.into(),
            a1: a1.into(),
            a2: a2.into(),
            entries: vec![NEVER_USED; p.slots as usize],
            generation: 0,
        }
    }

    fn slots(&self) -> u64 {
        1 << self.m
    }
    fn id(&self, slot: u64) -> i64 {
        i64::from((self.entries[slot as usize] >> 32) as u32 as i32)
    }
    fn lifetime(&self, slot: u64) -> i64 {
        i64::from((self.entries[slot as usize] >> 24) as u8 as i8)
    }
    fn invalid(&self, link: u64) -> bool {
        self.entries[link as usize] & (1 << 23) != 0
    }
    fn named_slot(&self, link: u64) -> u64 {
        self.entries[link as usize] % self.slots()
    }
    fn set_id(&mut self, slot: u64, id: i64) {
        let e = &mut self.entries[slot as usize];
        *e = (*e & 0xFFFF_FFFF) | (u64::from(id as i32 as u32) << 32);
    }
    fn set_lifetime(&mut self, slot: u64, life: i64) {
        let e = &mut self.entries[slot as usize];
        *e = (*e & !0xFF00_0000) | (u64::from(life as i8 as u8) << 24);
    }
    fn set_link(&mut self, link: u64, id: i64, slot: u64) {
        let word = (self.print(id) << self.m) | slot;
        let e = &mut self.entries[link as usize];
        *e = (*e & !0x00FF_FFFF) | word;
    }
    fn print(&self, id: i64) -> u64 {
        (id as u64 >> self.m) % (1 << (23 - self.m))
    }
    /// Never used, its slot dead, or left over from an earlier owner of its slot. (Without the last,
    /// far more than the 28 % of slots that 1 - f^4 = f predicts become unreachable.)
    fn reusable(&self, link: u64) -> bool {
        let slot = self.named_slot(link);
        let print = (self.entries[link as usize] % (1 << 23)) >> self.m;
        self.invalid(link) || self.lifetime(slot) < 0 || print != self.print(self.id(slot))
    }
    fn link(&self, id: i64, r: u64) -> u64 {
        let (x, s) = (id as u64, self.slots());
        let (h, d) = (self.a1 * x % s, (self.a2 * x % s) | 1);
        (h + r * d) % s
    }
    fn all_slots(&self) -> std::ops::Range<u64> {
        0..self.slots()
    }
    fn decay(&mut self, by: i64) {
        for slot in self.all_slots() {
            self.set_lifetime(slot, (self.lifetime(slot) - by).max(-128));
        }
    }

    fn begin(&mut self, generation: i32, stable: i32) {
        if self.generation != generation {
            self.entries.fill(NEVER_USED);
            self.generation = generation;
        }
        for slot in self.all_slots() {
            if self.id(slot) >= i64::from(stable) {
                self.set_id(slot, -1);
                self.set_lifetime(slot, -128);
            }
        }
        self.decay(1);
    }

    /// Algorithm 1 for one token; `known` says which of its ids have a row.
    fn token(&mut self, ids: &[i32], known: impl Fn(i32) -> bool, limit: i32) -> Seen {
        let mut slots = vec![-1; ids.len()];
        // Probe.
        for (lane, &x) in ids.iter().enumerate().filter(|(_, x)| (0..limit).contains(*x)) {
            let links = (0..=self.retries).map(|r| self.named_slot(self.link(x.into(), r)));
            if let Some(slot) = links.into_iter().find(|&s| self.id(s) == i64::from(x)) {
                slots[lane] = slot as i64;
            }
        }
        let hits: Vec<bool> = slots.iter().map(|&s| s >= 0).collect();
        for &slot in slots.iter().filter(|&&s| s >= 0) {
            self.set_lifetime(slot as u64, self.life);
        }
        // CollectDead: decay until enough are dead, then the lowest of them.
        let misses: Vec<usize> = (0..ids.len())
            .filter(|&lane| slots[lane] < 0 && (0..limit).contains(&ids[lane]) && known(ids[lane]))
            .collect();
        while self.all_slots().filter(|&s| self.lifetime(s) < 0).count() < misses.len() {
            self.decay(1);
        }
        let dead: Vec<u64> =
            self.all_slots().filter(|&s| self.lifetime(s) < 0).take(misses.len()).collect();
        for &slot in &dead {
            self.set_lifetime(slot, -128);
        }
        // UpdateState: every miss chooses its link on the state before any of them writes.
        let mut chosen: Vec<(usize, u64)> = vec![];
        for (n, &lane) in misses.iter().enumerate() {
            slots[lane] = dead[n] as i64;
            let choice = (0..=self.retries)
                .map(|r| self.link(ids[lane].into(), r))
                .find(|&link| self.reusable(link));
            chosen.extend(choice.map(|link| (n, link)));
        }
        for (&lane, &slot) in misses.iter().zip(&dead) {
            self.set_id(slot, ids[lane].into());
            self.set_lifetime(slot, self.life);
        }
        for (n, link) in chosen {
            self.set_link(link, ids[misses[n]].into(), dead[n]);
        }
        Seen { slots, hits }
    }
}

fn has_row(p: &Params, step: &Step, x: i32) -> bool {
    let inside = |row: i32| (0..step.rows).contains(&row);
    let block = || step.blocks.get(x as usize / p.page as usize);
    x >= step.stable || if p.page == 0 { inside(x) } else { block().is_some_and(|&b| inside(b)) }
}

/// Runs one step on both and compares all that they leave.
fn same(
    oracle: &mut HashState,
    request: &mut OneRequest,
    step: &Step,
) -> Result<(), TestCaseError> {
    let p = request.p;
    let m = Emu::<16>;
    let got = request.step(m, step);
    oracle.begin(step.generation, step.stable);
    for (g, ids) in step.tokens.iter().enumerate() {
        let seen = oracle.token(ids, |x| has_row(&p, step, x), step.limit);
        let slots: Vec<i64> = got.slots[g].iter().map(|&s| s.into()).collect();
        prop_assert_eq!(&seen.slots, &slots, "slots of token {}", g);
        let first = g as i32 * p.k as i32;
        let hits: Vec<bool> = (0..ids.len())
            .map(|lane| {
                slots[lane] >= 0 && got.misses.iter().all(|miss| miss.pos != first + lane as i32)
            })
            .collect();
        prop_assert_eq!(seen.hits, hits, "hits of token {}", g);
    }
    let packed: Vec<u64> = (0..p.slots as usize)
        .map(|i| Entry::pack(got.id[i], got.life[i], got.link[i]).bits())
        .collect();
    prop_assert!(oracle.entries == packed, "the packed tables differ");
    Ok(())
}

proptest! {
    #![proptest_config(sequences::config(256))]
    #[test]
    fn decodings_equal_the_paper((p, steps) in sequences::sequences(true)) {
        let (mut oracle, mut request) = (HashState::new(&p), OneRequest::new(p));
        for step in &steps {
            same(&mut oracle, &mut request, step)?;
        }
    }
}

/// Full tables, hundreds of steps: lifetimes saturate, most links are taken, most misses race.
#[test]
fn long_crowded_runs_equal_the_paper() {
    let steps = if cfg!(miri) { 2 } else { 400 };
    let shapes = [(16, 4, 64), (64, 1, 64), (100, 2, 256), (266, 1, 512), (512, 1, 1024)];
    for (k, tokens, slots) in shapes.into_iter().take(if cfg!(miri) { 1 } else { 5 }) {
        let p = Params::paper(k, tokens, slots);
        let (mut oracle, mut request) = (HashState::new(&p), OneRequest::new(p));
        let mut noise = 1u64;
        for s in 0..steps {
            let mut next = |within: u64| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((noise >> 33) % within) as i32
            };
            // Now and then nothing is selected for longer than a lifetime.
            let idle = s % 100 > 80;
            let mut id = || if idle { -1 } else { next(3 * u64::from(p.slots)) };
            let step: Step =
                (0..tokens).map(|_| (0..p.k).map(|_| id()).collect()).collect::<Vec<_>>().into();
            same(&mut oracle, &mut request, &step).unwrap_or_else(|e| panic!("step {s}: {e}"));
        }
    }
}
