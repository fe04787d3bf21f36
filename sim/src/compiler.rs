//! This machine's C and C++ compilers, as the variables `CC`, `CXX`, `CFLAGS` and `CXXFLAGS` name them.

use std::env::consts::ARCH;
use std::process::Command;
use std::sync::OnceLock;

use cc::Tool;

/// The C compiler with -Wall, its variable's flags and no others. None if it does not start.
pub fn c() -> Option<Command> {
    static FOUND: OnceLock<Option<Tool>> = OnceLock::new();
    FOUND.get_or_init(|| find(false)).as_ref().map(Tool::to_command)
}

/// The C++ compiler with -Wall, its variable's flags and no others. None if it does not start.
pub fn cpp() -> Option<Command> {
    static FOUND: OnceLock<Option<Tool>> = OnceLock::new();
    FOUND.get_or_init(|| find(true)).as_ref().map(Tool::to_command)
}

fn find(cpp: bool) -> Option<Tool> {
    // The flags are the caller's: those that the crate would add are for a library of a Rust program.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let found = cc::Build::new()
        .cpp(cpp)
        .target(&target)
        .host(&target)
        .opt_level(0)
        .no_default_flags(true)
        // Said, because it would otherwise depend on the variable; `false` would suppress every warning.
        .warnings(true)
        .extra_warnings(false)
        .cargo_metadata(false)
        .try_get_compiler();
    let answers = |tool: &Tool| tool.to_command().arg("--version").output();
    found.ok().filter(|tool| answers(tool).is_ok_and(|said| said.status.success()))
}
