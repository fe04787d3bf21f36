//! The whole operator, emitted and executed: plan and transfer, and both in one launch, leave the same
//! tables, slots, miss lists, records and rows as the CPU engine, bit for bit, on any number of cores.

use super::engine::{Batch, World};
use super::pool::{Layer, Lot};
use super::shim::{Mode, gxx};
use super::stand::{EVERY_ORDER, How};
use super::tier;
use super::together::{Compiled, compile_all};
use avsg_device::params::{Lifetime, Params};
use avsg_device::request::status;
use avsg_device::share::sharers;
use avsg_linker::ascendc::ascendc;
use avsg_linker::ascendc::kernels::{Abi, Kernel};
use npyz::npz::NpzArchive;

/// A geometry's kernels, compiled.
struct Emitted {
    kernels: Vec<(Kernel, Compiled)>,
}

impl Emitted {
    /// In the thorough tier each kernel is a file of its own; otherwise all kernels of all geometries are
    /// one file.
    fn all(geometries: &[Params]) -> Vec<Self> {
        let (mut texts, mut kernels) = (vec![], vec![]);
        for p in geometries {
            let all = ascendc(p, Abi::Direct).unwrap_or_else(|e| panic!("{p:?}: {e}"));
            let wanted = ["avsg_plan", "avsg_transfer", "avsg_step"];
            let three: Vec<_> =
                all.kernels.iter().filter(|k| wanted.contains(&k.name)).cloned().collect();
            if tier::thorough() {
                texts.extend(three.iter().map(|k| all.whole(&k.text)));
            } else {
                let text: String = three.iter().map(|k| k.text.as_str()).collect();
                texts.push(all.whole(&text));
            }
            kernels.push(three);
        }
        let files = if tier::thorough() { 3 } else { 1 };
        let built = compile_all(&texts);
        let of = |(three, built): (Vec<Kernel>, &[Compiled])| Self {
            kernels: three.into_iter().zip(built.iter().cycle().cloned()).collect(),
        };
        kernels.into_iter().zip(built.chunks(files)).map(of).collect()
    }

    fn new(p: &Params) -> Self {
        Self::all(&[*p]).remove(0)
    }

    fn named(&self, name: &str) -> &(Kernel, Compiled) {
        self.kernels.iter().find(|(kernel, _)| kernel.name == name).expect("a kernel")
    }
}

/// What happened, so that no test passes on empty steps.
#[derive(Default, Debug)]
struct Seen {
    misses: usize,
    valid: usize,
    fresh: usize,
    status: i32,
    /// Steps whose requests several cores shared.
    shared: usize,
    /// The highest byte of unified buffer that plan touched.
    peak: u32,
}

/// Runs one step three ways and compares; the world ends as the CPU left it.
fn compare(world: &mut World, emitted: &Emitted, b: &Batch, how: How, seen: &mut Seen) {
    let before = world.contents();
    let want = world.cpu(b);
    let after = world.contents();
    for names in [&["avsg_plan", "avsg_transfer"][..], &["avsg_step"]] {
        let what = format!("{names:?} on {} cores, {:?}", how.cores, how.mode);
        world.restore(&before);
        let kernels: Vec<_> = names.iter().map(|name| &emitted.named(name).1).collect();
        let done = world.emitted(b, &kernels, how);
        let (got, peaks) = done.unwrap_or_else(|e| panic!("{what}: {e:?}"));
        for (name, &peak) in names.iter().zip(&peaks) {
            let plan = emitted.named(name).0.ub_bytes;
            assert!(peak <= plan, "{what}: {name} touches {peak} bytes, {plan} are planned");
        }
        seen.peak = seen.peak.max(if names.len() == 2 { peaks[0] } else { 0 });
        assert_eq!(got.record, want.record, "{what}: records");
        assert_eq!(got.valid, want.valid, "{what}: valid counts");
        assert!(got.slot == want.slot, "{what}: slots");
        assert!(got.miss == want.miss, "{what}: miss lists");
        let now = world.contents();
        assert!(now.0 == after.0, "{what}: tables");
        assert!(now.1 == after.1, "{what}: rows");
    }
    seen.shared += usize::from(sharers(b.state.len(), b.k, how.cores as usize) > 1);
    seen.misses += want.misses();
    seen.valid += want.valid.iter().map(|&n| n as usize).sum::<usize>();
    seen.fresh += want.miss.iter().flat_map(|list| &list[3]).filter(|&&row| row < 0).count();
    seen.status |= want.record.chunks_exact(16).fold(0, |all, record| all | record[9]);
}

