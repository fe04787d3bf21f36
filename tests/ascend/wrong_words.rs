//! Words that no correct kernel writes: the host refuses them with an error, and recovers.

use avsg::Error;
use avsg::device::kernels::{Arg, KernelName};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::rows::RowFormat;
use avsg_sim::Session;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fixture;

use crate::harness::{expect_refusal, on_ascend};

const K: usize = 8;
const SLOTS: i32 = 64;
const POOL_ROWS: usize = 128;

/// Runs a test on an engine and two plans of it.
fn with_engine(
    (tokens, slots): (u32, i32),
    slot_base: Option<i32>,
    test: impl FnOnce(&Session, &mut Engine, [&mut Plan; 2]),
) {
    let params = Params::wide(K as u32, tokens, slots as u32);
    let config = Config { cores: 2, slot_base, ..Config::new(params, 2) };
    let pool = || fixture::pool(1, POOL_ROWS, RowFormat::single(32).unwrap());
    on_ascend(&config, pool, |engine, session, _| {
        let mut plans = [(); 2].map(|()| engine.new_plan(16, 2).unwrap());
        test(session, engine, plans.each_mut());
    });
}

/// Returns a batch of a request of two tokens and one of one token. Every id misses an empty table.
fn batch(generation: i32) -> OwnedBatch {
    let ids = |row: usize| (0..K).map(|lane| (row * K + lane) as i32).collect();
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([0, generation, -1, POOL_ROWS as i32], &[ids(0), ids(1)]);
    owned.push([1, generation, -1, POOL_ROWS as i32], &[ids(2)]);
    owned
}

/// Sets a word of an array of the next kernel, which is `kernel`, to a value.
pub fn corrupt_next(session: &Session, kernel: KernelName, arg: Arg, word: usize, value: i32) {
    let number = kernel.args().iter().position(|&a| a == arg).unwrap();
    session.corrupt(session.launches() + 1, number, word, value);
}

/// A word of a plan that the device writes wrongly: the array, the word's number, its value, and a
/// part of the expected message.
type Wrong = (Arg, usize, i32, &'static str);

const WRONG: [Wrong; 19] = [
    // The second request's summary begins at word 16.
    (
        Arg::Summary,
        8,
        15,
        "15 as a request's number of misses, but the tokens of request 0 have 16",
    ),
    (Arg::Summary, 8, i32::MAX, "2147483647 as a request's number of misses"),
    (Arg::Summary, 16 + 8, -1, "-1 as a request's number of misses, but the tokens of request 1"),
    (Arg::Summary, 1, -1, "-1 as a token's number of misses, but it must be 0..=8"),
    (Arg::Summary, 16, 9, "9 as a token's number of misses, but it must be 0..=8"),
    (Arg::Summary, 9, 4, "4 as the status of a request, but it must be 0..=3"),
    (Arg::Summary, 16 + 9, -1, "-1 as the status of a request"),
    (Arg::Valid, 2, 9, "9 as a token's number of valid ids, but it must be 0..=8"),
    (Arg::Valid, 0, -1, "-1 as a token's number of valid ids"),
    (Arg::Slot, 3, SLOTS, "64 as a slot, but it must be -1 or 0..=63"),
    (Arg::Slot, 3 * K - 1, -2, "-2 as a slot"),
    (Arg::MissPos, 0, 2 * K as i32, "16 as a miss's position, but it must be 0..=15"),
    (Arg::MissPos, 2 * K, 8, "8 as a miss's position, but it must be 0..=7"),
    (Arg::MissId, 1, 1 << 24, "16777216 as a miss's id, but it must be 0..=16777215"),
    (Arg::MissId, 1, -1, "-1 as a miss's id"),
    (Arg::MissSlot, 5, SLOTS, "64 as a miss's slot, but it must be 0..=63"),
    (Arg::MissSlot, 2 * K + 5, -1, "-1 as a miss's slot"),
    (Arg::MissRow, 2, POOL_ROWS as i32, "128 as a miss's row, but it must be -2..=127"),
    (Arg::MissRow, 2 * K, -2, "-2 as a miss's row, but it must be -1..=127"),
];

#[test]
fn the_host_refuses_every_wrong_word_of_a_plan_and_recovers() {
    for (arg, word, value, expected) in WRONG {
        for kernel in [KernelName::Plan, KernelName::Step] {
            with_engine((2, SLOTS), None, |session, engine, [good, bad]| {
                engine.plan(&batch(1).batch(), good).unwrap();
                corrupt_next(session, kernel, arg, word, value);
                // A new generation, so that the earlier plan need not be transferred.
                let next = batch(2);
                let mut run = |engine: &mut Engine| match kernel {
                    KernelName::Plan => engine.plan(&next.batch(), bad),
                    _ => engine.step(&next.batch(), bad, 0, None),
                };
                let error = run(engine).unwrap_err();
                assert!(matches!(error, Error::Device { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains(expected) && text.contains("avsg doctor"), "{arg:?}: {text}");
                // The tables may be wrong, too: the earlier plan is refused, and the next plan starts cold.
                expect_refusal(engine.transfer(good, &[0], None), &["plan is stale"]);
                run(engine).unwrap();
                assert_eq!(bad.total_misses(), 3 * K, "the tables were emptied");
            });
        }
    }
}

/// The misses of 16 tokens are in the halves of 8 words.
#[test]
fn the_host_refuses_wrong_halves_of_the_words_of_sixteen_tokens() {
    let expected = "as a token's number of misses, but it must be 0..=8";
    let of_request = "as a request's number of misses, but the tokens of request 0 have";
    let mut owned = OwnedBatch::uniform(K, 1, 16, POOL_ROWS);
    owned.ids = (0..16 * K as i32).map(|i| i / 2).collect();
    // Tokens 1 and 9 have 4 new ids each.
    for (value, part) in [
        (4 << 16 | 9, format!("9 {expected}")),
        (9 << 16 | 4, format!("9 {expected}")),
        (-1, format!("65535 {expected}")),
        (i32::MIN | 4, format!("32768 {expected}")),
        (4 << 16 | 3, of_request.into()),
        (3 << 16 | 4, of_request.into()),
    ] {
        with_engine((16, 128), None, |session, engine, [plan, _]| {
            corrupt_next(session, KernelName::Plan, Arg::Summary, 1, value);
            expect_refusal(engine.plan(&owned.batch(), plan), &[&part]);
            engine.plan(&owned.batch(), plan).unwrap();
            let missed = plan.row_misses();
            assert_eq!(missed.iter().sum::<i32>() as usize, plan.total_misses());
            assert!(missed.iter().all(|&n| n >= 4), "{missed:?}");
        });
    }
}

#[test]
fn the_host_refuses_a_slot_outside_of_the_indices_of_all_states() {
    let last = 99 + 2 * SLOTS;
    for (value, refused) in [(0, true), (99, true), (100, false), (last, false), (last + 1, true)] {
        with_engine((2, SLOTS), Some(100), |session, engine, [plan, _]| {
            corrupt_next(session, KernelName::Plan, Arg::Slot, 3, value);
            let result = engine.plan(&batch(1).batch(), plan);
            let text = result.err().map(|error| error.to_string());
            let expected = format!("{value} as a slot, but it must be -1 or 100..={last}");
            assert_eq!(text.is_some_and(|text| text.contains(&expected)), refused, "{value}");
        });
    }
}
