//! The emitted kernels give the same tables, slots, miss lists, records and rows as the CPU, bit
//! for bit, on any number of cores, with plan and transfer as two launches and as one.

use std::fs::File;
use std::sync::OnceLock;

use super::compiled::{Compiled, compile_all};
use super::harness::{EVERY_ORDER, RunOptions};
use super::layer_memory::{LayerMemory, Places, SplitMix64};
use super::shim::Mode;
use super::test_engine::{Batch, TestEngine};
use super::tier;
use avsg_device::learned::{LIFETIMES, part};
use avsg_device::memory::{links_end, table_words};
use avsg_device::params::{Lifetime, MAX_TOKENS, Params};
use avsg_device::request::status;
use avsg_device::share::sharers;
use avsg_device::state::header;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::{Abi, Kernel};
use npyz::NpyFile;
use zip::ZipArchive;

/// The compiled kernels of a geometry.
struct EmittedKernels {
    kernels: Vec<(Kernel, Compiled)>,
}

impl EmittedKernels {
    /// Compiles the kernels of geometries. In the thorough tier each kernel is a file of its own,
    /// otherwise all kernels of all geometries are one file.
    fn all(geometries: &[Params]) -> Option<Vec<Self>> {
        let (mut texts, mut kernels) = (vec![], vec![]);
        for p in geometries {
            let all = ascendc(p, Abi::Direct).unwrap_or_else(|e| panic!("{p:?}: {e}"));
            let names = ["avsg_plan", "avsg_transfer", "avsg_step"];
            let three: Vec<_> =
                all.kernels.iter().filter(|k| names.contains(&k.name)).cloned().collect();
            if tier::thorough() {
                texts.extend(three.iter().map(|k| all.whole(&k.text)));
            } else {
                let text: String = three.iter().map(|k| k.text.as_str()).collect();
                texts.push(all.whole(&text));
            }
            kernels.push(three);
        }
        let files = if tier::thorough() { 3 } else { 1 };
        let built = compile_all(&texts)?;
        let pair_up = |(three, built): (Vec<Kernel>, &[Compiled])| Self {
            kernels: three.into_iter().zip(built.iter().cycle().cloned()).collect(),
        };
        Some(kernels.into_iter().zip(built.chunks(files)).map(pair_up).collect())
    }

    /// Returns the kernels of one of [`geometries`]. The first call compiles those of all.
    fn of(p: &Params) -> Option<&'static Self> {
        static ALL: OnceLock<Option<Vec<EmittedKernels>>> = OnceLock::new();
        let all = ALL.get_or_init(|| Self::all(&geometries()));
        let at = geometries().iter().position(|other| other == p);
        Some(&all.as_ref()?[at.expect("a geometry of this file")])
    }

    fn named(&self, name: &str) -> &(Kernel, Compiled) {
        self.kernels.iter().find(|(kernel, _)| kernel.name == name).expect("a kernel")
    }
}

/// Returns two geometries for the committed trace.
fn trace_geometries() -> [Params; 2] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(256, 4, 1024) };
    [wide, Params::paper(256, 4, 1024)]
}

/// Returns geometries for random batches.
fn random_geometries() -> [Params; 4] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(64, 4, 256) };
    [
        Params { page: 16, ..wide },
        Params {
            lifetime: Lifetime::Constant(9),
            spread: 4,
            retries: 3,
            ..Params::wide(16, MAX_TOKENS, 256)
        },
        Params { page: 128, ..Params::paper(100, 2, 512) },
        // K is large enough for several cores to share a token, and S is no power of two.
        Params { spread: 2, retries: 7, ..Params::wide(320, 2, 1152) },
    ]
}

fn largest_geometry() -> Params {
    Params { spread: 2, retries: 7, page: 16, ..Params::wide(2048, 4, 8192) }
}

/// Returns a geometry with rows that are longer than a piece of Globalize.
fn two_piece_geometry() -> Params {
    Params { spread: 2, retries: 7, ..Params::wide(2112, 1, 4096) }
}

/// Returns all geometries of which every kernel is compiled.
fn geometries() -> Vec<Params> {
    let all = trace_geometries().into_iter().chain(random_geometries());
    all.chain([two_piece_geometry(), largest_geometry()]).collect()
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
    /// Bytes of unified buffer that plan used.
    peak: u32,
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
    let before = engine.contents();
    let want = engine.step_on_cpu(b);
    let after = engine.contents();
    for names in [&["avsg_plan", "avsg_transfer"][..], &["avsg_step"]] {
        let what = format!("{names:?} on {} cores, {:?}", options.cores, options.mode);
        engine.restore(&before);
        let kernels: Vec<_> = names.iter().map(|name| &emitted.named(name).1).collect();
        let result = engine.step_emitted(b, &kernels, options);
        let (got, peaks) = result.unwrap_or_else(|e| panic!("{what}: {e:?}"));
        for (name, &peak) in names.iter().zip(&peaks) {
            let plan = emitted.named(name).0.ub_bytes;
            assert!(peak <= plan, "{what}: {name} uses {peak} bytes, but {plan} are planned");
        }
        totals.peak = totals.peak.max(if names.len() == 2 { peaks[0] } else { 0 });
        engine.expect_same(&got, (&want, &after), &what);
    }
    totals.shared += usize::from(sharers(b.state.len(), b.k, options.cores as usize) > 1);
    totals.misses += want.miss_count();
    totals.valid += want.valid.iter().map(|&n| n as usize).sum::<usize>();
    totals.fresh += want.miss.iter().flat_map(|list| &list[3]).filter(|&&row| row < 0).count();
    totals.status |= want.record.chunks_exact(16).fold(0, |all, record| all | record[9]);
}

