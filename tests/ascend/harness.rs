//! Engines on the simulated device.

use std::path::PathBuf;

use avsg::Result;
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine};
use avsg::pool::PoolConfig;
use avsg_sim::Session;

use super::rust_kernels;

/// Installs the Rust kernels in a session and returns the folder that an engine loads them from.
pub fn install_kernels(session: &Session, config: &Config) -> PathBuf {
    rust_kernels::install(session, config.params);
    session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
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
