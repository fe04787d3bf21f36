//! Mutants of a kernel: texts without one barrier or flag, or without InitSocState.

use super::compiled::Compiled;
use super::tier;

/// Beginnings of the statements that synchronise, or that clear what an earlier kernel left. The
/// definition of `SetWaitFlag` matches none of them.
pub const SYNC_CALLS: [&str; 5] = [
    "SetWaitFlag<HardEvent::",
    "PipeBarrier<",
    "SetFlag<HardEvent::",
    "WaitFlag<HardEvent::",
    "InitSocState(",
];

/// Leaves out each statement that begins with one of `calls` below the line `from`, one at a time.
/// `fails` must return true for every mutant and false for the whole text. All mutants are one
/// file, in which a global number selects the statement that is left out. Two tests must not use
/// the same text, because they would share that number.
///
/// # Panics
/// If a mutant passes, the whole text fails, or there is no such statement.
pub fn assert_every_mutant_fails(
    text: &str,
    from: &str,
    calls: &[&str],
    fails: impl Fn(&Compiled) -> bool,
) {
    let (text, left_out) = with_switches(text, from, calls);
    assert!(!left_out.is_empty(), "there is no synchronisation below {from}");
    let kernels = Compiled::single(&text);
    assert!(!fails(&kernels), "the whole text below {from} fails");
    for (number, statement) in left_out.iter().enumerate() {
        kernels.kernels.leave_out(number as i32 + 1);
        assert!(fails(&kernels), "no run fails without {statement}");
    }
    let n = left_out.len();
    println!("below {from}: {}, {n} of {n} mutants, all fail", tier::name());
}

/// Returns the text with a switch around each such statement, and the statements with their lines.
fn with_switches(text: &str, from: &str, calls: &[&str]) -> (String, Vec<String>) {
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
            // The block keeps the statement a single one, as an `if` above it needs.
            let n = statements.len();
            switched += &format!("{{ if (left_out != {n}) {{ {statement} }} }}\n");
        } else {
            switched += line;
            switched.push('\n');
        }
    }
    (switched, statements)
}
