//! The CUDA text of all kernels: those of AVSG for each geometry, what they are compared with, and the probes.

use anyhow::Result;
use avsg::device::params::Params;
use avsg_linker::cuda::{Options, cuda};

use super::sizes::Sizes;

const COMPARATOR: &str = include_str!("kernels/comparator.cu");
const PROBE: &str = include_str!("kernels/probe.cu");

/// An architecture that machine code is made for.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// The major number of its compute capability. GPUs of the same one run the code.
    pub major: u32,
    /// The number behind `sm_`.
    pub sm: u32,
    /// The shared memory that a block may use, in bytes, of the GPU for data centres.
    pub shared_bytes: u32,
    /// Whether it has bulk copies.
    pub bulk: bool,
}

/// All architectures.
pub const ARCHITECTURES: [Architecture; 3] = [
    Architecture { major: 8, sm: 80, shared_bytes: 163 * 1024, bulk: false },
    Architecture { major: 9, sm: 90, shared_bytes: 227 * 1024, bulk: true },
    Architecture { major: 10, sm: 100, shared_bytes: 227 * 1024, bulk: true },
];

/// A text with some kernels.
pub struct Text {
    /// The name of the machine code: [`table_name`] or [`PROBES`].
    pub name: String,
    /// The bytes of shared memory that the kernels of AVSG need.
    pub shared_bytes: u32,
    /// The text without the header of instructions if that is left out, which the shim replaces.
    pub text: String,
}

/// The name of the machine code of the probes.
pub const PROBES: &str = "probes";

/// Returns the name of the machine code of a geometry.
pub fn table_name(p: &Params) -> String {
    format!("table-{}-{}", p.slots, p.spread)
}

/// Returns the bytes of shared memory of a block of the comparator: a hash of 2·K ids with their positions, a slot
/// and a miss for each id, all slots, and a sum for each warp and all of them.
pub fn comparator_bytes(p: &Params, threads: u32) -> u32 {
    2 * p.k * 6 + p.k * 4 + p.slots * 2 + (threads / 32 + 1) * 4
}

/// Returns all texts for an architecture, with or without the header of instructions.
pub fn texts(sizes: &Sizes, architecture: Architecture, instructions: bool) -> Result<Vec<Text>> {
    let options = Options { threads: sizes.threads, shared_bytes: architecture.shared_bytes };
    let mut texts = Vec::new();
    for p in sizes.geometries() {
        let kernels = cuda(&p, options)?;
        let shared_bytes = kernels.shared_bytes;
        let whole = |text: &str| kernels.whole(text, instructions);
        let avsg: String = kernels.kernels.iter().map(|(_, text)| text.as_str()).collect();
        let size = comparator_bytes(&p, sizes.threads);
        let all = format!("{avsg}#define COMPARATOR_BYTES {size}\n{COMPARATOR}");
        texts.push(Text { name: table_name(&p), shared_bytes, text: whole(&all) });
        if texts.len() == 1 {
            texts.push(Text { name: PROBES.into(), shared_bytes, text: whole(PROBE) });
        }
    }
    Ok(texts)
}
