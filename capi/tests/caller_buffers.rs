//! Device buffers in memory of a C caller: exact steps at the caller's strides and by its table of
//! blocks on every device, global slots with host arrays and in a stream, and refusals.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use avsg::ascend::acl::DeviceMemory;
use avsg::ascend::simulated;
use avsg_capi::avsg_status::{AVSG_INVALID, AVSG_NULL, AVSG_SIZE};
use avsg_capi::*;
use avsg_capi_testkit::device_arrays::DeviceStep;
use avsg_capi_testkit::workload::{device_outputs, host_outputs};
use avsg_capi_testkit::*;
use avsg_sim::{entries, sys};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};

/// Bytes of a layer and segment in these tests.
const ROOM: usize = 40_000;
const STRIDES: [usize; 4] = [40, 24, 0, 0];
/// Blocks of 16 slots in a buffer with a table.
const BLOCKS: usize = 20;
const BASE: i32 = 5000;

/// Returns a buffer whose bases are `ROOM` bytes apart from `base` on, with padded states of `slots`
/// slots. The array of bases is never freed.
fn buffer(base: *mut u8, slots: usize) -> avsg_caller_buffer {
    let bases: Vec<*mut c_void> = (0..4).map(|n| base.wrapping_add(n * ROOM).cast()).collect();
    avsg_caller_buffer {
        bases: bases.leak().as_ptr(),
        base_count: 4,
        block_slots: slots,
        block_stride: STRIDES.map(|stride| stride * slots + 100),
        slot_stride: STRIDES,
        ..sized()
    }
}

/// Runs a test with a buffer in device memory, whose blocks are the states or, with a table, 16 slots
/// each.
fn with_device_memory(
    device: &'static CStr,
    mut config: avsg_engine_config,
    table: &[i32],
    test: impl FnOnce(Handles, *mut u8),
) {
    let slots = if table.is_empty() { config.slots as usize } else { 16 };
    let context = (device != c"cpu").then(|| simulated::context().unwrap());
    let on_device =
        context.as_ref().map(|context| DeviceMemory::zeroed(context, 4 * ROOM).unwrap());
    let base = match &on_device {
        Some(memory) => memory.address() as *mut u8,
        None => vec![0u8; 4 * ROOM].leak().as_mut_ptr(),
    };
    let mut buffer = buffer(base, slots);
    let table_on_device = context.as_ref().map(|context| {
        let memory = DeviceMemory::new(context, 4 * table.len().max(1)).unwrap();
        let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        memory.write(0, &bytes).unwrap();
        memory
    });
    if !table.is_empty() {
        let at = table_on_device.as_ref().map(|memory| memory.address() as *const i32);
        buffer.block_table = at.unwrap_or(table.as_ptr());
        (buffer.block_table_len, buffer.blocks) = (table.len(), BLOCKS);
    }
    config.buffer = &buffer;
    let handles = Handles::with_rows(ROWS, &config, context);
    test(handles, base);
}

#[test]
fn steps_into_the_callers_buffer_are_exact() {
    each_device(|device| {
        with_device_memory(device, config_on(device), &[], |handles, base| {
            let slots = config_on(device).slots as usize;
            let (mut info, mut found) = (sized::<avsg_engine_info>(), sized::<avsg_buffer>());
            // SAFETY: the structs have their `size` set.
            unsafe {
                ok(avsg_engine_get_info(handles.engine, &mut info));
                assert_eq!(info.buffer_bytes, 0, "the engine allocated no buffer");
                ok(avsg_engine_get_buffer(handles.engine, 1, 0, &mut found));
            }
            assert_eq!(found.base.cast(), base.wrapping_add(2 * ROOM));
            assert_eq!((found.slot_stride, found.state_stride), (40, 40 * slots + 100));
            for step in 1..8 {
                let owned = Arrays::new(step);
                ok(handles.step(&owned, 0));
                // The rows are read at the strides that `avsg_engine_get_buffer` gives.
                assert_eq!(handles.expect_exact(&owned, 0), 32);
            }
            handles.destroy();
        });
    });
}

/// Checks the rows of layer 0 at global slots, by the formula of `avsg_caller_buffer`. Returns the number
/// of rows.
fn check_rows(handles: &Handles, owned: &Arrays, base: *mut u8, slots: &[i32]) -> usize {
    let mut checked = 0;
    for_each_id(
        &OwnedBatch::batch(owned),
        ROW,
        |row| &slots[row * K..][..K],
        |_, slot, row| {
            let (n, mut rest) = (slot - BASE as usize, row);
            for (segment, bytes) in [24, 16].into_iter().enumerate() {
                let stride = STRIDES[segment];
                let at = n / 16 * (stride * 16 + 100) + n % 16 * stride + segment * ROOM;
                let (part, after) = rest.split_at_mut(bytes);
                // SAFETY: the address is a slot of the buffer, and no call is in progress.
                part.copy_from_slice(&unsafe { handles.bytes(base.add(at).cast(), bytes) });
                rest = after;
            }
            true
        },
        |_, id| (id, 0),
        |seen| checked += assert_exact(seen, 0),
    );
    checked
}

