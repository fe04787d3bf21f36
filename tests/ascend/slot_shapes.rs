//! Device buffers in memory of the caller: their shapes, and steps on the simulated device that write them.

use std::sync::Arc;

use avsg::ascend::acl::{Context, DeviceMemory};
use avsg::buffer::CallerBuffer;
use avsg::device::state::header;
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::pool::HostPool;
use avsg::rows::{RowFormat, Strides};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape as Geometry};
use avsg_testkit::{fixture, memory};

use crate::harness::{self, expect_refusal, in_session, plan_in_a_stream, seeded};

pub const K: usize = 8;
pub const SLOTS: usize = 128;
pub const LAYERS: usize = 2;
/// Rows of a layer.
pub const ROWS: usize = 608;
const STATES: usize = 2;
const STEPS: usize = 20;
/// Bytes of the two segments of a row.
const BYTES: [usize; 2] = [56, 13];
/// What the memory holds before the first step.
pub const BEFORE: u8 = 0xA5;
/// Bytes of a layer and segment in these tests, which every shape below fits.
pub const ROOM: usize = 100_000;

/// The strides of a segment's slots, and the blocks of each state.
#[derive(Clone)]
pub struct Shape {
    pub name: &'static str,
    pub strides: [Strides; 2],
    pub table: Option<Vec<i32>>,
    /// The number of blocks, if there is a table.
    pub blocks: usize,
}

fn blocked(block_rows: usize, block: usize, row: usize) -> Strides {
    Strides { block_rows, block, row }
}

fn in_order(name: &'static str, strides: [Strides; 2]) -> Shape {
    Shape { name, strides, table: None, blocks: 0 }
}

/// Returns a shape in which each state has SLOTS / B blocks, out of more, in a pseudorandom order.
fn in_any_order(name: &'static str, strides: [Strides; 2], [step, blocks]: [usize; 2]) -> Shape {
    let entries = STATES * SLOTS / strides[0].block_rows;
    let table = (0..entries).map(|at| ((at * step + 3) % blocks) as i32).collect();
    Shape { name, strides, table: Some(table), blocks }
}

/// Returns a shape with 8 blocks of 16 slots per state.
pub fn shuffled() -> Shape {
    let strides = [blocked(16, 1024, 60), blocked(16, 256, 13)];
    in_any_order("blocks of 16 in any order", strides, [7, 20])
}

pub fn shapes() -> Vec<Shape> {
    let blocks_of_states = [blocked(SLOTS, 9000, 60), blocked(SLOTS, 2000, 13)];
    vec![
        in_order("rows", [Strides::rows(56), Strides::rows(16)]),
        in_order("padded rows", [Strides::rows(64), Strides::rows(21)]),
        in_order("a stride per state", [blocked(SLOTS, 20_000, 57), blocked(SLOTS, 5_000, 13)]),
        // Pages of 16 slots with padding of their own.
        in_order("padded pages", [blocked(16, 1024, 60), blocked(16, 256, 13)]),
        // The slots of one block are further apart than the blocks.
        in_order("interleaved", [blocked(64, 60, 256), blocked(64, 14, 64)]),
        shuffled(),
        in_any_order("single slots", [blocked(1, 61, 60), blocked(1, 17, 13)], [7, 300]),
        in_any_order("a block per state", blocks_of_states, [2, 5]),
    ]
}

impl Shape {
    /// Returns the index of a slot, by the formula of the documentation; `None` if its block is not
    /// in the buffer.
    pub fn index(&self, state: usize, slot: usize) -> Option<usize> {
        let Some(table) = &self.table else { return Some(state * SLOTS + slot) };
        let size = self.strides[0].block_rows;
        let block = usize::try_from(table[state * SLOTS / size + slot / size]).ok()?;
        (block < self.blocks).then_some(block * size + slot % size)
    }

