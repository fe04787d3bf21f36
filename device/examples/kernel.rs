//! Runs Stage One of one request on the widest machine of this CPU: 64 ids twice, so that the
//! second step hits. `tests/kernels/codegen.rs` reads the machine code of this program.

use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::machine::{Kernel, emu::Emu};
use avsg_device::memory::{clear_state, split_state, state_words};
use avsg_device::params::{ID_LIMIT, NO_STABLE_LEN, Params};
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span, record};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::work::{split_work, work_words};

struct Step<'a> {
    p: &'a Params,
    state: &'a mut [i32],
    work: &'a mut [i32],
    ids: &'a [i32],
    slot: &'a mut [i32],
    valid: &'a mut [i32],
    miss: [&'a mut [i32]; 4],
    record: &'a mut [i32],
}

impl Kernel for Step<'_> {
    type Out = ();
    #[inline(always)]
    fn run<C: Cpu>(self, m: C) {
        let (s, k) = (Scalar::new, Scalar::new(self.p.k.cast_signed()));
        let mut state = split_state::<C>(self.p, self.state);
        let mut work = split_work::<C, Sequential>(self.p, self.work);
        let [position, id, slot, row] = self.miss;
        let mut request = Request::<C> {
            tokens: s(1),
            k,
            generation: s(1),
            stable: s(NO_STABLE_LEN),
            limit: s(ID_LIMIT),
            rows: s(ID_LIMIT),
            ids: Rows { words: self.ids, at: s(0), stride: k },
            blocks: Blocks { words: &[], at: s(0), len: s(0) },
            slot: Rows { words: self.slot, at: s(0), stride: k },
            valid: Span { words: self.valid, at: s(0) },
            misses: MissList { position, id, slot, row, at: s(0) },
            record: Span { words: self.record, at: s(0) },
            share: Share { shared: s(0), at: s(0), len: s(0) },
            deferred: s(0),
        };
        stage_one(m, self.p, &mut state, &mut work, &mut request);
    }
}

fn on_this_cpu(step: Step<'_>) {
    #[cfg(target_arch = "x86_64")]
    {
        use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
        // Both forms of gather are compiled, so that the test finds both.
        if let Some(m) = Avx512::<false>::detect().filter(|_| step.ids[0] < 0) {
            return m.run(step);
        }
        if let Some(m) = Avx512::<true>::detect() {
            return m.run(step);
        }
        if let Some(m) = Avx2::<false>::detect().filter(|_| step.ids[0] < 0) {
            return m.run(step);
        }
        if let Some(m) = Avx2::<true>::detect() {
            return m.run(step);
        }
    }
    Emu::<1>.run(step);
}

fn main() {
    let p = Params::wide(64, 1, 256);
    let mut state = vec![0; state_words(&p)];
    let mut work = vec![0; work_words::<Sequential>(&p)];
    clear_state(&p, &mut state);
    let ids: Vec<i32> = (0..64).map(|i| i * 7).collect();
    let (mut slot, mut valid, mut rec) = ([0; 64], [0; 1], [0; record::WORDS]);
    let mut miss = [[0; 64]; 4];
    for step in 0..2 {
        on_this_cpu(Step {
            p: &p,
            state: &mut state,
            work: &mut work,
            ids: &ids,
            slot: &mut slot,
            valid: &mut valid,
            miss: miss.each_mut().map(|m| &mut m[..]),
            record: &mut rec,
        });
        println!("step {step}: {} of {} ids missed", rec[record::TOTAL as usize], valid[0]);
    }
}
