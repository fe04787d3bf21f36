//! The errors of this library.

use std::{fmt, io};

use rustix::io::Errno;

/// An error of the host library. It prints as one line that names the value, the limit and the
/// remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside its range.
    Invalid {
        /// The argument's name in the public interface.
        what: &'static str,
        /// The value that was passed.
        value: String,
        /// The rule that the value breaks, with its numbers.
        limit: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// A system call failed.
    Os {
        /// The name of the system call.
        call: &'static str,
        /// The object of the call, with its size.
        what: String,
        /// The error that the system returned.
        source: io::Error,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// A call of the Ascend runtime failed.
    Acl {
        /// The name of the ACL function.
        call: &'static str,
        /// The code that it returned.
        code: i32,
        /// The runtime's message for this thread (`aclGetRecentErrMsg`); empty if there is none.
        text: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// The device wrote a value that no correct kernel writes. The host does not use it.
    Device {
        /// The name of the value.
        what: &'static str,
        /// The value that was read back.
        value: String,
        /// The rule that the value breaks, with its numbers.
        limit: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// A library or a file that is looked up at run time was not found.
    Unavailable {
        /// The name of the missing thing.
        what: &'static str,
        /// Every place that was tried, with the reason why it failed.
        tried: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// A row of a pool in a file is not whole: it was never written, was lost with the process that wrote it,
    /// or is damaged or cut off. A transfer has left requests out, and served all others of the plan.
    LostRows {
        /// Number of requests that were left out, which [`Plan::failures`](crate::plan::Plan::failures) names; 0
        /// if the row was read alone.
        requests: usize,
        /// The layer of the first of these rows.
        layer: usize,
        /// The first of these rows.
        row: usize,
        /// The place of a row that was read alone, in the words of the message; else empty.
        place: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// An allocation needs more memory than is available; nothing was allocated.
    Memory {
        /// The purpose of the memory.
        what: &'static str,
        /// Bytes that were requested.
        bytes: usize,
        /// Bytes that are available.
        available: usize,
        /// The name of the limit that leaves so few.
        limit: &'static str,
    },
    /// The system or an allocator refused memory; nothing of it was allocated.
    OutOfMemory {
        /// The purpose of the memory.
        what: &'static str,
        /// Bytes that were requested.
        bytes: usize,
    },
    /// As many transfers are under way as the engine was made for.
    Busy {
        /// That number.
        under_way: usize,
    },
    /// The object belongs to the process that this one was forked from.
    Forked {
        /// The name of the object.
        what: &'static str,
    },
    /// A kernel panicked, which is a defect of this library; the engine can no longer be used.
    Broken,
}

// Implemented by hand, because a derive would add five crates to every embedder's dependencies.
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
            Self::Device { what, value, limit, remedy } => {
                write!(f, "the device wrote {value} as {what}, but {limit}; {remedy}")
            }
            Self::Unavailable { what, tried, remedy } => {
                write!(f, "{what} was not found, tried {}; {remedy}", one_line(tried))
            }
            Self::LostRows { requests, layer, row, place, remedy } => {
                write!(
                    f,
                    "row {row} of layer {layer} is not whole{place} (never written, its write refused or \
                     lost with a process, damaged, or cut off)"
                )?;
                if *requests > 0 {
                    write!(
                        f,
                        ", so the transfer left out {requests} of the plan's requests and served all others"
                    )?;
                }
                write!(f, "; {remedy}")
            }
            Self::Memory { what, bytes, available, limit } => write!(
                f,
                "{what} is {bytes} bytes, but {available} bytes of memory are available to this process by \
                 {limit}; ask for fewer rows, layers or slots, free memory, or raise the limit"
            ),
            Self::OutOfMemory { what, bytes } => write!(
                f,
                "{what} is {bytes} bytes, but the system or the caller's allocator refuses them; ask \
                 for fewer rows, layers, slots or requests, or raise the limits (ulimit -v, ulimit -d, \
                 vm.max_map_count)"
            ),
            Self::Busy { under_way } => write!(
                f,
                "{under_way} transfers are under way, as many as the engine was made for; wait for one of \
                 them, or make the engine for more (under_way)"
            ),
            Self::Forked { what } => write!(
                f,
                "{what} belongs to the process that forked this one, but a child has neither its \
                 threads nor its locks; import the pool by its descriptor and make an engine here"
            ),
            Self::Broken => f.write_str(
                "device state is unusable because a kernel panicked; destroy the engine and report the defect",
            ),
        }
    }
}

/// Joins the lines of a message that a runtime returned.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl std::error::Error for Error {}

impl Error {
    /// Returns an [`Error::Os`]. `remedy` fits the errors that have another cause in each call.
    pub(crate) fn os(
        call: &'static str,
        what: impl Into<String>,
        source: impl Into<io::Error>,
        remedy: &'static str,
    ) -> Self {
        let source = source.into();
        let remedy = remedy_of(call, &source).unwrap_or(remedy);
        Self::Os { call, what: what.into(), source, remedy }
    }

    /// Returns an [`Error::Invalid`].
    pub fn invalid(
        what: &'static str,
        value: impl ToString,
        limit: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self::Invalid { what, value: value.to_string(), limit: limit.into(), remedy }
    }
}

/// Returns the remedy of an error that has the same cause in all calls but those that are named here.
fn remedy_of(call: &str, source: &io::Error) -> Option<&'static str> {
    Some(match Errno::from_io_error(source)? {
        Errno::PERM if matches!(call, "open" | "unlink" | "read" | "write") => return None,
        Errno::PERM | Errno::NOSYS => {
            "allow this call in the sandbox of the process (seccomp), or use a kernel that has it"
        }
        Errno::MFILE => "close files, or raise the limit (ulimit -n)",
        Errno::NFILE => "close files of any process, or raise the limit (sysctl fs.file-max)",
        Errno::FBIG => "ask for fewer rows, or raise the limit (ulimit -f)",
        Errno::NOMEM if call != "mprotect" => "free memory, or raise the limits of this process",
        Errno::NOLCK => "free memory for locks of files, or use a file system that has them",
        _ => return None,
    })
}

/// Makes an [`Error::Invalid`] in the words in which it prints; the limit is a format string with its
/// arguments: `invalid!("tokens" is n, but "the plan holds {}", plan.max_tokens; "make a larger plan")`.
macro_rules! invalid {
    ($what:tt is $value:expr, but $limit:literal $(, $arg:expr)*; $remedy:expr) => {
        $crate::Error::invalid($what, $value, format!($limit $(, $arg)*), $remedy)
    };
}

/// Returns an [`invalid!`] from the calling function unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($invalid:tt)+) => {
        if !$holds {
            return Err($crate::invalid!($($invalid)+));
        }
    };
}

pub(crate) use {ensure, invalid};

/// The result of this library's functions.
pub type Result<T> = core::result::Result<T, Error>;
