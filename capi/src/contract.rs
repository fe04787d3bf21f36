//! The contract of arguments, which the header states once for every function.

/// Evaluates an unsafe expression with what the caller passed.
macro_rules! contract {
    ($expression:expr) => {
        // SAFETY: the caller keeps the header's rules Pointers and Streams for every pointer and handle
        // that an exported function gets, and the `# Safety` of every other function.
        unsafe { $expression }
    };
}
pub(crate) use contract;
