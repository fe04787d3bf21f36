//! Texts with one synchronisation less.

use super::shim::{Kernels, compile};

/// The statements that synchronise, without the definition of `After`.
const CALLS: [&str; 4] =
    ["After<HardEvent::", "PipeBarrier<", "SetFlag<HardEvent::", "WaitFlag<HardEvent::"];

/// Removes each synchronising statement in turn; `fails` must say of every mutant that it does.
///
/// # Panics
/// If a mutant lives, or there is nothing to remove.
pub fn every_one_dies(name: &str, text: &str, fails: impl Fn(&Kernels) -> bool) {
    let lines: Vec<_> = text.lines().collect();
    let statement = |line: &str| {
        let line = line.trim_start();
        CALLS.iter().any(|call| line.starts_with(call)) && line.ends_with(';')
    };
    let at: Vec<_> = (0..lines.len()).filter(|&i| statement(lines[i])).collect();
    assert!(!at.is_empty(), "{name} synchronises nowhere");
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
    println!("{name}: {} mutants, all found", at.len());
}
