//! Geometries and configurations out of range, and mistakes of a caller beside those that `bindings/c/tests/calls/inputs.rs` makes. Each is refused with an error of one line that names the value, the limit
//! and the remedy, and changes neither tables, slots nor the host pool.

use avsg::buffer::CallerBuffer;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::{Batch, Config, Engine, Indexers};
use avsg::plan::Plan;
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::{RowFormat, Segment, Strides};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::refusal::expect_error;
use avsg_testkit::{exact, fixture, memory};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const K: usize = 8;

fn format() -> RowFormat {
    RowFormat::segments(&[24, 16]).unwrap()
}

fn params() -> Params {
    Params { page: 16, ..Params::wide(K as u32, 2, 64) }
}

/// Returns a valid batch of two requests, the second with two fresh rows.
fn valid_batch(step: i32) -> OwnedBatch {
    let ids = |g: i32| (0..8).map(|i| (step * 3 + g * 5 + i * 7) % 100).collect();
    let mut owned = OwnedBatch::new(K, 1);
    owned.push([1, 1, -1, 128], &[ids(0), ids(1)]);
    owned.push([0, 1, 100, 102], &[ids(2), ids(3)]);
    owned.block_stride = 8;
    owned.blocks = (0..16).map(|b| b % 8).collect();
    owned
}

/// Returns a pool of one layer whose rows are in memory that is never freed and used by nothing else.
fn pool_in(memory: Chunk, config: &PoolConfig, stride: usize) -> HostPool {
    let (layers, rows, regions) = (0..1, 0..config.rows, [Region { memory, device_address: None }]);
    let part = Part { segment: 0, layers, rows, region: 0, offset: 0, layer_stride: 0 };
    let strides = [Strides::rows(stride)];
    let layout = HostLayout { regions: &regions, strides: &strides, parts: &[part] };
    // SAFETY: the callers pass such memory.
    HostPool::new(&unsafe { config.clone().with_layout(&layout) }.unwrap()).unwrap()
}

/// An engine that has done a valid step, and the number of valid steps after that one.
struct TestEngine {
    engine: Engine,
    plan: Plan,
    steps: i32,
}

const JUNK: [&[u8]; 2] = [&[7; 4 * 24], &[7; 4 * 16]];
const FRESH: &[&[u8]] = &JUNK;

impl TestEngine {
    fn new() -> Self {
        let mut engine = fixture::engine(params(), 2, 2, fixture::pool(2, 128, format()));
        let mut plan = engine.new_plan(4, 2).unwrap();
        engine.step(&valid_batch(0).batch(), &mut plan, 0, Some(FRESH)).unwrap();
        Self { engine, plan, steps: 0 }
    }

    /// Returns the tables, the slots of the device buffer and the rows of the host pool.
    fn contents(&mut self) -> (Vec<i32>, Vec<u8>, Vec<u8>) {
        let tables = (0..2).flat_map(|s| self.engine.read_table(0, s).unwrap().to_vec()).collect();
        let slots = (0..2).flat_map(|layer| memory::read_slots(&self.engine, None, layer));
        (tables, slots.collect(), memory::read_rows(self.engine.pool()))
    }

    /// Checks that a valid batch with a mistake is refused, that nothing has changed, and that the next valid step
    /// is exact.
    fn expect_refusal(&mut self, spoil: impl Fn(&mut OwnedBatch), by_append: bool, parts: &[&str]) {
        let (mut bad, before) = (valid_batch(self.steps), self.contents());
        spoil(&mut bad);
        expect_error(self.engine.plan(&bad.batch(), &mut self.plan), parts);
        expect_error(self.engine.step(&bad.batch(), &mut self.plan, 0, Some(FRESH)), parts);
        if by_append {
            expect_error(self.engine.append(&bad.batch(), &[0], FRESH), parts);
        }
        assert!(self.contents() == before, "nothing has changed after {parts:?}");
        self.expect_exact_step();
    }

    fn expect_exact_step(&mut self) {
        self.steps += 1;
        let owned = valid_batch(self.steps);
        self.engine.step(&owned.batch(), &mut self.plan, 0, Some(FRESH)).unwrap();
        let row = |_, id| (id, 0);
        assert_eq!(exact::check_step(&self.engine, &self.plan, &owned, 0, row), 4 * K);
    }
}

