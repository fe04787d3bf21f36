//! What a C caller says of its memory is compared before it is used: counts that do not fit are refused
//! before their array is read, inputs are not in memory that the call writes, and the queries of sizes
//! refuse what creation refuses.

#[path = "c_side/caller_memory.rs"]
mod caller_memory;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;
use caller_memory::*;

/// More elements than the tests' arrays have, which would all be read without a fault only if a few GiB
/// behind them were mapped.
const FALSE_COUNT: usize = 1 << 28;

/// Returns a buffer of slots that lie apart.
fn good_buffer() -> avsg_caller_buffer {
    let base = memory(4 * ROOM);
    buffer([0, 1, 2, 3].map(|n| base.wrapping_add(n * ROOM)), [24, 16, 0, 0])
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
        (0..=6).map(|machine| avsg_tuning { machine, ..tuning() }).for_each(tuned);
        let tuned = |t: avsg_tuning| check(&|_, config| config.tuning = &t);
        (0..=2).map(|strategy| avsg_tuning { strategy, ..tuning() }).for_each(tuned);
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
        let base = memory(ROOM);
        for buffer in [
            buffer([base; 4], [24, 16, 0, 0]),
            avsg_caller_buffer { base_count: 3, ..good_buffer() },
            avsg_caller_buffer { block_slots: 48, ..good_buffer() },
            avsg_caller_buffer { slot_stride: [23, 16, 0, 0], ..good_buffer() },
        ] {
            check(&|_, config| config.buffer = &buffer);
        }
        println!("{device:?}: {refused} refused");
        // "ascend-sim" ignores the machine, and refuses two strategies.
        assert!(refused >= if device == c"cpu" { 16 } else { 17 }, "{refused}");
    });
}

#[test]
fn counts_that_do_not_fit_are_refused_before_their_array_is_read() {
    let handles = Handles::on_cpu();
    let many = avsg_caller_buffer { base_count: FALSE_COUNT, ..good_buffer() };
    refuse_buffer(handles.pool, &many, &["buffer bases is 268435456", "need 4"]);
    let (indexers, mut engine) = (before_a_hole(&[0u32, 0]), null_mut());
    let mut config = engine_config();
    (config.layer_indexer, config.layer_indexers) = (indexers, FALSE_COUNT);
    // SAFETY: the struct has its `size` set, and the array is refused.
    let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
    expect_error(status, AVSG_INVALID, &["layers with an indexer is 268435456", "has 2 layers"]);

    let base = memory(2 * ROWS * ROW);
    let regions = [avsg_region { data: base.cast(), bytes: 2 * ROWS * ROW, device_address: 0 }];
    let parts = [part(0, 0, ROW), part(1, 24, ROW)];
    let layout = layout(&regions, &parts);
    for (regions, parts, text) in [
        (FALSE_COUNT, 2, "regions is 268435456, but there are 2 parts"),
        (1, FALSE_COUNT, "parts is 268435456, but there are 512 rows"),
    ] {
        let layout = avsg_pool_layout { region_count: regions, part_count: parts, ..layout };
        refuse_layout(&layout, &[text]);
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
        let status = avsg_engine_append(handles.engine, &batch, 0, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
        let (states, mut table, mut lengths) = (before_a_hole(&[0, 1]), [0; 2], [0; 2]);
        let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
        let n = FALSE_COUNT;
        let status = avsg_engine_get_block_table(handles.engine, states, n, 0, t, 1, l);
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
    }
    handles.destroy();
}

#[test]
fn inputs_in_memory_that_the_call_writes_are_refused() {
    each_device(inputs_in_written_memory);
}

fn inputs_in_written_memory(device: &'static CStr) {
    let handles = Handles::on(device);
    let (owned, mut table) = (Arrays::new(0), (null(), 0));
    let (mut slots, mut outputs) = (sized::<avsg_buffer>(), sized::<avsg_plan_arrays>());
    // SAFETY: the structs have their `size` set, and the out-pointers are local variables.
    unsafe {
        ok(avsg_engine_get_table(handles.engine, 0, 1, &mut table.0, &mut table.1));
        ok(avsg_engine_get_buffer(handles.engine, 1, 1, &mut slots));
        ok(avsg_plan_get_arrays(handles.plan, HOST, &mut outputs));
    }
    // The last slot of the last state.
    let last = config_on(device).slots as usize - 1;
    let slot = slots.base.wrapping_byte_add(slots.state_stride + last * slots.slot_stride);
    let refuse = |change: &dyn Fn(&mut avsg_batch, *const i32), at: *const i32, text: &str| {
        let (mut batch, fresh) = (owned.batch(), owned.fresh());
        change(&mut batch, at);
        // SAFETY: the arrays are those of `owned`, or refused before they are read.
        unsafe {
            let status = avsg_engine_plan(handles.engine, &batch, handles.plan, null_mut());
            expect_error(status, AVSG_INVALID, &[text]);
            let status =
                avsg_engine_step(handles.engine, &batch, handles.plan, 0, &fresh, null_mut());
            expect_error(status, AVSG_INVALID, &[text]);
        }
    };
    type Change = fn(&mut avsg_batch, *const i32);
    let changes: [(&str, Change); 7] = [
        ("ids", |batch, at| batch.ids.data = at),
        ("cu_q", |batch, at| batch.cu_q.data = at),
        ("state", |batch, at| batch.state.data = at),
        ("generation", |batch, at| batch.generation.data = at),
        ("stable_len", |batch, at| batch.stable_len.data = at),
        ("seq_len", |batch, at| batch.seq_len.data = at),
        ("block_table", |batch, at| batch.block_table.data = at),
    ];
    // On a device this is its copy of the table that was read last.
    let named = if device == c"cpu" { "the engine's tables there" } else { "copy of a table" };
    for (input, change) in changes {
        for (at, text) in [
            (slot.cast_const().cast(), "device buffer"),
            // The array begins before the table and ends in it.
            (table.0.wrapping_sub(1), named),
            (outputs.miss_row, "miss_row"),
        ] {
            refuse(&change, at, &format!("{input} has"));
            refuse(&change, at, text);
        }
    }
    // Fresh rows over slots.
    ok(handles.step(&owned, 0));
    let mut fresh = owned.fresh();
    fresh.data[1] = slot;
    // SAFETY: the arrays are those of `owned`, or refused before they are read.
    unsafe {
        let batch = owned.batch();
        let text = ["fresh data has 64 bytes", "device buffer"];
        let status = avsg_engine_step(handles.engine, &batch, handles.plan, 0, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &text);
        let status = avsg_engine_transfer(handles.engine, handles.plan, 1, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &text);
        // A load from a table.
        let mut load: avsg_load = sized();
        load.ids = avsg_i32s { data: table.0, len: 8 };
        load.block_table = owned.batch().block_table;
        (load.generation, load.seq_len) = (1, 100);
        let status = avsg_engine_load(handles.engine, &load, handles.plan);
        expect_error(status, AVSG_INVALID, &["ids has 8 elements", named]);
        // The outputs of a table of pages over its inputs.
        let mut states = [0, 1, 0, 0];
        let at = states.as_mut_ptr();
        let status = avsg_engine_get_block_table(handles.engine, at, 2, 0, at.add(1), 1, at.add(3));
        expect_error(status, AVSG_INVALID, &["table has 2 elements", "states has the same memory"]);
        ok(avsg_engine_get_block_table(handles.engine, at, 1, 0, at.add(1), 1, at.add(2)));
    }
    let owned = Arrays::new(1);
    ok(handles.step(&owned, 0));
    assert_eq!(handles.expect_exact(&owned, 0), 32);
    handles.destroy();
}
