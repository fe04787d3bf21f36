//! Pools whose rows are in a file, through C: steps are exact, a kept file is opened again with every
//! flushed row, and what cannot be is refused by name.

use std::ffi::{CString, OsStr, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr::null_mut;

use avsg::disk::PoolFile;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::allocator::Counting;
use avsg_capi_testkit::caller_memory::{layout, memory, part, region};
use avsg_capi_testkit::*;
use avsg_sim::{Options, Session};
use avsg_testkit::scratch::{Scratch, adapted};

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn file_in(path: &CString) -> avsg_pool_file {
    let file = adapted(PoolFile::new(OsStr::from_bytes(path.as_bytes())));
    avsg_pool_file { path: path.as_ptr(), buffered: file.buffered.into(), ..sized() }
}

fn info_of(pool: *const avsg_pool) -> avsg_pool_info {
    let mut info = sized();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_pool_get_info(pool, &mut info) });
    info
}

/// Returns the status of the creation of a pool, which is destroyed again.
fn create(config: &avsg_pool_config) -> avsg_status {
    let mut pool = null_mut();
    // SAFETY: the structs have their `size` set, and strings and arrays are alive.
    let status = unsafe { avsg_pool_create(config, &mut pool) };
    ok(avsg_pool_destroy(pool));
    status
}

/// Plans `steps` batches, transfers each to both layers, appends the rows of its tokens, and compares
/// every row.
fn decode(handles: &Handles, steps: i32) {
    for step in 0..steps {
        let (mut owned, stable) = (Arrays::new(step), 100 + step % 20);
        owned.decode_at(stable);
        let (engine, plan) = (handles.engine, handles.plan);
        // SAFETY: `owned` owns the arrays of the batch.
        unsafe { ok(avsg_engine_plan(engine, &owned.batch(), plan, null_mut())) };
        for layer in 0..2 {
            (0..2).for_each(|g| owned.rows.put(2 + g, stable + g as i32, layer as u32));
            let fresh = owned.fresh();
            // SAFETY: `owned` owns the arrays of the batch and the fresh rows.
            unsafe {
                ok(avsg_engine_transfer(engine, plan, &layer, 1, &fresh, null_mut()));
                assert_eq!(handles.expect_exact(&owned, layer), 32);
                ok(avsg_engine_append(engine, &owned.batch(), &layer, 1, &fresh, null_mut()));
            }
        }
    }
}

#[test]
fn steps_are_exact_and_a_private_file_leaves_nothing_behind() {
    let folder = Scratch::new();
    let path = c_string(folder.path());
    for (indexers, buffered) in [([0, 0], 0), ([0, 1], 0), ([0, 0], 1)] {
        let mut file = file_in(&path);
        file.buffered |= buffered;
        (file.layer_indexer, file.layer_indexers) = (indexers.as_ptr(), 2);
        let mut config = engine_config();
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let handles = Handles::create(&avsg_pool_config { file: &file, ..pool_config() }, &config);
        assert_eq!(folder.count(), 0, "the file has no name");
        if indexers == [0, 0] {
            decode(&handles, 30);
        }
        let info = info_of(handles.pool);
        let own_rows = if indexers == [0, 0] { 2 } else { 1 };
        let bytes = own_rows * (ROW + 8);
        assert_eq!(info.record_bytes, bytes.next_multiple_of(info.block_bytes));
        assert!((info.padding - (1.0 - bytes as f64 / info.record_bytes as f64)).abs() < 1e-9);
        let records = ROWS * 2 / own_rows;
        assert!(info.file_bytes >= (records * info.record_bytes) as u64);
        assert!([1, 2].contains(&info.io));
        assert_eq!((info.chunks, info.huge_bytes), (0, 0));
        ok(avsg_pool_flush(handles.pool));
        let info = info_of(handles.pool);
        assert!(info.writes > 0 && info.written_bytes >= info.record_bytes as u64);
        handles.destroy();
        assert_eq!(folder.count(), 0);
    }
}

