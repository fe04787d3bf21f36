//! The step path allocates no memory and starts no thread, on any thread of the process, and queueing a step on an Ascend
//! device allocates no host memory. The simulator is loaded as a shared library, so that its own allocations are not
//! counted.

use std::ptr::without_provenance;
use std::sync::Arc;

use allocations::calls;
use avsg::Error;
use avsg::ascend::acl::{Acl, Context, Source, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;

use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory::read_words;
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{allocations, alone, exact, fixture};

use crate::prerequisites;

/// Returns the number of threads, without those that the kernel starts for io_uring.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| !name.starts_with("iou-")).count()
}

const K: usize = 32;
const LAYERS: usize = 2;

fn format() -> RowFormat {
    RowFormat::segments(&[96, 20]).unwrap()
}

/// Returns a pool in a file, of whose 1024 rows the first `written` are written.
fn in_file(io_uring: bool, written: usize) -> HostPool {
    // The queue of writes is short, so that appends have to write.
    let folder = Scratch::new();
    let file = adapted(PoolFile { io_uring, queue_bytes: 1, ..PoolFile::new(folder.path()) });
    let config = PoolConfig { file: Some(file), ..PoolConfig::new(LAYERS, 1024, format()) };
    let pool = HostPool::new(&config).unwrap();
    fixture::fill(&pool, written, |layer, row| (row as i32, layer as u32));
    pool
}

fn steps_on(pool: HostPool, cores: usize, page: u32) {
    let params = Params { page, ..Params::wide(K as u32, 2, 128) };
    let config = Config { cores, ..Config::new(params, 4) };
    let mut engine = Engine::new(config, pool).unwrap();
    let mut plan = engine.new_plan(8, 4).unwrap();
    let workers = threads();
    for step in 0..40usize {
        let stable = 200 + step as i32 * 2;
        let mut owned = OwnedBatch::new(K, 1);
        let id = |r: usize, g: usize, i: usize| match i {
            0 => -1,
            1 => i32::MAX,
            2 if r != 2 => stable + g as i32,
            _ => ((step * 3 + i * 5 + r * 7) % 200) as i32,
        };
        for r in 0..4usize {
            let rows = [0, 1].map(|g| (0..K).map(|i| id(r, g, i)).collect());
            // Request 1 joins at every fifth step, request 2 only reads, request 3 is padded.
            let state = if r == 3 { -1 } else { r as i32 };
            let stable = if r == 2 { -1 } else { stable };
            let generation = if r == 1 { step as i32 / 5 } else { 1 };
            let seq = if stable < 0 { 200 } else { stable + 2 };
            owned.push([state, generation, stable, seq], &rows);
            // All requests have the same block table and select different ids.
            owned.block_stride = if page == 0 { 0 } else { 1024 / page as usize };
            owned.blocks.extend(0..owned.block_stride as i32);
        }
        let mut fresh = FreshRows::new(&format(), 8);
        (0..8).for_each(|at| fresh.put(at, stable + at as i32 % 2, 0));
        let segments = fresh.segments();
        let (batch, fresh) = (owned.batch(), &*segments);
        // No layer has the rows of the first batch when the next one is planned.
        let planned = calls(|| (0..2).for_each(|_| engine.plan(&batch, &mut plan).unwrap()));
        let transferred = calls(|| {
            for layer in (0..LAYERS).rev() {
                engine.transfer(&mut plan, &[layer], Some(fresh)).unwrap();
            }
        });
        let stepped = calls(|| engine.step(&batch, &mut plan, 0, Some(fresh)).unwrap());
        engine.transfer(&mut plan, &[1], Some(fresh)).unwrap();
        let appended = calls(|| {
            (0..LAYERS).for_each(|layer| engine.append(&batch, &[layer], fresh).unwrap());
        });
        let (all, layers) = (segments.repeat(LAYERS), [0, 1]);
        let listed = calls(|| {
            engine.transfer(&mut plan, &layers, Some(&all)).unwrap();
            engine.append(&batch, &layers, &all).unwrap();
        });
        let begun = calls(|| {
            engine.begin(&mut plan, &layers, Some(&all)).unwrap();
            while !engine.is_done(&plan).unwrap() {}
            engine.wait(&mut plan).unwrap();
        });
        let counts = [planned, transferred, stepped, appended, listed, begun];
        assert_eq!(counts, [0; 6], "allocator calls on {cores} cores");
        assert_eq!(threads(), workers, "the number of threads changed");
        assert!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)) > 5 * (K - 2));
    }
}

