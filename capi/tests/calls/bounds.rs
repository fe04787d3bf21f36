//! What a C caller says of its memory is compared before it is used: counts that do not fit are refused
//! before their array is read, and the queries of sizes refuse what creation refuses.

use std::ffi::CString;
use std::ptr::null_mut;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::*;
use avsg_capi_testkit::*;

/// More elements than the tests' arrays have, which would all be read without a fault only if a few GiB
/// behind them were mapped.
const FALSE_COUNT: usize = 1 << 28;
/// Bytes of a layer and segment of a buffer.
const ROOM: usize = 64 * 2 * 40;

/// Returns a copy of values that ends with a page behind which nothing is mapped. It is never freed.
fn before_a_hole<T: Copy>(values: &[T]) -> *const T {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let bytes = size_of_val(values);
    let len = bytes.next_multiple_of(4096);
    // SAFETY: the system chooses the address of the new mapping, whose last page loses its access
    // before anything has its address, and whose other pages have room for the values.
    unsafe {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let at = mmap_anonymous(null_mut(), len + 4096, access, flags).unwrap();
        mprotect(at.byte_add(len), 4096, MprotectFlags::empty()).unwrap();
        let copy = at.byte_add(len - bytes).cast::<T>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        copy
    }
}

/// Returns a buffer of slots that lie apart.
fn good_buffer() -> avsg_caller_buffer {
    let base = memory(4 * ROOM);
    buffer([0, 1, 2, 3].map(|n| base.wrapping_add(n * ROOM)), [24, 16])
}

/// Returns the status and the message of a call; the message is empty if it succeeded.
fn outcome(status: avsg_status) -> (avsg_status, String) {
    (status, if status == AVSG_OK { String::new() } else { last_error() })
}

/// Returns the outcome of the creation of a pool and an engine.
fn create(pool: &avsg_pool_config, config: &avsg_engine_config) -> (avsg_status, String) {
    let (mut pool_handle, mut engine) = (null_mut(), null_mut());
    // SAFETY: the structs have their `size` set, and the out-pointers are local variables.
    unsafe {
        let mut made = outcome(avsg_pool_create(pool, &mut pool_handle));
        if made.0 == AVSG_OK {
            made = outcome(avsg_engine_create(config, pool_handle, &mut engine));
        }
        ok(avsg_engine_destroy(engine));
        ok(avsg_pool_destroy(pool_handle));
        made
    }
}

/// Asserts that creation and both queries of sizes give one outcome, and returns its status.
fn same_outcome(pool: &avsg_pool_config, config: &avsg_engine_config) -> avsg_status {
    let made = create(pool, config);
    // SAFETY: the structs have their `size` set.
    unsafe {
        let all = outcome(avsg_get_memory(config, pool, 4, 2, 8, &mut sized()));
        assert_eq!(all, made);
        let made_alone = outcome(avsg_get_memory(config, pool, 0, 0, 0, &mut sized()));
        assert_eq!(made_alone, made);
    }
    made.0
}

