//! The errors of a run.

/// A lane; `None` is poison.
pub(super) type Lane = Option<i32>;

pub(super) const POISON: &str =
    "a live lane uses poison: a word that nothing wrote, or past the end of a list or sweep";

/// The error of a run that breaks a law: the op, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{op}`: {what}")]
pub struct Fault {
    /// The op as it prints, or the name that a call was made with.
    pub op: String,
    /// The reason.
    pub what: String,
}

/// Returns the fault of a call with a name.
pub(super) fn named(name: &str, what: String) -> Fault {
    Fault { op: name.into(), what }
}
