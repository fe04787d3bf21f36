//! Mutants of a kernel: texts without one barrier or flag, or without InitSocState.

use std::ffi::c_int;

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

/// A text in which a global number selects the statement that is left out.
pub struct Mutants {
    pub text: String,
    /// The statements, with their lines.
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
        assert!(!fails(kernels), "the whole text fails");
        let function = kernels.name("avsg_leave_out");
        let library = kernels.kernels.library();
        // SAFETY: a text of mutants defines the function with this signature.
        let leave_out = unsafe { library.get::<extern "C" fn(c_int)>(function.as_bytes()) };
        let leave_out = leave_out.expect("a text of mutants");
        for (number, statement) in self.left_out.iter().enumerate() {
            leave_out(number as c_int + 1);
            assert!(fails(kernels), "no run fails without {statement}");
        }
        let n = self.left_out.len();
        println!("{}, {n} of {n} mutants, all fail", tier::name());
    }
}

/// Returns the text in which `avsg_leave_out` selects the statement that is left out, of those in lines for which `inside` is true
/// and that begin with one of `calls`, and these statements with their lines.
pub fn with_switches(
    text: &str,
    mut inside: impl FnMut(usize, &str) -> bool,
    calls: &[&str],
) -> (String, Vec<String>) {
    let mut switched = String::from(
        "static int left_out = 0;\nextern \"C\" __attribute__((visibility(\"default\"))) void avsg_leave_out(int n) { left_out = n; }\n",
    );
    let mut statements = vec![];
    for (at, line) in text.lines().enumerate() {
        let statement = line.trim();
        let call = calls.iter().any(|call| statement.starts_with(call)) && statement.ends_with(';');
        if inside(at, line) && call {
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
