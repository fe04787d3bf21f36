//! What the tests of emitted kernels have in common: small geometries, texts, and how they are run.

use avsg_device::params::Params;
use avsg_device::tiling::{Launch, Segment};
use avsg_linker::ascendc::StageOneText;
use avsg_linker::ascendc::kernels::{Abi, Kernel, kernels};

use super::shim::{Failure, Launch as Shim, Mode};

/// Few slots: every slot is soon in some miss list.
pub fn small(page: u32) -> Params {
    Params { page, ..Params::wide(64, 4, 256) }
}

/// A kernel that needs no Stage One.
pub fn kernel(p: &Params, name: &str) -> Kernel {
    kernel_around(p, &StageOneText::default(), name)
}

/// A kernel around some Stage One, its headers pasted in.
pub fn kernel_around(p: &Params, stage_one: &StageOneText, name: &str) -> Kernel {
    let all = kernels(p, stage_one, Abi::Direct).expect("they fit");
    let kernel = all.kernels.iter().find(|k| k.name == name).expect("a kernel of that name");
    Kernel { text: all.whole(&kernel.text), ..kernel.clone() }
}

/// A launch of so many requests, each with at most four rows.
pub fn launch<'a>(requests: usize, copy_cores: u32, segments: &'a [Segment]) -> Launch<'a> {
    Launch {
        requests: requests as u32,
        rows: 4 * requests as u32,
        k: 64,
        ids_stride: 64,
        block_stride: 0,
        pool_units: 0,
        states: requests as u32,
        cores: copy_cores,
        copy_cores,
        segments,
    }
}

/// How a kernel is run.
#[derive(Clone, Copy)]
pub struct How {
    pub cores: u32,
    pub mode: Mode,
    pub seed: u64,
}

/// In program order, in another one, and in another one with nobody watching.
pub const EVERY_ORDER: [Mode; 3] = [Mode::InOrder, Mode::Adversarial, Mode::Unchecked];

/// A launch of a kernel on as many blocks as cores.
pub fn run(name: &str, how: How) -> Shim<'_> {
    Shim::new(name).blocks(how.cores).cores(how.cores).mode(how.mode, how.seed)
}

/// A run that broke no rule and was wrong.
pub fn differs(what: &str) -> Failure {
    Failure { code: 0, text: format!("{what} differs") }
}
