//! Memory from the caller's allocator: it is asked for exactly what was announced, its memory need
//! not be zeroed, each of its answers may be NULL or misaligned, and everything is released once.

use std::ffi::CStr;
use std::ptr::null_mut;

use avsg::ascend::acl::DeviceMemory;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::allocator::{Counting, KINDS};
use avsg_capi_testkit::caller_memory::{buffer, memory};
use avsg_capi_testkit::*;

/// The indexer of each layer, if there are two.
const EACH: [u32; 2] = [0, 1];
/// Bytes of a layer and segment of the caller's slots.
const ROOM: usize = 2 * 128 * 24;
/// Rows and requests of the plan, which are those of every batch.
const LARGEST: (usize, usize) = (4, 2);

/// The calls that allocate, in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Pool,
    Engine,
    Plan,
    Step,
    Append,
}
const CALLS: [Call; 5] = [Call::Pool, Call::Engine, Call::Plan, Call::Step, Call::Append];

/// A pool, an engine and a plan whose memory comes from an allocator. The engine has two indexers, or pages,
/// learned lifetimes and slots in memory of the caller.
struct Setting<'a> {
    device: &'static CStr,
    own_slots: bool,
    counting: &'a Counting,
    slots: *mut u8,
    _device_slots: Option<DeviceMemory>,
    handles: Handles,
}

impl<'a> Setting<'a> {
    fn new(device: &'static CStr, own_slots: bool, counting: &'a Counting) -> Self {
        let context = counting.context.clone();
        let on_device = context.as_ref().map(|c| DeviceMemory::zeroed(c, 4 * ROOM).unwrap());
        let slots = on_device.as_ref().map(|memory| memory.address() as *mut u8);
        let slots = slots.unwrap_or_else(|| memory(4 * ROOM));
        let none = Handles::from_raw(null_mut(), null_mut(), null_mut());
        let handles = Handles { context, ..none };
        Self { device, own_slots, counting, slots, _device_slots: on_device, handles }
    }

    /// Returns the configurations of the pool and of the engine. What they point to is never freed.
    fn configs(&self) -> (avsg_pool_config, avsg_engine_config) {
        let allocator = &raw const *Box::leak(Box::new(self.counting.c()));
        let lifetime = if self.own_slots { 2 } else { 1 };
        let tuning = Box::leak(Box::new(avsg_tuning { lifetime, ..sized() }));
        let slots = [0, 1, 2, 3].map(|at| self.slots.wrapping_add(at * ROOM));
        let slots = Box::leak(Box::new(buffer(slots, [24, 16])));
        let mut config = config_on(self.device);
        (config.cores, config.allocator, config.tuning) = (3, allocator, tuning);
        if self.own_slots {
            (config.page, config.buffer) = (16, slots);
        } else {
            config.page = 0;
            (config.layer_indexer, config.layer_indexers) = (EACH.as_ptr(), EACH.len());
        }
        // A layer has four chunks of its first segment and two of its second one.
        (avsg_pool_config { chunk_bytes: 1024, allocator, ..pool_config() }, config)
    }

    fn call(&mut self, call: Call, step: i32) -> avsg_status {
        let (owned, (pool_config, config)) = (Arrays::new(step), self.configs());
        let (batch, fresh, (rows, requests)) = (owned.batch(), owned.fresh(), LARGEST);
        let Handles { pool, engine, plan, .. } = &mut self.handles;
        // SAFETY: the structs have their `size` set, the out-pointers are fields, and `owned` owns the arrays
        // of the batch and the fresh rows.
        let status = unsafe {
            match call {
                Call::Pool => avsg_pool_create(&pool_config, pool),
                Call::Engine => avsg_engine_create(&config, *pool, engine),
                Call::Plan => avsg_plan_create(*engine, rows, requests, plan),
                Call::Step => avsg_engine_step(*engine, &batch, *plan, 0, &fresh, null_mut()),
                Call::Append => avsg_engine_append(*engine, &batch, &0, 1, &fresh, null_mut()),
            }
        };
        if call == Call::Pool && status == AVSG_OK {
            for (layer, index) in (0..2 * ROWS).map(|n| (n / ROWS, n % ROWS)) {
                self.handles.write_row(layer, index, &row(layer, index));
            }
        }
        status
    }

    /// Returns what is announced for a call, in each kind of memory.
    fn announced(&self, call: Call) -> [usize; 3] {
        let ((rows, requests), (pool, config)) = (LARGEST, self.configs());
        // SAFETY: the structs have their `size` set.
        let of = filled(|to| unsafe { avsg_get_memory(&config, &pool, rows, requests, 8, to) });
        match call {
            Call::Pool => [of.pool, 0, 0],
            Call::Engine => [of.engine_host, 0, of.engine_device],
            Call::Plan => [of.plan_host, of.plan_pinned, of.plan_device],
            Call::Step => [0; 3],
            // After a step of the largest batch. An append takes none.
            Call::Append => [0, of.staging_pinned, of.staging_device],
        }
    }
}

