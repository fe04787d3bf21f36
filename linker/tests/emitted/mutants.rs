//! Mutants of a kernel: texts without one barrier or flag, or without InitSocState.

use super::Compiled;

/// Beginnings of the statements that synchronise, or that clear what an earlier kernel left. The
/// definition of `SetWaitFlag` matches none of them.
pub const SYNC_CALLS: [&str; 5] = [
    "SetWaitFlag<HardEvent::",
    "PipeBarrier<",
    "SetFlag<HardEvent::",
    "WaitFlag<HardEvent::",
    "InitSocState(",
];

/// The number of the statement that is left out, and the function that sets it.
const LEAVE_OUT: &str = include_str!("leave_out.cpp.in");

/// A text in which a global number selects the statement that is left out.
pub struct Mutants {
    pub text: String,
    left_out: Vec<String>,
}

impl Mutants {
    /// Makes each statement below the line `from` that begins with one of `calls` one to leave out.
    ///
    /// # Panics
    /// If there is no such statement.
    pub fn new(text: &str, from: &str, calls: &[&str]) -> Self {
        let start = text.lines().position(|line| line.starts_with(from)).expect("a first line");
        let (text, left_out) = with_switches(text, |at, _| at >= start, calls);
        assert!(!left_out.is_empty(), "there is no synchronisation below {from}");
        Self { text, left_out }
    }

    /// Leaves out each statement, one at a time. `fails` must return true for every mutant and false for
    /// the whole text, whose kernels these are. Two tests must not use the same mutants, because they
    /// would share the number.
    ///
    /// # Panics
    /// If a mutant passes, or the whole text fails.
    pub fn assert_each_fails(&self, kernels: &Compiled, fails: impl Fn(&Compiled) -> bool) {
        let fails = |n| {
            kernels.leave_out(n);
            fails(kernels)
        };
        assert!(!fails(0), "the whole text fails");
        let numbered = (1..).zip(&self.left_out);
        let passing: Vec<_> = numbered.filter(|(n, _)| !fails(*n)).collect();
        assert!(passing.is_empty(), "no run fails without these: {passing:#?}");
    }
}

/// Makes each statement that begins with one of `calls`, in a line for which `inside` is true, one that `avsg_leave_out` can leave
/// out. Returns the new text, and each of these statements with the next one that does not synchronise.
pub fn with_switches(
    text: &str,
    mut inside: impl FnMut(usize, &str) -> bool,
    calls: &[&str],
) -> (String, Vec<String>) {
    let mut switched = LEAVE_OUT.to_owned();
    let mut statements = vec![];
    for (at, line) in text.lines().enumerate() {
        let statement = line.trim();
        let call = calls.iter().any(|call| statement.starts_with(call)) && statement.ends_with(';');
        if inside(at, line) && call {
            let mut behind = text.lines().skip(at + 1);
            let next = behind.find(|line| !line.contains("HardEvent") && !line.contains("PipeB"));
            statements.push(format!("{statement} before {}", next.unwrap_or("").trim()));
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