#[test]
fn a_kept_file_is_opened_again_with_every_flushed_row() {
    let folder = Scratch::new();
    let path = folder.file("rows");
    let c_path = c_string(&path);
    let file = avsg_pool_file { keep: 1, ..file_in(&c_path) };
    let config = avsg_pool_config { file: &file, ..pool_config() };
    let handles = Handles::create(&config, &engine_config());
    decode(&handles, 10);
    ok(avsg_pool_flush(handles.pool));
    let mut other = null_mut();
    // SAFETY: the structs have their `size` set, and the string is alive.
    let status = unsafe { avsg_pool_open(&file, &mut other) };
    assert_ne!(status, AVSG_OK, "a second writer is refused");
    assert!(other.is_null() && last_error().contains("; "), "{}", last_error());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    handles.destroy();

    assert_ne!(create(&config), AVSG_OK, "an existing file is not overwritten");
    assert!(last_error().contains("rows"), "{}", last_error());

    let mut handles = Handles::from_raw(null_mut(), null_mut(), null_mut());
    // SAFETY: as above.
    unsafe {
        ok(avsg_pool_open(&file_in(&c_path), &mut handles.pool));
        ok(avsg_engine_create(&engine_config(), handles.pool, &mut handles.engine));
        ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
    }
    let info = info_of(handles.pool);
    assert_eq!((info.layers, info.rows, info.segments, info.row_bytes), (2, ROWS, 2, ROW));
    for layer in 0..2 {
        for index in 0..ROWS {
            let mut bytes = [0u8; ROW];
            let to = bytes.as_mut_ptr().cast();
            // SAFETY: `to` points to the bytes of a row.
            ok(unsafe { avsg_pool_read_row(handles.pool, layer, index, to, ROW) });
            assert_eq!(bytes, row(layer, index), "layer {layer}, row {index}");
        }
    }
    decode(&handles, 10);
    handles.destroy();
}

/// Changes one bit of a row of a layer in a file.
fn damage(path: &Path, layer: usize, index: usize) {
    let mut bytes = fs::read(path).unwrap();
    let row = row(layer, index);
    let at = bytes.windows(ROW).position(|window| window == row).unwrap();
    bytes[at + 9] ^= 1;
    fs::write(path, &bytes).unwrap();
}

#[test]
fn a_damaged_row_costs_the_requests_that_miss_it() {
    let folder = Scratch::new();
    for indexers in [[0u32, 0], [0, 1]] {
        let path = folder.file(&format!("rows {indexers:?}"));
        let c_path = c_string(&path);
        let mut file = avsg_pool_file { keep: 1, ..file_in(&c_path) };
        (file.layer_indexer, file.layer_indexers) = (indexers.as_ptr(), 2);
        let mut config = engine_config();
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let handles = Handles::create(&avsg_pool_config { file: &file, ..pool_config() }, &config);
        ok(avsg_pool_flush(handles.pool));
        handles.destroy();
        let mut owned = Arrays::new(0);
        // Both requests have the same rows in the pool; of these ids one is selected by the first alone.
        let (first, second) = owned.ids.split_at(2 * K);
        let lost = *first.iter().find(|id| !second.contains(id)).unwrap() as usize;
        damage(&path, 0, lost);
        let mut handles = Handles::from_raw(null_mut(), null_mut(), null_mut());
        // SAFETY: the structs have their `size` set, the string is alive, and the out-pointers are fields.
        unsafe {
            ok(avsg_pool_open(&file_in(&c_path), &mut handles.pool));
            ok(avsg_engine_create(&config, handles.pool, &mut handles.engine));
            ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
        }
        let words = format!("row {lost} of layer 0");
        let (engine, plan) = (handles.engine, handles.plan);
        let layers: &[usize] = if indexers == [0, 0] { &[0, 1] } else { &[0] };
        // Another step finds the state of the request empty, and the row as it was.
        for count in 1..=2 {
            let status = handles.step(&Arrays::new(0), 0);
            expect_error(status, AVSG_LOST_ROWS, &[&words, "left out 1 of"]);
            assert_eq!(missed(plan, 0, true).len(), 2 * K);
            assert_eq!(missed(plan, 1, true).is_empty(), count > 1);
            for &layer in layers {
                let status = transfer(&handles, &mut owned, layer);
                expect_error(status, AVSG_LOST_ROWS, &[&words]);
                assert_eq!(failures(plan, 2), [(0, 0, lost)]);
                assert_eq!(handles.expect_exact(&owned, layer), 2 * K);
            }
            assert_eq!(held(engine, 1), 0);
        }
        let ids: Vec<i32> = (lost as i32..lost as i32 + 3).collect();
        let mut load: avsg_load = sized();
        (load.state, load.generation, load.seq_len) = (1, 1, 128);
        load.ids = avsg_i32s { data: ids.as_ptr(), len: ids.len() };
        load.block_table = avsg_i32s { data: owned.blocks.as_ptr(), len: 8 };
        // SAFETY: the struct has its `size` set, and its arrays are alive.
        expect_error(unsafe { avsg_engine_load(engine, &load, plan) }, AVSG_LOST_ROWS, &[&words]);
        assert_eq!((failures(plan, 1), held(engine, 1)), (vec![(0, 0, lost)], 0));
        // The row is computed again, and the server goes on.
        handles.write_row(0, lost, &row(0, lost));
        // SAFETY: as above.
        ok(unsafe { avsg_engine_load(engine, &load, plan) });
        assert_eq!(held(engine, 1), 3);
        ok(handles.step(&Arrays::new(0), 0));
        for &layer in layers {
            ok(transfer(&handles, &mut owned, layer));
            assert_eq!(failures(plan, 2), []);
            assert_eq!(handles.expect_exact(&owned, layer), 4 * K);
        }
        handles.destroy();
    }
}

