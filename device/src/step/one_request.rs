//! Stage One of one request on a CPU machine: it passes slices of memory to the kernel as columns.
//!
//! This crate compiles it for each machine, and not the crate that calls it: a build of that crate without
//! optimisation would have kernels that are 40 times slower.

use super::request::{Blocks, MissList, Request, Rows, Share, Span};
use super::sequential::Sequential;
use super::stage_one::stage_one;
use super::work::split_work;
use crate::machine::Kernel;
use crate::machine::cpu::{Cpu, Scalar};
use crate::machine::emu::Emu;
#[cfg(all(target_arch = "x86_64", not(target_os = "none")))]
use crate::machine::{avx2::Avx2, avx512::Avx512};
use crate::table::memory::split_state;
use crate::table::params::Params;

/// Stage One of one request, as a kernel. No other request uses the slices.
pub struct StageOne<'a> {
    /// The parameters of the table.
    pub params: &'a Params,
    /// The words of the state.
    pub state: &'a mut [i32],
    /// The words of the working columns.
    pub work: &'a mut [i32],
    /// N_q, the tokens of the request.
    pub tokens: usize,
    /// The ids of a token, at most the K of the parameters.
    pub k: usize,
    /// The generation of the state.
    pub generation: i32,
    /// The ids below it are those of rows that do not change.
    pub stable: i32,
    /// The ids from it on have no row.
    pub limit: i32,
    /// The rows or blocks of the pool.
    pub rows: usize,
    /// `[tokens, k]` ids, with a stride of `ids_stride`.
    pub ids: &'a [i32],
    /// Words from the ids of one token to those of the next.
    pub ids_stride: usize,
    /// The request's line of the block table; empty if ids are rows.
    pub blocks: &'a [i32],
    /// `[tokens, K]` slots, written.
    pub slot: &'a mut [i32],
    /// `[tokens]` numbers of ids that have a slot, written.
    pub valid: &'a mut [i32],
    /// The miss lists, `[tokens, K]` each, written: [`POSITION`], ids, [`SLOT`] and [`ROW`].
    pub miss: [&'a mut [i32]; 4],
    /// The record of the request (`request::record`), written.
    pub record: &'a mut [i32],
}

/// Index in [`StageOne::miss`]: the places among the ids of the token.
pub const POSITION: usize = 0;
/// Index in [`StageOne::miss`]: the slots.
pub const SLOT: usize = 2;
/// Index in [`StageOne::miss`]: the rows of the pool; below 0 those of this step.
pub const ROW: usize = 3;

impl StageOne<'_> {
    /// Runs on one lane.
    pub fn on_emu(self, m: Emu<1>) {
        m.run(self);
    }

    /// Runs with NEON.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    pub fn on_neon(self, m: crate::machine::neon::Neon) {
        m.run(self);
    }
}

/// Targets of x86 without an operating system have no vector registers for LLVM.
#[cfg(all(target_arch = "x86_64", not(target_os = "none")))]
impl StageOne<'_> {
    /// Runs with AVX2 and gathers by scalar loads.
    pub fn on_avx2(self, m: Avx2<false>) {
        m.run(self);
    }

    /// Runs with AVX2 and gathers by `vpgatherdd`.
    pub fn on_avx2_gather(self, m: Avx2<true>) {
        m.run(self);
    }

    /// Runs with AVX-512 and gathers by scalar loads.
    pub fn on_avx512(self, m: Avx512<false>) {
        m.run(self);
    }

    /// Runs with AVX-512 and gathers by `vpgatherdd`.
    pub fn on_avx512_gather(self, m: Avx512<true>) {
        m.run(self);
    }
}

impl Kernel for StageOne<'_> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, c: C) {
        let word = |n: usize| Scalar::new(n as i32);
        let zero = Scalar::new(0);
        // A local copy of the parameters: the compiler must otherwise assume that the kernel's byte
        // stores change them, and would read them again in every tile.
        let p = &{ *self.params };
        let mut state = split_state::<C>(p, self.state);
        let mut work = split_work::<C, Sequential>(p, self.work);
        let [position, id, slot, row] = self.miss;
        let mut request = Request::<C> {
            tokens: word(self.tokens),
            k: word(self.k),
            generation: Scalar::new(self.generation),
            stable: Scalar::new(self.stable),
            limit: Scalar::new(self.limit),
            rows: word(self.rows),
            ids: Rows { words: self.ids, at: zero, stride: word(self.ids_stride) },
            blocks: Blocks { words: self.blocks, at: zero, len: word(self.blocks.len()) },
            slot: Rows { words: self.slot, at: zero, stride: word(p.k as usize) },
            valid: Span { words: self.valid, at: zero },
            misses: MissList { position, id, slot, row, at: zero },
            record: Span { words: self.record, at: zero },
            share: Share { shared: zero, at: zero, len: zero },
            deferred: zero,
        };
        stage_one(c, p, &mut state, &mut work, &mut request);
    }
}