/// A change of a valid batch, whether an append refuses it, too, and parts of the error.
type Mistake = (fn(&mut OwnedBatch), bool, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    (|o| o.cu_q.clear(), true, &["cu_q length is 0", "has 3"]),
    (|o| o.cu_q[0] = 1, true, &["cu_q[0] is 1", "start at 0"]),
    (|o| o.cu_q = vec![0, 3, 4], false, &["tokens of a request is 3", "request 0", "0..=2"]),
    (|o| o.cu_q = vec![0, 2, 1], true, &["tokens of a request is -1", "request 1"]),
    (|o| o.cu_q = vec![0, i32::MIN, i32::MAX], true, &["tokens of a request is -214"]),
    (|o| o.ids.truncate(34), false, &["ids length is 34", "4 tokens need 35"]),
    (|o| o.state[0] = 2, true, &["state is 2", "request 0", "0..2", "-1"]),
    (|o| o.state[1] = -2, true, &["state is -2", "request 1", "0..2"]),
    (|o| o.state[0] = 0, true, &["state is 0", "request 1 is the second"]),
    (|o| o.seq[0] = -1, true, &["seq_len is -1", "0..=16777216"]),
    (|o| o.seq[0] = (1 << 24) + 1, true, &["seq_len is 16777217", "0..=16777216"]),
    (|o| o.stable[1] = 103, true, &["stable_len is 103", "-1..=seq_len (102)"]),
    (|o| o.stable[1] = -2, true, &["stable_len is -2", "request 1"]),
    (|o| o.seq[1] = 103, true, &["seq_len is 103", "stable_len 100 and 2 tokens"]),
];

#[test]
fn batches_with_a_mistake_are_refused() {
    let mut b = TestEngine::new();
    for &(spoil, by_append, parts) in MISTAKES {
        b.expect_refusal(spoil, by_append, parts);
    }
    // The products of these strides and the number of rows do not fit a `usize`, or need longer arrays.
    for stride in [usize::MAX, usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX / 3 + 1, 1 << 32] {
        b.expect_refusal(|o| o.stride = stride, false, &["ids length is 36", "4 tokens need"]);
        let parts = ["block_table length is 16", "need"];
        b.expect_refusal(|o| o.block_stride = stride, true, &parts);
    }
    // An append may have any number of rows per request, but the lengths must count them.
    let mut long = valid_batch(b.steps);
    long.cu_q = vec![0, 3, 4];
    let parts = ["seq_len is 102", "request 1", "1 tokens make at most 101"];
    expect_error(b.engine.append(&long.batch(), &[0], FRESH), &parts);
    let (many, owned) = (vec![-1; (1 << 20) + 1], valid_batch(0));
    let batch = Batch { state: &many, ..owned.batch() };
    let parts = ["requests is 1048577", "the plan holds 2"];
    expect_error(b.engine.plan(&batch, &mut b.plan), &parts);
    expect_error(b.engine.append(&batch, &[0], FRESH), &["requests is 1048577", "0..=1048576"]);
    b.expect_exact_step();
}

#[test]
fn foreign_and_small_plans_are_refused() {
    let mut b = TestEngine::new();
    let mut other = fixture::engine(params(), 2, 1, fixture::pool(2, 128, format()));
    let (owned, mut foreign) = (valid_batch(1), other.new_plan(4, 2).unwrap());
    let batch = owned.batch();
    expect_error(b.engine.plan(&batch, &mut foreign), &["plan is foreign", "another engine"]);
    expect_error(b.engine.step(&batch, &mut foreign, 0, Some(FRESH)), &["plan is foreign"]);
    other.step(&batch, &mut foreign, 0, Some(FRESH)).unwrap();
    let transferred = b.engine.transfer(&mut foreign, &[0], Some(FRESH));
    expect_error(transferred, &["plan is foreign", "new_plan made it"]);
    let (mut few, mut short) = (b.engine.new_plan(4, 1).unwrap(), b.engine.new_plan(3, 2).unwrap());
    expect_error(b.engine.plan(&batch, &mut few), &["requests is 2", "holds 1", "larger plan"]);
    expect_error(b.engine.plan(&batch, &mut short), &["tokens is 4", "holds 3", "larger plan"]);
    expect_error(b.engine.transfer(&mut few, &[1], None), &["plan is empty", "plan one first"]);
    expect_error(b.engine.new_plan(0, 1), &["max_tokens is 0", "1..=1048576"]);
    expect_error(b.engine.new_plan(1, 0), &["max_requests is 0"]);
    expect_error(b.engine.new_plan(usize::MAX, 1), &["max_tokens is", "1..=1048576"]);
    b.expect_exact_step();
}

