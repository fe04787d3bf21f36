//! Compiles AscendC text against `linker/sim/shim`, for launches on this machine.
//!
//! Test programs include this file by its path. Without a C++ compiler `has_cpp_compiler` returns
//! false and prints that the test is skipped.

use avsg_sim::compiler;
pub use avsg_sim::shim::{CompiledKernels, Mode, RegionKind, RunFailure, ShimLaunch};

use super::tier;

/// Returns whether there is a C++ compiler. Without one it prints that the test is skipped.
pub fn has_cpp_compiler() -> bool {
    let found = compiler::cpp().is_some();
    if !found {
        println!("skipped: no C++ compiler");
    }
    found
}

/// Compiles `text`, which must compile without a warning, once per content, and loads it. Without a C++
/// compiler it returns `None`, and prints that the test is skipped.
pub fn compile(text: &str) -> Option<CompiledKernels> {
    if !has_cpp_compiler() {
        return None;
    }
    let flags: &[&str] = if tier::thorough() { &["-Werror", "-O1"] } else { &["-Werror"] };
    let built = CompiledKernels::compile(text, flags);
    Some(built.unwrap_or_else(|e| panic!("the compiler refused the kernel:\n{e}")))
}
