//! Small geometries, texts and orders for the tests of emitted kernels.

use super::{Mode, RunFailure, ShimLaunch, rust_kernels};
use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascend::StageOneText;
use avsg_linker::ascend::kernels::{Abi, Kernel, kernels};

/// Returns a geometry with so few slots that each of them is soon in a miss list.
pub fn small_geometry(page: u32) -> Params {
    Params { page, ..Params::wide(64, 4, 256) }
}

/// Returns a kernel that contains no Stage One.
pub fn kernel(p: &Params, name: &str) -> Kernel {
    kernel_around(p, &StageOneText::default(), name)
}

/// Returns a kernel around a Stage One, with the headers pasted in.
pub fn kernel_around(p: &Params, stage_one: &StageOneText, name: &str) -> Kernel {
    let all = kernels(p, stage_one, Abi::Direct).expect("the kernels fit");
    let kernel = all.kernels.iter().find(|k| k.name == name).expect("a kernel of that name");
    Kernel { text: all.whole(&kernel.text), ..kernel.clone() }
}

/// Cores, order and seed of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    pub cores: u32,
    pub mode: Mode,
    pub seed: u64,
}

/// Program order, another order, and another order without checks.
pub const EVERY_ORDER: [Mode; 3] = [Mode::InOrder, Mode::Adversarial, Mode::Unchecked];

/// Returns a launch of a kernel with as many blocks as cores.
pub fn shim_launch(name: &str, options: RunOptions) -> ShimLaunch<'_> {
    ShimLaunch::new(name)
        .blocks(options.cores)
        .cores(options.cores)
        .mode(options.mode, options.seed)
}

/// Runs a launch by the kernel in Rust.
pub fn run_in_rust(kernel: KernelName, p: &Params, launch: &ShimLaunch<'_>) {
    let args: Vec<u64> = launch.args.iter().map(|at| *at as u64).collect();
    rust_kernels::run(kernel, *p, &args, &|at, _| Ok(at as *mut u8)).expect("no slice is refused");
}

/// Returns the failure of a run that broke no rule and gave wrong data.
pub fn differs(what: &str) -> RunFailure {
    RunFailure { code: 0, text: format!("{what} differs") }
}
