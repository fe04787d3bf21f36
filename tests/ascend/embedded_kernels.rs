//! Engines without a folder of kernels use those that the library embeds, compiled objects, and on the
//! simulated device their text.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, Source};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::rows::RowFormat;
use avsg_linker::ascend::toolchain::Toolchain;
use avsg_linker::bridge::geometries;
use avsg_sim::{Session, resolve};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

use super::harness::{self, count, expect_refusal, in_session, install_kernels, seeded};
use super::prerequisites;
use super::random_workload::{self, RandomWorkload};

const ROWS: usize = 8192;

/// Returns an embedded geometry with fewer tokens than its kernels were emitted for.
fn embedded_geometry() -> Params {
    let without_pages = |p: &Params| p.slots == 4096 && p.page == 0;
    Params { tokens: 1, ..geometries().find(without_pages).expect("S = 4096 fits a vector core") }
}

fn config(params: Params) -> Config {
    Config { cores: 2, ..Config::new(params, 1) }
}

fn create_engine(
    context: &Arc<Context>,
    params: Params,
    kernels: Option<PathBuf>,
) -> avsg::Result<Engine> {
    let pool = fixture::pool(1, ROWS, RowFormat::single(64).unwrap());
    harness::engine(context, &config(params), pool, kernels, None)
}

#[test]
fn embedded_kernels_copy_every_row() {
    let params = embedded_geometry();
    let k = params.k as usize;
    harness::with_emitted_kernels(seeded(6), |session, context| {
        let mut engine = create_engine(context, params, None).unwrap();
        let mut plan = engine.new_plan(1, 1).unwrap();
        assert_eq!(count(session, "aclrtBinaryLoadFromData"), 5, "one load for each kernel");
        assert_eq!(count(session, "aclrtBinaryLoadFromFile"), 0);
        for step in 0..3 {
            // A third of each step's ids is new, and the last step evicts rows.
            let ids = (0..k).map(|i| ((i + step * 1300) * 7 % ROWS) as i32).collect();
            let mut owned = OwnedBatch::new(k, 0);
            owned.push([0, 1, -1, ROWS as i32], &[ids]);
            engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
            assert_eq!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)), k);
        }
    });
}

/// Resolves the functions of an older runtime, which loads kernels from files only.
fn resolve_older_runtime(name: &CStr) -> *mut c_void {
    if name == c"aclrtBinaryLoadFromData" { std::ptr::null_mut() } else { resolve(name) }
}

/// Returns the number of temporary kernel folders of this process.
fn kernel_folders() -> usize {
    let prefix = format!("avsg-kernel-{}-", std::process::id());
    let all = std::env::temp_dir().read_dir().unwrap().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

#[test]
fn an_older_runtime_loads_files_that_are_then_deleted() {
    if !prerequisites::has_cpp_compiler() {
        return;
    }
    let session = Session::new(seeded(7));
    // SAFETY: the simulator's functions have the signatures of the list, which both crates share.
    let source = unsafe { Source::process("an older simulator", resolve_older_runtime) };
    let context = Context::for_device(Arc::new(Acl::open(&source).unwrap()), 0).unwrap();
    let mut workload = RandomWorkload::new(&context, (3, true), None, 17).unwrap();
    assert_eq!(count(&session, "aclrtBinaryLoadFromFile"), 5);
    assert_eq!(kernel_folders(), 0, "the files are deleted");
    (0..3).for_each(|_| workload.step());
    drop((workload, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

#[test]
fn a_failed_load_names_the_call_and_leaks_nothing() {
    for nth in [1, 5] {
        harness::with_emitted_kernels(seeded(0), |session, context| {
            session.fail("aclrtBinaryLoadFromData", nth, 507_899);
            let params = random_workload::shape().params();
            let parts = ["aclrtBinaryLoadFromData failed with code 507899"];
            expect_refusal(create_engine(context, params, None), &parts);
        });
    }
}

#[test]
fn a_folder_of_kernels_replaces_the_embedded_ones() {
    in_session(seeded(0), |session, context| {
        let params = embedded_geometry();
        let nowhere = create_engine(context, params, Some("/nowhere".into()));
        expect_refusal(nowhere, &["/nowhere/avsg_plan.o"]);
        let kernels = install_kernels(session, &config(params));
        drop(create_engine(context, params, Some(kernels)).unwrap());
        assert_eq!(count(session, "aclrtBinaryLoadFromData"), 0);
    });
}

/// A runtime that is opened by its path counts as a real device, which needs compiled objects.
#[test]
fn a_device_without_objects_is_refused_with_a_remedy() {
    let acl = Acl::open(&Source::Path(prerequisites::simulator_library())).unwrap();
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let other = Params::wide(12, 1, 128);
    let remedy = format!("geometry is {other}, but this library has only");
    let known: Vec<String> = geometries().map(|known| known.to_string()).collect();
    let mut parts = vec![&remedy[..], "avsg emit", "folder"];
    parts.extend(known.iter().map(String::as_str));
    expect_refusal(create_engine(&context, other, None), &parts);
    if Toolchain::find().is_err() {
        let geometry = embedded_geometry().to_string();
        let parts = [&geometry[..], "CANN was not found", "[Wide table", "avsg emit"];
        expect_refusal(create_engine(&context, embedded_geometry(), None), &parts);
    }
}
