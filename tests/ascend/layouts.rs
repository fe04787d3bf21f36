//! Pools in memory that the caller laid out, on the CPU and on the simulated device: every row is
//! where the layout says, every selected row is exact, and appended rows reach it.

use std::ops::Range;

use avsg::Result;
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::Registration;
use avsg::engine::{Engine, MachineChoice};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::{RowFormat, Strides};
use avsg_sim::Options;
use avsg_testkit::fixture;
use avsg_testkit::workload::{self, Shape, long_workload};

use crate::harness::{engine_over, expect_refusal, in_session, seeded};

/// A geometry of two layers with 576 rows, whose two segments have 64 bytes and one byte.
const SHAPE: [u8; 9] = [1, 0, 7, 1, 1, 2, 4, 6, 3];
const LAYERS: usize = 2;
const ROWS: usize = 576;

/// A layout, with the memory that its regions are in.
struct Memory {
    name: &'static str,
    /// Whole pages of each region, and the bytes before the region.
    pages: Vec<(&'static mut [u8], usize)>,
    lens: Vec<usize>,
    strides: [Strides; 2],
    parts: Vec<Part>,
}

/// Returns whole pages of zeroed memory, at least `bytes` bytes, which are never freed.
fn pages(bytes: usize) -> &'static mut [u8] {
    let len = bytes.next_multiple_of(4096);
    let memory = vec![0; len + 4096].leak();
    let at = memory.as_ptr().align_offset(4096);
    &mut memory[at..at + len]
}

/// Allocates regions of `lens` bytes, each some odd bytes behind the start of a page. The memory is
/// never freed.
fn memory(name: &'static str, lens: Vec<usize>, strides: [Strides; 2], parts: Vec<Part>) -> Memory {
    let places = lens.iter().enumerate().map(|(at, &len)| (13 * at + 5, len));
    let pages = places.map(|(before, len)| (pages(before + len), before)).collect();
    Memory { name, pages, lens, strides, parts }
}

