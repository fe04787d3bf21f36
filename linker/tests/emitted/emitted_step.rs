//! The emitted kernels give the same tables, slots, miss lists, summaries and rows as the CPU, bit
//! for bit, on any number of cores, with plan and transfer as two launches and as one.

use super::{
    Batch, Compiled, EVERY_ORDER, Places, RunOptions, SplitMix64, TestEngine, compile_all, tier,
};
use avsg_device::learned::{LIFETIMES, START, part};
use avsg_device::memory::{links_end, table_words};
use avsg_device::params::{Lifetime, MAX_TOKENS, Params};
use avsg_device::request::status;
use avsg_device::sharers::sharers;
use avsg_device::state::header;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::{Abi, Kernel};
use std::collections::BTreeMap;

/// The kernels of a geometry with their compiled files, by name.
type EmittedKernels = BTreeMap<&'static str, (Kernel, Compiled)>;

/// Compiles the kernels of geometries. In the thorough tier each kernel is a file of its own,
/// otherwise all kernels of all geometries are one file.
fn compile(geometries: &[Params]) -> Option<Vec<EmittedKernels>> {
    let names = ["avsg_plan", "avsg_transfer", "avsg_step"];
    let (mut texts, mut kernels) = (vec![], vec![]);
    for p in geometries {
        let all = ascendc(p, Abi::Direct).unwrap_or_else(|e| panic!("{p:?}: {e}"));
        let three = all.kernels.iter().filter(|kernel| names.contains(&kernel.name));
        let three: Vec<_> = three.cloned().collect();
        for kernels in three.chunks(if tier::thorough() { 1 } else { 3 }) {
            let text: String = kernels.iter().map(|kernel| kernel.text.as_str()).collect();
            texts.push(all.whole(&text));
        }
        kernels.push(three);
    }
    let built = compile_all(&texts)?;
    let pair_up = |(three, built): (Vec<Kernel>, &[Compiled])| {
        let pairs = three.into_iter().zip(built.iter().cycle().cloned());
        pairs.map(|(kernel, built)| (kernel.name, (kernel, built))).collect()
    };
    let files = built.chunks(built.len() / geometries.len());
    Some(kernels.into_iter().zip(files).map(pair_up).collect())
}

/// Returns geometries for random batches.
fn random_geometries() -> [Params; 5] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(64, 4, 256) };
    let many_tokens = Params { spread: 4, retries: 3, ..Params::wide(16, MAX_TOKENS, 256) };
    [
        Params { page: 16, ..wide },
        Params { lifetime: Lifetime::Constant(9), ..many_tokens },
        Params { page: 128, ..Params::paper(100, 2, 512) },
        // K is large enough for several cores to share a token, and S is no power of two.
        Params { spread: 2, retries: 7, ..Params::wide(320, 2, 1152) },
        // A row is longer than a piece of Globalize. With so large a K no refresh is deferred.
        Params { spread: 2, retries: 7, ..Params::wide(2112, 1, 4096) },
    ]
}

/// Totals over the steps of a test, which show that the steps were not empty.
#[derive(Default, Debug)]
struct Totals {
    misses: usize,
    valid: usize,
    fresh: usize,
    status: i32,
    /// Steps in which several cores shared a request.
    shared: usize,
    /// Runs of plan that used all planned bytes of the unified buffer.
    full: usize,
}

/// Runs one step on the CPU, with two launches and with one, and compares the results. The engine
/// keeps the state after the step.
fn compare(
    engine: &mut TestEngine,
    emitted: &EmittedKernels,
    b: &Batch,
    options: RunOptions,
    totals: &mut Totals,
) {
    let want = engine.expect_as_on_cpu(b, &format!("{options:?}"), |engine, two| {
        let names = if two { &["avsg_plan", "avsg_transfer"][..] } else { &["avsg_step"] };
        let kernels: Vec<_> = names.iter().map(|name| &emitted[name].1).collect();
        let (got, peaks) = engine.step_emitted(b, &kernels, options)?;
        for (name, &peak) in names.iter().zip(&peaks) {
            let plan = emitted[name].0.ub_bytes;
            assert!(peak <= plan, "{name} uses {peak} bytes, but {plan} are planned");
        }
        totals.full += usize::from(peaks[0] == emitted[names[0]].0.ub_bytes);
        Ok(got)
    });
    totals.shared += usize::from(sharers(b.state.len(), b.k, options.cores as usize) > 1);
    totals.misses += want.miss_count();
    totals.valid += want.valid.iter().map(|&n| n as usize).sum::<usize>();
    totals.fresh += want.fresh_count();
    totals.status |= want.summary.chunks_exact(16).fold(0, |all, summary| all | summary[9]);
}

/// In some tables learned values choose victims from the third step on. A request that changes its generation forgets them.
#[test]
fn random_batches_match_the_cpu() {
    let geometries = random_geometries();
    let Some(all) = compile(&geometries) else { return };
    let mut taught = 0;
    for (i, (p, emitted)) in geometries.iter().zip(&all).enumerate() {
        let (mut random, mut totals) = (SplitMix64::new(i as u64), Totals::default());
        let large = p.k > 2000;
        let rows = if large { 6000 } else { 900 };
        let units = rows / p.page.max(1) as usize + 9;
        let format: &[(usize, usize)] = [&[(33, 33)][..], &[(64, 64), (7, 12)]][i % 2];
        let states = 7;
        let places = Places::random(&mut random, p, states, (i % 2 == 1).then_some(5));
        let sizes = (states, units, 50 * p.tokens as usize);
        let mut engine = TestEngine::new(&mut random, p, places, sizes, format, 8);
        for step in 0..if large { 12 } else { 24 } {
            if step % 4 == 1 && p.lifetime == Lifetime::Learned {
                let tables = engine.tables.chunks_exact_mut(table_words(p));
                tables.for_each(|table| table[header::STEP as usize] = START - 1);
            }
            let values =
                |table: &[i32]| !table[links_end(p)..][part::VALUES..LIFETIMES].is_sorted();
            let learned = p.lifetime == Lifetime::Learned;
            let mut tables = engine.tables.chunks_exact(table_words(p));
            taught += usize::from(learned && tables.any(values));
            engine.places.base = [None, Some(0), Some(70_001)][step / 4 % 3];
            let requests = [1, 3, 7, if large { 4 } else { 50 }][step % 4];
            let b = engine.random_batch(&mut random, requests);
            let cores = [1, 2, 20, 40][random.below(4)];
            let options = RunOptions { cores, mode: EVERY_ORDER[step % 3], seed: step as u64 };
            compare(&mut engine, emitted, &b, options, &mut totals);
        }
        assert_eq!(totals.shared > 3, p.k >= 320, "{p:?}: {totals:?}");
        assert!(totals.full > 0, "no run uses the planned bytes: {p:?}");
        let hits = totals.valid - totals.misses;
        assert!(hits > 500 && totals.misses > 500 && totals.fresh > 20, "{p:?}: {totals:?}");
        let both = status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL;
        assert_eq!(totals.status & both, if p.page == 0 { 1 } else { both }, "{p:?}: {totals:?}");
    }
    assert!(taught > 20, "{taught} steps with learned values");
}
