//! Kernels of several geometries as one file for the compiler.
//!
//! Geometries differ in numbers only, so a compiler makes most of their code once: seven of them in one
//! file cost as much as two alone. The thorough tier compiles each alone, as a device's compiler does.

use super::shim::{Kernels, compile};
use super::tier;

/// Where a geometry's kernels are.
#[derive(Clone)]
pub struct Compiled {
    pub kernels: Kernels,
    /// Its number in a file of several.
    number: Option<usize>,
}

impl Compiled {
    /// A text alone, under the names that it has.
    pub fn alone(text: &str) -> Self {
        Self { kernels: compile(text), number: None }
    }

    /// What a kernel is called in this file.
    pub fn name(&self, kernel: &str) -> String {
        self.number.map_or(kernel.to_string(), |n| format!("g{n}_{kernel}"))
    }
}

/// Compiles texts with the names of everything in them: together, or each alone in the thorough tier.
pub fn compile_all(texts: &[String]) -> Vec<Compiled> {
    let n = texts.len();
    if tier::thorough() {
        println!("{}: {n} files for the compiler, {n} of {n} compiled alone", tier::name());
        return texts.iter().map(|text| Compiled::alone(text)).collect();
    }
    println!("{}: 1 file for the compiler, {n} of {n} texts in it", tier::name());
    let all: String = texts.iter().enumerate().map(|(n, text)| own(text, n)).collect();
    (0..texts.len()).map(|n| Compiled { kernels: compile(&all), number: Some(n) }).collect()
}

/// A text whose namespace and kernels bear a number.
fn own(text: &str, n: usize) -> String {
    let kernel = "__global__ __aicore__ void ";
    assert!(text.contains("namespace avsg {") && text.contains(kernel), "no emitted kernel");
    text.replace("namespace avsg", &format!("namespace avsg{n}"))
        .replace("avsg::", &format!("avsg{n}::"))
        .replace(kernel, &format!("{kernel}g{n}_"))
}