#[test]
fn rows_without_a_place_and_short_fresh_rows_are_refused() {
    let mut b = TestEngine::new();
    let before = b.contents();
    let short = [JUNK[0], &JUNK[1][..63]];
    // The second request has an id without a host row. No row of the valid first request is written
    // either.
    let mut hole = valid_batch(0);
    (hole.stable[0], hole.seq[0]) = (20, 22);
    for bad in [-1, 8, i32::MAX, i32::MIN] {
        hole.blocks[8 + 6] = bad;
        let parts = ["appended id is 100", "request 1", "128 rows", "block table"];
        expect_error(b.engine.append(&hole.batch(), &[1], FRESH), &parts);
    }
    let request = Batch { state: &[0], generation: &[1], seq_len: &[9], ..Batch::default() };
    let load = Batch { ids: &[1], ..request };
    expect_error(b.engine.load(&load, &mut b.plan), &["block_stride is 0"]);
    assert!(b.contents() == before, "nothing has changed");

    // Planning needs no fresh rows. The transfer needs them if a miss is a fresh row.
    let mut fresh = valid_batch(0);
    fresh.ids[K + 1 + K + 1] = 101;
    b.engine.plan(&fresh.batch(), &mut b.plan).unwrap();
    let before = b.contents();
    expect_error(b.engine.transfer(&mut b.plan, &[0], None), &["fresh rows is none"]);
    expect_error(b.engine.transfer(&mut b.plan, &[0], Some(&short)), &["fresh bytes is 63"]);
    expect_error(b.engine.transfer(&mut b.plan, &[9], Some(FRESH)), &["layer is 9"]);
    assert!(b.contents() == before, "nothing was copied");
    b.engine.transfer(&mut b.plan, &[0], Some(FRESH)).unwrap();
    b.expect_exact_step();
}

/// A list of layers, the segments of their fresh rows, and a part of the message.
type LayerMistake<'a> = (&'a [usize], &'a [&'a [u8]], &'a str);

/// That a transfer and an append of a list do what a call for each layer does is checked by random workloads, which
/// make both, and by random calls with lists of some layers.
#[test]
fn a_list_of_layers_with_a_mistake_is_refused_and_nothing_is_copied() {
    let mut b = TestEngine::new();
    let (mut owned, segments) = (valid_batch(1), JUNK.repeat(2));
    owned.ids[K + 1 + K + 1] = 101;
    b.engine.plan(&owned.batch(), &mut b.plan).unwrap();
    let (before, stats) = (b.contents(), b.engine.stats());
    let short = [JUNK[0], JUNK[1], JUNK[0], &JUNK[1][..48]];
    let cases: [LayerMistake<'_>; 6] = [
        (&[1, 0], &segments, "layer is 0, but it comes after layer 1 in the list; list each"),
        (&[1, 1], &segments, "layer is 1, but it comes after layer 1 in the list"),
        (&[0, 2], &segments, "layer is 2, but there are 2"),
        (&[0, 1], &segments[1..], "fresh segments is 3, but a row has 2, in each of 2 layers"),
        (&[0, 1], &short, "fresh bytes is 48, but layer 1: 4 rows of stride 16 need 64"),
        (&[0, 1], &segments, "layers [1] lack the rows of plan 1 for states [0, 1]"),
    ];
    for (at, (list, segments, part)) in cases.into_iter().enumerate() {
        expect_error(b.engine.transfer(&mut b.plan, list, Some(segments)), &[part]);
        // An append has no order of plans.
        if at < 5 {
            expect_error(b.engine.append(&owned.batch(), list, segments), &[part]);
        }
    }
    expect_error(b.engine.transfer(&mut b.plan, &[0], None), &["fresh rows is none"]);
    assert!(b.contents() == before && b.engine.stats() == stats);
}

/// The stride of fresh rows is not used by a pool and a buffer in memory of the caller, so that it may be
/// any. The bytes of two rows then do not fit a `usize`.
#[test]
fn fresh_rows_whose_bytes_overflow_are_refused() {
    let format = RowFormat::strided(&[Segment { bytes: 24, stride: 1 << 62 }]).unwrap();
    let (host, slots) = (vec![0u8; 128 * 24].leak(), vec![0u8; 2 * 64 * 24].leak());
    let memory = Chunk::new(host.as_mut_ptr(), host.len()).unwrap();
    let pool = pool_in(memory, &PoolConfig::new(1, 128, format), 24);
    // SAFETY: the memory is never freed and used by nothing else.
    let buffer = unsafe { CallerBuffer::new(&[slots.as_mut_ptr()], &[Strides::rows(24)]) };
    let config = Config { buffer: Some(buffer.unwrap()), cores: 1, ..Config::new(params(), 2) };
    let mut engine = Engine::new(config, pool).unwrap();
    let mut plan = engine.new_plan(8, 2).unwrap();
    let mut owned = OwnedBatch::new(K, 0);
    (owned.block_stride, owned.blocks) = (8, (0..8).collect());
    owned.push([0, 1, 100, 105], &vec![vec![100; K]; 5]);
    let rows = [7; 4 * 24];
    let fresh: [&[u8]; 1] = [&rows];
    let parts = ["fresh bytes is 96", "5 rows of stride 4611686018427387904 need"];
    expect_error(engine.append(&owned.batch(), &[0], &fresh), &parts);
    (owned.cu_q, owned.seq) = (vec![0, 2], vec![102]);
    engine.plan(&owned.batch(), &mut plan).unwrap();
    let parts = ["fresh bytes is 96", "2 rows of stride 4611686018427387904 need"];
    expect_error(engine.transfer(&mut plan, &[0], Some(&fresh)), &parts);
}

