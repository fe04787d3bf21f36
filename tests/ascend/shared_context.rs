//! Engines that share a context: the failed release of one is no failure of another.

use std::sync::Arc;

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

use crate::harness;

const K: usize = 24;

#[test]
fn an_error_of_a_drop_is_not_returned_by_the_call_of_another_engine() {
    let session = Session::new(Options { seed: 3, ..Options::default() });
    let config = Config { cores: 3, ..Config::new(Params::wide(K as u32, 2, 128), 2) };
    let kernels = harness::install_kernels(&session, &config);
    let context = simulated::context().unwrap();
    let pool = fixture::pool(1, 600, RowFormat::single(64).unwrap());
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let engine = || Engine::on_ascend(config.clone(), pool.clone(), &options).unwrap();
    let (first, mut second) = (engine(), engine());
    let mut plan = second.new_plan(2, 2).unwrap();
    let frees = session.calls().iter().filter(|call| **call == "aclrtFree").count();
    session.fail("aclrtFree", frees + 1, 507_899);
    drop(first);
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([0, 1, -1, 600], &[(0..K as i32).map(|lane| lane * 17).collect()]);
    second.step(&owned.batch(), &mut plan, 0, None).unwrap();
    assert_eq!(exact::check_step(&second, &plan, &owned, 0, |_, id| (id, 0)), K);
    // The error is still there for those who ask the context.
    let text = context.take_error().unwrap_err().to_string();
    assert!(text.contains("aclrtFree"), "{text}");
    context.take_error().unwrap();
    drop((plan, pool, options, context));
    second.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
