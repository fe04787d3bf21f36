//! What a run can break.

/// A lane; `None` is poison.
pub(super) type Lane = Option<i32>;

/// A run that broke a law, at which op, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{op}`: {what}")]
pub struct Fault {
    /// The op as it prints, or what was called.
    pub op: String,
    /// What went wrong.
    pub what: String,
}

/// A fault of a call by name.
pub(super) fn named(name: &str, what: String) -> Fault {
    Fault { op: name.into(), what }
}