/// Transfers the plan of a batch to a layer, with the fresh rows of that layer.
fn transfer(handles: &Handles, owned: &mut Arrays, layer: usize) -> avsg_status {
    (0..4).for_each(|at| owned.rows.put(at, 100 + at as i32 % 2, layer as u32));
    let fresh = owned.fresh();
    // SAFETY: `owned` owns the fresh rows.
    unsafe { avsg_engine_transfer(handles.engine, handles.plan, &layer, 1, &fresh, null_mut()) }
}

/// Returns the number of ids that a state holds for the first indexer in generation 1.
fn held(engine: *mut avsg_engine, state: usize) -> u32 {
    let mut bits = [0u64; 2];
    // SAFETY: the array has two elements.
    ok(unsafe { avsg_engine_get_held(engine, 0, state, 1, 0, 128, bits.as_mut_ptr(), 2) });
    bits.iter().map(|word| word.count_ones()).sum()
}

#[test]
fn what_a_file_cannot_be_is_refused_by_name() {
    // No other test uses the simulated device meanwhile.
    let _session = Session::new(Options::default());
    let folder = Scratch::new();
    let path = c_string(folder.path());
    let refuse = |parts: &[&str], change: &dyn Fn(&mut avsg_pool_file)| {
        let mut file = file_in(&path);
        change(&mut file);
        let status = create(&avsg_pool_config { file: &file, ..pool_config() });
        assert_ne!(status, AVSG_OK);
        expect_error(status, status, parts);
        status
    };
    assert_eq!(refuse(&["path is NULL"], &|file| file.path = std::ptr::null()), AVSG_NULL);
    refuse(&["keep is 2", "0..=1"], &|file| file.keep = 2);
    refuse(&["buffered is -1", "0..=1"], &|file| file.buffered = -1);
    let gap = [0u32, 2];
    refuse(&["layer"], &|file| (file.layer_indexer, file.layer_indexers) = (gap.as_ptr(), 2));
    refuse(&["layers with an indexer is 1"], &|file| {
        (file.layer_indexer, file.layer_indexers) = (gap.as_ptr(), 1);
    });
    let file = file_in(&path);
    let config = avsg_pool_config { file: &file, ..pool_config() };
    let counting = Counting::on(c"cpu");
    let allocator = counting.c();
    let status = create(&avsg_pool_config { allocator: &allocator, ..config });
    expect_error(status, AVSG_INVALID, &["allocator", "file"]);
    let rows = region(memory(2 * ROW * ROWS), 2 * ROW * ROWS);
    let parts = [part(0, 0, 24 * ROWS), part(1, 48 * ROWS, 16 * ROWS)];
    let layout = layout([24, 16], &[rows], &parts);
    expect_error(create(&avsg_pool_config { layout: &layout, ..config }), AVSG_INVALID, &["file"]);
    let huge = avsg_pages::AVSG_PAGES_HUGE_1G as i32;
    let huge = avsg_pool_config { pages: huge, ..config };
    // SAFETY: the structs have their `size` set, and the string is alive.
    let status = unsafe { avsg_get_memory(std::ptr::null(), &huge, 0, 0, 0, &mut sized()) };
    expect_error(status, AVSG_INVALID, &["pages", "file"]);

    let (mut pool, mut at, mut fd, mut desc) = (null_mut(), null_mut::<c_void>(), 0, [0; 112]);
    // SAFETY: the structs have their `size` set, and the out-pointers are local variables.
    unsafe {
        ok(avsg_pool_create(&config, &mut pool));
        let status = avsg_pool_get_row(pool, 0, 0, 0, &mut at);
        expect_error(status, AVSG_INVALID, &["pool is in a file"]);
        let status = avsg_pool_export(pool, desc.as_mut_ptr(), 112, &mut fd);
        expect_error(status, AVSG_INVALID, &["pool is in a file"]);
        assert!(at.is_null() && fd == -1);
        if have_compiler() {
            let mut engine = null_mut();
            let status = avsg_engine_create(&config_on(c"ascend-sim"), pool, &mut engine);
            assert!([AVSG_INVALID, AVSG_UNSUPPORTED].contains(&status), "{}", last_error());
            expect_error(status, status, &["file"]);
            assert!(engine.is_null());
        }
    }
    ok(avsg_pool_destroy(pool));
    assert_eq!(folder.count(), 0);
}
