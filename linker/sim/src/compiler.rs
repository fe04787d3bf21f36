//! The C and C++ compilers of this machine; the variables `CC`, `CXX`, `CFLAGS` and `CXXFLAGS`
//! select them and their flags.

use std::env::consts::ARCH;
use std::process::Command;
use std::sync::OnceLock;

use cc::Tool;

/// Returns the C compiler with -Wall and the flags of `CFLAGS` only, or none if it does not start.
pub fn c() -> Option<Command> {
    static COMPILER: OnceLock<Option<Tool>> = OnceLock::new();
    COMPILER.get_or_init(|| find(false)).as_ref().map(Tool::to_command)
}

/// Returns the C++ compiler with -Wall and the flags of `CXXFLAGS` only, or none if it does not
/// start.
pub fn cpp() -> Option<Command> {
    static COMPILER: OnceLock<Option<Tool>> = OnceLock::new();
    COMPILER.get_or_init(|| find(true)).as_ref().map(Tool::to_command)
}

/// Returns what the C++ compiler prints for `--version`; empty if it does not start.
pub(crate) fn cpp_version() -> &'static [u8] {
    static VERSION: OnceLock<Vec<u8>> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = cpp().and_then(|mut compiler| compiler.arg("--version").output().ok());
        output.map(|output| output.stdout).unwrap_or_default()
    })
}

fn find(cpp: bool) -> Option<Tool> {
    // The default flags of the crate `cc` are for libraries that are linked to a Rust program.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let tool = cc::Build::new()
        .cpp(cpp)
        .target(&target)
        .host(&target)
        .opt_level(0)
        .no_default_flags(true)
        // Without this call -Wall would depend on `CXXFLAGS`; `false` would suppress every warning.
        .warnings(true)
        .extra_warnings(false)
        .cargo_metadata(false)
        .try_get_compiler();
    let starts = |tool: &Tool| tool.to_command().arg("--version").output();
    tool.ok().filter(|tool| starts(tool).is_ok_and(|output| output.status.success()))
}