#[test]
fn a_table_of_blocks_places_the_rows_that_global_slots_name() {
    each_device(|device| {
        let mut config = config_on(device);
        (config.global_slots, config.slot_base) = (1, BASE);
        let entries = 2 * config.slots as usize / 16;
        let table: Vec<i32> = (0..entries).map(|at| ((at * 7 + 3) % BLOCKS) as i32).collect();
        with_device_memory(device, config, &table, |handles, base| {
            for step in 1..6 {
                let owned = Arrays::new(step);
                ok(handles.step(&owned, 0));
                let slots = host_outputs(&handles, &owned.cu_q).slots;
                assert_eq!(check_rows(&handles, &owned, base, &slots), 32);
            }
            if let Some(context) = handles.context.clone() {
                let (_current, mut stream) = (context.bind().unwrap(), null_mut());
                // SAFETY: the out-pointer is a local variable.
                assert_eq!(unsafe { entries::aclrtCreateStream(&mut stream) }, sys::ACL_SUCCESS);
                for step in 6..12 {
                    let owned = Arrays::new(step);
                    let arrays = DeviceStep::new(&context, &owned);
                    // SAFETY: the arrays and handles are valid until the stream is synchronized.
                    unsafe {
                        let (batch, fresh) = (&arrays.batch, &arrays.fresh[0]);
                        let (engine, plan) = (handles.engine, handles.plan);
                        ok(avsg_engine_step(engine, batch, plan, 0, fresh, stream));
                        assert_eq!(entries::aclrtSynchronizeStream(stream), sys::ACL_SUCCESS);
                    }
                    let slots = device_outputs(&handles, &owned.cu_q).slots;
                    assert_eq!(check_rows(&handles, &owned, base, &slots), 32);
                }
                // SAFETY: nothing is queued in the stream.
                assert_eq!(unsafe { entries::aclrtDestroyStream(stream) }, sys::ACL_SUCCESS);
            }
            handles.destroy();
        });
    });
}

#[test]
fn global_slots_are_counted_over_all_states() {
    each_device(|device| {
        let mut config = config_on(device);
        let local = Handles::on(device);
        (config.global_slots, config.slot_base) = (1, BASE);
        let context = (device != c"cpu").then(|| simulated::context().unwrap());
        let global = Handles::with_rows(ROWS, &config, context);
        for step in 1..6 {
            let owned = Arrays::new(step);
            ok(local.step(&owned, 0));
            ok(global.step(&owned, 0));
            let slots = [&local, &global].map(|handles| {
                let mut arrays: avsg_plan_arrays = sized();
                // SAFETY: the struct has its `size` set, and a plan of 4 rows has that many slots.
                unsafe {
                    ok(avsg_plan_get_arrays(handles.plan, HOST, &mut arrays));
                    std::slice::from_raw_parts(arrays.slot, 4 * K).to_vec()
                }
            });
            for (at, (&local, &global)) in slots[0].iter().zip(&slots[1]).enumerate() {
                // The first two rows are of state 1.
                let state = i32::from(at < 2 * K);
                assert_eq!(global, BASE + state * config.slots as i32 + local);
            }
        }
        local.destroy();
        global.destroy();
    });
}

#[test]
fn buffers_that_an_engine_cannot_use_are_refused() {
    let mut pool = null_mut();
    // SAFETY: the struct has its `size` set.
    unsafe { ok(avsg_pool_create(&pool_config(), &mut pool)) };
    let memory = vec![0u8; 4 * ROOM].leak().as_mut_ptr();
    let refuse = |change: &dyn Fn(&mut avsg_caller_buffer), status, parts: &[&str]| {
        let (mut config, mut engine) = (engine_config(), null_mut());
        let mut buffer = buffer(memory, 64);
        change(&mut buffer);
        config.buffer = &buffer;
        // SAFETY: the structs have their `size` set or are refused, and the arrays are never freed.
        expect_error(unsafe { avsg_engine_create(&config, pool, &mut engine) }, status, parts);
        assert!(engine.is_null());
    };
    static NONE: [i32; 8] = [-1; 8];
    refuse(&|b| b.size = 8, AVSG_SIZE, &["avsg_caller_buffer.size is 8"]);
    refuse(&|b| b.bases = null(), AVSG_NULL, &["bases is NULL"]);
    refuse(&|b| b.base_count = 3, AVSG_INVALID, &["buffer bases is 3", "need 4"]);
    refuse(&|b| b.slot_stride[1] = 0, AVSG_INVALID, &["strides is 1"]);
    refuse(&|b| b.slot_stride[0] = 23, AVSG_INVALID, &["row stride is 23"]);
    refuse(&|b| b.block_slots = 48, AVSG_INVALID, &["block rows is 48"]);
    refuse(&|b| b.block_slots = 128, AVSG_INVALID, &["block slots is 128", "S = 64"]);
    let table = |b: &mut avsg_caller_buffer| {
        (b.block_slots, b.block_table, b.block_table_len) = (16, NONE.as_ptr(), 7);
    };
    refuse(&table, AVSG_INVALID, &["block table is 7", "need 8"]);
    let (mut config, mut engine) = (engine_config(), null_mut());
    config.global_slots = 2;
    // SAFETY: the struct has its `size` set.
    let status = unsafe { avsg_engine_create(&config, pool, &mut engine) };
    expect_error(status, AVSG_INVALID, &["global_slots is 2"]);
    // A table whose entries are wrong is refused by each step.
    let mut buffer = buffer(memory, 16);
    (buffer.block_table, buffer.block_table_len, buffer.blocks) = (NONE.as_ptr(), 8, 8);
    config = avsg_engine_config { buffer: &buffer, ..engine_config() };
    let handles = Handles::with_rows(ROWS, &config, None);
    let parts = ["block is -1", "entry 0 of state 1"];
    expect_error(handles.step(&Arrays::new(1), 0), AVSG_INVALID, &parts);
    handles.destroy();
    ok(avsg_pool_destroy(pool));
}
