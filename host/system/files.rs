//! The small text files in which the system tells its state (`/proc`, `/sys`), and the numbers in them.

use std::{fs, io};

/// Returns the number that follows `name` at the start of a line.
pub fn field(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    number(line.split_whitespace().nth(1)?)
}

pub fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// Returns a limit of this process by its name in `/proc/self/limits`; `None` if there is none, or the system does
/// not tell. The system call would not tell either where it is refused.
pub fn process_limit(name: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    number(line.split_whitespace().next()?)
}

/// Reads the small file whose path has these parts. Neither the path nor the text is on the stack, which
/// may be the smallest that a thread can have, and each lack of memory is an error.
pub fn read_parts(path: &[&str]) -> io::Result<String> {
    let mut whole = String::new();
    for part in path {
        whole.try_reserve(part.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        whole.push_str(part);
    }
    fs::read_to_string(whole)
}
