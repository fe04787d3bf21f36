//! Configurations that cannot be: creation refuses each of them with a message, and the queries of sizes
//! refuse with the same one what does not depend on the machine. Counts that do not fit are refused before
//! their array is read.

use std::ffi::CStr;
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};

use avsg::ascend::acl::{Acl, Source};
use avsg::disk::PoolFile;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::allocator::Counting;
use avsg_capi_testkit::caller_memory::*;
use avsg_capi_testkit::device::{c_path, simulator_library};
use avsg_capi_testkit::*;
use avsg_sim::{Options, Session};
use avsg_testkit::scratch::{Scratch, adapted};

use crate::caller_memory::{block_major, in_blocks, parts, whole_region};
use crate::inputs::{FALSE_COUNT, before_a_hole};

/// The configurations of a pool and of an engine, of which a case changes some fields.
struct Structs {
    pool: avsg_pool_config,
    config: avsg_engine_config,
}

type Change<'a> = &'a dyn Fn(&mut Structs);
/// The status of a call, and its message if it failed.
type Outcome = (avsg_status, String);

fn outcome(status: avsg_status) -> Outcome {
    (status, if status == AVSG_OK { String::new() } else { last_error() })
}

/// Returns the outcomes of the creation of a pool and an engine, and of the queries of the sizes of both
/// with a plan and without one.
fn outcomes(device: &'static CStr, change: Change<'_>) -> [Outcome; 3] {
    let mut structs = Structs { pool: pool_config(), config: config_on(device) };
    change(&mut structs);
    let Structs { pool, config } = structs;
    let (mut made, mut engine) = (null_mut(), null_mut());
    // SAFETY: the structs have their `size` set or are refused, their arrays and strings live as long as the
    // calls or are refused before they are read, and the out-pointers are local variables.
    unsafe {
        let query = |rows, requests, stride| {
            outcome(avsg_get_memory(&config, &pool, rows, requests, stride, &mut sized()))
        };
        let (of_all, of_both) = (query(4, 2, 8), query(0, 0, 0));
        let mut created = outcome(avsg_pool_create(&pool, &mut made));
        if created.0 == AVSG_OK {
            created = outcome(avsg_engine_create(&config, made, &mut engine));
        }
        assert_eq!(engine.is_null(), created.0 != AVSG_OK, "NULL after a failure");
        ok(avsg_engine_destroy(engine));
        ok(avsg_pool_destroy(made));
        [created, of_all, of_both]
    }
}

