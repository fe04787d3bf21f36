//! Stage One in plain scalar Rust, written from the paper alone and compared with the kernel bit
//! for bit. Equations, algorithms and their lines have the numbers that the paper prints. A comment
//! that begins with "Departure" states where the project departs from the paper, or what it does
//! where the paper is silent.

// The other tests show the unsafe code to Miri; these run the same kernels longer.
#![cfg(not(miri))]

use super::one_request::{OneRequest, Step};
use super::sequences;
use super::splitmix::SplitMix64;
use avsg_device::params::{ID_LIMIT, Lifetime, Params, Table};
use proptest::prelude::*;

/// The outputs of a step: O of Alg. 4, n_g of each token, and the transfer list of Alg. 4, line 4,
/// with position, id and slot of each miss. An id that has a slot and is not in this list is a hit.
type Outputs = (Vec<Vec<i32>>, Vec<i32>, Vec<(i32, i32, i32)>);

/// The Hash-State table, with the names of the paper.
struct HashState {
    /// Eq. 2: E_j = (c_j, q_j), with c_j in the upper 32 bits and q_j in the lower ones.
    entries: Vec<u64>,
    s: i64,
    f: i64,
    a1: i64,
    a2: i64,
    l: i64,
    p: Params,
    generation: i32,
}

impl HashState {
    fn new(p: Params) -> Self {
        let Table::Paper { a1, a2 } = p.table else { panic!("not the paper's table") };
        let Lifetime::Constant(l) = p.lifetime else { panic!("not the paper's lifetimes") };
        let (s, a1, a2, l) = (i64::from(p.slots), i64::from(a1), i64::from(a2), i64::from(l));
        let f = (1 << 23) / s; // Section 3.3, before Eq. 3.
        let mut table = Self { entries: vec![0; s as usize], s, f, a1, a2, l, p, generation: 0 };
        // Departure: the cold table, which the paper does not spell out.
        (0..s).for_each(|j| table.set(j, -1, table.pack(-1, 1, 0, 0)));
        table
    }

    fn set(&mut self, j: i64, c: i64, q: i64) {
        self.entries[j as usize] = (c as u64) << 32 | u64::from(q as u32); // Eq. 2.
    }

    fn c(&self, j: i64) -> i64 {
        i64::from((self.entries[j as usize] >> 32) as i32) // Eq. 2.
    }

    /// Returns q_j (Eq. 3). The encoded fingerprint is the fingerprint times S.
    fn pack(&self, lifetime: i64, b: i64, phi: i64, o: i64) -> i64 {
        let fs = self.f * self.s;
        2 * fs * lifetime + fs * b + phi * self.s + o
    }

    /// Returns the fields of q_j: lifetime, invalid flag, fingerprint and slot.
    fn decode(&self, j: i64) -> (i64, i64, i64, i64) {
        // Departure: the lifetime on top of q_j is a signed 8-bit field, and so q_j is signed, too.
        let (q, fs) = (i64::from(self.entries[j as usize] as i32), self.f * self.s);
        let u = q.rem_euclid(2 * fs); // Eq. 16.
        (q.div_euclid(2 * fs), u / fs, u % fs / self.s, u % self.s) // Eq. 3, and Eq. 17.
    }

    /// Gives slot j an id and a lifetime, and leaves the mapping in the same word as it was.
    fn set_slot(&mut self, j: i64, c: i64, lifetime: i64) {
        let (_, b, phi, o) = self.decode(j);
        self.set(j, c, self.pack(lifetime, b, phi, o));
    }

    /// Subtracts one from all lifetimes (Alg. 1, lines 3 and 13). Departure: the lifetime saturates
    /// at -128.
    fn decay(&mut self) {
        (0..self.s).for_each(|j| self.set_slot(j, self.c(j), (self.decode(j).0 - 1).max(-128)));
    }

    /// Returns the fingerprint (Section 3.3, before Eq. 3). Departure: the modulus is the
    /// mathematical one, so phi(-1) is F - 1.
    fn phi(&self, x: i64) -> i64 {
        x.rem_euclid(self.f)
    }

    /// Returns whether bucket h is reusable (Eq. 4).
    fn reusable(&self, h: i64) -> bool {
        let (_, b, phi, o) = self.decode(h);
        let (valid, active) = (b == 0, self.decode(o).0 >= 0); // Eq. 18, and below Eq. 4.
        !valid || !active || phi != self.phi(self.c(o))
    }

    /// Probes for one id (Eq. 9 to 11; Alg. 2, lines 1 to 6). Returns whether a bucket is accepted,
    /// and the last bucket.
    fn walk(&self, x: i64, accepts: impl Fn(i64) -> bool) -> (bool, i64) {
        // Eq. 9; Alg. 2, lines 1-2.
        let mut h = (self.a1 * x).rem_euclid(self.s);
        let d = (self.a2 * x).rem_euclid(self.s) | 1;
        let mut accepted = false;
        for r in 0..=self.p.retries {
            accepted = accepts(h); // Eq. 10; Alg. 2, line 4.
            if r < self.p.retries && !accepted {
                h = (h + d) % self.s; // Eq. 11; Alg. 2, lines 5-6.
            }
        }
        (accepted, h)
    }

    /// Returns the slots whose lifetime has expired (Eq. 12).
    fn collect_dead(&self) -> Vec<i64> {
        (0..self.s).filter(|&j| self.decode(j).0 < 0).collect()
    }

