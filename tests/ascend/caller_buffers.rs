//! Device buffers in memory of the caller, on the CPU and on the simulated device: every row is at
//! the address that the strides say, no other byte changes, and global indices name that place.

use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, DeviceMemory};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::buffer::CallerBuffer;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg::rows::{RowFormat, Strides};
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::{exact, fixture, memory};

use crate::harness;

const K: usize = 24;
const SLOTS: usize = 128;
const LAYERS: usize = 2;
const STATES: usize = 2;
/// Bytes of the two segments of a row.
const BYTES: [usize; 2] = [56, 13];
/// What the memory holds before the first step.
const BEFORE: u8 = 0xA5;
/// Bytes of a layer and segment in these tests, which every shape below fits.
const ROOM: usize = 100_000;

/// The strides of a segment's slots, and the blocks of each state.
#[derive(Clone)]
struct Shape {
    name: &'static str,
    strides: [Strides; 2],
    table: Option<Vec<i32>>,
}

fn shapes() -> Vec<Shape> {
    let blocked = |block_rows, block, row| Strides { block_rows, block, row };
    let rows = [Strides::rows(56), Strides::rows(16)];
    // Each state has 8 blocks of 16 slots, out of 20 in a pseudorandom order.
    let table = (0..16).map(|at| (at * 7 + 3) % 20).collect::<Vec<i32>>();
    vec![
        Shape { name: "rows", strides: rows, table: None },
        Shape { name: "padded rows", strides: [Strides::rows(64), Strides::rows(21)], table: None },
        Shape {
            name: "a stride per state",
            strides: [blocked(SLOTS, 20_000, 57), blocked(SLOTS, 5_000, 13)],
            table: None,
        },
        // Pages of 16 slots with padding of their own.
        Shape {
            name: "padded pages",
            strides: [blocked(16, 1024, 60), blocked(16, 256, 13)],
            table: None,
        },
        // The slots of one block are further apart than the blocks.
        Shape {
            name: "interleaved",
            strides: [blocked(64, 60, 256), blocked(64, 14, 64)],
            table: None,
        },
        Shape {
            name: "blocks in any order",
            strides: [blocked(16, 1024, 60), blocked(16, 256, 13)],
            table: Some(table),
        },
    ]
}

impl Shape {
    /// Returns the index of a slot, by the formula of the documentation.
    fn index(&self, state: usize, slot: usize) -> usize {
        match &self.table {
            None => state * SLOTS + slot,
            Some(table) => table[state * 8 + slot / 16] as usize * 16 + slot % 16,
        }
    }

    /// Returns the offset of a slot behind its base.
    fn offset(&self, segment: usize, state: usize, slot: usize) -> usize {
        let (n, strides) = (self.index(state, slot), self.strides[segment]);
        match strides.block_rows {
            0 => n * strides.row,
            rows => n / rows * strides.block + n % rows * strides.row,
        }
    }

    fn caller(&self, base: *mut u8) -> CallerBuffer {
        // The layers are behind each other in reverse order.
        let at = |n: usize| base.wrapping_add((LAYERS * 2 - 1 - n) * ROOM);
        let bases: Vec<*mut u8> = (0..LAYERS * 2).map(at).collect();
        // SAFETY: the tests keep the memory until the engine is dropped, and every shape fits it.
        let caller = unsafe { CallerBuffer::new(&bases, &self.strides).unwrap() };
        match &self.table {
            None => caller,
            Some(table) => {
                let table = table.clone().leak();
                // SAFETY: the table is never freed and not written.
                unsafe { caller.with_block_table(table.as_ptr(), table.len(), 20) }
            }
        }
    }
}

fn config(buffer: Option<CallerBuffer>, slot_base: Option<i32>) -> Config {
    let params = Params::wide(K as u32, 2, SLOTS as u32);
    Config {
        cores: 3,
        machine: MachineChoice::Emu,
        buffer,
        slot_base,
        ..Config::new(params, STATES)
    }
}

fn pool() -> HostPool {
    fixture::pool(LAYERS, 600, RowFormat::segments(&BYTES).unwrap())
}

