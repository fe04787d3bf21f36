//! An engine on the simulated device.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::owned::Context;
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::{Config, Engine};
use avsg::pool::PoolConfig;
use avsg_sim::{Session, resolve};

use super::native;

/// The simulator in this process.
pub fn source() -> Source {
    // SAFETY: the simulator's functions have the signatures of the header that both share.
    unsafe { Source::process("the simulator", resolve) }
}

/// The first device.
pub fn context() -> Result<Arc<Context>> {
    Context::for_device(Arc::new(Acl::open(&source())?), 0)
}

/// The session's own kernels.
pub fn kernels(session: &Session, config: &Config) -> PathBuf {
    native::install(session, config.params);
    session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
}

/// Makes an engine with a pool of its own. Without `kernels` it loads the ones that the library emits.
pub fn engine(
    config: Config,
    pool: &PoolConfig,
    kernels: impl Into<Option<PathBuf>>,
    one_launch: bool,
) -> Result<Engine> {
    let context = context()?;
    let pool = RegisteredPool::create(&context, pool)?;
    let options = AscendOptions {
        kernels: kernels.into(),
        timeout_ms: 50,
        one_launch: Some(one_launch),
        ..AscendOptions::new(context)
    };
    Engine::on_ascend(config, pool, &options)
}

/// The simulator's shared library, which cargo builds as a dependency of this test.
pub fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the simulator's library")
}

/// Whether a C++ compiler is here; says so if not.
pub fn compiler() -> bool {
    let there = avsg_sim::compiler::cpp().is_some();
    if !there {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
    }
    there
}
