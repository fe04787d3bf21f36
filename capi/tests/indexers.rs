//! Several indexers on one engine through C: each layer of an indexer is exact, a plan for another
//! indexer is refused with the rule, and sizes count every table.

use std::ptr::null_mut;

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// The indexer of each of the pool's two layers.
static EACH: [u32; 2] = [0, 1];

fn with_indexers(device: &'static std::ffi::CStr, indexers: &'static [u32]) -> avsg_engine_config {
    let mut config = config_on(device);
    (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), indexers.len());
    config
}

#[test]
fn every_layer_with_an_indexer_of_its_own_is_exact() {
    each_device(|device| {
        let context = (device != c"cpu").then(|| avsg::ascend::simulated::context().unwrap());
        let handles = Handles::with_rows(ROWS, &with_indexers(device, &EACH), context);
        let mut info: avsg_engine_info = sized();
        // SAFETY: the struct has its `size` set.
        ok(unsafe { avsg_engine_get_info(handles.engine, &mut info) });
        assert_eq!(info.indexers, 2);
        for step in 1..6 {
            let mut owned = Arrays::new(step);
            for layer in 0..2 {
                owned.indexer = layer;
                ok(handles.step(&owned, layer));
                handles.expect_exact(&owned, layer);
                let parts = ["layer is", "plan once per indexer, transfer per layer"];
                expect_error(handles.step(&owned, 1 - layer), AVSG_INVALID, &parts);
            }
        }
        let (mut words, mut len, mut tables) = (std::ptr::null(), 0, Vec::new());
        for indexer in 0..2 {
            // SAFETY: the out-pointers are local variables, and the table is copied before the next
            // call.
            unsafe {
                ok(avsg_engine_get_table(handles.engine, indexer, 0, &mut words, &mut len));
                tables.push(std::slice::from_raw_parts(words, len).to_vec());
            }
        }
        assert!(tables[0] == tables[1], "both indexers selected the same ids");
        // SAFETY: the out-pointers are local variables.
        let status = unsafe { avsg_engine_get_table(handles.engine, 2, 0, &mut words, &mut len) };
        expect_error(status, AVSG_INVALID, &["indexer is 2"]);
        handles.destroy();
    });
}

#[test]
fn indexers_are_counted_in_the_bytes_of_an_engine_and_checked() {
    let bytes = |config: &avsg_engine_config| {
        let mut memory: avsg_memory = sized();
        // SAFETY: the structs have their `size` set.
        (unsafe { avsg_get_memory(config, &pool_config(), 0, 0, 0, &mut memory) }, memory.tables)
    };
    // The tables of many states are more than the page that they are rounded to.
    let tables = |mut config: avsg_engine_config| {
        config.states = 100_000;
        let (status, tables) = bytes(&config);
        ok(status);
        tables as f64
    };
    let ratio = tables(with_indexers(c"cpu", &EACH)) / tables(engine_config());
    assert!((1.9..2.0).contains(&ratio), "{ratio}");
    static GAP: [u32; 2] = [0, 2];
    static FEW: [u32; 1] = [0];
    for (indexers, parts) in [
        (&GAP[..], ["indexer of a layer is 2", "2"]),
        (&FEW[..], ["is 1", "the pool has 2 layers"]),
    ] {
        let config = with_indexers(c"cpu", indexers);
        expect_error(bytes(&config).0, AVSG_INVALID, &parts);
        let (mut pool, mut engine) = (null_mut(), null_mut());
        // SAFETY: the structs have their `size` set, and the out-pointers are local variables.
        unsafe {
            ok(avsg_pool_create(&pool_config(), &mut pool));
            expect_error(avsg_engine_create(&config, pool, &mut engine), AVSG_INVALID, &parts);
            ok(avsg_pool_destroy(pool));
        }
    }
}
