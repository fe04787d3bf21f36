//! What can go wrong, said in one line: the value, the limit, and what to do.

use std::{fmt, io};

/// Every error of the host library. Each prints as one line that names the value, the limit and
/// the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An argument outside its range.
    Invalid {
        /// The argument's name, as the caller knows it.
        what: &'static str,
        /// What was passed.
        value: String,
        /// The rule that it breaks, with the number.
        limit: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The operating system refused a call.
    Os {
        /// The system call.
        call: &'static str,
        /// What it was for, with sizes.
        what: String,
        /// The system's answer.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A call of the Ascend runtime failed.
    Acl {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: i32,
        /// What the runtime said about it on this thread, if anything.
        text: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Something that is found at run time was not found.
    Unavailable {
        /// What was looked for.
        what: &'static str,
        /// Every place, with the reason.
        tried: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// More memory than can be given; nothing was taken.
    Memory {
        /// What it was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: usize,
        /// Bytes that can be given now.
        available: usize,
    },
    /// A defect of this library left an object in a state that is not to be trusted.
    Broken {
        /// The object.
        what: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
}

// By hand: a derive would bring five crates into every embedder's tree for these two lines.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { what, value, limit, remedy } => {
                write!(f, "{what} is {value}, but {limit}; {remedy}")
            }
            Self::Os { call, what, source, remedy } => {
                write!(f, "{call} for {what} failed: {source}; {remedy}")
            }
            Self::Acl { call, code, text, remedy } => {
                let gap = if text.is_empty() { "" } else { ": " };
                write!(f, "{call} failed with code {code}{gap}{}; {remedy}", one_line(text))
            }
            Self::Unavailable { what, tried, remedy } => {
                write!(f, "{what} was not found, tried {}; {remedy}", one_line(tried))
            }
            Self::Memory { what, bytes, available } => write!(
                f,
                "{what} is {bytes} bytes, but {available} bytes of memory are available; ask for \
                 fewer rows, layers or slots, or free memory"
            ),
            Self::Broken { what, remedy } => {
                write!(f, "{what} is poisoned, but a kernel panicked; {remedy}")
            }
        }
    }
}

/// Runtimes speak in paragraphs.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl std::error::Error for Error {}

impl Error {
    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(
        what: &'static str,
        value: impl ToString,
        limit: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self::Invalid { what, value: value.to_string(), limit: limit.into(), remedy }
    }
}

/// The library's result.
pub type Result<T> = core::result::Result<T, Error>;
