//! Stage One of one request on a CPU machine: it passes slices of memory to the kernel as columns.

use avsg_device::machine::Kernel;
use avsg_device::machine::cpu::{Cpu, Scalar, Upcoming};
use avsg_device::memory::split_state;
use avsg_device::params::Params;
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::work::split_work;

/// Stage One of one request, as a kernel. No other request uses the slices.
pub(crate) struct StageOne<'a> {
    pub params: &'a Params,
    pub state: &'a mut [i32],
    pub work: &'a mut [i32],
    pub tokens: usize,
    pub k: usize,
    pub generation: i32,
    pub stable: i32,
    pub limit: i32,
    pub rows: usize,
    pub ids: &'a [i32],
    pub ids_stride: usize,
    pub blocks: &'a [i32],
    pub slot: &'a mut [i32],
    pub valid: &'a mut [i32],
    pub miss: [&'a mut [i32]; 4],
    pub record: &'a mut [i32],
    /// What the same worker reads after this request.
    pub upcoming: Upcoming,
}

/// Indices of the columns in [`StageOne::miss`]; the column at 1 holds ids.
pub(crate) const POSITION: usize = 0;
pub(crate) const SLOT: usize = 2;
pub(crate) const ROW: usize = 3;

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
        state.life.upcoming = self.upcoming;
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
