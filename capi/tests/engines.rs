//! Configurations of engines through C: invalid ones are refused, and 0 selects the default of a
//! field.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

type Change<'a> = &'a dyn Fn(&mut avsg_engine_config, &mut avsg_tuning);

#[test]
fn invalid_engine_configurations_are_refused() {
    let handles = Handles::on_cpu();
    let refuse = |change: Change<'_>, expected, parts: &[&str]| {
        let (mut config, mut tuning, mut engine) = (engine_config(), tuning(), null_mut());
        change(&mut config, &mut tuning);
        config.tuning = &tuning;
        // SAFETY: the struct has its `size` set, and its strings are literals.
        let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
        expect_error(status, expected, parts);
        assert!(engine.is_null(), "NULL after a failure");
    };
    refuse(&|c, _| c.device = c"gpu".as_ptr(), AVSG_INVALID, &["\"gpu\"", "no such device"]);
    refuse(&|c, _| c.device = c"".as_ptr(), AVSG_INVALID, &["device is \"\""]);
    refuse(&|c, _| c.k = 0, AVSG_INVALID, &["K is 0", "1..=64"]);
    refuse(&|c, _| c.slots = 100, AVSG_INVALID, &["S (slots) is 100", "power of two"]);
    refuse(&|c, _| c.tokens = 9, AVSG_INVALID, &["N_q", "1..=8"]);
    refuse(&|_, t| t.table = 2, AVSG_INVALID, &["table is 2", "0..=1"]);
    refuse(&|_, t| t.lifetime = -1, AVSG_INVALID, &["lifetime is -1"]);
    refuse(&|_, t| (t.lifetime, t.life) = (1, 128), AVSG_INVALID, &["life is 128", "127"]);
    refuse(
        &|_, t| t.life = 5,
        AVSG_INVALID,
        &["life is 5", "lifetime is 0", "AVSG_LIFETIME_CONSTANT"],
    );
    refuse(&|_, t| (t.lifetime, t.life) = (2, 5), AVSG_INVALID, &["life is 5", "lifetime is 2"]);
    refuse(&|_, t| t.lambda = 0.9, AVSG_INVALID, &["lambda is 0.9", "lifetime is 0"]);
    refuse(
        &|_, t| (t.lifetime, t.lambda) = (1, 0.9),
        AVSG_INVALID,
        &["lambda is 0.9", "lifetime is 1"],
    );
    refuse(&|_, t| (t.lifetime, t.lambda) = (2, 1.5), AVSG_INVALID, &["lambda is 1.5", "0.965"]);
    refuse(&|_, t| (t.lifetime, t.lambda) = (2, f64::NAN), AVSG_INVALID, &["lambda is NaN"]);
    refuse(&|_, t| (t.table, t.lifetime) = (1, 2), AVSG_INVALID, &["frequency", "paper"]);
    refuse(&|_, t| (t.table, t.paper_a1) = (1, 4), AVSG_INVALID, &["primes is 4,0", "odd"]);
    refuse(&|_, t| t.spread = 3, AVSG_INVALID, &["spread is 3"]);
    refuse(&|_, t| t.retries = 16, AVSG_INVALID, &["retries) is 16"]);
    refuse(&|_, t| t.retries = -2, AVSG_INVALID, &["retries is -2", "0 is the default"]);
    refuse(&|c, _| c.page = 48, AVSG_INVALID, &["page is 48"]);
    refuse(&|_, t| t.machine = 9, AVSG_INVALID, &["machine is 9"]);
    refuse(&|_, t| t.launches = 3, AVSG_INVALID, &["launches is 3", "0..=2"]);
    refuse(&|_, t| t.launches = u32::MAX, AVSG_INVALID, &["launches is", "0..=2"]);
    refuse(&|c, _| c.reserved = 1, AVSG_INVALID, &["reserved is 1", "zero the struct"]);
    refuse(&|_, t| t.size = 8, AVSG_SIZE, &["avsg_tuning.size is 8", "has 64 bytes"]);
    refuse(&|_, t| t.strategy = 3, AVSG_INVALID, &["strategy is 3"]);
    refuse(&|c, _| c.cores = 1025, AVSG_INVALID, &["cores is 1025", "1024"]);
    refuse(&|c, _| c.states = 0, AVSG_INVALID, &["states is 0"]);
    refuse(&|c, _| c.states = 1 << 30, AVSG_NO_MEMORY, &["device memory is", "available"]);
    refuse(&|c, _| c.states = 1 << 31, AVSG_INVALID, &["states is 2147483648", "2147483647"]);
    let mut memory: avsg_memory = sized();
    // SAFETY: each pointer is NULL, misaligned, or to a struct that has its `size` set.
    unsafe {
        let (engine, pool) = (engine_config(), pool_config());
        ok(avsg_get_memory(&engine, &pool, 0, 0, 0, &mut memory));
        assert_eq!(memory.buffer, 2 * 64 * 40 * 2);
        assert!(memory.tables > 2 * 64 * 21);
        let alone = memory.pool;
        ok(avsg_get_memory(null(), &pool, 0, 0, 0, &mut memory));
        assert_eq!(
            (memory.pool, memory.buffer, memory.tables, memory.engine_host),
            (alone, 0, 0, 0)
        );
        let status = avsg_get_memory(&engine, &pool, 4, 0, 0, &mut memory);
        expect_error(status, AVSG_INVALID, &["max_requests is 0"]);
        expect_error(
            avsg_get_memory(&engine, null(), 0, 0, 0, &mut memory),
            AVSG_NULL,
            &["avsg_pool_config"],
        );
        expect_error(
            avsg_get_memory(&engine, &pool, 0, 0, 0, null_mut()),
            AVSG_NULL,
            &["avsg_memory"],
        );
        expect_error(
            avsg_engine_create(&engine, handles.pool, null_mut()),
            AVSG_NULL,
            &["engine is NULL"],
        );
        let odd = (&raw const engine).wrapping_byte_add(4);
        expect_error(
            avsg_get_memory(odd, &pool, 0, 0, 0, &mut memory),
            AVSG_INVALID,
            &["multiple of 8"],
        );
    }
    handles.destroy();
}

