//! Compiles the kernels of several geometries as one file.
//!
//! Geometries differ in numbers only, so the compiler generates most of their code once: seven of
//! them in one file take the time of two single files. The thorough tier compiles each text as a
//! file of its own.

use super::{CompiledKernels, compile, tier};
use std::ffi::c_int;

/// The compiled kernels of one text.
#[derive(Clone)]
pub struct Compiled {
    pub kernels: CompiledKernels,
    /// Number of the text in a file of several texts.
    number: Option<usize>,
}

impl Compiled {
    /// Compiles one text with the names that it has. Without a C++ compiler it returns `None`, and
    /// prints that the test is skipped; so do the functions below.
    pub fn single(text: &str) -> Option<Self> {
        Some(Self { kernels: compile(text)?, number: None })
    }

    /// Returns the name of a kernel in the compiled file.
    pub fn name(&self, kernel: &str) -> String {
        self.number.map_or(kernel.to_string(), |n| format!("g{n}_{kernel}"))
    }

    /// Selects the statement of a text of mutants that is left out, from 1 on; 0 for none. All launches of the text share
    /// the number.
    pub fn leave_out(&self, number: usize) {
        let (library, name) = (self.kernels.library(), self.name("avsg_leave_out"));
        // SAFETY: a text of mutants defines the function with this signature.
        let function = unsafe { library.get::<extern "C" fn(c_int)>(name.as_bytes()) };
        function.expect("a text of mutants")(number as c_int);
    }
}

/// Compiles texts as one file, or each as a file of its own in the thorough tier.
pub fn compile_all(texts: &[String]) -> Option<Vec<Compiled>> {
    let n = texts.len();
    if tier::thorough() {
        println!("{}: {n} files for the compiler, {n} of {n} compiled separately", tier::name());
        return texts.iter().map(|text| Compiled::single(text)).collect();
    }
    println!("{}: 1 file for the compiler, {n} of {n} texts in it", tier::name());
    let numbered = texts.iter().enumerate().map(|(n, text)| with_numbered_names(text, n));
    let all = numbered.collect::<String>();
    let kernels = compile(&format!("#define AVSG_SHIM_SEVERAL_FILES\n{all}"))?;
    Some((0..n).map(|n| Compiled { kernels: kernels.clone(), number: Some(n) }).collect())
}

/// Returns a text whose namespace, kernels, switches, and macros with the namespace carry a number in
/// their names.
fn with_numbered_names(text: &str, n: usize) -> String {
    let kernel = "__global__ __aicore__ void ";
    assert!(text.contains("namespace avsg {") && text.contains(kernel), "no emitted kernel");
    text.replace("namespace avsg", &format!("namespace avsg{n}"))
        .replace("avsg::", &format!("avsg{n}::"))
        .replace("AVSG_TILING(", &format!("AVSG_TILING_{n}("))
        .replace("AVSG_START_TILING(", &format!("AVSG_START_TILING_{n}("))
        .replace(kernel, &format!("{kernel}g{n}_"))
        .replace("left_out", &format!("left_out_{n}"))
        .replace("avsg_leave_out", &format!("g{n}_avsg_leave_out"))
}