fn batch(step: usize) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    let ids = |first: usize| (0..K).map(|lane| ((first + lane * 17) % 500) as i32).collect();
    owned.push([1, 1, -1, 600], &[ids(step * 11), ids(step * 11 + 34)]);
    owned.push([-1, 1, -1, 600], &[ids(step)]);
    owned.push([0, 1 + step as i32 / 9, -1, 600], &[ids(step * 29)]);
    owned
}

/// Runs steps, and checks each row at its address. Returns the slots of every step.
fn run(engine: &mut Engine, shape: &Shape, context: Option<&Context>, base: *const u8) -> Vec<i32> {
    let mut plan = engine.new_plan(4, 3).unwrap();
    let global = engine.config().slot_base;
    let mut expected = vec![BEFORE; LAYERS * 2 * ROOM];
    let mut slots = Vec::new();
    for step in 0..20 {
        let owned = batch(step);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        engine.transfer(&mut plan, 1, None).unwrap();
        (0..4).for_each(|row| slots.extend_from_slice(plan.slots(row)));
        for layer in 0..LAYERS {
            if global.is_none() {
                let content = |_, id| (id, layer as u32);
                assert_eq!(exact::check_step(engine, &plan, &owned, layer, content), 3 * K);
            }
            note_misses(&plan, shape, layer, &mut expected);
        }
    }
    // SAFETY: the memory has this many bytes, and nothing runs.
    let found = unsafe { memory::read_bytes(context, base.cast(), expected.len()) };
    let differ = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert!(differ.is_none(), "{}: byte {differ:?}", shape.name);
    slots
}

/// Writes the rows that a plan missed to the bytes that are expected.
fn note_misses(plan: &Plan, shape: &Shape, layer: usize, expected: &mut [u8]) {
    let mut row = [0; 69];
    for (request, state) in [(0, 1), (2, 0)] {
        for (&id, &slot) in plan.misses(request).id.iter().zip(plan.misses(request).slot) {
            fill_row(id, layer as u32, &mut row);
            for (segment, part) in [&row[..56], &row[56..]].into_iter().enumerate() {
                let base = (LAYERS * 2 - 1 - (layer * 2 + segment)) * ROOM;
                let at = base + shape.offset(segment, state, slot as usize);
                expected[at..at + part.len()].copy_from_slice(part);
            }
        }
    }
}

/// Runs a shape on the CPU, with or without global indices.
fn on_cpu(shape: &Shape, slot_base: Option<i32>) -> Vec<i32> {
    let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
    let base = memory.as_mut_ptr();
    let mut engine = Engine::new(config(Some(shape.caller(base)), slot_base), pool()).unwrap();
    assert_eq!((engine.buffer().bytes(), engine.buffer().huge_bytes()), (0, 0));
    let shape_of = engine.buffer().config().clone();
    assert_eq!(Engine::bytes_needed(engine.config(), &shape_of).unwrap().0, 0);
    run(&mut engine, shape, None, base)
}

/// Runs a shape on the simulated device.
fn on_device(shape: &Shape, slot_base: Option<i32>) -> avsg::Result<Vec<i32>> {
    let session = Session::new(Options { seed: 5, ..Options::default() });
    let context = simulated::context().unwrap();
    let memory = DeviceMemory::new(&context, LAYERS * 2 * ROOM).unwrap();
    memory.write(0, &vec![BEFORE; LAYERS * 2 * ROOM]).unwrap();
    let base = memory.address() as *mut u8;
    let config = config(Some(shape.caller(base)), slot_base);
    let kernels = harness::install_kernels(&session, &config);
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let mut engine = Engine::on_ascend(config, pool, &options)?;
    let slots = run(&mut engine, shape, Some(&context), base);
    engine.close().unwrap();
    drop((memory, options, context));
    assert_eq!(session.leaks(), Vec::<String>::new(), "{}", shape.name);
    Ok(slots)
}

#[test]
fn every_row_is_where_the_callers_strides_say() {
    let own = on_cpu(&shapes()[0], None);
    for shape in shapes() {
        assert!(on_cpu(&shape, None) == own, "{}: the slots of a state do not change", shape.name);
        match on_device(&shape, None) {
            Ok(slots) => assert!(shape.table.is_none() && slots == own, "{}", shape.name),
            Err(error) => {
                let text = error.to_string();
                assert!(shape.table.is_some() && text.contains("strides alone"), "{text}");
            }
        }
    }
}

