//! Every barrier and every flag of Stage One is needed: without any single one, some step breaks a rule of
//! the shim or gives other bits.

use super::emitted_stage_one::{Emitted, Native, STAGE_ONE, emit_all, random_steps};
use super::one_request::{Step, Way};
use super::{Mode, SYNC_CALLS, mutants, tier};
use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::{StageOneText, stage_one_within};
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::Tape;
use std::collections::BTreeMap;

/// Returns a text in which a number selects a barrier or flag of Stage One that is left out, and these barriers and flags
/// with their numbers. Both halves of a flag with an event of its own are left out together.
fn with_switches(text: &str) -> (String, Vec<(usize, String)>) {
    let mut inside = false;
    let in_stage_one = |_, line: &str| {
        inside |= line.starts_with("namespace ") && line.ends_with("stage_one {");
        inside &= !(line.starts_with("} // namespace ") && line.ends_with("stage_one"));
        inside
    };
    let (mut text, statements) = mutants::with_switches(text, in_stage_one, &SYNC_CALLS);
    let (mut halves, mut removed) = (BTreeMap::new(), vec![]);
    for (n, sync) in (1..).zip(statements) {
        let (statement, _) = sync.split_once(" before ").expect("the statement behind it");
        if let Some(flag) = statement.strip_prefix("WaitFlag") {
            let [own, first] = [n, halves[flag]].map(|n| format!("left_out != {n})"));
            text = text.replace(&own, &first);
            continue;
        }
        if let Some(flag) = statement.strip_prefix("SetFlag") {
            halves.insert(flag.to_owned(), n);
        }
        removed.push((n, sync));
    }
    (text, removed)
}

/// Returns steps that random ones hardly contain. Two fill a table; two select some of its oldest ids beside
/// new ones, so that a few hits must be refreshed at once; in two, so many ids miss that the vector unit
/// searches for their links, and so few that the scalar unit does; in one no id misses and a few are
/// invalid; in one, which cores share, the last round of a sweep has nearly all lanes; and in one each id misses twice,
/// so that many links are overwritten.
fn chosen_steps(p: &Params) -> Vec<(Step, Way)> {
    let (k, slots, all) = (p.k as i32, p.slots as i32, (p.k * p.tokens) as i32);
    let step = |ids: Vec<i32>, tokens: u32, shared| {
        let (limit, rows) = (4 * slots, 4 * slots / p.page.max(1) as i32);
        let tokens = ids.chunks(ids.len() / tokens as usize).map(<[_]>::to_vec).collect();
        let blocks = (0..rows).collect();
        (
            Step { generation: -1, stable: limit, limit, rows, tokens, blocks },
            Way { shared, deferred: true },
        )
    };
    let mut few_hits = vec![-1; p.k as usize];
    for i in 0..20 {
        few_hits[45 * i] = all - 200 + i as i32;
        few_hits[45 * i + 1] = 2 * all + i as i32;
    }
    let newest: Vec<i32> = (2 * all - k..2 * all).collect();
    let with_new = |first: i32, n: i32| {
        let mut ids = newest.clone();
        (0..n).for_each(|i| ids[i as usize] = first + i);
        ids
    };
    // These ids are few enough that all of them have a link.
    let mut hits = newest[700..].to_vec();
    hits.iter_mut().step_by(45).for_each(|id| *id = -1);
    vec![
        step((0..all).collect(), p.tokens, false),
        step((all..2 * all).collect(), p.tokens, false),
        step(few_hits.clone(), 1, false),
        step(few_hits, 1, false),
        step(with_new(2 * all + k, 20), 1, false),
        step(with_new(2 * all + 2 * k, 12), 1, false),
        step(hits, 1, false),
        step(newest[..350].to_vec(), 1, true),
        step((0..k).map(|i| 4 * slots - k + i / 2).collect(), 1, false),
    ]
}

/// Returns a geometry with several tokens per step, pages and learned lifetimes, and one with none of these.
/// The smallest unified buffer that suffices gives sweeps several rounds.
fn texts() -> [(Params, Native, Tape, StageOneText); 2] {
    let lifetime = Lifetime::Learned;
    let tokens = Params { spread: 2, lifetime, page: 16, ..Params::wide(900, 2, 2048) };
    let constant = Lifetime::Constant(127);
    let token = Params { lifetime: constant, spread: 2, retries: 7, ..Params::wide(900, 1, 2048) };
    [tokens, token].map(|p| {
        let text = (1..).find_map(|n| stage_one_within(&p, 1024 * n).ok());
        (p, STAGE_ONE, record_stage_one(&p).unwrap(), text.expect("some size fits"))
    })
}

/// Some run of some geometry fails without each barrier or flag, except those in `unneeded.txt`, and no run
/// fails without these.
#[test]
fn every_barrier_and_flag_is_needed() {
    let mut removed = vec![];
    let change = |text: String| {
        let (text, of_text) = with_switches(&text);
        removed.push(of_text);
        text
    };
    let Some(emitted) = emit_all(texts().into(), change) else { return };
    let mut needed: BTreeMap<&str, bool> = BTreeMap::new();
    for (emitted, removed) in emitted.iter().zip(&removed) {
        let fails = fails_without(emitted);
        assert!(!fails(0), "the whole text of {:?} fails", emitted.p);
        for (n, sync) in removed {
            let needed = needed.entry(sync).or_default();
            *needed = *needed || fails(*n);
        }
    }
    let passing = || needed.iter().filter(|(_, fails)| !**fails).map(|(sync, _)| sync);
    let lines = include_str!("unneeded.txt").lines();
    let unneeded: Vec<_> = lines.filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let reason = |sync: &&&str| unneeded.iter().any(|part| sync.contains(part));
    let without: Vec<_> = passing().filter(|sync| !reason(sync)).collect();
    assert!(without.is_empty(), "no run fails without these: {without:#?}");
    let stale = |part: &&&str| !passing().any(|sync| sync.contains(**part));
    let stale: Vec<_> = unneeded.iter().filter(stale).collect();
    assert!(stale.is_empty(), "these are needed, or match nothing: {stale:#?}");
    let (all, spare) = (removed.iter().flatten().count(), passing().count());
    println!("{}, {all} of {all} barriers and flags, all needed except {spare}", tier::name());
}

/// Returns a function that says whether some step fails without the barrier or flag of a number.
fn fails_without(emitted: &Emitted) -> impl Fn(usize) -> bool {
    let p = &emitted.p;
    let mut steps = random_steps(p, 2, 16);
    // Tokens of one id test that each token is still ordered after the one before.
    let full = steps.iter().find(|(step, _)| step.tokens.len() == p.tokens as usize);
    let (mut single, _) = full.expect("some step has all tokens").clone();
    single.tokens.iter_mut().for_each(|ids| ids.truncate(1));
    steps.push((single, Way { shared: false, deferred: false }));
    steps.extend(chosen_steps(p));
    let steps = emitted.trace(steps, false);
    move |n| {
        emitted.kernels.leave_out(n);
        steps.iter().any(|step| emitted.run_and_compare(step, (Mode::InOrder, 1)).is_err())
    }
}