    /// Returns the offset of a slot behind its base.
    fn offset(&self, segment: usize, state: usize, slot: usize) -> Option<usize> {
        let (n, strides) = (self.index(state, slot)?, self.strides[segment]);
        Some(match strides.block_rows {
            0 => n * strides.row,
            rows => n / rows * strides.block + n % rows * strides.row,
        })
    }

    /// Describes a buffer at `base`, with the shape's table at `table`.
    pub fn caller(&self, base: *mut u8, table: *const i32) -> CallerBuffer {
        // The layers are behind each other in reverse order.
        let at = |n: usize| base.wrapping_add((LAYERS * 2 - 1 - n) * ROOM);
        let bases: Vec<*mut u8> = (0..LAYERS * 2).map(at).collect();
        // SAFETY: the tests keep the memory until the engine is dropped, and every shape fits it.
        let caller = unsafe { CallerBuffer::new(&bases, &self.strides).unwrap() };
        let Some(entries) = &self.table else { return caller };
        // SAFETY: the tests keep the table until the engine is dropped, and nothing writes it.
        unsafe { caller.with_block_table(table, entries.len(), self.blocks) }
    }
}

pub fn config(buffer: Option<CallerBuffer>, slot_base: Option<i32>) -> Config {
    let params = Geometry::from(DEVICE_SHAPES[1]).params();
    assert_eq!((params.k as usize, params.slots as usize, params.page), (K, SLOTS, 16));
    let machine = MachineChoice::Emu;
    Config { cores: 3, machine, buffer, slot_base, ..Config::new(params, STATES) }
}

pub fn pool() -> HostPool {
    fixture::pool(LAYERS, ROWS, RowFormat::segments(&BYTES).unwrap())
}

/// Returns a batch in which rows 0 and 1 are of state 1, row 2 is padded, and row 3 is of state 0. Block
/// tables list the blocks of the pool in order.
pub fn batch(step: usize) -> OwnedBatch {
    let block_stride = ROWS / 16;
    let mut owned = OwnedBatch { block_stride, ..OwnedBatch::new(K, 0) };
    let ids = |first: usize| (0..K).map(|lane| ((first + lane * 17) % 500) as i32).collect();
    owned.push([1, 1, -1, 600], &[ids(step * 11), ids(step * 11 + 34)]);
    owned.push([-1, 1, -1, 600], &[ids(step)]);
    owned.push([0, 1 + step as i32 / 9, -1, 600], &[ids(step * 29)]);
    owned.blocks = (0..block_stride as i32).collect::<Vec<_>>().repeat(3);
    owned
}

/// The slots of every step so far, and the bytes that the buffer must hold.
struct Log {
    slots: Vec<i32>,
    expected: Vec<u8>,
}

impl Log {
    /// Notes a step, whose misses were copied to every layer.
    fn note(&mut self, shape: &Shape, result: &StepResult) {
        self.slots.extend(&result.slots);
        let mut row = [0; 69];
        for (layer, request, state) in [(0, 0, 1), (0, 2, 0), (1, 0, 1), (1, 2, 0)] {
            let [_, ids, slots, _] = &result.requests[request].misses;
            for (&id, &slot) in ids.iter().zip(slots) {
                fill_row(id, layer as u32, &mut row);
                for (segment, part) in [&row[..56], &row[56..]].into_iter().enumerate() {
                    let base = (LAYERS * 2 - 1 - (layer * 2 + segment)) * ROOM;
                    let Some(at) = shape.offset(segment, state, slot as usize) else { continue };
                    self.expected[base + at..][..part.len()].copy_from_slice(part);
                }
            }
        }
    }

    /// Compares the buffer, to which no work writes, and returns the slots.
    fn check(self, shape: &Shape, context: &Context, base: *const u8) -> Vec<i32> {
        // SAFETY: the memory has this many bytes, and nothing runs.
        let found = unsafe { memory::read_bytes(Some(context), base.cast(), self.expected.len()) };
        let differ = found.iter().zip(&self.expected).position(|(found, right)| found != right);
        assert!(differ.is_none(), "{}: byte {differ:?}", shape.name);
        self.slots
    }
}