/// A device, with assertions on the outcomes of a change there.
struct On(&'static CStr);

impl On {
    /// Returns the status of creation, which must have the outcome of the queries.
    fn agree(&self, change: Change<'_>) -> avsg_status {
        let [created, of_all, of_both] = outcomes(self.0, change);
        assert_eq!([&of_all, &of_both], [&created; 2], "on {:?}", self.0);
        created.0
    }

    /// Asserts that a change is refused; the status and the parts of the message are those of "cpu".
    fn refuse(&self, change: Change<'_>, expected: avsg_status, parts: &[&str]) {
        let status = self.agree(change);
        if self.0 == c"cpu" {
            expect_error(status, expected, parts);
        }
    }

    /// Asserts that creation refuses what the queries do not look at.
    fn refuse_creation(&self, change: Change<'_>, expected: avsg_status, parts: &[&str]) {
        let [(status, _), ..] = outcomes(self.0, change);
        expect_error(status, expected, parts);
    }

    fn invalid(&self, change: Change<'_>, parts: &[&str]) {
        self.refuse(change, AVSG_INVALID, parts);
    }
}

#[test]
fn wrong_engines_are_refused() {
    each_device(|device| {
        let on = On(device);
        assert_eq!(on.agree(&|_| ()), AVSG_OK);
        on.agree(&|s| (s.pool.rows, s.config.page) = (768, 4096));
        // A CPU has AVX-512 or NEON, but not both.
        for machine in 0..=3 {
            let tuning = avsg_tuning { machine, ..sized() };
            on.agree(&|s| s.config.tuning = &tuning);
        }
        let parts = ["\"gpu\"", "no such device", "avsg_devices"];
        on.invalid(&|s| s.config.device = c"gpu".as_ptr(), &parts);
        on.invalid(&|s| s.config.device = c"".as_ptr(), &["device is \"\""]);
        let tuned = |change: fn(&mut avsg_tuning), parts: &[&str]| {
            let mut tuning = sized();
            change(&mut tuning);
            on.invalid(&|s| s.config.tuning = &tuning, parts);
        };
        tuned(|t| t.table = 2, &["table is 2", "0..=1"]);
        tuned(|t| t.lifetime = -1, &["lifetime is -1"]);
        tuned(|t| t.lifetime = 3, &["lifetime is 3", "0..=2"]);
        tuned(|t| (t.lifetime, t.life) = (1, 128), &["life is 128", "127"]);
        tuned(|t| t.life = 5, &["life is 5", "lifetime is 0", "AVSG_LIFETIME_CONSTANT"]);
        tuned(|t| (t.lifetime, t.life) = (2, 5), &["life is 5", "lifetime is 2"]);
        tuned(|t| t.machine = 4, &["machine is 4", "0..=3"]);
        tuned(|t| t.copier = 4, &["copier is 4", "0..=3"]);
        tuned(|t| t.copier_ahead = 65, &["copier_ahead is 65"]);
        tuned(|t| t.launches = 3, &["launches is 3", "0..=2"]);
        tuned(|t| t.launches = u32::MAX, &["launches is", "0..=2"]);
        let odd = avsg_tuning { size: 8, ..sized() };
        let parts = ["avsg_tuning.size is 8", "has 40 bytes"];
        on.refuse(&|s| s.config.tuning = &odd, AVSG_SIZE, &parts);
        on.invalid(&|s| s.config.under_way = 65, &["transfers under way is 65", "0..=64"]);
        on.invalid(&|s| s.config.states = 0, &["states is 0"]);
        on.invalid(&|s| s.config.tokens = 0, &["is 0"]);
        on.invalid(&|s| s.config.slots = 0, &["is 0"]);
        on.invalid(&|s| s.config.states = 1 << 31, &["states is 2147483648"]);
        on.invalid(&|s| s.config.cores = 1025, &["1025"]);
        on.invalid(&|s| s.config.k = 65_000, &["K is 65000"]);
        for base in [-1, i32::MAX] {
            let parts = [&*format!("slot_base is {base}")];
            on.invalid(&|s| (s.config.global_slots, s.config.slot_base) = (1, base), &parts);
        }
        on.invalid(&|s| s.config.global_slots = 2, &["global_slots is 2"]);
        let false_count = (before_a_hole(&[0, 0]), FALSE_COUNT);
        let (gap, three) = ([0, 2], [0, 0, 0]);
        for (list, parts) in [
            ((gap.as_ptr(), 2), ["indexer of a layer is 2", "2"]),
            ((three.as_ptr(), 3), ["layers with an indexer is 3", "has 2 layers"]),
            (false_count, ["layers with an indexer is 268435456", "has 2 layers"]),
        ] {
            on.invalid(&|s| (s.config.layer_indexer, s.config.layer_indexers) = list, &parts);
        }
        let parts = ["workers is", "no handle"];
        on.refuse(&|s| s.config.workers = without_provenance(64), AVSG_HANDLE, &parts);
        let counting = Counting::on(c"cpu");
        let whole = counting.c();
        for (allocator, status, part) in [
            (avsg_allocator { allocate: None, ..whole }, AVSG_NULL, "allocate of avsg_allocator"),
            (avsg_allocator { release: None, ..whole }, AVSG_NULL, "release of avsg_allocator"),
            (avsg_allocator { size: 8, ..whole }, AVSG_SIZE, "avsg_allocator.size is 8"),
        ] {
            on.refuse(&|s| s.pool.allocator = &allocator, status, &[part]);
            on.refuse(&|s| s.config.allocator = &allocator, status, &[part]);
        }
        assert_eq!(counting.state().calls, 0);
    });
}

/// Bytes of a layer and segment of a buffer.
const ROOM: usize = 64 * 2 * 40;

#[test]
fn wrong_buffers_are_refused() {
    let base = memory(4 * ROOM);
    let at = |n: usize| base.wrapping_add(n * ROOM);
    let good = buffer([0, 1, 2, 3].map(at), [40, 24]);
    // SAFETY: the array has 4 elements.
    let many = before_a_hole(unsafe { std::slice::from_raw_parts(good.bases, 4) });
    each_device(|device| {
        let refuse = |change: &dyn Fn(&mut avsg_caller_buffer), expected, parts: &[&str]| {
            let mut buffer = good;
            change(&mut buffer);
            On(device).refuse(&|s| s.config.buffer = &buffer, expected, parts);
        };
        refuse(&|b| b.size = 8, AVSG_SIZE, &["avsg_caller_buffer.size is 8"]);
        refuse(&|b| b.bases = null(), AVSG_NULL, &["bases is NULL"]);
        refuse(&|b| b.base_count = 3, AVSG_INVALID, &["bases is 3", "need 4"]);
        let parts = ["buffer bases is 268435456", "need 4"];
        refuse(&|b| (b.bases, b.base_count) = (many, FALSE_COUNT), AVSG_INVALID, &parts);
        refuse(&|b| b.slot_stride[0] = 23, AVSG_INVALID, &["23"]);
        refuse(&|b| b.slot_stride[1] = 0, AVSG_INVALID, &["strides is 1"]);
        refuse(&|b| b.block_slots = 48, AVSG_INVALID, &["48"]);
        refuse(&|b| *b = buffer([at(0); 4], [24, 16]), AVSG_INVALID, &["slots of layer"]);
        let with_table = |table, parts: &[&str]| {
            let change = |b: &mut avsg_caller_buffer| {
                in_blocks(b);
                b.state_blocks = table;
            };
            refuse(&change, AVSG_INVALID, parts);
        };
        with_table(at(2).cast(), &["slots of layer 1, segment 0 from"]);
        with_table(without_provenance(isize::MAX as usize - 27), &["address space"]);
        with_table(base.wrapping_byte_add(1).cast(), &["multiple of 4"]);
    });
}

#[test]
fn wrong_pools_are_refused() {
    let folder = Scratch::new();
    let path = c_path(folder.path());
    let file = adapted(PoolFile::new(folder.path()));
    let file = avsg_pool_file { path: path.as_ptr(), buffered: file.buffered.into(), ..sized() };
    let whole = block_major(whole_region());
    each_device(|device| {
        let on = On(device);
        on.invalid(&|s| s.pool.layers = 0, &["layers is 0"]);
        on.invalid(&|s| s.pool.rows = 0, &["rows is 0"]);
        on.invalid(&|s| s.pool.segments = 0, &["segment count is 0"]);
        on.invalid(&|s| s.pool.segment_bytes[1] = 0, &["segment bytes is 0"]);
        on.invalid(&|s| s.pool.layers = usize::MAX, &["geometry is 18446744073709551615 layers"]);
        on.invalid(&|s| s.pool.rows = usize::MAX, &["of 18446744073709551615 rows"]);
        on.invalid(&|s| s.pool.segment_stride[0] = 23, &["23"]);
        on.invalid(&|s| s.pool.chunk_bytes = 23, &["chunk", "23"]);
        on.invalid(&|s| s.pool.segments = 5, &["segments is 5", "1 to 4"]);
        on.invalid(&|s| s.pool.pages = 5, &["pages is 5"]);
        on.invalid(&|s| s.pool.reserved = 1, &["reserved is 1"]);
        on.refuse(&|s| s.pool.size = 8, AVSG_SIZE, &["avsg_pool_config.size is 8"]);

        let in_file = |change: &dyn Fn(&mut avsg_pool_file), expected, parts: &[&str]| {
            let mut file = file;
            change(&mut file);
            on.refuse(&|s| s.pool.file = &file, expected, parts);
        };
        let status = on.agree(&|s| s.pool.file = &file);
        if device == c"cpu" {
            ok(status);
        } else {
            expect_error(status, AVSG_INVALID, &["pool file is set", "engine on the CPU"]);
        }
        in_file(&|file| file.path = null(), AVSG_NULL, &["path is NULL"]);
        in_file(&|file| file.keep = 2, AVSG_INVALID, &["keep is 2", "0..=1"]);
        in_file(&|file| file.buffered = -1, AVSG_INVALID, &["buffered is -1", "0..=1"]);
        let indexed = |list: &'static [u32], parts: &[&str]| {
            let (at, count) = (list.as_ptr(), list.len());
            in_file(&|f| (f.layer_indexer, f.layer_indexers) = (at, count), AVSG_INVALID, parts);
        };
        indexed(&[0, 1], &["layer 1 has indexer 1 in the pool's file"]);
        indexed(&[0, 2], &["layer"]);
        indexed(&[0], &["layers with an indexer is 1"]);
        let path = c_path(&folder.file("rows"));
        let kept = avsg_pool_file { path: path.as_ptr(), keep: 1, ..file };
        let many = |s: &mut Structs| (s.pool.file, s.pool.layers) = (&kept, 4065);
        on.invalid(&many, &["layers is 4065", "a kept file has at most 4056"]);
        let counting = Counting::on(c"cpu");
        let allocator = counting.c();
        let both = |s: &mut Structs| (s.pool.file, s.pool.allocator) = (&file, &allocator);
        on.invalid(&both, &["allocator", "file"]);
        let huge = avsg_pages::AVSG_PAGES_HUGE_1G as i32;
        let parts = ["pages", "the rows of this pool are in a file"];
        on.invalid(&|s| (s.pool.file, s.pool.pages) = (&file, huge), &parts);
        on.invalid(&|s| (s.pool.file, s.pool.rows) = (&file, usize::MAX / 2), &["pool geometry"]);
        let both = |s: &mut Structs| (s.pool.file, s.pool.layout) = (&file, &whole);
        on.invalid(&both, &["pool file is set", "memory of the caller"]);
        assert_eq!(folder.count(), 0);
    });
}

