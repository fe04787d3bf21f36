//! What a call in a stream launches, and what it refuses: all but the contents of its arrays.

use std::ptr::{null, null_mut, without_provenance};

use avsg::ascend::acl::owned::Stream;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session};

use super::c::*;
use super::there::{There, life, life_with};

/// Kernels of a step: as many as were asked for, and by default one with a NULL stream and two beside
/// other streams.
#[test]
fn a_step_has_the_launches_that_were_asked_for() {
    if !compiler() {
        return;
    }
    for (launches, waiting, queued) in [(0, 1, 2), (1, 1, 1), (2, 2, 2)] {
        let session = Session::new(Options::default());
        let life = life_with(c"ascend-sim", |config| config.launches = launches);
        let context = life.context.clone().unwrap();
        let stream = Stream::new(&context).unwrap();
        let owned = Arrays::new(1);
        let before = session.launches();
        ok(life.step(&owned, 0));
        assert_eq!(session.launches() - before, waiting, "launches {launches}");
        assert_eq!(life.expect_exact(&owned, 0), 32);
        let (there, before) = (There::new(&context, &owned), session.launches());
        // SAFETY: `there` keeps all arrays until the stream was waited for.
        unsafe {
            let raw = stream.raw().handle();
            ok(avsg_engine_step(life.engine, &there.batch, life.plan, 0, &there.fresh[0], raw));
        }
        stream.synchronize(10_000).unwrap();
        assert_eq!(session.launches() - before, queued, "launches {launches}");
        drop((there, stream));
        life.end();
        drop(context);
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

#[test]
fn what_a_stream_cannot_hold_is_refused() {
    if !compiler() {
        return;
    }
    let session = Session::new(Options::default());
    let (life, other) = (life(c"ascend-sim"), life(c"ascend-sim"));
    let context = life.context.clone().unwrap();
    let stream = Stream::new(&context).unwrap();
    let raw = stream.raw().handle();
    let owned = Arrays::new(1);
    let there = There::new(&context, &owned);
    let launched = session.launches();
    let step = |batch: &avsg_batch, fresh: &avsg_fresh, plan, layer| {
        // SAFETY: `there` keeps the arrays; whatever is wrong with them is refused.
        unsafe { avsg_engine_step(life.engine, batch, plan, layer, fresh, raw) }
    };
    type Spoil = fn(&mut avsg_batch, &mut avsg_fresh);
    #[rustfmt::skip]
    let cases: [(Spoil, avsg_status, &[&str]); 21] = [
        (|b, _| b.size = 8, AVSG_SIZE, &["avsg_batch.size is 8"]),
        (|b, _| b.k = 0, AVSG_INVALID, &["k is 0", "1..=8"]),
        (|b, _| b.k = 9, AVSG_INVALID, &["k is 9", "1..=8"]),
        (|b, _| b.ids_stride = 7, AVSG_INVALID, &["ids_stride is 7", "at least k"]),
        (|b, _| b.ids.data = null(), AVSG_NULL, &["ids is NULL"]),
        (|b, _| b.ids.data = b.ids.data.wrapping_byte_add(1), AVSG_INVALID, &["ids is", "multiple of 4"]),
        (|b, _| b.cu_q.len = 2, AVSG_INVALID, &["cu_q length is 2", "needs 3"]),
        (|b, _| b.cu_q.data = null(), AVSG_NULL, &["cu_q is NULL"]),
        (|b, _| b.state.data = null(), AVSG_NULL, &["state is NULL"]),
        (|b, _| b.state.len = (1 << 20) + 1, AVSG_INVALID, &["requests is 1048577", "split the batch"]),
        (|b, _| b.state.len = usize::MAX, AVSG_INVALID, &["requests is"]),
        (|b, _| b.generation.len = 1, AVSG_INVALID, &["generation length is 1", "needs 2"]),
        (|b, _| b.stable_len.len = 0, AVSG_INVALID, &["stable_len length is 0"]),
        (|b, _| b.seq_len.data = null(), AVSG_NULL, &["seq_len is NULL"]),
        (|b, _| b.block_table.len = 15, AVSG_INVALID, &["block_table length is 15", "needs 16"]),
        (|b, _| b.block_stride = usize::MAX, AVSG_INVALID, &["block_table length is 16"]),
        (|_, f| f.size = 8, AVSG_SIZE, &["avsg_fresh.size is 8"]),
        (|_, f| f.segments = 1, AVSG_INVALID, &["fresh segments is 1", "a row has 2"]),
        (|_, f| f.segments = 5, AVSG_INVALID, &["fresh segments is 5", "a row has 2"]),
        (|_, f| f.data[1] = null(), AVSG_NULL, &["fresh data is NULL"]),
        (|_, f| f.bytes[0] = 4 * 24 - 1, AVSG_INVALID, &["fresh bytes is 95", "need 96"]),
    ];
    for (spoil, want, parts) in cases {
        let (mut batch, mut fresh) = (there.batch, there.fresh[0]);
        spoil(&mut batch, &mut fresh);
        fails(step(&batch, &fresh, life.plan, 0), want, parts);
    }
    fails(step(&there.batch, &there.fresh[0], life.plan, 2), AVSG_INVALID, &["layer is 2"]);
    fails(step(&there.batch, &there.fresh[0], other.plan, 0), AVSG_INVALID, &["plan is foreign"]);
    let mut small = null_mut();
    // SAFETY: places for results, and as above.
    unsafe {
        ok(avsg_plan_create(life.engine, 3, 2, &mut small));
        fails(
            step(&there.batch, &there.fresh[0], small, 0),
            AVSG_INVALID,
            &["rows is 4", "holds 3"],
        );
        let status = avsg_engine_transfer(life.engine, small, 0, &there.fresh[0], raw);
        fails(status, AVSG_INVALID, &["not planned in a stream", "plan it in the stream"]);
        let status = avsg_engine_append(life.engine, &there.batch, 0, null(), raw);
        fails(status, AVSG_NULL, &["fresh is NULL", "append"]);
        let status = avsg_engine_append(life.engine, &there.batch, 2, &there.fresh[0], raw);
        fails(status, AVSG_INVALID, &["layer is 2"]);
        ok(avsg_plan_destroy(small));
    }
    assert_eq!(session.launches(), launched, "nothing of it was launched");
    // An address that is none is found by the device, and the next plan starts cold.
    let mut wild = there.batch;
    wild.ids.data = without_provenance(4096);
    ok(step(&wild, &there.fresh[0], life.plan, 0));
    assert!(stream.synchronize(10_000).is_err());
    drop((there, stream));
    other.end();
    life.end();
    drop(context);
    assert_eq!(session.leaks(), Vec::<String>::new());
}
