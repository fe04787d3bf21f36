//! Engines on the CPU and on the simulated device, over equal pools.

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::fixture;

pub const LAYERS: usize = 2;
const STATES: usize = 4;
/// Blocks of the pool.
pub const BLOCKS: usize = 64;

/// Runs a test on an engine of the CPU and on one of the simulated device, if a C++ compiler is there.
pub fn on_both(params: &Params, test: impl Fn(&mut Engine)) {
    let rows = BLOCKS * params.page as usize;
    let config = Config { cores: 4, ..Config::new(*params, STATES) };
    let pool = || {
        let pages = Pages::Plain;
        let pool =
            PoolConfig { pages, ..PoolConfig::new(LAYERS, rows, RowFormat::single(64).unwrap()) };
        let pool = HostPool::new(&pool).unwrap();
        fixture::fill(&pool, rows, |layer, row| (row as i32, layer as u32));
        pool
    };
    test(&mut Engine::new(config.clone(), pool()).unwrap());
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let options = AscendOptions::new(context);
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    drop(options);
    test(&mut engine);
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
