//! Compiles CUDA text against `linker/shim/cuda`, and runs it.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use avsg_linker::cuda::Options;
use avsg_sim::compiler;
use avsg_sim::shim::{Failure, Kernels as Library, Launch};

/// The hooks of the shim take the place of those of a sanitizer, whose library is not linked.
const FLAGS: [&str; 7] = [
    "-Werror",
    "-Wno-unknown-pragmas",
    // A small kernel need not use each plane of a table.
    "-Wno-unused-variable",
    "-fsanitize=thread",
    "-nodefaultlibs",
    "-fno-exceptions",
    // Each library has variables of its own.
    "-fno-gnu-unique",
];

/// The kind of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpu {
    /// It has bulk copies, as from `sm_90` on.
    Bulk,
    /// It has none.
    Loads,
}

/// The compiled kernels of a text.
pub struct Compiled {
    library: Library,
    /// Bytes of shared memory that a launch gives to a block.
    shared_bytes: u32,
}

/// The entry point of each text of [`compile_all`].
const ENTRY: &str = "one_request";

/// Returns the name of the entry point of a text of [`compile_all`].
pub fn entry(number: usize) -> String {
    format!("g{number}_{ENTRY}")
}

/// Compiles texts with their headers as one file, each for launches with as many threads and as much shared memory.
pub fn compile_all(texts: &[(String, Options)], gpu: Gpu) -> Option<Vec<Compiled>> {
    let numbered = |(n, (text, _)): (usize, &(String, Options))| {
        let text = text.replace("namespace avsg", &format!("namespace avsg{n}"));
        let text = text.replace("avsg::", &format!("avsg{n}::")).replace(ENTRY, &entry(n));
        format!("namespace avsg{n} {{ using namespace avsg; }}\n{text}")
    };
    let all: String = texts.iter().enumerate().map(numbered).collect();
    let names: Vec<String> = (0..texts.len()).map(entry).collect();
    let threads = texts.iter().map(|(_, launch)| launch.threads);
    let kernels: Vec<_> = names.iter().map(String::as_str).zip(threads).collect();
    let library = library(&format!("#include \"avsg_instructions.cuh\"\n{all}"), &kernels, gpu)?;
    let of = |(_, launch): &(String, Options)| Compiled {
        library: library.clone(),
        shared_bytes: launch.shared_bytes,
    };
    Some(texts.iter().map(of).collect())
}

/// Compiles the text of kernels with their headers, whose entry points are `names`, for launches with as many threads and as
/// much shared memory. Without a C++ compiler it returns `None`, and prints that the test is skipped.
pub fn compile(text: &str, names: &[&str], launch: Options, gpu: Gpu) -> Option<Compiled> {
    let kernels: Vec<_> = names.iter().map(|&name| (name, launch.threads)).collect();
    Some(Compiled { library: library(text, &kernels, gpu)?, shared_bytes: launch.shared_bytes })
}

/// As [`compile`], with the threads of each kernel.
pub fn library(text: &str, kernels: &[(&str, u32)], gpu: Gpu) -> Option<Library> {
    if compiler::cpp().is_none() {
        println!("skipped: no C++ compiler");
        return None;
    }
    let entry = |(name, threads): &(&str, u32)| format!("AVSG_SHIM_KERNEL({name}, {threads})\n");
    let text = text.to_owned() + &kernels.iter().map(entry).collect::<String>();
    let arch = if gpu == Gpu::Bulk { "-D__CUDA_ARCH__=900" } else { "-D__CUDA_ARCH__=800" };
    let flags = [&FLAGS[..], &[arch]].concat();
    let library = Library::compile(&text, &flags);
    Some(library.unwrap_or_else(|e| panic!("the compiler refused the text:\n{e}")))
}

impl Compiled {
    /// Selects the statement of a text of mutants that is left out, from 1 on; 0 for none.
    pub fn leave_out(&self, number: usize) {
        let library = self.library.library();
        // SAFETY: a text of mutants defines the function with this signature.
        let function = unsafe { library.get::<extern "C" fn(c_int)>(b"avsg_leave_out") };
        function.expect("a text of mutants")(number as c_int);
    }
}

/// Runs a launch and returns the largest number of barriers that a block passed.
pub fn run(launch: Launch<'_>, compiled: &Compiled) -> Result<u32, Failure> {
    // A library has memory for one launch at a time.
    static RUNNING: Mutex<()> = Mutex::new(());
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    launch.shared(compiled.shared_bytes).run(&compiled.library)
}
