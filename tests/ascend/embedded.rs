//! Engines that name no kernels: on the simulator the library's own texts, on a device its objects.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::owned::Context;
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_linker::bridge::geometries;
use avsg_linker::toolchain::Toolchain;
use avsg_sim::{Options, Session, resolve};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;

use super::lockstep::{Form, Pair};
use super::random::{self, Random};
use super::stand;

/// An embedded geometry, with fewer tokens than its kernels know.
fn embedded() -> Params {
    let without_pages = |p: &Params| p.slots == 4096 && p.page == 0;
    Params { tokens: 1, ..geometries().find(without_pages).expect("S = 4096 fits a vector core") }
}

fn count(session: &Session, name: &str) -> usize {
    session.calls().iter().filter(|call| **call == name).count()
}

#[test]
fn an_embedded_geometry_lives_the_cpus_life() {
    if !stand::compiler() {
        return;
    }
    let session = Session::new(Options { seed: 6, ..Options::default() });
    let context = stand::context().unwrap();
    let params = embedded();
    let (k, rows) = (params.k as usize, 8192);
    let form = Form {
        params,
        states: 1,
        cores: 4,
        one_launch: true,
        requests: 1,
        rows: 1,
        blocks: 1,
        layers: 1,
        segments: &[64],
        pool_rows: rows,
        made: rows,
    };
    let mut pair = Pair::new(&form, &context, None);
    assert_eq!(count(&session, "aclrtBinaryLoadFromData"), 5, "one for each kernel");
    assert_eq!(count(&session, "aclrtBinaryLoadFromFile"), 0);
    for step in 0..3 {
        // A third of the ids is new each time, and the table has to evict in the last step.
        let ids = (0..k).map(|i| ((i + step * 1300) * 7 % rows) as i32).collect();
        let mut owned = OwnedBatch { blocks: vec![0], block_stride: 1, ..OwnedBatch::new(k, 0) };
        owned.push([0, 1, -1, rows as i32], &[ids]);
        pair.bring(owned, vec![FreshRows::new(&form.format(), 1)]);
        pair.step_by_host();
    }
    assert!(pair.compared >= 3 * k, "{} slots were compared", pair.compared);
    drop((pair, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// The runtime of a CANN that loads kernels from files alone.
fn older(name: &CStr) -> *mut c_void {
    if name == c"aclrtBinaryLoadFromData" { std::ptr::null_mut() } else { resolve(name) }
}

fn kernel_folders() -> usize {
    let own = format!("avsg-kernel-{}-", std::process::id());
    let all = std::env::temp_dir().read_dir().unwrap().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
}

#[test]
fn an_older_runtime_is_given_files_which_are_gone_afterwards() {
    if !stand::compiler() {
        return;
    }
    let session = Session::new(Options { seed: 7, ..Options::default() });
    // SAFETY: as of the whole simulator.
    let source = unsafe { Source::process("an older simulator", older) };
    let context = Context::for_device(Arc::new(Acl::open(&source).unwrap()), 0).unwrap();
    let form = random::form(3, true);
    let mut workload = Random::new(&form, &context, None, 17);
    assert_eq!(count(&session, "aclrtBinaryLoadFromFile"), 5);
    assert_eq!(kernel_folders(), 0, "nothing is left of the files");
    for _ in 0..3 {
        workload.next();
        workload.pair.step_by_host();
        workload.check();
    }
    drop((workload, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

fn engine(
    context: &Arc<Context>,
    params: Params,
    kernels: Option<PathBuf>,
) -> avsg::Result<Engine> {
    let format = RowFormat::single(64).unwrap();
    let pool = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(1, 512, format) };
    let pool = RegisteredPool::create(context, &pool).unwrap();
    let options = AscendOptions { kernels, ..AscendOptions::new(Arc::clone(context)) };
    Engine::on_ascend(Config { cores: 2, ..Config::new(params, 1) }, pool, &options)
}

/// What it is refused with.
fn refusal(context: &Arc<Context>, params: Params, kernels: Option<PathBuf>) -> String {
    engine(context, params, kernels).err().expect("a refusal").to_string()
}

#[test]
fn a_load_from_memory_that_fails_names_the_call_and_leaves_nothing() {
    if !stand::compiler() {
        return;
    }
    for nth in 1..=5 {
        let session = Session::new(Options::default());
        let context = stand::context().unwrap();
        session.fail("aclrtBinaryLoadFromData", nth, 507_899);
        let text = refusal(&context, random::form(2, true).params, None);
        assert!(text.contains("aclrtBinaryLoadFromData failed with code 507899"), "{text}");
        drop(context);
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

#[test]
fn a_folder_that_is_named_wins() {
    let session = Session::new(Options::default());
    let context = stand::context().unwrap();
    let text = refusal(&context, embedded(), Some("/nowhere".into()));
    assert!(text.contains("/nowhere/avsg_plan.o"), "{text}");
    let kernels = stand::kernels(&session, &Config::new(embedded(), 1));
    drop(engine(&context, embedded(), Some(kernels)).unwrap());
    assert_eq!(count(&session, "aclrtBinaryLoadFromData"), 0);
}

/// A library by path is a device, whose kernels are objects.
#[test]
fn what_a_device_lacks_is_said_with_the_remedy() {
    let acl = Acl::open(&Source::Path(stand::library())).unwrap();
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let other = Params::wide(12, 1, 128);
    let text = refusal(&context, other, None);
    assert!(text.starts_with(&format!("geometry is {other}, but this library has only")), "{text}");
    for known in geometries() {
        assert!(text.contains(&known.to_string()), "{known} in {text}");
    }
    assert!(text.contains("avsg emit") && text.contains("folder"), "{text}");
    if Toolchain::find().is_err() {
        let text = refusal(&context, embedded(), None);
        for part in [&embedded().to_string(), "CANN's compiler was not", "[Wide table", "avsg emit"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