    /// Enters the misses into the table (Alg. 2).
    fn update_state(&mut self, t: &[i64], o_miss: &[i64]) {
        // Alg. 2, lines 1-6. All of them come before the first write.
        let walks: Vec<_> = t.iter().map(|&x| self.walk(x, |h| self.reusable(h))).collect();
        // Alg. 2, lines 7-8.
        t.iter().zip(o_miss).for_each(|(&x, &o)| self.set_slot(o, x, self.l));
        // Alg. 2, lines 9-12. Departure: the last writer of a bucket in list order stays.
        for ((&x, &o), (_, h)) in t.iter().zip(o_miss).zip(walks).filter(|(_, (v, _))| *v) {
            self.set(h, self.c(h), self.pack(self.decode(h).0, 0, self.phi(x), o));
        }
    }

    /// Returns whether an id has a row on the host. Departure: an id without a row is padding.
    fn has_row(&self, step: &Step, x: i32) -> bool {
        let block = (x as usize).checked_div(self.p.page as usize);
        let row = block.map_or(Some(&x), |block| step.blocks.get(block));
        x >= step.stable || row.is_some_and(|row| (0..step.rows).contains(row))
    }

    /// Runs Alg. 1 from line 4 on for one token. Returns its slots and the positions of its misses.
    fn stage_one(&mut self, step: &Step, token: &[i32]) -> (Vec<i64>, Vec<usize>) {
        let x: Vec<i64> = token.iter().map(|&x| i64::from(x)).collect();
        // Alg. 1, line 4. Probe is Eq. 8 to 11.
        let probe = |&x: &i64| self.walk(x, |h| self.c(self.decode(h).3) == x);
        let probes: Vec<_> = x.iter().map(probe).collect();
        let (mut o, mut misses) = (vec![-1; x.len()], vec![]);
        for (i, (m, h)) in probes.into_iter().enumerate() {
            if token[i] < 0 || token[i] >= step.limit {
                // Departure: an id outside 0..limit is padding. It keeps slot -1.
            } else if m {
                // Alg. 1, lines 5, 6 and 8. Departure: the refresh is this token's alone.
                o[i] = self.decode(h).3;
                self.set_slot(o[i], self.c(o[i]), self.l);
            } else if self.has_row(step, token[i]) {
                // Eq. 1; Alg. 1, line 9: n_g is the length of this list. Departure: an id that
                // misses and has no row is padding. Departure: a repeated id misses each time.
                misses.push(i);
            }
        }
        // Alg. 1, lines 11-13.
        let mut e = self.collect_dead();
        while e.len() < misses.len() {
            self.decay();
            e = self.collect_dead();
        }
        // Alg. 1, lines 14-16.
        let t: Vec<i64> = misses.iter().map(|&i| x[i]).collect();
        self.update_state(&t, &e[..t.len()]);
        misses.iter().zip(e).for_each(|(&i, slot)| o[i] = slot);
        (o, misses)
    }

    /// Runs one step (Alg. 4).
    fn step(&mut self, step: &Step) -> Outputs {
        // Departure: a step of another generation than the last one's starts from a cold table.
        if step.generation != self.generation {
            *self = Self { generation: step.generation, ..Self::new(self.p) };
        }
        // Alg. 4, lines 9-10. Departure: at the start of a step, and the lifetime becomes -128.
        for j in 0..self.s {
            if self.c(j) >= i64::from(step.stable) {
                self.set_slot(j, -1, -128);
            }
        }
        // Alg. 1, lines 2-3: before the first token. Departure: also if there is none.
        self.decay();
        let mut out = Outputs::default();
        for (g, x) in step.tokens.iter().enumerate() {
            let (o, misses) = self.stage_one(step, x); // Alg. 4, lines 2-4.
            let pos = |i| (g * self.p.k as usize + i) as i32;
            out.2.extend(misses.iter().map(|&i| (pos(i), x[i], o[i] as i32)));
            out.1.push(misses.len() as i32);
            out.0.push(o.iter().map(|&o| o as i32).collect());
        }
        out
    }
}

/// Compares the kernel with the paper after each step.
fn compare(p: Params, steps: impl IntoIterator<Item = Step>) {
    let (mut kernel, mut paper) = (OneRequest::new(p), HashState::new(p));
    for (n, step) in steps.into_iter().enumerate() {
        let got = kernel.step(&step);
        let want = paper.step(&step);
        let transfers = got.misses.iter().map(|m| (m.pos, m.id, m.slot)).collect();
        assert_eq!((got.slots, got.counts, transfers), want, "outputs of step {n}");
        for (i, entry) in paper.entries.iter().enumerate() {
            // The word of a link has the flag, the fingerprint and the slot, as q_j has them.
            let q = u64::from(got.life[i].cast_unsigned()) << 24 | got.link[i] as u64;
            let bits = (got.id[i] as u64) << 32 | q;
            assert_eq!(bits, *entry, "entry {i} after step {n}: {bits:#x}, the paper {entry:#x}");
        }
    }
}

proptest! {
    #![proptest_config(sequences::config(256))]
    #[test]
    fn decodings_equal_the_paper((p, steps) in sequences::sequences(true)) {
        compare(p, steps);
    }
}

#[test]
fn long_crowded_runs_equal_the_paper() {
    let shapes = [(16, 4, 64), (64, 1, 64), (100, 2, 256), (266, 1, 512), (512, 1, 1024)];
    for (&(k, n, slots), lowest) in shapes.iter().flat_map(|s| [(s, 0), (s, ID_LIMIT - 3 * s.2)]) {
        let mut random = SplitMix64::new(slots as u64);
        let mut draw = || lowest + random.below(3 * slots as usize) as i32;
        let mut token = |idle| (0..k).map(|_| if idle { -1 } else { draw() }).collect::<Vec<i32>>();
        let mut step = |s| (0..n).map(|_| token(s % 100 > 80)).collect::<Vec<_>>();
        compare(Params::paper(k, n, slots as u32), (0..400).map(|s| Step::from(step(s))));
    }
}
