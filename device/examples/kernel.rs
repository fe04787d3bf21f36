//! Runs Stage One of one request on the widest machine of this CPU: 64 ids twice, so that the
//! second step hits. `tests/kernels/codegen.rs` reads the machine code of this program.

use avsg_device::machine::emu::Emu;
use avsg_device::memory::{clear_state, state_words};
use avsg_device::one_request::StageOne;
use avsg_device::params::{ID_LIMIT, NO_STABLE_LEN, Params};
use avsg_device::request::record;
use avsg_device::sequential::Sequential;
use avsg_device::work::work_words;

fn on_this_cpu(step: StageOne<'_>) {
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
        on_this_cpu(StageOne {
            params: &p,
            state: &mut state,
            work: &mut work,
            tokens: 1,
            k: 64,
            generation: 1,
            stable: NO_STABLE_LEN,
            limit: ID_LIMIT,
            rows: ID_LIMIT as usize,
            ids: &ids,
            ids_stride: 64,
            blocks: &[],
            slot: &mut slot,
            valid: &mut valid,
            miss: miss.each_mut().map(|m| &mut m[..]),
            record: &mut rec,
        });
        println!("step {step}: {} of {} ids missed", rec[record::TOTAL as usize], valid[0]);
    }
}
