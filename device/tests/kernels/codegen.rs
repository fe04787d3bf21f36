//! The machine code of a kernel in a release build: everything is inlined. A closure or an
//! intrinsic that is not inlined would be a call per register, which costs more than the kernel
//! itself.
#![cfg(all(target_arch = "x86_64", not(miri)))]

use std::path::Path;
use std::process::Command;

/// The part of a symbol that marks the function of a kernel, see `run` of each machine, and the widest
/// registers of that machine.
const KERNELS: [(&str, &str); 2] = [("avsg_kernel_avx512", "%zmm"), ("avsg_kernel_avx2", "%ymm")];

/// The functions that a kernel may call, by a part of their symbols. No sweep calls them except to
/// panic.
const COLD: &[&str] = &[
    "core9panicking", // panics of indices, overflows and unwraps
    "slice_index_fail",
    "copy_from_slice_impl", // the panic of lengths that differ
    "len_mismatch_fail",
    "panic_for_nonpositive_argument", // the panic of a logarithm of 0
    "7Display3fmt",                   // a number in the message of a panic, whose address is taken
    "memcpy",                         // `copy_in` and `copy_out`
    "memset",
    "memmove",
    "split_state",     // one call per request
    "map_by_permutes", // one call per token, for a whole column
    "PERMUTES_BYTES",  // the word that decides it
    "split_work",
    "6Column3new",
    "4Life3new",
    "10state_words",
    "6PACKED", // a table of the AVX2 machine, whose address is taken
];

/// Writes a project with the library alone. In the package itself, Cargo would first build the dependencies of all its
/// tests, optimised. The profile is the workspace's, and the versions are those of its lock file.
fn project(at: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path| std::fs::read_to_string(here.join(path)).expect("readable");
    let (own, workspace) = (read("Cargo.toml"), read("../Cargo.toml"));
    let part = |text: &'_ str, name: &str| -> String {
        let found = text.split("\n[").find(|part| part.starts_with(name));
        format!("[{}\n", found.expect("a part of the manifest"))
    };
    let manifest = format!(
        "[package]\nname = \"kernel\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = {:?}\n{}{}",
        here.join("src/lib.rs"),
        part(&own, "dependencies]"),
        part(&workspace, "profile.release]"),
    );
    std::fs::create_dir_all(at).expect("a writable target directory");
    std::fs::write(at.join("Cargo.toml"), manifest).expect("writable");
    std::fs::copy(here.join("../Cargo.lock"), at.join("Cargo.lock")).expect("a lock file");
}

#[test]
fn kernels_call_nothing_but_cold_functions() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("codegen");
    project(&target);
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--offline", "--release", "--manifest-path"])
        .arg(target.join("Cargo.toml"))
        // The flags of the caller are removed, because RUSTFLAGS could contain anything.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .arg("--target-dir")
        .arg(target.join("built"))
        .args(["--", "--emit=asm", "-Ccodegen-units=1"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let texts = std::fs::read_dir(target.join("built/release/deps"))
        .expect("the library was built")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "s"))
        .map(|path| std::fs::read_to_string(path).expect("readable"));
    let mut kernels = [0; KERNELS.len()];
    for text in texts {
        for (name, body) in functions(&text) {
            let machine = KERNELS.iter().position(|(kernel, _)| name.contains(kernel));
            let Some(machine) = machine else { continue };
            kernels[machine] += 1;
            let register = KERNELS[machine].1;
            assert!(body.contains(register), "{name} uses no {register}: it is not inlined");
            let called: Vec<_> = callees(body).collect();
            let warm = called.iter().filter(|c| !COLD.iter().any(|cold| c.contains(cold)));
            let warm: Vec<_> = warm.collect();
            assert!(warm.is_empty(), "{name} calls {warm:#?}");
        }
    }
    assert_eq!(kernels, [2, 2], "kernels of {KERNELS:?}, two forms of gather each");
}

/// Returns the name and the text of every function of an assembly file.
fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("@function\n").skip(1).filter_map(|rest| {
        let (name, body) = rest.split_once(":\n")?;
        Some((name.trim(), body.split(".Lfunc_end").next()?))
    })
}

/// Returns the functions that a function calls: direct calls, and every symbol whose address it
/// takes from the GOT, because a call through a register has no name.
fn callees(body: &str) -> impl Iterator<Item = &str> {
    body.lines().filter_map(|line| {
        let line = line.trim();
        if let Some(at) = line.find("@GOTPCREL") {
            let head = &line[..at];
            return head.rsplit(['\t', ' ', '*']).next();
        }
        let target = line.strip_prefix("callq\t").or_else(|| line.strip_prefix("call\t"))?;
        (!target.starts_with("*%")).then_some(target)
    })
}