/// Returns the arrays of the committed trace: ids [steps, 4, 256] and stable [steps].
fn trace() -> (Vec<i32>, Vec<i32>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");
    let mut archive = ZipArchive::new(File::open(path).expect("the committed trace")).expect("ZIP");
    let mut array = |name: &str| {
        let file = archive.by_name(name).expect("an array of that name");
        NpyFile::new(file).expect("a NumPy file").into_vec::<i32>().expect("int32")
    };
    (array("ids.npy"), array("stable.npy"))
}

/// The requests decode different parts of the committed trace. Learned values choose victims from the fifth
/// step on.
#[test]
fn a_real_trace_matches_the_cpu() {
    let (ids, stable) = trace();
    for (i, p) in trace_geometries().iter().enumerate() {
        let Some(emitted) = EmittedKernels::of(p) else { return };
        let (requests, mut random, mut totals) = (3, SplitMix64(i as u64), Totals::default());
        let layer =
            LayerMemory::new(&mut random, &[(40, 40)], 4400, 9, requests * 1024, requests * 4);
        let mut engine = TestEngine::new(p, requests, 4400, layer);
        for step in 0..24 {
            let mut b = Batch { k: 256, ids_stride: 256, cu_q: vec![0], ..Batch::default() };
            for request in 0..requests {
                let at = (step + 20 * request) % stable.len();
                b.ids.extend(&ids[at * 1024..][..1024]);
                b.cu_q.push(4 * (request as i32 + 1));
                b.state.push(request as i32);
                b.generation.push(1);
                b.stable.push(stable[at]);
                b.seq.push(stable[at] + 4);
            }
            let cores = [1, 2, 20, 40][step % 4];
            let mode = EVERY_ORDER[step / 4 % 3];
            if step == 1 && p.lifetime == Lifetime::Learned {
                let tables = engine.tables.chunks_exact_mut(table_words(p));
                tables.for_each(|table| table[header::STEP as usize] = 60);
            }
            compare(
                &mut engine,
                emitted,
                &b,
                RunOptions { cores, mode, seed: step as u64 },
                &mut totals,
            );
        }
        if p.lifetime == Lifetime::Learned {
            let values = &engine.tables[links_end(p)..][part::VALUES..LIFETIMES];
            assert!(!values.is_sorted(), "{values:?}");
        }
        let hits = 1.0 - totals.misses as f64 / totals.valid as f64;
        assert!(hits > 0.7 && totals.misses > 3000 && totals.shared > 5, "{totals:?}: {hits}");
    }
}

/// If one of four cores that share a request probes no id, the slots are wrong.
#[test]
fn every_sharing_core_does_its_part() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(256, 1, 1024) };
    let all = ascendc(&p, Abi::Direct).unwrap();
    let step = all.kernels.iter().find(|k| k.name == "avsg_step").expect("a kernel");
    let text = all.whole(&step.text);
    let idle = text.replace(
        "q.owner = ",
        "q.shareLen = sharer == 3 ? 0 : q.shareLen;\n            q.owner = ",
    );
    assert!(idle != text && sharers(1, 256, 4) == 4);
    let layer = LayerMemory::new(&mut SplitMix64(1), &[(40, 40)], 400, 1, 1024, 1);
    let mut engine = TestEngine::new(&p, 1, 400, layer);
    let b = Batch {
        k: 256,
        ids_stride: 256,
        ids: (0..256).collect(),
        cu_q: vec![0, 1],
        state: vec![0],
        generation: vec![1],
        stable: vec![-1],
        seq: vec![400],
        ..Batch::default()
    };
    let before = engine.contents();
    let want = engine.step_on_cpu(&b);
    let options = RunOptions { cores: 4, mode: Mode::InOrder, seed: 1 };
    let mut same = |kernel: &Compiled| {
        engine.restore(&before);
        let got = engine.step_emitted(&b, &[kernel], options);
        got.is_ok_and(|(got, _)| got.slot == want.slot)
    };
    let Some(both) = compile_all(&[text, idle]) else { return };
    assert!(same(&both[0]) && !same(&both[1]));
}

