//! Transfers that are begun, asked for and waited for through C. What may be called meanwhile, and what ends them, is
//! checked by the random calls of `fuzz`.

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

#[test]
fn a_transfer_is_begun_once_and_waited_for_once_and_their_number_has_a_limit() {
    each_device(|device| {
        let mut config = avsg_engine_config { under_way: 1, ..config_on(device) };
        let indexers = [0, 1];
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let handles = Handles::create(&pool_config(), &config);
        let Handles { engine, plan, .. } = handles;
        // SAFETY: the struct has its `size` set.
        let info = filled(|to| unsafe { avsg_engine_get_info(engine, to) });
        assert_eq!((info.under_way, info.indexers), (1, 2));
        let (mut other, mut done, none) = (null_mut(), 7, "no transfer of it is under way");
        let (owned, mut of_layer_1) = (Arrays::new(0), Arrays::new(0));
        of_layer_1.indexer = 1;
        let fresh = owned.fresh();
        // SAFETY: handles are looked up, the arrays are alive, each list has one layer, and `done` is a variable.
        unsafe {
            ok(avsg_plan_create(engine, 4, 2, &mut other));
            expect_error(avsg_engine_wait(engine, plan), AVSG_INVALID, &["plan is empty"]);
            ok(avsg_engine_plan(engine, &owned.batch(), plan, null_mut()));
            ok(avsg_engine_plan(engine, &of_layer_1.batch(), other, null_mut()));
            expect_error(avsg_engine_wait(engine, plan), AVSG_INVALID, &[none, "begin one first"]);
            expect_error(avsg_engine_test(engine, plan, &mut done), AVSG_INVALID, &[none]);
            assert_eq!(done, 0);
            let begin =
                |plan, layer: &usize| avsg_engine_begin(engine, plan, layer, 1, &fresh, null_mut());
            // A list without layers may be NULL.
            ok(avsg_engine_transfer(engine, plan, null(), 0, null(), null_mut()));
            let empty = avsg_engine_begin(engine, plan, null(), 0, null(), null_mut());
            expect_error(empty, AVSG_INVALID, &["layers is 0"]);
            let parts = ["layer is", "plan once per indexer, transfer per layer"];
            expect_error(begin(plan, &1), AVSG_INVALID, &parts);
            ok(begin(plan, &0));
            let busy = ["1 transfers are under way", "wait for one of them"];
            expect_error(begin(other, &1), AVSG_BUSY, &busy);
            while done == 0 {
                ok(avsg_engine_test(engine, plan, &mut done));
            }
            ok(avsg_engine_wait(engine, plan));
            assert_eq!(handles.expect_exact(&owned, 0), 4 * K);
            ok(begin(other, &1));
            ok(avsg_plan_destroy(other));
        }
        handles.destroy();
    });
}
