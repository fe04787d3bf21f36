//! The thorough tier compiles the emitted files as they are by nvcc, from Python packages in the build folder: without a
//! warning, without a register in memory, with the shared memory of the plan, and with the barriers and the bulk
//! copies of the text in the machine code.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use super::tier;
use avsg_device::params::{Lifetime, Params};
use avsg_linker::cuda::{Kernels, Options, cuda};
use avsg_sim::nvcc;

const PACKAGES: [&str; 3] = [nvcc::PACKAGE, "nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"];

/// What the compiler says of a kernel for an architecture, and its machine code as text.
struct Built {
    words: String,
    code: String,
}

fn build(tools: &Path, file: &Path, arch: u32) -> Built {
    let to = file.with_extension(format!("{arch}.cubin"));
    let words =
        nvcc::compile(tools, arch, &[], file, &to).unwrap_or_else(|words| panic!("{words}"));
    let path = env::var_os("PATH").unwrap();
    let path = env::join_paths([tools.to_owned()].into_iter().chain(env::split_paths(&path)));
    let mut dump = Command::new(tools.join("cuobjdump"));
    let output = dump.arg("-sass").arg(to).env("PATH", path.unwrap()).output().expect("cuobjdump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Built { words, code: String::from_utf8_lossy(&output.stdout).into_owned() }
}

impl Built {
    /// Returns the numbers of the lines of the kernel and its functions with an instruction.
    fn lines(&self, instruction: &str) -> Vec<usize> {
        let has = |line: &str| line.split_whitespace().any(|word| word.starts_with(instruction));
        (0..).zip(self.code.lines()).filter(|(_, line)| has(line)).map(|(n, _)| n).collect()
    }

    fn registers(&self) -> u32 {
        let (_, rest) = self.words.split_once("Used ").expect("a number of registers");
        rest.split_once(' ').and_then(|(n, _)| n.parse().ok()).expect("a number")
    }
}

/// Returns the barriers of the block in the text of a kernel that plans.
fn barriers(kernels: &Kernels) -> usize {
    let text = |name: &str| &kernels.headers.iter().find(|header| header.0 == name).unwrap().1;
    let stage_one = text("avsg_stage_one.cuh");
    let in_text = |text: &str| text.matches("__syncthreads();").count();
    // Functions with barriers of their own.
    let scans = ["FindPlaces(", "= Threshold(", "AppendVictims<"];
    let scans: usize = scans.map(|call| stage_one.matches(call).count()).iter().sum();
    // A search for a threshold by counts is a function that stands once in the code.
    let by_counts = 2 * usize::from(stage_one.contains("= Threshold("));
    in_text(stage_one) + in_text(text("avsg_plan.cuh")) + scans + by_counts
}

fn check(kernels: &Kernels, threads: u32, name: &str, arch: u32, built: &Built, what: &str) {
    let words = &built.words;
    assert!(words.contains("bytes stack frame") && !nvcc::spills(words), "{what}: {words}");
    assert!(built.registers() * threads <= 65536, "{what}: {words}");
    // All shared memory is that of the launch.
    assert!(!words.contains("bytes smem"), "{what}: {words}");
    let geometry = &kernels.headers.iter().find(|h| h.0 == "avsg_geometry.cuh").unwrap().1;
    assert!(geometry.contains(&format!("SHARED_BYTES = {};", kernels.shared_bytes)), "{what}");
    let copies =
        if arch >= 90 && name != "avsg_plan" { built.lines("UBLKCP.S.G").len() } else { 0 };
    assert_eq!(built.lines("UBLKCP").len(), 2 * copies, "{what}: loads and stores");
    if name == "avsg_transfer" {
        return assert!(copies > 0 || arch < 90, "{what}");
    }
    assert_eq!(built.lines("BAR.").len(), barriers(kernels), "{what}: barriers");
    if name == "avsg_step" && arch >= 90 {
        let stage_one = kernels.headers.iter().find(|h| h.0 == "avsg_stage_one.cuh").unwrap();
        let continued = stage_one.1.matches("copies.Continue();").count();
        assert_eq!(copies, continued + 1, "{what}: places where copies continue");
        let (first, last) = (built.lines("UBLKCP.S.G")[0], built.lines("BAR.").pop());
        assert!(Some(first) < last, "{what}: no copy begins before Stage One ends");
    }
}

#[test]
fn nvcc_compiles_the_files_without_warnings_and_spills() {
    if !tier::thorough() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-tools");
    let tools = match nvcc::find(&folder, &PACKAGES) {
        Ok(tools) => tools,
        Err(why) => return println!("skipped: {why}"),
    };
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, retries: 3, ..learned };
    let geometries = [
        (Params { lifetime: Lifetime::Constant(127), ..wide }, 1024),
        (learned, 1024),
        (spread, 512),
        (Params::paper(2048, 4, 8192), 1024),
        (Params { slots: 4096, ..learned }, 256),
    ];
    for (n, (p, threads)) in geometries.iter().enumerate() {
        let kernels = cuda(p, Options { threads: *threads, ..Options::default() });
        let kernels = kernels.unwrap_or_else(|e| panic!("{p}: {e}"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-files{n}"));
        fs::create_dir_all(&folder).unwrap();
        kernels.files().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        for name in ["avsg_plan", "avsg_step", "avsg_transfer"] {
            let file = folder.join(name).with_extension("cu");
            for arch in [80, 90, 100] {
                let built = build(&tools, &file, arch);
                let what = format!("{name} of {p}, {threads} threads, sm_{arch}");
                let (registers, barriers) = (built.registers(), built.lines("BAR.").len());
                println!("{what}: {registers} registers, {barriers} barriers, {}", kernels.plan);
                check(&kernels, *threads, name, arch, &built, &what);
            }
        }
    }
}