#[test]
fn queries_of_sizes_refuse_what_creation_refuses() {
    each_device(|device| {
        let mut refused = 0;
        let mut check = |change: &dyn Fn(&mut avsg_pool_config, &mut avsg_engine_config)| {
            let (mut pool, mut config) = (pool_config(), config_on(device));
            change(&mut pool, &mut config);
            refused += usize::from(same_outcome(&pool, &config) == AVSG_INVALID);
        };
        check(&|_, _| ());
        check(&|pool, config| (pool.rows, config.page) = (768, 4096));
        // A CPU has AVX-512 or NEON, but not both.
        let tuned = |t: avsg_tuning| check(&|_, config| config.tuning = &t);
        (0..=3).map(|machine| avsg_tuning { machine, ..sized() }).for_each(tuned);
        check(&|_, config| config.states = 0);
        check(&|_, config| config.states = 1 << 31);
        check(&|_, config| config.cores = 1025);
        check(&|_, config| config.k = 65_000);
        check(&|_, config| (config.global_slots, config.slot_base) = (1, -1));
        check(&|_, config| (config.global_slots, config.slot_base) = (1, i32::MAX));
        let indexers = [0, 0, 0];
        check(&|_, config| (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 3));
        check(&|pool, _| pool.layers = 0);
        check(&|pool, _| pool.layers = usize::MAX);
        check(&|pool, _| pool.rows = usize::MAX);
        check(&|pool, _| pool.segment_stride[0] = 23);
        check(&|pool, _| pool.chunk_bytes = 23);
        let folder = CString::new(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (path, layer_indexer) = (folder.as_ptr(), [0, 1].as_ptr());
        for (keep, layer_indexers) in [(0, 0), (0, 2), (2, 0)] {
            let file = avsg_pool_file { path, keep, layer_indexer, layer_indexers, ..sized() };
            check(&|pool, _| pool.file = &file);
        }
        let base = memory(ROOM);
        for buffer in [
            buffer([base; 4], [24, 16]),
            avsg_caller_buffer { base_count: 3, ..good_buffer() },
            avsg_caller_buffer { block_slots: 48, ..good_buffer() },
            avsg_caller_buffer { slot_stride: [23, 16, 0, 0], ..good_buffer() },
        ] {
            check(&|_, config| config.buffer = &buffer);
        }
        println!("{device:?}: {refused} refused");
        assert!(refused >= 18, "{refused}");
    });
}

#[test]
fn counts_that_do_not_fit_are_refused_before_their_array_is_read() {
    let handles = Handles::on_cpu();
    let mut engine = null_mut();
    let mut many = good_buffer();
    // SAFETY: the array has 4 elements.
    many.bases = before_a_hole(unsafe { std::slice::from_raw_parts(many.bases, 4) });
    many.base_count = FALSE_COUNT;
    let indexed = avsg_engine_config {
        layer_indexer: before_a_hole(&[0u32, 0]),
        layer_indexers: FALSE_COUNT,
        ..engine_config()
    };
    for (config, parts) in [
        (
            avsg_engine_config { buffer: &many, ..engine_config() },
            ["buffer bases is 268435456", "need 4"],
        ),
        (indexed, ["layers with an indexer is 268435456", "has 2 layers"]),
    ] {
        // SAFETY: the structs have their `size` set, and the arrays are refused.
        let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
        expect_error(status, AVSG_INVALID, &parts);
    }
    let region = region(memory(2 * ROWS * ROW), 2 * ROWS * ROW);
    let (regions, parts) = ([region], [part(0, 0, ROW), part(1, 24, ROW)]);
    let whole = layout([2 * ROW; 2], &regions, &parts);
    let (regions, parts) = (before_a_hole(&regions), before_a_hole(&parts));
    for (region_count, part_count, text) in [
        (FALSE_COUNT, 2, "regions is 268435456, but there are 2 parts"),
        (1, FALSE_COUNT, "parts is 268435456, but there are 512 rows"),
    ] {
        let layout = avsg_pool_layout { regions, region_count, parts, part_count, ..whole };
        let config = avsg_pool_config { layout: &layout, ..pool_config() };
        // SAFETY: the structs have their `size` set, and the arrays are refused.
        let status = unsafe { avsg_pool_create(&config, &mut null_mut()) };
        expect_error(status, AVSG_INVALID, &[text]);
    }

    // The arrays of a batch agree in their false length.
    let owned = Arrays::new(0);
    let mut batch = owned.batch();
    for (array, values) in [
        (&mut batch.cu_q, &owned.cu_q),
        (&mut batch.state, &owned.state),
        (&mut batch.generation, &owned.generation),
        (&mut batch.stable_len, &owned.stable),
        (&mut batch.seq_len, &owned.seq),
    ] {
        *array = avsg_i32s { data: before_a_hole(values), len: FALSE_COUNT };
    }
    batch.cu_q.len += 1;
    let fresh = owned.fresh();
    // SAFETY: `owned` owns the other arrays, and those with a false length are refused.
    unsafe {
        let status = avsg_engine_plan(handles.engine, &batch, handles.plan, null_mut());
        // The arrays of this length reach into the plan or its engine, or are too many for the plan.
        expect_error(status, AVSG_INVALID, &[]);
        let status = avsg_engine_append(handles.engine, &batch, &0, 1, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
        let (states, mut table, mut lengths) = (before_a_hole(&[0, 1]), [0; 2], [0; 2]);
        let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
        let n = FALSE_COUNT;
        let status = avsg_engine_get_page_table(handles.engine, states, n, 0, t, 1, l);
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
    }
    handles.destroy();
}