#[test]
fn a_slot_base_makes_slots_indices_among_all_states() {
    // The layouts are indexed alike, so that one of them with another base is enough.
    let cases = shapes().into_iter().map(|shape| (shape, 70_000));
    for (shape, base) in cases.chain([(shapes().swap_remove(3), 0)]) {
        let own = on_cpu(&shape, None);
        let global = on_cpu(&shape, Some(base));
        let rows = own.chunks(K).zip(global.chunks(K)).enumerate();
        for (row, (own, global)) in rows {
            // Rows 0 and 1 of a step are of state 1, row 2 is padded, and row 3 is of state 0.
            let state = usize::from(row % 4 < 2);
            for (&own, &global) in own.iter().zip(global) {
                let expected =
                    usize::try_from(own).map_or(-1, |slot| base + shape.index(state, slot) as i32);
                assert_eq!(global, expected, "{}, row {row}", shape.name);
            }
        }
        if shape.table.is_none() {
            assert!(on_device(&shape, Some(base)).unwrap() == global, "{}", shape.name);
        }
    }
}

#[test]
fn a_step_with_a_bad_block_is_refused_and_changes_nothing() {
    let mut shape = shapes().swap_remove(5);
    shape.table.as_mut().unwrap()[12] = 20;
    let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
    let caller = shape.caller(memory.as_mut_ptr());
    let mut engine = Engine::new(config(Some(caller), None), pool()).unwrap();
    let mut plan = engine.new_plan(4, 3).unwrap();
    let before = engine.table(1).to_vec();
    let text = engine.step(&batch(0).batch(), &mut plan, 0, None).unwrap_err().to_string();
    let parts = ["block is 20", "entry 4 of state 1", "has 20 blocks"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(engine.table(1) == before && memory.iter().all(|&byte| byte == BEFORE));
    assert!(engine.buffer().slot_ptr(1, 0, 0, 70).is_null());
    assert!(engine.buffer().slot_bytes(1, 0, 70, &mut [0; 69]).is_err());
    assert_eq!(engine.buffer().index(1, 70), None);
    assert_eq!(engine.buffer().index(0, 17), Some(10 * 16 + 1));
}

#[test]
fn buffers_that_do_not_fit_the_engine_are_refused() {
    let refuse =
        |bases: usize, strides: &[Strides], table: Option<(usize, usize)>, parts: &[&str]| {
            let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
            let bases = vec![memory.as_mut_ptr(); bases];
            // SAFETY: the engine is refused.
            let mut caller = unsafe { CallerBuffer::new(&bases, strides).unwrap() };
            if let Some((len, blocks)) = table {
                let table = vec![0; len].leak();
                // SAFETY: the engine is refused.
                caller = unsafe { caller.with_block_table(table.as_ptr(), len, blocks) };
            }
            let text = Engine::new(config(Some(caller), None), pool()).err().unwrap().to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
        };
    let good = shapes()[3].strides;
    refuse(3, &good, None, &["buffer bases is 3", "need 4"]);
    refuse(4, &good[..1], None, &["strides is 1", "has 2 segments"]);
    refuse(4, &[Strides::rows(55), good[1]], None, &["row stride is 55"]);
    refuse(4, &[Strides { block_rows: 8, ..good[0] }, good[1]], None, &["block slots is 16"]);
    let wide = good.map(|strides| Strides { block_rows: 256, ..strides });
    refuse(4, &wide, None, &["block slots is 256", "at most S = 128"]);
    refuse(
        4,
        &[Strides::rows(56), Strides::rows(1 << 60)],
        None,
        &["buffer strides", "address space"],
    );
    refuse(4, &good, Some((15, 20)), &["block table is 15", "need 16 words"]);
    refuse(4, &good, Some((16, 0)), &["blocks of the buffer is 0"]);
    refuse(4, &shapes()[0].strides, Some((16, 20)), &["block slots is 0", "a table has blocks"]);
    let text = Engine::new(config(None, Some(-1)), pool()).err().unwrap().to_string();
    assert!(text.contains("slot_base is -1"), "{text}");
    let text = Engine::new(config(None, Some(i32::MAX - 255)), pool()).err().unwrap().to_string();
    assert!(text.contains("256 slots behind it fit int32"), "{text}");
    assert!(Engine::new(config(None, Some(i32::MAX - 256)), pool()).is_ok());
}