#[test]
fn an_engines_info_has_the_defaults_filled_in() {
    let mut handles = Handles::on_cpu();
    ok(avsg_engine_destroy(handles.engine));
    let info_of = |handles: &mut Handles, set: Change<'_>| {
        let (mut config, mut info) = (engine_config(), sized::<avsg_engine_info>());
        let mut tuning = tuning();
        set(&mut config, &mut tuning);
        config.tuning = &tuning;
        // SAFETY: the structs have their `size` set.
        unsafe {
            ok(avsg_engine_create(&config, handles.pool, &mut handles.engine));
            ok(avsg_engine_get_info(handles.engine, &mut info));
        }
        ok(avsg_engine_destroy(handles.engine));
        info
    };
    let wide = info_of(&mut handles, &|_, _| ());
    assert_eq!((wide.spread, wide.retries, wide.lifetime, wide.life), (4, 3, 1, 127));
    assert_eq!((wide.k, wide.tokens, wide.slots, wide.page), (8, 2, 64, 16));
    assert_eq!((wide.states, wide.layers, wide.cores), (2, 2, 1));
    let text = |field: &[c_char]| -> String {
        field.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect()
    };
    assert_eq!((text(&wide.device), text(&wide.machine)), ("cpu".into(), "emu".into()));
    assert!(!text(&wide.copier).is_empty());
    let paper = info_of(&mut handles, &|_, t| (t.table, t.retries) = (1, -1));
    assert_eq!((paper.spread, paper.retries, paper.lifetime, paper.life), (1, 0, 1, 16));
    let counting = info_of(&mut handles, &|_, t| (t.lifetime, t.spread, t.retries) = (2, 2, 7));
    assert_eq!((counting.spread, counting.retries, counting.lifetime), (2, 7, 2));
    assert!(info_of(&mut handles, &|c, _| (c.cores, c.page) = (0, 0)).cores >= 1);
    ok(avsg_plan_destroy(handles.plan));
    ok(avsg_pool_destroy(handles.pool));
}
