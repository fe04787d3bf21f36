//! This machine's C and C++ compilers, as the variables `CC`, `CXX`, `CFLAGS` and `CXXFLAGS` name them.

use std::env::consts::ARCH;
use std::process::Command;

/// The C compiler with its variables' flags and no others. None if it does not start.
pub fn c() -> Option<Command> {
    find(false)
}

/// The C++ compiler with its variables' flags and no others. None if it does not start.
pub fn cpp() -> Option<Command> {
    find(true)
}

fn find(cpp: bool) -> Option<Command> {
    // The flags are the caller's: those that the crate would add are for a library of a Rust program.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let compiler = cc::Build::new()
        .cpp(cpp)
        .target(&target)
        .host(&target)
        .opt_level(0)
        .no_default_flags(true)
        .cargo_metadata(false)
        .try_get_compiler()
        .ok()?;
    let answers = compiler.to_command().arg("--version").output();
    answers.is_ok_and(|said| said.status.success()).then(|| compiler.to_command())
}
