//! What an engine over a pool in a file takes. That engines which share such a pool see each other's rows is checked by the
//! random calls of `bindings/c/tests/fuzz`.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg::device::params::Params;
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine, Indexers, MachineChoice};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg::system::allocator::{Allocator, MemoryKind};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::{exact, fixture, tier};

use super::{K, OF_LAYER, ROWS, Setting, fill};

/// Rows of which two layers share a record and one has a record of its own, so long that neither a plan
/// nor the engine has room for the records of all misses; and more misses than one list of reads holds, the records of
/// which a plan keeps. They are written between the transfers of two layers.
#[test]
fn more_misses_than_a_bounce_buffer_or_a_list_holds_are_exact() {
    let folder = Scratch::new();
    let all = [
        (true, &[0, 0, 1][..], 300_000, [60, 1], 64),
        (true, &[0, 0], 16, [2048, 3], 8192),
        (false, &[0, 0, 1], 300_000, [60, 1], 64),
    ];
    let cases = if tier::thorough() { 3 } else { 2 };
    for (io_uring, of_layer, bytes, [k, states], slots) in all.into_iter().take(cases) {
        let (rows, indexers) = (k * states, Indexers::of_layers(of_layer).unwrap());
        let file = Some(PoolFile { io_uring, ..adapted(PoolFile::new(folder.path())) });
        let config = PoolConfig::new(of_layer.len(), rows, RowFormat::single(bytes).unwrap());
        let pool = PoolConfig { file, indexers: indexers.clone(), ..config };
        let pool = HostPool::new(&pool).unwrap();
        let write = |pool: &HostPool, version: u32| {
            fixture::fill(pool, rows, |layer, row| (row as i32, version + layer as u32));
        };
        write(&pool, 0);
        let (cores, machine) = (3, MachineChoice::Emu);
        let params = Params::wide(k as u32, 1, slots);
        let config = Config { cores, machine, indexers, ..Config::new(params, states) };
        let mut engine = Engine::new(config, pool).unwrap();
        let (mut plan, mut version) = (engine.new_plan(states, states).unwrap(), 0);
        for indexer in 0..=of_layer[of_layer.len() - 1] {
            let mut owned = OwnedBatch { indexer, ..OwnedBatch::new(k, 0) };
            for state in 0..states {
                let ids = (0..k).map(|lane| (lane * 7 % k * states + state) as i32).collect();
                owned.push([state as i32, 1, -1, rows as i32], &[ids]);
            }
            engine.plan(&owned.batch(), &mut plan).unwrap();
            assert_eq!(plan.total_misses(), rows);
            for layer in (0..of_layer.len()).filter(|&layer| of_layer[layer] == indexer) {
                engine.transfer(&mut plan, &[layer], None).unwrap();
                let content = |_, id| (id, version + layer as u32);
                assert_eq!(exact::check_step(&engine, &plan, &owned, layer, content), rows);
                if states > 1 {
                    version = 10;
                    write(engine.pool(), version);
                }
            }
        }
    }
}

/// An allocator that counts the bytes that it gives, which have the alignment that is asked for and no more.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

// SAFETY: the memory is that of the global allocator, zeroed, and not used by anything else.
unsafe impl Allocator for Counting {
    fn allocate(&self, _: MemoryKind, bytes: usize, alignment: usize) -> *mut u8 {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        let layout = Layout::from_size_align(alignment + bytes, 2 * alignment).unwrap();
        // SAFETY: the layout has room for the bytes behind the first `alignment`.
        unsafe { alloc_zeroed(layout).wrapping_add(alignment) }
    }

    unsafe fn release(&self, _: MemoryKind, _: *mut u8, _: usize) {
        // The test ends soon, and the memory with it.
    }
}

#[test]
fn an_allocator_is_asked_for_the_bytes_and_the_alignment_that_are_needed() {
    // Row sizes that are and are not multiples of a block, with and without room in the slots.
    for segments in [
        &[[64, 64]][..],
        &[[1000, 1024]],
        &[[1000, 1536]],
        &[[512, 512]],
        &[[504, 512]],
        &[[504, 4096]],
        &[[40, 47], [9, 9], [70, 71]],
    ] {
        let setting = Setting::new(segments);
        let counting = Arc::new(Counting::default());
        let allocator = Some(Arc::clone(&counting) as Arc<dyn Allocator>);
        let config = Config { allocator, ..setting.config() };
        let pool = setting.in_file();
        let (slots, rest) = Engine::bytes_needed(&config, &pool, None).unwrap();
        let mut engine = Engine::new(config.clone(), HostPool::new(&pool).unwrap()).unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), slots + rest);
        let bytes = Engine::plan_bytes(&config, &pool, 4, 2).unwrap();
        let mut plan = engine.new_plan(4, 2).unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), slots + rest + bytes);
        // Two layers share the longest record.
        let record = 2 * (setting.format().bytes() + 8);
        let bounce = 4 * K * record.next_multiple_of(512);
        assert!(bytes > bounce, "{bytes} with {bounce}");
        assert_eq!(OF_LAYER.len(), engine.pool().layers());
        fill(engine.pool());
        let mut owned = OwnedBatch::new(K, 0);
        owned.push([0, 1, -1, ROWS as i32], &[(0..K as i32).collect()]);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0));
    }
}
