//! Every barrier and every flag of Stage One is needed: without any single one, some step breaks a rule of
//! the shim or gives other bits.

use super::compiled::Compiled;
use super::shim::Mode;
use super::stage_one::{Emitted, file, run_and_compare};
use super::steps::{self, Request, SplitMix64, StepState};
use super::tier;
use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::{StageOneText, stage_one_within};
use avsg_linker::record::record_stage_one;
use std::collections::BTreeMap;

const SAME_LENGTH: &str = "An earlier loop over as many entries waits; the analysis follows no scalar, and takes that \
                           loop for one that may be empty.";
const ONE_ROUND: &str = "At most 64 entries are one round; the analysis follows no scalar, and orders the round with \
                         another one.";
const WITH_MISSES: &str = "The loop has entries only where ids miss, and then MapLifetimes has waited; the analysis \
                           follows no scalar.";

/// Barriers and flags that no run needs, with the reason why the emitter has them.
const UNNEEDED: [(&str, &str); 11] = [
    ("PIPE_V>(); before Duplicate(slot[base], -1", SAME_LENGTH),
    ("PIPE_V>(); before AndWord(victim, newLink", SAME_LENGTH),
    ("PIPE_V>(); before SignWords(wideSign, ids[base]", SAME_LENGTH),
    ("PIPE_V>(); before Cast(bytes, life", SAME_LENGTH),
    ("S_V>(EVENT_ID0); before for (int32_t round = 0; round < 2", SAME_LENGTH),
    ("PIPE_V>(); before RefreshLifetimeAll(life, dead", ONE_ROUND),
    ("S_V>(EVENT_ID0); before RefreshLifetimeAll(life, dead", ONE_ROUND),
    ("MTE3_S>(EVENT_ID0); before for (int32_t base = 0; base < deadLen", WITH_MISSES),
    (
        "PIPE_V>(); before AndWord(value4, sample[base]",
        "A sample of 128 slots is one round of its loop; the analysis orders the round with another one.",
    ),
    (
        "PIPE_V>(); before AddsWords(dst[done], dst, done",
        "The only wide sweep with lane numbers is that of a sample, which is one round of the loop that makes \
         them.",
    ),
    (
        "V_S>(EVENT_ID0); before for (int32_t base = 0; base < deadLen",
        "The slots whose values are kept were refreshed in a loop that waits for the vector unit; the analysis \
         does not see a wait within a function that it needs for other memory.",
    ),
];

/// Returns a text in which a number before the request's fields selects a barrier or flag that is
/// left out, and these barriers and flags. Both halves of a flag with an event of its own are left out
/// together.
fn with_switches(text: &str) -> (String, Vec<String>) {
    let (mut out, mut removed) = (String::new(), Vec::new());
    let mut halves = BTreeMap::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        inside |= line.starts_with("namespace ") && line.ends_with("stage_one {");
        inside &= !(line.starts_with("} // namespace ") && line.ends_with("stage_one"));
        let sync = line.trim_start();
        let starts = |words: &[&str]| inside && words.iter().any(|word| sync.starts_with(word));
        let switch = if starts(&["SetWaitFlag<", "PipeBarrier<", "SetFlag<"]) {
            let next = text
                .lines()
                .skip(number + 1)
                .find(|l| !l.contains("HardEvent") && !l.contains("PipeB"));
            removed.push(format!("{sync} before {}", next.unwrap_or("").trim()));
            if let Some(flag) = sync.strip_prefix("SetFlag") {
                halves.insert(flag, removed.len());
            }
            Some(removed.len())
        } else if starts(&["WaitFlag<"]) {
            halves.get(&sync["WaitFlag".len()..]).copied()
        } else {
            None
        };
        match switch {
            Some(n) => out += &format!("if (without != {n}) {{ {sync} }}\n"),
            None => {
                out += line;
                out.push('\n');
            }
        }
    }
    let out = out.replacen("namespace avsg {", "static int32_t without = 0;\nnamespace avsg {", 1);
    let entry = "    const int32_t *f = reinterpret_cast<const int32_t *>(fields);\n";
    (out.replace(entry, &format!("{entry}    without = *f++;\n")), removed)
}