/// Runs steps with host arrays or, with a context, in streams.
fn run_steps(engine: &mut Engine, shape: &Shape, queued: Option<&Arc<Context>>) -> Log {
    let expected = vec![BEFORE; LAYERS * 2 * ROOM];
    let (mut log, mut plan) = (Log { slots: Vec::new(), expected }, engine.new_plan(4, 3).unwrap());
    for owned in (0..STEPS).map(batch) {
        let result = match queued {
            None => {
                engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
                engine.transfer(&mut plan, 1, None).unwrap();
                StepResult::from_plan(&plan, &owned.cu_q)
            }
            Some(context) => {
                plan_in_a_stream(engine, &mut plan, &owned, &[0, 1], context, |_| ());
                let at = plan.device_arrays().unwrap();
                // SAFETY: the arrays are those of this plan, whose stream was waited for.
                unsafe { StepResult::from_arrays(Some(context), &at, K, &owned.cu_q) }
            }
        };
        log.note(shape, &result);
    }
    log
}

/// Copies state 1 to state 0 after the last step. Each slot has the row of the original; or the copy is refused because
/// a block is not in the buffer.
fn check_fork(engine: &mut Engine, shape: &Shape) {
    let forked = engine.fork(1, 1, 0, 99);
    if (0..STATES * SLOTS).any(|n| shape.index(n / SLOTS, n % SLOTS).is_none()) {
        return expect_refusal(forked, &["entry 4 of state 1"]);
    }
    forked.unwrap();
    let ids = engine.read_table(0, 0).unwrap()[header::WORDS..][..SLOTS].to_vec();
    let listed = (0..SLOTS).filter(|&slot| ids[slot] >= 0).inspect(|&slot| {
        for layer in 0..LAYERS {
            let mut rows = [[0; 69]; 2];
            for (state, row) in rows.iter_mut().enumerate() {
                engine.buffer().slot_bytes(state, layer, slot, row).unwrap();
            }
            assert!(rows[0] == rows[1], "{}: slot {slot}", shape.name);
        }
    });
    assert!(listed.count() > K);
}

/// Returns the slots of every step in a buffer of the library.
pub fn own_slots() -> Vec<i32> {
    let mut engine = Engine::new(config(None, None), pool()).unwrap();
    run_steps(&mut engine, &shapes()[0], None).slots
}

/// How the simulated device runs the steps. Captured launches have the arguments of queued ones.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub queued: bool,
    pub one_launch: bool,
    /// Whether it runs the emitted kernels instead of those in Rust.
    pub emitted: bool,
}

/// Runs a shape on the simulated device. Returns the slots of every step.
pub fn on_device(shape: &Shape, slot_base: Option<i32>, run: Run) -> Vec<i32> {
    in_session(seeded(5), |session, context| {
        let memory = DeviceMemory::copied(context, &vec![BEFORE; LAYERS * 2 * ROOM]).unwrap();
        let entries = shape.table.as_deref().unwrap_or(&[0]);
        let entries: Vec<u8> = entries.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let table = DeviceMemory::copied(context, &entries).unwrap();
        let base = memory.address() as *mut u8;
        let config = config(Some(shape.caller(base, table.address() as *const i32)), slot_base);
        let kernels = (!run.emitted).then(|| harness::install_kernels(session, &config));
        let engine = harness::engine(context, &config, pool(), kernels, run.one_launch);
        let mut engine = engine.unwrap();
        let log = run_steps(&mut engine, shape, run.queued.then_some(context));
        let slots = log.check(shape, context, base);
        if !run.queued {
            check_fork(&mut engine, shape);
        }
        engine.close().unwrap();
        slots
    })
}