/// The committed trace: ids [steps, 4, 256] and stable [steps].
fn trace() -> (Vec<i32>, Vec<i32>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");
    let mut archive = NpzArchive::open(path).expect("the committed trace");
    let mut array = |name: &str| {
        let array = archive.by_name(name).expect("readable").expect("an array of that name");
        array.into_vec::<i32>().expect("int32")
    };
    (array("ids"), array("stable"))
}

/// Requests that walk through the real trace at different places.
#[test]
fn the_real_trace() {
    if !gxx() {
        return;
    }
    let (ids, stable) = trace();
    let p = Params { spread: 2, retries: 7, ..Params::wide(256, 4, 1024) };
    let geometries = [p, Params::paper(256, 4, 1024)];
    for (i, (p, emitted)) in geometries.iter().zip(Emitted::all(&geometries)).enumerate() {
        let (requests, mut lot, mut seen) = (3, Lot(i as u64), Seen::default());
        let layer = Layer::new(&mut lot, &[(40, 40)], 4400, 9, requests * 1024, requests * 4);
        let mut world = World::new(p, requests, 4400, layer);
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
            compare(&mut world, &emitted, &b, How { cores, mode, seed: step as u64 }, &mut seen);
        }
        let hits = 1.0 - seen.misses as f64 / seen.valid as f64;
        assert!(hits > 0.7 && seen.misses > 3000 && seen.shared > 5, "{seen:?}: {hits}");
    }
}

/// Sharers do the work: where one of four has nothing to probe, its ids are not what they should be.
#[test]
fn an_idle_sharer_is_noticed() {
    if !gxx() {
        return;
    }
    let p = Params { spread: 2, retries: 7, ..Params::wide(256, 1, 1024) };
    let all = ascendc(&p, Abi::Direct).unwrap();
    let step = all.kernels.iter().find(|k| k.name == "avsg_step").expect("a kernel");
    let text = all.whole(&step.text);
    let idle =
        text.replace("q.turn = sharer;", "q.turn = sharer; if (sharer == 3) q.shareLen = 0;");
    assert!(idle != text && sharers(1, 256, 4) == 4);
    let layer = Layer::new(&mut Lot(1), &[(40, 40)], 400, 1, 1024, 1);
    let mut world = World::new(&p, 1, 400, layer);
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
    let before = world.contents();
    let want = world.cpu(&b);
    let how = How { cores: 4, mode: Mode::InOrder, seed: 1 };
    let mut same = |text: &str| {
        world.restore(&before);
        let got = world.emitted(&b, &[&Compiled::alone(text)], how);
        got.is_ok_and(|(got, _)| got.slot == want.slot)
    };
    assert!(same(&text) && !same(&idle));
}

/// A step with everything in it that a batch may hold.
fn anything(world: &World, lot: &mut Lot, requests: usize) -> Batch {
    let p = &world.p;
    let page = p.page as usize;
    let k = [p.k as usize, p.k as usize, 1 + lot.below(p.k as usize)][lot.below(3)];
    let stride = k + lot.below(5);
    let entries = if page == 0 { 0 } else { 40 };
    let mut b =
        Batch { k, ids_stride: stride, cu_q: vec![0], block_stride: entries, ..Batch::default() };
    let mut free: Vec<_> = (0..world.states as i32).collect();
    for request in 0..requests {
        let tokens = lot.below(p.tokens as usize + 1);
        b.cu_q.push(b.cu_q[request] + tokens as i32);
        let padded = free.is_empty() || lot.below(6) == 0;
        b.state.push(if padded { -1 } else { free.swap_remove(lot.below(free.len())) });
        b.generation.push(i32::from(lot.below(5) == 0));
        let context = world.pool_units * page.max(1);
        let seq =
            tokens + lot.below(context.min(40 * page.max(usize::from(page == 0) * context)) - 8);
        b.stable.push(if lot.below(4) == 0 { -1 } else { (seq - tokens) as i32 });
        b.seq.push(seq as i32);
        let from = lot.below(seq.max(1));
        for _ in 0..tokens {
            let stretch = [1, 1, 3, 16][lot.below(4)];
            b.ids.extend((0..stride).map(|i| match lot.below(30) {
                0 => -1,
                1 => i32::MIN + lot.below(3) as i32,
                2 => seq as i32 + lot.below(3) as i32,
                3 => i32::MAX,
                4 => lot.below(seq.max(1)) as i32,
                5 => seq as i32 - 1 - lot.below(4) as i32,
                _ => ((from + i * stretch) % seq.max(1)) as i32,
            }));
        }
        b.blocks.extend((0..entries).map(|_| match lot.below(20) {
            0 => -1,
            1 => world.pool_units as i32,
            _ => lot.below(world.pool_units) as i32,
        }));
    }
    b
}

