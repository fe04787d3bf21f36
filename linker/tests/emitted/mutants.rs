//! Texts with one synchronisation less.

use super::shim::{Kernels, compile};

/// The statements that synchronise, without the definition of `After`.
const CALLS: [&str; 4] =
    ["After<HardEvent::", "PipeBarrier<", "SetFlag<HardEvent::", "WaitFlag<HardEvent::"];

/// Removes each synchronising statement below the line `from` in turn; `fails` must say of every mutant
/// that it does.
///
/// # Panics
/// If a mutant lives, or there is nothing to remove.
pub fn every_one_dies(text: &str, from: &str, fails: impl Fn(&Kernels) -> bool) {
    let lines: Vec<_> = text.lines().collect();
    let statement = |line: &str| {
        let line = line.trim_start();
        CALLS.iter().any(|call| line.starts_with(call)) && line.ends_with(';')
    };
    let start = lines.iter().position(|line| line.starts_with(from)).expect("the line to start at");
    let at: Vec<_> = (start..lines.len()).filter(|&i| statement(lines[i])).collect();
    assert!(!at.is_empty(), "nothing synchronises below {from}");
    for &i in &at {
        let mut mutant = lines.clone();
        // A word instead, so that what stands below an `if` stays what it was.
        mutant[i] = "{}";
        let mutant = mutant.join("\n");
        assert!(
            fails(&compile(&mutant)),
            "nothing shows that line {} is gone: {}",
            i + 1,
            lines[i].trim()
        );
    }
    println!("below {from}: {} mutants, all found", at.len());
}
