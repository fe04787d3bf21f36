//! A writer and a reader share a pool, as the ranks of a node do: the writer appends rows, and both gather them through
//! engines of their own, on the CPU or on the simulated device, the reader also after the writer is gone. Two processes do
//! that in `bindings/examples/c/share.c`.

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Role};
use avsg::rows::RowFormat;

use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{alone, exact, fixture, tier};

use crate::prerequisites;

/// Rows of the pool that are written before the first step.
const PROMPT: i32 = 300;
const ROWS: usize = 512;
const K: usize = 8;
const PAGE: usize = 16;
/// Rows that the writer appends in a step.
const NEW: i32 = 2;

fn format() -> RowFormat {
    RowFormat::segments(&[100, 28]).unwrap()
}

/// Returns an engine on a device, with the emitted kernels if it is the simulated one. Its geometry is the second of
/// `DEVICE_SHAPES`, whose kernels other tests compile, too.
fn engine(device: &str, states: usize, cores: usize, pool: HostPool) -> Engine {
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    assert_eq!((params.k as usize, params.tokens, params.page as usize), (K, 2, PAGE));
    if device == "cpu" {
        return fixture::engine(params, states, cores, pool);
    }
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let options = AscendOptions::new(context);
    Engine::on_ascend(Config { cores, ..Config::new(params, states) }, pool, &options).unwrap()
}

/// Returns a batch of one request whose block table lists all blocks of the pool in order.
/// `numbers` are its state, generation, stable length and sequence length.
fn one_request(numbers: [i32; 4], rows: &[Vec<i32>], gap: usize) -> OwnedBatch {
    let blocks = ROWS / PAGE;
    let (block_stride, blocks) = (blocks, (0..blocks as i32).collect());
    let mut owned = OwnedBatch { block_stride, blocks, ..OwnedBatch::new(K, gap) };
    owned.push(numbers, rows);
    owned
}

fn ids(step: i32, below: i32, newest: bool) -> Vec<i32> {
    let id = |i: i32| if newest && i < NEW { below - 1 - i } else { (step * 13 + i * 7) % below };
    (0..K as i32).map(id).collect()
}

/// Returns the id and version that a row holds: version 0 for the prompt, t + 1 for rows of step t.
fn content(_: usize, id: i32) -> (i32, u32) {
    (id, if id < PROMPT { 0 } else { ((id - PROMPT) / NEW) as u32 + 1 })
}

/// Makes a step of the request of an engine whose decoded tokens are fresh rows, and appends them. Returns the append's result.
fn decode(engine: &mut Engine, plan: &mut Plan, step: i32) -> avsg::Result<()> {
    let stable = PROMPT + NEW * step;
    let rows = [ids(step, stable + 1, true), ids(step + 1, stable + 2, true)];
    let owned = one_request([0, 4, stable, stable + NEW], &rows, 0);
    let mut fresh = FreshRows::new(&format(), 2);
    (0..2).for_each(|g| fresh.put(g, stable + g as i32, step as u32 + 1));
    let fresh = Fresh { segments: &fresh.segments() };
    engine.step(&owned.batch(), plan, 0, Some(&fresh)).unwrap();
    assert!(exact::check_step(engine, plan, &owned, 0, content) > K);
    engine.append(&owned.batch(), 0, &fresh)
}

/// Gathers rows of a context of `len` tokens and checks them.
fn gather(engine: &mut Engine, plan: &mut Plan, step: i32, len: i32) {
    let rows = [ids(step, len, true), ids(step * 3 + 1, len, false)];
    let owned = one_request([0, 4, -1, len], &rows, 3);
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    assert!(exact::check_step(engine, plan, &owned, 0, content) > K, "step {step}");
    assert_eq!(plan.status(0), 0);
}

#[test]
fn a_reader_gathers_appended_rows_and_outlives_the_writer() {
    let _turn = alone::turn();
    let (cpu, sim) = ("cpu", "ascend-sim");
    let pairs = match (prerequisites::has_cpp_compiler(), tier::thorough()) {
        (false, _) => &[[cpu, cpu]][..],
        (true, false) => &[[sim, sim], [cpu, cpu]],
        (true, true) => &[[sim, sim], [cpu, cpu], [cpu, sim], [sim, cpu]],
    };
    pairs.iter().for_each(|&[writer, reader]| read_and_end_writer(writer, reader));
}

/// Reads 40 steps of a writer, ends it, and reads on.
fn read_and_end_writer(writer: &str, reader: &str) {
    let pool = fixture::pool(1, ROWS, format());
    let [export, second] = [(); 2].map(|()| pool.export().unwrap());
    let mut appending = engine(writer, 1, 1, pool);
    let mut of_writer = appending.new_plan(2, 1).unwrap();
    let pool = HostPool::import(&export.desc, export.fd, Role::Reader).unwrap();
    let mut engine = engine(reader, 1, 2, pool);
    let mut plan = engine.new_plan(2, 1).unwrap();
    for step in 0..40 {
        decode(&mut appending, &mut of_writer, step).unwrap();
        gather(&mut engine, &mut plan, step, PROMPT + NEW * (step + 1));
    }
    // A reader has its own fresh rows of the next step. It refuses to append them before it writes to the
    // read-only memory.
    let refused = decode(&mut engine, &mut plan, 40).unwrap_err().to_string();
    assert!(refused.contains("append in the writer process"), "{refused}");
    let import = || HostPool::import(&second.desc, second.fd.try_clone().unwrap(), Role::Writer);
    let taken = import().unwrap_err().to_string();
    assert!(taken.contains("has a writer"), "{taken}");
    drop((appending, of_writer));
    for step in 40..80 {
        gather(&mut engine, &mut plan, step, PROMPT + NEW * 40);
    }
    let mut row = [0; 128];
    fill_row(PROMPT + 80, 41, &mut row);
    import().unwrap().write_row(0, (PROMPT + 80) as usize, &row).unwrap();
    gather(&mut engine, &mut plan, 80, PROMPT + 81);
}