#[test]
fn anything_that_a_batch_may_hold() {
    if !gxx() {
        return;
    }
    let wide = Params { spread: 2, retries: 7, ..Params::wide(64, 4, 256) };
    let geometries = [
        Params { page: 16, ..wide },
        Params { lifetime: Lifetime::Constant(9), spread: 4, retries: 3, ..wide },
        Params { page: 128, ..Params::paper(100, 2, 512) },
        // Room for cores to share a token.
        Params { spread: 2, retries: 7, ..Params::wide(320, 2, 1024) },
    ];
    for (i, (p, emitted)) in geometries.iter().zip(Emitted::all(&geometries)).enumerate() {
        let (mut lot, mut seen) = (Lot(i as u64), Seen::default());
        let (units, page) = (900 / p.page.max(1) as usize + 9, p.page.max(1) as usize);
        let format: &[(usize, usize)] = [&[(33, 33)][..], &[(64, 64), (7, 12)]][i % 2];
        let states = 7;
        let layer =
            Layer::new(&mut lot, format, units * page, 8, states * p.slots as usize, 50 * 4);
        let mut world = World::new(p, states, units, layer);
        for step in 0..24 {
            let requests = [1, 3, 7, 50][step % 4];
            let b = anything(&world, &mut lot, requests);
            let cores = [1, 2, 20, 40][lot.below(4)];
            let how = How { cores, mode: EVERY_ORDER[step % 3], seed: step as u64 };
            compare(&mut world, &emitted, &b, how, &mut seen);
        }
        assert_eq!(seen.shared > 3, p.k == 320, "{p:?}: {seen:?}");
        let hits = seen.valid - seen.misses;
        assert!(hits > 500 && seen.misses > 500 && seen.fresh > 20, "{p:?}: {seen:?}");
        let both = status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL;
        assert_eq!(seen.status & both, if p.page == 0 { 1 } else { both }, "{p:?}: {seen:?}");
    }
}

/// The largest batch of the largest geometry: a cold start in which every id misses, three requests a
/// core, two segments, pages, a million tokens of context; then a step of hits. The unified buffer
/// that plan touches is what was planned.
#[test]
fn the_worst_case() {
    if !gxx() {
        return;
    }
    let p = Params { spread: 2, retries: 7, page: 16, ..Params::wide(2048, 4, 8192) };
    let emitted = Emitted::new(&p);
    let (mut lot, mut seen) = (Lot(77), Seen::default());
    let (requests, cores, context) = (7, 2, 1 << 20);
    let units = context / 16;
    let layer = Layer::new(&mut lot, &[(16, 16), (7, 8)], context, 14, 6 * 8192, requests * 4);
    let mut world = World::new(&p, 6, units, layer);
    let mut b = Batch { k: 2048, ids_stride: 2048, block_stride: units, ..Batch::default() };
    b.cu_q = (0..=requests as i32).map(|r| 4 * r).collect();
    for request in 0..requests {
        // The last one is padded.
        b.state.push(if request == 6 { -1 } else { 5 - request as i32 });
        b.generation.push(3);
        b.stable.push(context as i32 - 4);
        b.seq.push(context as i32);
        // 8192 distinct ids, far apart, a few of them fresh, padding or out of range.
        b.ids.extend((0..8192).map(|i| match i % 1000 {
            17 => -1,
            18 => context as i32 + i,
            19 => context as i32 - 1 - (i / 1000) % 4,
            _ => (i * 127 + request as i32) % context as i32,
        }));
        b.blocks.extend((0..units as i32).map(|i| (i * 31 + 7 * request as i32) % units as i32));
    }
    for mode in [Mode::InOrder, Mode::Adversarial] {
        compare(&mut world, &emitted, &b, How { cores, mode, seed: 4 }, &mut seen);
    }
    assert!(seen.misses > 6 * 8000 && seen.valid > 2 * 6 * 8000 && seen.fresh > 0, "{seen:?}");
    let plan = emitted.named("avsg_plan").0.ub_bytes;
    assert_eq!(seen.peak, plan, "plan touches what was planned");
}
