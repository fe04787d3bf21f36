//! Tests of the counters of the kernel, and what they say.

use super::*;

#[test]
fn the_counters_of_proc_are_read() {
    let text = "cpu  10 1 5 900 20 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let process = "7 (a b) c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0";
    let own = 11 + 12 + 13 + 14;
    assert_eq!(parsed(text, process), Some([21, own, 7]));
    assert_eq!(parsed("cpu  1 2", process), None);
    assert_eq!(parsed(text, "7 (a) R 1 2"), None);
    assert!(counters().is_some());
}

#[test]
fn steal_load_and_spread_each_make_a_machine_busy() {
    let (steal_percent, others) = (Some(0.1), Some(0.1));
    let quiet = Disturbance { samples: 90, spread: 1.2, steal_percent, others, cpus: 2 };
    assert!(!quiet.is_busy());
    assert!(Disturbance { steal_percent: Some(5.0), ..quiet.clone() }.is_busy());
    assert!(Disturbance { others: Some(0.9), ..quiet.clone() }.is_busy());
    assert!(Disturbance { spread: 3.0, ..quiet.clone() }.is_busy());
    assert!(!Disturbance { spread: 3.0, samples: 3, ..quiet.clone() }.is_busy());
    let (steal_percent, others) = (None, None);
    let short = Disturbance { steal_percent, others, spread: f64::NAN, ..quiet };
    assert!(!short.is_busy() && short.line() == "90 times");
}