#[test]
fn geometries_out_of_range_are_refused() {
    let wide = Params::wide(64, 1, 64);
    let paper = Params::paper(64, 1, 64);
    let primes = |a1, a2| Params { table: Table::Paper { a1, a2 }, ..paper };
    let life = |params, life| Params { lifetime: Lifetime::Constant(life), ..params };
    let bad: &[(Params, &[&str])] = &[
        (Params { k: 65, ..wide }, &["K is 65", "1..=64", "raise S"]),
        (Params { k: 0, ..wide }, &["K is 0", "1..=64"]),
        (Params { tokens: 2, ..wide }, &["N_q*K is 128", "S = 64", "raise S"]),
        (Params { tokens: 0, ..wide }, &["N_q (tokens per request) is 0", "1..=16"]),
        (Params { tokens: 17, k: 1, ..wide }, &["N_q (tokens per request) is 17", "1..=16"]),
        (Params { slots: 100, ..wide }, &["S (slots) is 100", "multiple of 64 in 64..=65536"]),
        (Params { slots: 192, ..paper }, &["S (slots) is 192", "power of two in 64..=32768"]),
        (Params { slots: 32, k: 1, ..wide }, &["S (slots) is 32", "64..=65536"]),
        (Params { slots: (1 << 16) + 64, ..wide }, &["S (slots) is 65600", "65536 or less"]),
        (Params { slots: 1 << 16, ..paper }, &["S (slots) is 65536", "32768 or less"]),
        (Params { slots: 0, ..wide }, &["S (slots) is 0"]),
        (Params { spread: 3, ..wide }, &["spread is 3", "1, 2 or 4"]),
        (Params { spread: 2, ..paper }, &["spread is 2", "paper's table has 1"]),
        (Params { retries: 16, ..wide }, &["R (retries) is 16", "0..=15"]),
        (life(wide, -1), &["lifetime is constant:-1", "0..=127"]),
        (life(paper, 0), &["lifetime is constant:0", "1..=127"]),
        (Params { lifetime: Lifetime::Learned, ..paper }, &["lifetime is learned", "paper"]),
        (primes(2, 3), &["primes is 2,3", "odd"]),
        (primes(3, 0), &["primes is 3,0", "odd"]),
        (Params { page: 48, ..wide }, &["page is 48", "power of two", "65536"]),
        (Params { page: 1 << 17, ..wide }, &["page is 131072"]),
        (Params { page: 256, ..wide }, &["pool rows is 128", "a block is 256 rows"]),
    ];
    for (params, parts) in bad {
        let pool = fixture::pool(1, 128, format());
        expect_error(Engine::new(Config::new(*params, 1), pool), parts);
    }
    // The other numbers are refused by `bindings/c/tests/calls/refusals/configurations.rs`.
    let config = Config { cores: 0, ..Config::new(params(), 1) };
    let engine = Engine::new(config, fixture::pool(1, 128, format()));
    expect_error(engine, &["cores is 0", "1..=1024"]);
}

#[test]
fn indexers_that_do_not_cover_the_layers_are_refused() {
    expect_error(Indexers::of_layers(&[]), &["layers with an indexer is 0"]);
    expect_error(Indexers::of_layers(&[0, 2, 0]), &["indexer of a layer is 1", "without a gap"]);
    let each = Indexers::of_layers(&[0, 1, 2, 3]).unwrap();
    assert_eq!((each.count(), each.of(3)), (4, 3));
    assert_eq!(Indexers::of_layers(&[0, 1, 2, 3]).unwrap(), each);
    assert_eq!((Indexers::default().count(), Indexers::default().of(3)), (1, 0));
}

/// Kernels address host rows with 32-bit words.
#[test]
fn more_rows_than_a_word_can_count_are_refused() {
    let (rows, lengths) = ((1usize << 31) + 16, 1usize << 32);
    let config = PoolConfig::new(1, rows, RowFormat::single(1).unwrap());
    let (flags, access) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::READ);
    // SAFETY: the operating system chooses the address of the new mapping, so it replaces no other
    // mapping.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), lengths, access, flags) }.unwrap();
    for page in [0, 16] {
        // The region is never unmapped. The engine below is refused, so no row is written.
        let pool = pool_in(Chunk::new(at.cast(), lengths).unwrap(), &config, 1);
        assert_eq!(pool.rows(), rows);
        let config = Config::new(Params { page, ..params() }, 1);
        expect_error(Engine::new(config, pool), &["pool rows is 2147483664", "2147483647"]);
    }
}
