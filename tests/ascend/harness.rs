//! Engines on the simulated device.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::Context;
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg_sim::{Options, Session};

use super::rust_kernels;

/// Installs the Rust kernels in a session and returns the folder that an engine loads them from.
pub fn install_kernels(session: &Session, config: &Config) -> PathBuf {
    rust_kernels::install(session, config.params);
    session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
}

/// Runs a test on an engine on the CPU and on one on the simulated device, which runs the Rust
/// kernels and must not leak a resource. The test gets the device's context; there is none on the
/// CPU.
pub fn on_both_devices(
    config: &Config,
    pool: impl Fn() -> HostPool,
    test: impl Fn(&mut Engine, &Session, Option<&Arc<Context>>),
) {
    let session = Session::new(Options { seed: 5, ..Options::default() });
    test(&mut Engine::new(config.clone(), pool()).unwrap(), &session, None);
    let kernels = install_kernels(&session, config);
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let mut engine = Engine::on_ascend(config.clone(), pool, &options).unwrap();
    drop(options);
    test(&mut engine, &session, Some(&context));
    drop(context);
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// Returns a table without the 64 bytes between lifetimes and links, which are scratch space of a
/// machine.
pub fn without_scratch(table: &[i32], slots: usize) -> Vec<i32> {
    let pad = 16 + slots + slots / 4;
    [&table[..pad], &table[pad + 16..]].concat()
}

/// Creates an engine with a pool of its own. Without `kernels` it loads the kernels that the
/// library emits.
pub fn engine(
    config: Config,
    pool: &PoolConfig,
    kernels: impl Into<Option<PathBuf>>,
    one_launch: bool,
) -> Result<Engine> {
    let context = simulated::context()?;
    let pool = RegisteredPool::create(&context, pool)?;
    let options = AscendOptions {
        kernels: kernels.into(),
        timeout_ms: 50,
        one_launch: Some(one_launch),
        ..AscendOptions::new(context)
    };
    Engine::on_ascend(config, pool, &options)
}
