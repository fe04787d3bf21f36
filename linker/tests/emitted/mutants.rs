//! Texts with one synchronisation less.

use super::tier;
use super::together::Compiled;

/// The statements that synchronise, without the definition of `SetWaitFlag`.
pub const CALLS: [&str; 4] =
    ["SetWaitFlag<HardEvent::", "PipeBarrier<", "SetFlag<HardEvent::", "WaitFlag<HardEvent::"];

/// Leaves out each statement with one of `calls` below the line `from` in turn; `fails` must say of every
/// mutant that it does, and of the whole text that it does not. All mutants are one file: a number that is set from
/// outside says which statement does not run. No two tests may take the same text, because they would
/// share that number.
///
/// # Panics
/// If a mutant lives, or there is nothing to leave out.
pub fn every_one_dies(text: &str, from: &str, calls: &[&str], fails: impl Fn(&Compiled) -> bool) {
    let (text, left_out) = switched(text, from, calls);
    assert!(!left_out.is_empty(), "nothing synchronises below {from}");
    let kernels = Compiled::alone(&text);
    assert!(!fails(&kernels), "the whole text below {from} fails");
    for (number, statement) in left_out.iter().enumerate() {
        kernels.kernels.leave_out(number as i32 + 1);
        assert!(fails(&kernels), "nothing shows that this is gone: {statement}");
    }
    let n = left_out.len();
    println!("below {from}: {}, {n} of {n} mutants, all found", tier::name());
}

/// The text with a switch around each such statement, and the statements with their lines.
fn switched(text: &str, from: &str, calls: &[&str]) -> (String, Vec<String>) {
    let mut switched = String::from(
        "static int left_out = 0; extern \"C\" void avsg_leave_out(int n) { left_out = n; }\n",
    );
    let start = text.lines().position(|line| line.starts_with(from)).expect("the line to start at");
    let mut statements = vec![];
    for (at, line) in text.lines().enumerate() {
        let statement = line.trim();
        let call = calls.iter().any(|call| statement.starts_with(call)) && statement.ends_with(';');
        if at >= start && call {
            statements.push(format!("line {}: {statement}", at + 1));
            // A block, so that what stands below an `if` stays what it was.
            let n = statements.len();
            switched += &format!("{{ if (left_out != {n}) {{ {statement} }} }}\n");
        } else {
            switched += line;
            switched.push('\n');
        }
    }
    (switched, statements)
}
