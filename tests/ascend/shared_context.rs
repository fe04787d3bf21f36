//! Engines that share a context: the failed release of one is no failure of another.

use std::sync::Arc;

use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::Engine;
use avsg_sim::Options;

use crate::harness::{expect_refusal, fail_next, in_session, install_kernels};
use crate::small::{self, check, ids, one_request};

#[test]
fn an_error_of_a_drop_is_not_returned_by_the_call_of_another_engine() {
    in_session(Options::default(), |session, context| {
        let config = small::config(2);
        let kernels = install_kernels(session, &config);
        let pool = RegisteredPool::new(context, small::pool()).unwrap();
        let options = AscendOptions::new(Arc::clone(context)).with_kernels(kernels);
        let engine = || Engine::on_ascend(config.clone(), pool.clone(), &options).unwrap();
        let (first, mut second) = (engine(), engine());
        let mut plan = second.new_plan(2, 2).unwrap();
        fail_next(session, "aclrtFree", 1);
        drop(first);
        let owned = one_request(0, 1, ids(0));
        second.step(&owned.batch(), &mut plan, 0, None).unwrap();
        check(&second, &plan, &owned, 0);
        // The error is still there for those who ask the context.
        expect_refusal(context.take_error(), &["aclrtFree"]);
        context.take_error().unwrap();
        drop(plan);
        second.close().unwrap();
    });
}
