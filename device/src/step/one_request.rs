//! Stage One of one request on a CPU machine: it passes slices of memory to the kernel as columns.

use super::request::{Blocks, MissList, Request, Rows, Share, Span};
use super::schedule::{Schedule, Work};
use super::sequential::Sequential;
use super::stage_one::stage_one;
use crate::machine::Memory;
use crate::machine::cpu::{Column, Cpu, Kernel, Life, List, SLACK, Scalar};
use crate::machine::declare::Columns;
use crate::machine::emu::Emu;
#[cfg(all(target_arch = "x86_64", not(target_os = "none")))]
use crate::machine::{avx2::Avx2, avx512::Avx512};
use crate::table::learned;
use crate::table::memory::{as_bytes, life_words};
use crate::table::params::{Lifetime, Params};
use crate::table::state::{State, header};
use core::ops::RangeInclusive;

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
    /// The summary of the request (`request::summary`), written.
    pub summary: &'a mut [i32],
}

/// Index in [`StageOne::miss`]: the places among the ids of the token.
pub const POSITION: usize = 0;
/// Index in [`StageOne::miss`]: the slots.
pub const SLOT: usize = 2;
/// Index in [`StageOne::miss`]: the rows of the pool; below 0 those of this step.
pub const ROW: usize = 3;

/// A machine for which this crate compiles Stage One. A build of the calling crate without optimisation would
/// have kernels that are 40 times slower.
pub trait Compiled: core::fmt::Debug + Sync {
    /// Runs Stage One of one request, by the schedule of CPUs.
    fn stage_one(&self, request: StageOne<'_>);
}

macro_rules! compiled {
    ($($machine:ty),*) => {$(
        impl Compiled for $machine {
            fn stage_one(&self, request: StageOne<'_>) {
                (*self).run(request);
            }
        }
    )*};
}
compiled!(Emu<1>);
// Targets of x86 without an operating system have no vector registers for LLVM.
#[cfg(all(target_arch = "x86_64", not(target_os = "none")))]
compiled!(Avx2<false>, Avx2<true>, Avx512<false>, Avx512<true>);
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
compiled!(crate::machine::neon::Neon);

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
        let mut work = split_work(Sequential, p, self.work);
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
            summary: Span { words: self.summary, at: zero },
            share: Share { shared: zero, at: zero, len: zero },
            deferred: zero,
        };
        stage_one(c, Sequential, p, &mut state, &mut work, &mut request);
    }
}

/// Divides the words of a table into its planes.
///
/// # Panics
/// If there are fewer words than [`crate::memory::state_words`].
pub fn split_state<'a, C: Cpu>(p: &Params, words: &'a mut [i32]) -> State<'a, C> {
    let (header, rest) = words.split_at_mut(header::WORDS);
    let (id, rest) = rest.split_at_mut(p.slot_places() as usize);
    let (life, rest) = rest.split_at_mut(life_words(p));
    let (link, rest) = rest.split_at_mut(p.links() as usize);
    let learned = (p.lifetime == Lifetime::Learned).then_some(&mut rest[..learned::words(p)]);
    State {
        id: Column::new(id),
        life: Life::new(as_bytes(life), p.slots as usize),
        link: Column::new(link),
        header,
        learned,
    }
}

/// Returns the number of words of the working columns of a core that runs Stage One on a CPU.
pub fn work_words(p: &Params) -> usize {
    scheduled_words(Sequential, p)
}

/// Returns the number of words of the working columns of a schedule.
pub fn scheduled_words(schedule: impl Schedule, p: &Params) -> usize {
    let mut words = Words(0);
    Work::declare(schedule, p, &mut words);
    words.0
}

/// Divides the working words of a core into the columns of a schedule.
///
/// # Panics
/// If there are fewer words than [`scheduled_words`].
#[inline(always)]
pub fn split_work<'a, C: Cpu, S: Schedule>(
    schedule: S,
    p: &Params,
    words: &'a mut [i32],
) -> Work<'a, C, S> {
    Work::declare(schedule, p, &mut Splitter(words))
}

/// Returns the words of a column: its length rounded up to a power of two, because a scatter reaches the
/// largest power of two that fits, and SLACK words for a register that is stored at the end.
fn column_words(len: u32) -> usize {
    len.next_power_of_two() as usize + SLACK
}

/// Returns the words of a lifetime column.
fn life_column_words(slots: u32) -> usize {
    (slots.next_power_of_two() as usize + SLACK) / 4
}

/// The number of words of the columns that were declared.
struct Words(usize);

impl Memory for Words {
    type Column<'a> = ();
    type Life<'a> = ();
    type List<'a, const W: usize> = ();
}

impl Columns<'_, Self> for Words {
    fn column(&mut self, _: &'static str, len: u32, _: RangeInclusive<i32>) {
        self.0 += column_words(len);
    }
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        len: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) {
        self.0 += W * column_words(len);
    }
    fn life(&mut self, _: &'static str, slots: u32) {
        self.0 += life_column_words(slots);
    }
}

/// Memory that is divided into columns.
struct Splitter<'a>(&'a mut [i32]);

impl<'a> Splitter<'a> {
    #[inline(always)]
    fn take(&mut self, words: usize) -> &'a mut [i32] {
        let (column, rest) = core::mem::take(&mut self.0).split_at_mut(words);
        self.0 = rest;
        column
    }
}

impl<'a, C: Cpu> Columns<'a, C> for Splitter<'a> {
    #[inline(always)]
    fn column(&mut self, _: &'static str, len: u32, _: RangeInclusive<i32>) -> Column<'a> {
        Column::new(self.take(column_words(len)))
    }
    #[inline(always)]
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        len: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<'a, W> {
        List::new([(); W].map(|()| self.take(column_words(len))))
    }
    #[inline(always)]
    fn life(&mut self, _: &'static str, slots: u32) -> Life<'a> {
        Life::new(as_bytes(self.take(life_column_words(slots))), slots as usize)
    }
}
