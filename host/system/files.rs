//! The small text files in which the system tells its state (`/proc`, `/sys`), and the numbers in them.

use std::fs::File;
use std::io::{self, Read};

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
    let text = read_text("/proc/self/limits").ok()?;
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
    read_text(&whole)
}

/// Reads a small file. Unlike `fs::read_to_string` it returns an error for every lack of memory.
#[inline(never)]
pub fn read_text(path: &str) -> io::Result<String> {
    const PIECE: usize = 1024;
    let (mut file, mut text, mut len) = (File::open(path)?, Vec::new(), 0);
    loop {
        text.try_reserve(PIECE).map_err(|_| io::ErrorKind::OutOfMemory)?;
        text.resize(len + PIECE, 0);
        let n = match file.read(&mut text[len..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            n => n?,
        };
        len += n;
        if n == 0 {
            break;
        }
    }
    text.truncate(len);
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}