#[test]
fn random_batches_match_the_cpu() {
    for (i, p) in random_geometries().iter().enumerate() {
        let Some(emitted) = EmittedKernels::of(p) else { return };
        let (mut random, mut totals) = (SplitMix64(i as u64), Totals::default());
        let (units, page) = (900 / p.page.max(1) as usize + 9, p.page.max(1) as usize);
        let format: &[(usize, usize)] = [&[(33, 33)][..], &[(64, 64), (7, 12)]][i % 2];
        let states = 7;
        let places = match i % 2 {
            0 => Places::default(),
            _ => Places::random(&mut random, p, states, 5),
        };
        let slots = places.slots(p, states);
        let layer =
            LayerMemory::new(&mut random, format, units * page, 8, slots, 50 * p.tokens as usize);
        let mut engine = TestEngine { places, ..TestEngine::new(p, states, units, layer) };
        for step in 0..24 {
            engine.places.base = [None, Some(0), Some(70_001)][step / 4 % 3];
            let requests = [1, 3, 7, 50][step % 4];
            let b = engine.random_batch(&mut random, requests);
            let cores = [1, 2, 20, 40][random.below(4)];
            let options = RunOptions { cores, mode: EVERY_ORDER[step % 3], seed: step as u64 };
            compare(&mut engine, emitted, &b, options, &mut totals);
        }
        assert_eq!(totals.shared > 3, p.k == 320, "{p:?}: {totals:?}");
        let hits = totals.valid - totals.misses;
        assert!(hits > 500 && totals.misses > 500 && totals.fresh > 20, "{p:?}: {totals:?}");
        let both = status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL;
        assert_eq!(totals.status & both, if p.page == 0 { 1 } else { both }, "{p:?}: {totals:?}");
    }
}

/// A row of 2112 slots is made global in two pieces. With so large a K no refresh is deferred.
#[test]
fn global_slots_of_rows_that_are_longer_than_a_piece_match_the_cpu() {
    let p = two_piece_geometry();
    let Some(emitted) = EmittedKernels::of(&p) else { return };
    let (mut random, mut totals) = (SplitMix64(5), Totals::default());
    let (states, units) = (3, 6000);
    let places = Places::random(&mut random, &p, states, 5);
    let slots = places.slots(&p, states);
    let layer = LayerMemory::new(&mut random, &[(7, 8)], units, 12, slots, 4);
    let mut engine = TestEngine { places, ..TestEngine::new(&p, states, units, layer) };
    for step in 0..4 {
        engine.places.base = Some(9 << step);
        let b = engine.random_batch(&mut random, 4);
        let cores = [2, 5][step % 2];
        let options = RunOptions { cores, mode: EVERY_ORDER[step % 3], seed: step as u64 };
        compare(&mut engine, emitted, &b, options, &mut totals);
    }
    assert!(totals.valid > 6000 && totals.misses > 2000, "{totals:?}");
}

/// A cold start of the largest geometry in which every id misses, with three requests per core, two
/// segments, block tables and a context of a million tokens, and then a step of hits. Plan uses
/// exactly the planned bytes of unified buffer.
#[test]
fn the_largest_geometry_matches_the_cpu() {
    let p = largest_geometry();
    let Some(emitted) = EmittedKernels::of(&p) else { return };
    let (mut random, mut totals) = (SplitMix64(77), Totals::default());
    let (requests, cores, context) = (7, 2, 1 << 20);
    let units = context / 16;
    let layer =
        LayerMemory::new(&mut random, &[(16, 16), (7, 8)], context, 14, 6 * 8192, requests * 4);
    let mut engine = TestEngine::new(&p, 6, units, layer);
    let mut b = Batch { k: 2048, ids_stride: 2048, block_stride: units, ..Batch::default() };
    b.cu_q = (0..=requests as i32).map(|r| 4 * r).collect();
    for request in 0..requests {
        // The last request is padded.
        b.state.push(if request == 6 { -1 } else { 5 - request as i32 });
        b.generation.push(3);
        b.stable.push(context as i32 - 4);
        b.seq.push(context as i32);
        // 8192 distinct ids far apart, a few of which are fresh, padding or out of range.
        b.ids.extend((0..8192).map(|i| match i % 1000 {
            17 => -1,
            18 => context as i32 + i,
            19 => context as i32 - 1 - (i / 1000) % 4,
            _ => (i * 127 + request as i32) % context as i32,
        }));
        b.blocks.extend((0..units as i32).map(|i| (i * 31 + 7 * request as i32) % units as i32));
    }
    for mode in [Mode::InOrder, Mode::Adversarial] {
        compare(&mut engine, emitted, &b, RunOptions { cores, mode, seed: 4 }, &mut totals);
    }
    assert!(
        totals.misses > 6 * 8000 && totals.valid > 2 * 6 * 8000 && totals.fresh > 0,
        "{totals:?}"
    );
    let plan = emitted.named("avsg_plan").0.ub_bytes;
    assert_eq!(totals.peak, plan, "plan must use all planned bytes");
}