impl Memory {
    fn regions(&mut self) -> Vec<Region> {
        let region = |((pages, before), &len): (&mut (&'static mut [u8], usize), &usize)| Region {
            memory: Chunk::new(pages[*before..].as_mut_ptr(), len).unwrap(),
            device_address: None,
        };
        self.pages.iter_mut().zip(&self.lens).map(region).collect()
    }

    fn pool_in(&self, regions: &[Region]) -> Result<HostPool> {
        let layout = HostLayout { regions, strides: &self.strides, parts: &self.parts };
        // SAFETY: the memory is never freed, and the test accesses rows only between steps.
        HostPool::new(&unsafe { config().with_layout(&layout) }?)
    }
}

fn config() -> PoolConfig {
    Shape::from(SHAPE).pool()
}

fn part(segment: usize, region: usize, offset: usize, layer_stride: usize) -> Part {
    Part { segment, layers: 0..LAYERS, rows: 0..ROWS, region, offset, layer_stride }
}

/// Returns the parts of one segment whose rows are divided among regions from `first` on.
fn split(segment: usize, first: usize, per_part: usize, layer_stride: usize) -> Vec<Part> {
    let rows = |at: usize| -> Range<usize> { at * per_part..((at + 1) * per_part).min(ROWS) };
    let parts = (0..ROWS.div_ceil(per_part))
        .map(|at| Part { rows: rows(at), ..part(segment, first + at, 0, layer_stride) });
    parts.collect()
}

/// Returns a layout of each kind.
fn memories() -> Vec<Memory> {
    let blocked = |block_rows, block, row| Strides { block_rows, block, row };
    let of_layer = |segment, layer: usize| Part {
        layers: layer..layer + 1,
        ..part(segment, 2 * layer + segment, 3, 0)
    };
    let per_layer = |segment| (0..LAYERS).map(move |layer| of_layer(segment, layer));
    vec![
        // One region: all layers and both segments of a token side by side.
        memory(
            "token-major",
            vec![ROWS * LAYERS * 65],
            [Strides::rows(LAYERS * 65); 2],
            vec![part(0, 0, 0, 65), part(1, 0, 64, 65)],
        ),
        // Blocks of 16 rows: the blocks of all layers side by side, then padding.
        memory(
            "block-major",
            vec![ROWS / 16 * 2700],
            [blocked(16, 2700, 65), blocked(16, 2700, 1)],
            vec![part(0, 0, 7, 1100), part(1, 0, 7 + 16 * 65, 1100)],
        ),
        memory(
            "blocks of one row",
            vec![ROWS * 80 * LAYERS],
            [blocked(1, 80, 0), blocked(1, 80, 0)],
            vec![part(0, 0, 0, ROWS * 80), part(1, 0, 64, ROWS * 80)],
        ),
        memory(
            "a region per layer and segment",
            [ROWS * 70 + 3, ROWS * 3 + 3].repeat(LAYERS),
            [Strides::rows(70), Strides::rows(3)],
            per_layer(0).chain(per_layer(1)).collect(),
        ),
        // 576 rows of the first segment in 5 regions of 128 rows, 8 blocks each.
        memory(
            "several regions of blocks",
            [vec![8 * 1100 * LAYERS; 5], vec![32 * 100 * LAYERS; 2]].concat(),
            [blocked(16, 1100, 66), blocked(16, 100, 5)],
            [split(0, 0, 128, 8800), split(1, 5, 512, 32 * 100)].concat(),
        ),
    ]
}

/// Returns the offset of a row in its region, by the formula of the documentation.
fn offset(strides: Strides, part: &Part, layer: usize, row: usize) -> usize {
    let (layer, row) = (layer - part.layers.start, row - part.rows.start);
    let within = match strides.block_rows {
        0 => row * strides.row,
        rows => row / rows * strides.block + row % rows * strides.row,
    };
    part.offset + layer * part.layer_stride + within
}

/// Random workloads check every slot and every row of the pool: on the CPU, and on the device with memory that is
/// registered for it and with memory that the caller registered.
#[test]
fn every_row_is_where_the_layout_says_and_exact_on_both_devices() {
    let workload = long_workload(SHAPE, 8);
    let config = workload.shape.config(MachineChoice::Emu);
    let expected = workload::run(&workload, workload.shape.engine(MachineChoice::Emu));
    for mut memory in memories() {
        let mut regions = memory.regions();
        let pool = memory.pool_in(&regions).unwrap();
        for (layer, row) in (0..LAYERS).flat_map(|layer| (0..ROWS).map(move |row| (layer, row))) {
            for segment in 0..2 {
                let of_segment = memory.parts.iter().filter(|part| part.segment == segment);
                let mut of_layer = of_segment.filter(|part| part.layers.contains(&layer));
                let part = of_layer.find(|part| part.rows.contains(&row)).unwrap();
                let at = offset(memory.strides[segment], part, layer, row);
                let base = regions[part.region].memory.ptr().wrapping_add(at);
                assert_eq!(pool.view(layer, segment).unwrap().ptr(row), base, "{}", memory.name);
            }
        }
        assert_eq!(pool.bytes(), memory.lens.iter().sum::<usize>());
        assert!(pool.export().is_err());
        let engine = Engine::new(config.clone(), pool).unwrap();
        assert!(workload::run(&workload, engine) == expected, "{}", memory.name);
        in_session(seeded(5), |session, context| {
            let serve = |pool: HostPool| {
                let engine = engine_over(session, context, &config, pool).unwrap();
                assert!(workload::run(&workload, engine) == expected, "{}", memory.name);
                context.take_error().unwrap();
            };
            serve(memory.pool_in(&regions).unwrap());
            // The memory stays registered until the engine is dropped.
            let mut registrations = Vec::new();
            for ((pages, before), region) in memory.pages.iter_mut().zip(&mut regions) {
                // SAFETY: the memory is never freed.
                let new = unsafe { Registration::new(context, pages.as_mut_ptr(), pages.len()) };
                let registration = new.unwrap();
                region.device_address = Some(registration.address() + *before as u64);
                registrations.push(registration);
            }
            let pool = memory.pool_in(&regions).unwrap();
            assert_eq!(pool.chunks().len(), 0, "nothing is left to register");
            serve(pool);
        });
    }
}

#[test]
fn a_weak_registration_ends_with_the_last_registered_pool() {
    in_session(Options::default(), |_, context| {
        let pool = fixture::pool(1, 8, RowFormat::single(64).unwrap());
        let registered = RegisteredPool::new(context, pool).unwrap();
        let weak = registered.downgrade();
        assert!(weak.upgrade().is_some());
        drop(registered);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn layouts_that_do_not_hold_every_row_once_are_refused() {
    let refuse = |change: &dyn Fn(&mut Memory), parts: &[&str]| {
        let mut memory = memories().swap_remove(1);
        change(&mut memory);
        let regions = memory.regions();
        expect_refusal(memory.pool_in(&regions), parts);
    };
    refuse(&|m| m.parts.truncate(1), &["rows of a part is 0"]);
    refuse(&|m| m.parts[0].layers.end = 1, &["layer is 1, segment 0, row 0", "no part holds it"]);
    refuse(&|m| m.parts.push(m.parts[0].clone()), &["layer is 0, segment 0, row 0", "two parts"]);
    refuse(&|m| m.parts[0].rows.end = 577, &["rows of a part is 0..577", "the pool has 576"]);
    refuse(&|m| m.parts[0].rows.end = 0, &["rows of a part is 0..0"]);
    refuse(&|m| m.parts[1].segment = 2, &["segment of a part is 2"]);
    refuse(&|m| m.parts[1].region = 1, &["region of a part is 1"]);
    refuse(&|m| m.parts[1].offset = usize::MAX, &["end of a part", "region 0 has 97200 bytes"]);
    refuse(&|m| m.parts[1].layer_stride = !0, &["end of a part", "beyond the address space"]);
    refuse(&|m| m.lens[0] -= 2000, &["end of a part is", "region 0 has 95200 bytes"]);
    let twelve = |m: &mut Memory| m.strides.iter_mut().for_each(|s| s.block_rows = 12);
    refuse(&twelve, &["block rows is 12", "power of two"]);
    refuse(&|m| m.strides[1].block_rows = 8, &["block rows is 8", "another segment has 16"]);
    refuse(&|m| m.strides[0].row = 63, &["row stride is 63", "holds 64 bytes"]);
    refuse(&|m| m.strides[0].block = 63, &["block stride is 63"]);
    // Rows that overlap: layers, segments and blocks. A block of a layer has 16 * (65 + 1) bytes.
    let parts = ["rows of layer 1, segment 0", "layer 0, segment 1"];
    refuse(&|m| m.parts[0].layer_stride = 1055, &parts);
    refuse(&|m| m.parts[0].layer_stride = 63, &["layer stride is 63", "holds 64 bytes"]);
    refuse(&|m| m.parts[1].offset -= 2, &["rows of layer 0, segment 1", "layer 0, segment 0 from"]);
    let near = |m: &mut Memory| m.strides.iter_mut().for_each(|s| s.block = 2155);
    refuse(&near, &["rows of layer 0, segment 0", "have the same bytes"]);
    refuse(&|m| m.strides[0].block = 1038, &["block stride is 1038", "takes 1039 bytes"]);
    // More parts than rows, more regions than parts, and chunks that no part can hold.
    let many = |m: &mut Memory| m.parts = vec![m.parts[0].clone(); 2305];
    refuse(&many, &["parts is 2305", "there are 2304 rows"]);
    refuse(&|m| m.parts.truncate(0), &["regions is 1", "there are 0 parts"]);
    let (regions, config) = (memories().swap_remove(1).regions(), config());
    let strides = [Strides::rows(64), Strides::rows(1)];
    let huge = PoolConfig { layers: 1 << 32, rows: 1 << 40, ..config };
    let one = |segment| Part { layers: 0..1, rows: 0..1, ..part(segment, 0, 64 * segment, 0) };
    let parts = [one(0), one(1)];
    for (rows, text) in [(1 << 20, "layer is 0, segment 0, row 1,"), (1 << 63, "address space")] {
        let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
        let huge = PoolConfig { rows, ..huge.clone() };
        // SAFETY: the memory is never freed, and the pool is refused.
        expect_refusal(unsafe { huge.with_layout(&layout) }, &[text]);
    }
    let halves = |m: &mut Memory| {
        let halves = [0..288, 288..576].map(|rows| Part { rows, ..m.parts[0].clone() });
        m.parts.splice(0..1, halves);
    };
    refuse(&halves, &["rows of a part is", "hold 512 rows each", "power of two"]);
}
