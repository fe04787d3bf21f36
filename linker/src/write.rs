//! From a checked kernel to the text of a device's language.

pub mod kernels;

/// The generated part of a geometry's kernels: Stage One as AscendC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOneText {
    /// `constexpr` geometry and addresses.
    pub constants: String,
    /// `Setup`: once per core.
    pub setup: String,
    /// `StageOne`: one request.
    pub body: String,
    /// Unified buffer that it uses.
    pub ub_bytes: u32,
    /// The first byte behind it.
    pub ub_free: u32,
}
