//! Runs of the program, and files for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use serde_json::Value;

#[path = "../../../tests/ascend/prerequisites.rs"]
mod prerequisites;
pub use prerequisites::{has_cpp_compiler, simulator_library};

/// A trace of four tokens per step with `stable`, which a command line names by this word.
pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");
/// A trace that `bindings/adapters/llama_cpp` recorded from a model with random weights, named by this word, too.
pub const LLAMA: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/llama-deepseek32-k64.npz");

/// Returns the command of a line of arguments with spaces between them.
pub fn command(line: &str) -> Command {
    let word = |word| match word {
        "SAMPLE" => SAMPLE,
        "LLAMA" => LLAMA,
        word => word,
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_avsg"));
    command.args(line.split_whitespace().map(word)).env_remove("COLUMNS");
    command
}

pub fn run(line: &str) -> Output {
    command(line).output().expect("the program starts")
}

/// Runs a command that must succeed, or answer that no S has what was asked for, and returns its standard output.
pub fn bytes(line: &str) -> Vec<u8> {
    let output = run(line);
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Runs a command that must succeed, and returns the text on its standard output.
pub fn text(line: &str) -> String {
    String::from_utf8(bytes(line)).expect("UTF-8")
}

/// Returns the JSON of a command, which must be all of its standard output.
pub fn json(line: &str) -> Value {
    serde_json::from_slice(&bytes(&format!("{line} --json -"))).expect("JSON alone")
}

/// Returns standard error without the warning that the machine is busy, which any run may print.
pub fn errors(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let is_message = |line: &&str| !line.starts_with("warning: the machine was busy");
    text.split_inclusive('\n').filter(is_message).collect()
}

/// Checks that a command is refused with status 2 and one line that contains all of `parts`, and returns
/// the line. The parser of the command line says more than one line.
pub fn refused(line: &str, parts: &[&str]) -> String {
    let output = run(line);
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
    let is_message = |line: &&str| !line.starts_with("skipped: ") && !line.contains(" warning: ");
    let message = errors.lines().filter(is_message).collect::<Vec<_>>().join("\n");
    let one_line = message.starts_with("avsg: ") && message.lines().count() == 1;
    assert!(one_line || message.starts_with("error: "), "{line}: {errors}");
    assert!(output.stdout.is_empty() && !message.contains("panicked"), "{line}: {errors}");
    has(&message, parts);
    message
}

/// Checks that a text contains all of `parts`.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in: {text}"));
}

/// Checks that a number of a report is the one that it must be.
#[track_caller]
pub fn near(value: &Value, expected: f64) {
    let error = (number(value) - expected).abs();
    assert!(error <= 1e-9 * expected.abs().max(1.0), "{value} is not {expected}");
}

/// Creates an empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// Creates the home of a CANN whose CMake functions are empty. Returns it, and the folder of the stand-in for `cmake`.
pub fn stand_in_for_cann(name: &str) -> (PathBuf, &'static str) {
    let home = folder(name);
    let modules = home.join("compiler/tikcpp/ascendc_kernel_cmake");
    fs::create_dir_all(&modules).expect("a folder");
    fs::write(modules.join("ascendc.cmake"), "").expect("a module");
    (home, concat!(env!("CARGO_MANIFEST_DIR"), "/../linker/tests/stand_in"))
}

/// Returns the path of a file in the folder for tests, which no other test names.
pub fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program-files");
    fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

/// Writes an array to an `.npy` file and returns its path.
pub fn npy<T: AutoSerialize + Copy>(name: &str, shape: &[u64], data: &[T]) -> String {
    let mut image = Vec::new();
    let options = WriteOptions::new().default_dtype().shape(shape).writer(&mut image);
    let mut out = options.begin_nd().expect("a header");
    out.extend(data.iter().copied()).and_then(|()| out.finish()).expect("values");
    fs::write(file(name), image).expect("a file");
    file(name).display().to_string()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}
