//! Configurations of engines through C: 0 selects the default of a field, and the memory is counted. That statistics are read
//! during a step is checked in `guest.rs`, and that a destruction waits for them by the tests of `src/handle.rs`.

use std::ffi::c_char;
use std::ptr::null;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

#[test]
fn the_memory_of_a_pool_and_an_engine_is_counted() {
    let (engine, pool, mut memory) = (engine_config(), pool_config(), sized::<avsg_memory>());
    // SAFETY: each pointer is NULL, misaligned, or to a struct that has its `size` set.
    unsafe {
        ok(avsg_get_memory(&engine, &pool, 0, 0, 0, &mut memory));
        assert_eq!(memory.buffer, 2 * 64 * 40 * 2);
        assert!(memory.tables > 2 * 64 * 21);
        let alone = memory.pool;
        ok(avsg_get_memory(null(), &pool, 0, 0, 0, &mut memory));
        let parts = (memory.pool, memory.buffer, memory.tables, memory.engine_host);
        assert_eq!(parts, (alone, 0, 0, 0));
        let status = avsg_get_memory(&engine, &pool, 4, 0, 0, &mut memory);
        expect_error(status, AVSG_INVALID, &["max_requests is 0"]);
        let odd = (&raw const engine).wrapping_byte_add(4);
        let status = avsg_get_memory(odd, &pool, 0, 0, 0, &mut memory);
        expect_error(status, AVSG_INVALID, &["multiple of 8"]);
    }
}

#[test]
fn an_engines_info_has_the_defaults_filled_in() {
    let info_of = |set: &dyn Fn(&mut avsg_engine_config, &mut avsg_tuning)| {
        let (mut config, mut tuning) = (engine_config(), sized::<avsg_tuning>());
        set(&mut config, &mut tuning);
        config.tuning = &tuning;
        let handles = Handles::create(&pool_config(), &config);
        // SAFETY: the struct has its `size` set.
        let info = filled(|to| unsafe { avsg_engine_get_info(handles.engine, to) });
        handles.destroy();
        info
    };
    let wide = info_of(&|_, _| ());
    assert_eq!((wide.spread, wide.retries, wide.lifetime, wide.life), (4, 3, 2, 0));
    assert_eq!((wide.k, wide.tokens, wide.slots, wide.page), (8, 2, 64, 16));
    assert_eq!((wide.states, wide.layers, wide.cores), (2, 2, 1));
    let text = |field: &[c_char]| -> String {
        field.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect()
    };
    assert_eq!(text(&wide.device), "cpu");
    assert!(!text(&wide.machine).is_empty() && !text(&wide.copier).is_empty());
    let paper = info_of(&|_, t| t.table = 1);
    assert_eq!((paper.spread, paper.retries, paper.lifetime, paper.life), (1, 3, 1, 16));
    let constant = info_of(&|_, t| (t.lifetime, t.life) = (1, 5));
    assert_eq!((constant.lifetime, constant.life), (1, 5));
    let learned = info_of(&|_, t| (t.lifetime, t.spread) = (2, 2));
    assert_eq!((learned.spread, learned.retries, learned.lifetime), (2, 7, 2));
    let copier = avsg_copier::AVSG_COPIER_STREAM as i32;
    let chosen = info_of(&|_, t| (t.copier, t.copier_ahead) = (copier, 5));
    assert_eq!(text(&chosen.copier), "stream+5");
    // K is more than half of S.
    let small = info_of(&|c, _| (c.tokens, c.k) = (1, 33));
    assert_eq!((small.lifetime, small.life), (1, 127));
    assert!(info_of(&|c, _| (c.cores, c.page) = (0, 0)).cores >= 1);
}
