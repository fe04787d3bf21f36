//! Tests of `avsg compare`: every policy and rule is there, no policy surpasses the optimum, and the
//! rates and the recommended rule are those of `size`.

use avsg_testkit::splitmix::SplitMix64;
use serde_json::Value;

use crate::support::{json, npy, number, text};

/// Returns the hit rate of a policy at its first S.
fn rate(report: &Value, policy: &str) -> f64 {
    let policies = report["policies"].as_array().expect("policies");
    let found = policies.iter().find(|rates| rates["policy"] == policy);
    let found = found.unwrap_or_else(|| panic!("no {policy}"));
    number(&found["at"][0]["hit_rate"])
}

#[test]
fn no_policy_surpasses_the_optimum_for_any_number_of_tokens() {
    for options in ["--slots 256 --steps 20", "--slots 64 --mtp0 --steps 40"] {
        let report = json(&format!("compare LLAMA {options}"));
        let policies = report["policies"].as_array().expect("policies");
        assert_eq!(policies.last().expect("a policy")["policy"], "Belady's optimum");
        let best = rate(&report, "Belady's optimum");
        assert!(best > 0.0);
        for rates in policies {
            let name = rates["policy"].as_str().expect("a name");
            assert!(rate(&report, name) <= best, "{name}");
        }
        let rules = |table: &str| {
            policies.iter().filter(|p| p["policy"].as_str().unwrap().starts_with(table)).count()
        };
        assert_eq!((rules("paper "), rules("wide ")), (8, 10));
        let default = policies.iter().filter(|p| p["at"][0]["default"] == true);
        assert_eq!(default.count(), 2);
        assert_eq!((rate(&report, "no buffer"), policies.len()), (0.0, 8 + 10 + 3));
        rate(&report, "exact LRU");
    }
}

#[test]
fn rates_are_those_of_size() {
    let report = json("compare LLAMA --mtp0 --slots 128 --steps 60");
    let size = json("size LLAMA --mtp0 --slots 128 --steps 60");
    let size = |name: &str| number(&size["points"][0][name]);
    assert!((rate(&report, "exact LRU") - size("lru_hit_rate")).abs() < 1e-12);
    let default = rate(&report, "wide learned");
    assert!((default - size("hit_rate")).abs() < 1e-12);
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
        ("LLAMA", 512, "learned", "constant:127"),
        (&mixed, 192, "constant:127", "learned"),
        // The default is constant:127.
        (&mixed, 128, "learned", "learned"),
    ] {
        let line = format!("{trace} --slots {slots}");
        let size = json(&format!("size {line}"));
        let point = &size["points"][0];
        let rate = |rule: &str| match point["lifetime"] == rule {
            true => number(&point["hit_rate"]),
            false => number(&point["other_rule"]["hit_rate"]),
        };
        assert!(
            ["learned", "constant:127"].iter().all(|other| rate(other) <= rate(hits)),
            "{line}"
        );
        let advised = &json(&format!("compare {line}"))["advice"][0]["options"];
        let replayed = &json(&format!("replay {line}"))["geometry"]["lifetime"];
        let all = (size["recommended"]["lifetime"].as_str(), advised.as_str(), replayed.as_str());
        let advice = format!("--lifetime {rule}");
        assert_eq!(all, (Some(rule), Some(&advice[..]), Some(rule)), "{line}");
    }
}

#[test]
fn the_table_has_a_column_for_each_s_and_marks_defaults() {
    let shown = text("compare LLAMA --slots 256,512 --steps 8 --format markdown");
    assert!(shown.contains("| policy | S = 256, % | S = 512, % |"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains(" *")).count(), 3, "{shown}");
}

#[test]
fn the_advice_names_options_that_replay_takes_and_the_rows_that_they_copy() {
    let line = "LLAMA --mtp0 --steps 60 --slots";
    let report = json(&format!("compare {line} 64,128"));
    for advice in report["advice"].as_array().expect("advice") {
        let (slots, options) = (&advice["slots"], advice["options"].as_str().expect("options"));
        let replay = json(&format!("replay {line} {slots} {options}"));
        let rate = 100.0 - 100.0 * number(&advice["misses_per_step"]) / 64.0;
        assert!((number(&replay["hit_rate"]) - rate).abs() < 1e-9, "{advice}");
    }
    let shown = text(&format!("compare {line} 64,128"));
    assert_eq!(shown.matches(": take ").count(), 2, "{shown}");
}