/// Returns steps that random ones hardly contain. Two fill a table; two select some of its oldest ids beside
/// new ones, so that a few hits must be refreshed at once; in two, so many ids miss that the vector unit
/// searches for their links, and so few that the scalar unit does; in one no id misses and a few are
/// invalid; and in one, which cores share, the last round of a sweep has nearly all lanes.
fn chosen_steps(p: &Params, like: &Request) -> Vec<Request> {
    let (k, slots, all) = (p.k as i32, p.slots as i32, (p.k * p.tokens) as i32);
    let step = |ids: Vec<i32>, tokens: u32, shared| {
        let blocks: Vec<i32> = (0..4 * slots / p.page.max(1) as i32).collect();
        let (n, k) = (blocks.len() as i32, ids.len() as i32 / tokens as i32);
        let params = like.params.iter().map(|&(name, value)| {
            let set = match name {
                "tokens" | "deferred" => tokens as i32,
                "k" | "ids_stride" | "slot_stride" | "share_len" => k,
                "generation" => -1,
                "stable" | "limit" => 4 * slots,
                "rows" | "blocks_len" => n,
                "ids_at" | "blocks_at" => 0,
                "shared" => shared,
                _ => value,
            };
            (name, set)
        });
        let words = (2 * k + 32) as usize;
        Request { params: params.collect(), ids, blocks, slots: words, misses: words, values: None }
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
        step((0..all).collect(), p.tokens, 0),
        step((all..2 * all).collect(), p.tokens, 0),
        step(few_hits.clone(), 1, 0),
        step(few_hits, 1, 0),
        step(with_new(2 * all + k, 20), 1, 0),
        step(with_new(2 * all + 2 * k, 12), 1, 0),
        step(hits, 1, 0),
        step(newest[..350].to_vec(), 1, 1),
    ]
}

/// Returns a geometry with several tokens per step, pages and learned lifetimes, and one with none of these.
/// The smallest unified buffer that suffices gives sweeps several rounds.
fn texts() -> [(Params, StageOneText); 2] {
    let lifetime = Lifetime::Learned;
    let tokens = Params { spread: 2, lifetime, page: 16, ..Params::wide(900, 2, 2048) };
    let constant = Lifetime::Constant(127);
    let token = Params { lifetime: constant, spread: 2, retries: 7, ..Params::wide(900, 1, 2048) };
    [tokens, token].map(|p| {
        let text = (1..).find_map(|n| stage_one_within(&p, 1024 * n).ok());
        (p, text.expect("some size fits"))
    })
}

/// Some run of some geometry fails without each barrier or flag, except those in [`UNNEEDED`], and no run
/// fails without these.
#[test]
fn every_barrier_and_flag_is_needed() {
    let mut needed: BTreeMap<String, bool> = BTreeMap::new();
    let mut all = 0;
    for (p, text) in texts() {
        let Some(outcomes) = without_each(&p, text) else { return };
        all += outcomes.len();
        for (sync, fails) in outcomes {
            *needed.entry(sync).or_default() |= fails;
        }
    }
    let passing = || needed.iter().filter(|(_, fails)| !**fails).map(|(sync, _)| sync);
    let reason = |sync: &str| UNNEEDED.iter().any(|(part, _)| sync.contains(part));
    let without: Vec<_> = passing().filter(|sync| !reason(sync)).collect();
    assert!(without.is_empty(), "no run fails without these: {without:#?}");
    let stale = |(part, _): &&(&str, &str)| !passing().any(|sync| sync.contains(part));
    let stale: Vec<_> = UNNEEDED.iter().filter(stale).collect();
    assert!(stale.is_empty(), "these are needed, or match nothing: {stale:#?}");
    let spare = passing().count();
    println!("{}, {all} of {all} barriers and flags, all needed except {spare}", tier::name());
}

/// Returns each barrier and flag of a text with the statement behind it, and whether some step fails without
/// it.
fn without_each(p: &Params, text: StageOneText) -> Option<Vec<(String, bool)>> {
    let (file, removed) = with_switches(&file(p, &text));
    let kernels = Compiled::single(&file)?;
    let emitted = Emitted { text, kernels };
    let tape = record_stage_one(p).unwrap();
    let mut steps = steps::sequence(p, &mut SplitMix64(3), 16);
    // Tokens of one id test that each token is still ordered after the one before.
    let full = steps.iter().position(|s| s.param("tokens") == p.tokens as i32);
    let full = full.expect("some step has all tokens");
    steps.push(steps[full].clone());
    steps.last_mut().unwrap().params[1].1 = 1;
    steps.extend(chosen_steps(p, &steps[full]));
    let mut state = StepState::clear(p);
    let run_step = |step| {
        state.prepare(p, step);
        let both = (state.clone(), state.replay(&tape, 16, step));
        state.finish(p, step);
        both
    };
    let states: Vec<_> = steps.iter().map(run_step).collect();
    let breaks = |n: usize| {
        steps.iter().zip(&states).find_map(|(step, (before, want))| {
            let mut step = step.clone();
            step.params.push(("without", n as i32));
            run_and_compare(p, &emitted, before, want, &step, (Mode::InOrder, 1)).err()
        })
    };
    assert_eq!(breaks(0), None, "{p:?}");
    let fails = |(n, sync)| (sync, breaks(n + 1).is_some());
    Some(removed.into_iter().enumerate().map(fails).collect())
}