#[test]
fn layouts_that_cannot_hold_the_rows_are_refused() {
    let ([first, second], whole) = (parts(), whole_region());
    let region = region(memory(2 * ROWS * ROW), 2 * ROWS * ROW);
    let (regions, apart) = ([region], [part(0, 0, ROW), part(1, 24, ROW)]);
    let mut in_order = layout([2 * ROW; 2], &regions, &apart);
    (in_order.regions, in_order.parts) = (before_a_hole(&regions), before_a_hole(&apart));
    each_device(|device| {
        let refuse = |change: &dyn Fn(&mut avsg_pool_layout), expected, parts: &[&str]| {
            let mut layout = in_order;
            change(&mut layout);
            On(device).refuse(&|s| s.pool.layout = &layout, expected, parts);
        };
        // Only a pool in memory of the library has chunks.
        let own = |s: &mut Structs| (s.pool.layout, s.pool.chunk_bytes) = (&in_order, 1);
        assert_eq!(On(device).agree(&own), AVSG_OK);
        if device == c"cpu" {
            let slots = [0, 1, 2].map(|n| memory(4 * ROOM).wrapping_add(n * ROOM));
            let slots = buffer([slots[0], slots[1], slots[2], region.data.cast()], [40, 24]);
            let both = |s: &mut Structs| (s.pool.layout, s.config.buffer) = (&in_order, &slots);
            On(device).invalid(&both, &["rows of layer 0", "have the same bytes"]);
        }
        refuse(&|l| l.size = 8, AVSG_SIZE, &["avsg_pool_layout.size is 8"]);
        refuse(&|l| l.block_rows = 3, AVSG_INVALID, &["block rows is 3", "power of two"]);
        let parts = ["regions is 268435456, but there are 2 parts"];
        refuse(&|l| l.region_count = FALSE_COUNT, AVSG_INVALID, &parts);
        let parts = ["parts is 268435456, but there are 512 rows"];
        refuse(&|l| l.part_count = FALSE_COUNT, AVSG_INVALID, &parts);
        let null = avsg_region { data: null_mut(), ..whole };
        refuse(&|l| *l = block_major(null), AVSG_NULL, &["regions[].data is NULL"]);
        let data = without_provenance_mut(usize::MAX - 4095);
        let parts = ["bytes of region 0 from 0xfffffffffffff000", "address space"];
        let far = avsg_region { data, ..whole };
        refuse(&|l| *l = block_major(far), AVSG_INVALID, &parts);
        for huge in [usize::MAX, usize::MAX / 2] {
            for (part, text) in [
                (avsg_pool_part { rows: huge, ..second }, "rows of a part"),
                (avsg_pool_part { offset: huge, ..second }, "end of a part"),
                (avsg_pool_part { first_layer: huge, ..second }, "layers of a part"),
            ] {
                let parts = [first, part];
                let layout = avsg_pool_layout { parts: parts.as_ptr(), ..block_major(whole) };
                refuse(&|l| *l = layout, AVSG_INVALID, &[text]);
            }
        }
        // The host finds the rows of two layers apart, but the device does not.
        let addresses = [1 << 24, (1 << 24) + (ROWS * ROW) as u64];
        let on_device = addresses.map(|device_address| {
            let data = memory(2 * ROWS * ROW).cast();
            avsg_region { data, device_address, ..region }
        });
        let parts = [(0, 0, 0), (0, 1, 24), (1, 0, 0), (1, 1, 24)].map(|(layer, segment, at)| {
            let whole = part(segment, at, ROW);
            avsg_pool_part { region: layer, first_layer: layer, layers: 1, ..whole }
        });
        let text = ["0x1001400 for rows of layer 1, segment 0", "layer 0, segment 0 from"];
        let both = layout([2 * ROW; 2], &on_device, &parts);
        refuse(&|l| *l = both, AVSG_INVALID, &text);
    });
}