#[test]
fn the_step_path_allocates_no_memory_and_starts_no_thread() {
    let _turn = alone::turn();
    allocations::check();
    let before = threads();
    let pool = fixture::pool(1, 64, RowFormat::single(8).unwrap());
    drop(fixture::engine(Params::wide(4, 1, 64), 1, 1, pool));
    assert_eq!(threads(), before, "an engine of one core starts no thread");
    for cores in [1, 2, 5] {
        steps_on(fixture::pool(LAYERS, 1024, format()), cores, 0);
        let files = [true, false].map(|io_uring| in_file(io_uring, 1024));
        for pool in files.into_iter().chain([fixture::pool(LAYERS, 1024, format())]) {
            steps_on(pool, cores, 16);
        }
    }
}

#[test]
fn a_step_that_leaves_a_request_out_allocates_no_memory() {
    let _turn = alone::turn();
    allocations::check();
    for io_uring in [true, false] {
        let params = Params::wide(K as u32, 1, 128);
        let mut engine = fixture::engine(params, 2, 2, in_file(io_uring, 900));
        let mut plan = engine.new_plan(2, 2).unwrap();
        let mut owned = OwnedBatch::new(K, 0);
        for (state, first) in [(0, 100), (1, 880)] {
            owned.push([state, 1, -1, 1024], &[(first..first + K as i32).collect()]);
        }
        let mut lost = 0;
        let count = calls(|| {
            let stepped = engine.step(&owned.batch(), &mut plan, 0, None);
            let transferred = engine.transfer(&mut plan, &[1], None);
            let errors = [stepped, transferred].into_iter().filter_map(Result::err);
            lost = errors.filter(|error| matches!(error, Error::LostRows { .. })).count();
        });
        assert_eq!((count, lost), (0, 2), "allocator calls and errors");
    }
}

#[test]
fn queueing_a_step_allocates_no_host_memory() {
    let _turn = alone::turn();
    if !prerequisites::has_cpp_compiler() {
        return;
    }
    let acl = Acl::open(&Source::Path(prerequisites::simulator_library())).unwrap();
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    let (k, page) = (params.k as usize, params.page as usize);
    let pool = fixture::pool(1, 512, RowFormat::single(64).unwrap());
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let kernels = Some(simulated::emit(&params).unwrap());
    let options = AscendOptions { kernels, ..AscendOptions::new(context.clone()) };
    let config = Config { cores: 2, ..Config::new(params, 1) };
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    let stream = Stream::new(&context).unwrap();

    allocations::check();
    let step = |round: i32| {
        let (blocks, block_stride) = ((0..512 / page as i32).collect(), 512 / page);
        let mut step = OwnedBatch { blocks, block_stride, ..OwnedBatch::new(k, 0) };
        step.push([0, 0, -1, 512], &[(0..k as i32).map(|i| i * 3 + round * 50).collect()]);
        step
    };
    let arrays = DeviceArrays::new(&context, &step(0), &[]).unwrap();
    let batch = arrays.batch();
    let mut plan = engine.new_plan(1, 1).unwrap();
    for round in 0..4 {
        arrays.write(&step(round), &[]).unwrap();
        let count = calls(|| {
            // SAFETY: the arrays hold one request of K ids and are dropped after the stream was
            // waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
        });
        assert!(round == 0 || count == 0, "{count} allocator calls while a step is queued");
        stream.synchronize(60_000).unwrap();
    }
    let valid = without_provenance(plan.device_arrays().unwrap().valid as usize);
    // SAFETY: `valid` points to the plan's array of valid counts, which has a word for its one row.
    let valid = unsafe { read_words(Some(&context), valid, 1) };
    assert_eq!(valid, [params.k as i32], "the kernels have run");
}
