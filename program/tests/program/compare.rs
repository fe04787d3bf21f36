//! Tests of `avsg compare`: every policy and rule is there, no policy surpasses the optimum, and the
//! rates and the recommended rule are those of `size`.

use avsg_testkit::splitmix::SplitMix64;
use serde_json::Value;

use crate::support::{has, json, near, npy, number, refused, text};

/// Returns a figure of a policy at its first S.
fn figure(report: &Value, policy: &str, name: &str) -> f64 {
    let policies = report["policies"].as_array().expect("policies");
    let found = policies.iter().find(|rates| rates["policy"] == policy);
    let found = found.unwrap_or_else(|| panic!("no {policy}"));
    number(&found["at"][0][name])
}

#[test]
fn no_policy_surpasses_the_optimum_for_any_number_of_tokens() {
    for options in ["--slots 256 --steps 20", "--slots 64 --mtp0 --steps 40"] {
        let report = json(&format!("compare LLAMA {options}"));
        let policies = report["policies"].as_array().expect("policies");
        assert_eq!((policies.len(), &policies[13]["policy"]), (14, &"Belady's optimum".into()));
        let best = figure(&report, "Belady's optimum", "hit_rate");
        assert!(policies.iter().all(|rates| number(&rates["at"][0]["hit_rate"]) <= best));
        assert!(
            figure(&report, "exact LRU", "hit_rate") > figure(&report, "no buffer", "hit_rate")
        );
    }
}

/// Writes a trace of 300 steps, each of which selects 80 of 110 ids and 20 that no other step selects.
fn mixed() -> String {
    let (mut random, mut often) = (SplitMix64::new(1), (0..110).collect::<Vec<i32>>());
    let mut ids = Vec::new();
    for first in (110..).step_by(20).take(300) {
        random.shuffle(&mut often);
        ids.extend(often[..80].iter().copied().chain(first..first + 20));
    }
    npy("mixed.npy", &[300, 100], &ids)
}

#[test]
fn size_compare_and_replay_take_one_rule_and_another_than_the_default_only_if_the_trace_shows_it() {
    let mixed = mixed();
    for (trace, slots, rule, hits) in [
        // The rules differ by less than the trace can show.
        ("SAMPLE", 1024, "learned", "constant:127"),
        (&mixed, 192, "constant:127", "learned"),
        // The default is constant:127.
        (&mixed, 128, "learned", "learned"),
    ] {
        let line = format!("{trace} --slots {slots}");
        let size = json(&format!("size {line}"));
        let point = &size["points"][0];
        let compared = json(&format!("compare {line}"));
        let rate = |rule| figure(&compared, rule, "hit_rate");
        assert!(["learned", "constant:127"].iter().all(|rule| rate(rule) <= rate(hits)), "{line}");
        let advice = &compared["advice"][0];
        near(&point["hit_rate"], rate(rule));
        near(&point["hit_rate"], number(&advice["hit_rate"]));
        near(&point["copies"]["misses_per_step"], number(&advice["misses_per_step"]));
        let replayed = &json(&format!("replay {line}"))["geometry"]["lifetime"];
        let advised = advice["lifetime"].as_str();
        let all = (size["recommended"]["lifetime"].as_str(), advised, replayed.as_str());
        assert_eq!(all, (Some(rule), Some(rule), Some(rule)), "{line}");
    }
}

#[test]
fn the_page_begins_with_the_rule_to_take_and_marks_it_in_the_table() {
    let shown = text("compare LLAMA --slots 256,512 --steps 8");
    has(&shown, &[" at S = 256", "| S = 256, % | S = 512, % |"]);
    assert!(shown.starts_with("take ") && shown.matches(" * |").count() == 2, "{shown}");
}

#[test]
fn several_traces_are_counted_together_and_must_have_one_shape() {
    let ids: Vec<i32> = (0..20 * 64).map(|at| at % 100).collect();
    let (all, part) = (npy("all.npy", &[20, 64], &ids), npy("part.npy", &[5, 64], &ids[..5 * 64]));
    let misses = |traces: &str| {
        let [compare, size] =
            ["compare", "size"].map(|c| json(&format!("{c} {traces} --slots 64")));
        // The first step of each trace does not count.
        let steps = number(&compare["steps"]) - number(&size["traces"]);
        let lru = figure(&compare, "exact LRU", "misses_per_step") * steps;
        let learned = number(&size["points"][0]["copies"]["misses_per_step"]) * steps;
        (steps, lru, learned, size)
    };
    let (one, other, both) = (misses(&all), misses(&part), misses(&format!("{all} {part}")));
    assert_eq!((one.0, other.0, both.0), (19.0, 4.0, 23.0));
    assert!((one.1 + other.1 - both.1).abs() < 1e-9 && (one.2 + other.2 - both.2).abs() < 1e-9);
    let worst = &both.3["points"][0]["worst"];
    assert!(worst["trace"].as_str().is_some_and(|name| name.ends_with(".npy")), "{worst}");
    for command in ["size", "compare"] {
        let parts = ["N_q and K is 4 and 64", "they are 1 and 64"];
        refused(&format!("{command} {all} LLAMA"), &parts);
    }
    refused(&format!("replay {all} {part}"), &["only avsg size and avsg compare take several"]);
}
