//! What can go wrong, said in one line: the value, the limit, and what to do.

use std::io;

/// Every error of the host library. Each prints as one line that names the value, the limit and
/// the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument outside its range.
    #[error("{what} is {value}, but {limit}; {remedy}")]
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
    #[error("{call} for {what} failed: {source}; {remedy}")]
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
}

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