#[test]
fn what_a_machine_lacks_is_refused_with_what_was_tried() {
    let session = Session::new(Options::default());
    let parts = ["device memory is", "available"];
    On(c"cpu").refuse_creation(&|s| s.config.states = 1 << 30, AVSG_NO_MEMORY, &parts);
    let parts = ["host pool is", "available"];
    On(c"cpu").refuse_creation(&|s| s.pool.rows = 1 << 50, AVSG_NO_MEMORY, &parts);
    let refuse = |device, change: &dyn Fn(&mut avsg_ascend), expected, parts: &[&str]| {
        let mut ascend = sized();
        change(&mut ascend);
        On(device).refuse_creation(&|s| s.config.ascend = &ascend, expected, parts);
    };
    let nowhere = c"/nowhere/libascendcl.so";
    let parts = ["Ascend runtime", "tried /nowhere/libascendcl.so"];
    refuse(c"ascend", &|a| a.runtime = nowhere.as_ptr(), AVSG_UNSUPPORTED, &parts);
    // On an Ascend machine this configuration would find the real runtime.
    if Acl::open(&Source::System).is_err() {
        let parts = ["libacl_rt.so", "libascendcl.so", "set_env.sh"];
        refuse(c"ascend", &|_| (), AVSG_UNSUPPORTED, &parts);
    }
    if have_compiler() {
        let runtime = c_path(&simulator_library());
        let parts = ["geometry is Wide table, K 8", "this library", "avsg emit"];
        refuse(c"ascend", &|a| a.runtime = runtime.as_ptr(), AVSG_INVALID, &parts);
        let far = |a: &mut avsg_ascend| (a.runtime, a.device_id) = (runtime.as_ptr(), 9);
        refuse(c"ascend", &far, AVSG_INVALID, &["device is 9", "libavsg_ascendcl_sim.so has 1"]);
    }
    let sim = c"ascend-sim";
    refuse(sim, &|a| a.device_id = 77, AVSG_INVALID, &["device is 77"]);
    let parts = ["a kernel", "/nowhere/avsg_plan.o"];
    refuse(sim, &|a| a.kernels = c"/nowhere".as_ptr(), AVSG_UNSUPPORTED, &parts);
    refuse(sim, &|a| a.size = 0, AVSG_SIZE, &["avsg_ascend.size is 0", "sizeof(avsg_ascend)"]);
    let wide = avsg_tuning { spread: 4, ..sized() };
    let large = |s: &mut Structs| {
        (s.config.k, s.config.slots, s.config.tokens, s.config.tuning) = (2048, 8192, 4, &wide);
    };
    On(sim).refuse_creation(&large, AVSG_INVALID, &["bytes", "a smaller spread"]);
    assert_eq!(session.leaks(), Vec::<String>::new());
}