/// Runs a test without and with slots of the caller on each device, in a thread that has no current context.
/// Everything is released in the end.
fn in_cases(test: impl Fn(&mut Setting<'_>, &Counting) + Sync) {
    each_device(|device| {
        for own_slots in [false, true] {
            let run = || {
                let counting = Counting::on(device);
                let mut setting = Setting::new(device, own_slots, &counting);
                test(&mut setting, &counting);
                setting.handles.destroy();
                assert_eq!(counting.live(), [0; 3], "{device:?} {own_slots}");
            };
            std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
        }
    });
}

#[test]
fn each_allocation_may_fail_and_exactly_what_was_announced_is_taken() {
    in_cases(|setting, counting| {
        let Setting { device, own_slots, .. } = *setting;
        let (mut refused, mut announced) = (0, [0; 3]);
        for call in CALLS {
            let (mut live, mut n) = (counting.live(), 1);
            loop {
                counting.state().until_null = n;
                let status = setting.call(call, 1);
                if status == AVSG_OK {
                    break;
                }
                expect_error(status, AVSG_NO_MEMORY, &["allocator refuses"]);
                refused += 1;
                let now = counting.live();
                // Only a step keeps what it got: the memory for block tables, before that for fresh
                // rows. Then the next attempt begins there.
                assert!(now == live || call == Call::Step, "{device:?} {own_slots} {call:?} {n}");
                n = if now == live { n + 1 } else { 1 };
                live = now;
            }
            counting.state().until_null = 0;
            let more = setting.announced(call);
            announced = [0, 1, 2].map(|kind| announced[kind] + more[kind]);
            if call != Call::Step {
                assert_eq!(counting.live(), announced, "{device:?} {own_slots} {call:?}");
            }
        }
        assert!(announced[0] > 0 && (device == c"cpu") == (announced[1..] == [0; 2]));
        // SAFETY: the struct has its `size` set.
        let info = filled(|to| unsafe { avsg_pool_get_info(setting.handles.pool, to) });
        let pages = avsg_pages::AVSG_PAGES_CALLER as i32;
        assert_eq!((info.bytes, info.pages), (setting.announced(Call::Pool)[0], pages));
        let (mut desc, mut fd) = ([0u8; AVSG_POOL_DESC_BYTES], 0);
        let (pool, at) = (setting.handles.pool, desc.as_mut_ptr());
        // SAFETY: the array has the length beside it, and `fd` is a local variable.
        let status = unsafe { avsg_pool_export(pool, at, desc.len(), &mut fd) };
        expect_error(status, AVSG_INVALID, &["pool is the caller's memory", "share"]);
        // The memory was not zeroed, and no later step calls the allocator.
        let calls = counting.state().calls;
        for step in 2..9 {
            ok(setting.call(Call::Step, step));
            setting.handles.expect_exact(&Arrays::new(step), 0);
            ok(setting.call(Call::Append, step));
        }
        assert_eq!(counting.state().calls, calls, "{device:?} {own_slots}");
        // The chunks of the pool; tables, slots and working columns, or tables, rule, chunk addresses,
        // slots and a copy of a table; the arrays of the plan; staging memory of steps.
        let (on_cpu, own) = (device == c"cpu", usize::from(own_slots));
        let engine = 1 - own + if on_cpu { 2 } else { 3 + own };
        let staging = if own_slots { 2 + 1 + 2 } else { 2 };
        let all = 12 + engine + 14 + if on_cpu { 0 } else { 2 + staging };
        assert_eq!(refused, all, "{device:?} {own_slots}");
    });
}

#[test]
fn a_misaligned_answer_is_refused_and_released() {
    for kind in KINDS {
        in_cases(|setting, counting| {
            let Setting { device, own_slots, .. } = *setting;
            counting.state().misaligned = Some(kind);
            for call in CALLS {
                let live = counting.live();
                let status = setting.call(call, 1);
                if status != AVSG_OK {
                    let parts = ["allocated address is 0x", "must begin at a multiple of"];
                    expect_error(status, AVSG_INVALID, &parts);
                    assert_eq!(counting.live(), live, "{device:?} {own_slots} {call:?}");
                    counting.state().misaligned = None;
                    ok(setting.call(call, 1));
                }
            }
            // "cpu" asks for memory of the process only.
            let never_asked = device == c"cpu" && kind != 0;
            assert_eq!(counting.state().misaligned.is_some(), never_asked);
        });
    }
}
