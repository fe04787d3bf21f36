//! The estimate of a kernel's instructions: what it counts, its bounds for the kernels of several geometries, and
//! its trend beside that of a C++ compiler.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::code_size::{CALLED, Calls, Code, INSTRUCTION_CACHE_BYTES, Part};
use avsg_linker::ascend::kernels::{Abi, Kernels};
use avsg_sim::compiler;

use crate::tier;

/// A vector instruction is 14 instructions, and so is the statement with it 16. A call is 2, with one more for each
/// argument, and a function that is called has 8 of its own.
const SMALL: &str = "
AVSG_NOINLINE void Called(int32_t a, int32_t b)
{
    Adds(x, x, a, b); // one; two; three
}

__aicore__ inline void Twice()
{
    Muls(x, x, 2, 8);
    Called(1, 2);
}

__aicore__ inline void Once(const LocalTensor<int32_t> &x)
{
    for (int32_t i = 0; i < 4; i++) {
        Twice();
    }
    Twice();
}

extern \"C\" __global__ __aicore__ void kernel(GM_ADDR a)
{
    Once(Local<int32_t>(0, 8));
}
";

#[test]
fn a_called_function_counts_once_and_its_calls_count() {
    let bytes = |calls| Code::of(SMALL, "kernel", calls).bytes() / 4;
    // Twice is 16 and a statement with a call; Once has a loop of 8 and 2 statements.
    let (called, twice, call) = (8 + 16, 16 + 2, 2 + 2);
    assert_eq!(bytes(Calls::Marked), called + 3 + 8 + 2 * (2 + twice + call));
    assert_eq!(bytes(Calls::Copied), 3 + 8 + 2 * (2 + twice + 16));
    let code = Code::of(SMALL, "kernel", Calls::Marked);
    let calls: Vec<_> = code.routines.iter().map(|r| (&*r.name, r.calls)).collect();
    assert_eq!(calls, [("Called", 2), ("kernel", 0)]);
    // Addresses follow each other, and only the loop repeats.
    let ends = code.places.iter().map(|place| place.from + place.bytes);
    assert!(
        code.places.iter().skip(1).map(|place| place.from).eq(ends.take(code.places.len() - 1))
    );
    let of = |f: fn(&avsg_linker::ascend::code_size::Place) -> bool| {
        code.places.iter().filter(|p| f(p)).map(|p| p.lines.start).collect::<Vec<_>>()
    };
    assert_eq!((of(|p| p.enters), of(|p| p.repeats)), (vec![2], vec![14]));
}

fn geometries() -> [Params; 4] {
    let lifetime = Lifetime::Constant(127);
    let wide = Params { lifetime, spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    [
        wide,
        Params { lifetime: Lifetime::Learned, page: 128, ..wide },
        Params { page: 128, ..Params { spread: 2, retries: 7, ..Params::wide(2048, 2, 4096) } },
        Params::paper(2048, 1, 8192),
    ]
}

/// The loop over tokens of the default geometry with constant lifetimes fits the instruction cache of a vector
/// core, and a kernel twice the cache. The loops of the other geometries are a little longer, and so are kernels that
/// learn behind their miss list.
#[test]
fn kernels_have_a_bounded_number_of_instructions() {
    for (n, p) in geometries().into_iter().enumerate() {
        let kernels = ascendc(&p, Abi::Direct).expect("the kernels fit");
        for kernel in &kernels.kernels {
            let code = kernels.code(kernel);
            let (bytes, loops) = (code.bytes(), code.bytes_of(Part::Token));
            println!("{p}: {} {bytes} bytes, {loops} in the loop over tokens", kernel.name);
            let plans = ["avsg_plan", "avsg_step"].contains(&kernel.name);
            let learns = plans && p.lifetime == Lifetime::Learned;
            let most =
                INSTRUCTION_CACHE_BYTES * if plans { 2 } else { 1 } + if learns { 3072 } else { 0 };
            assert!((INSTRUCTION_CACHE_BYTES / 16..=most).contains(&bytes), "{p}: {bytes}");
            let longest = INSTRUCTION_CACHE_BYTES + if n == 0 { 0 } else { 4096 };
            assert!(loops <= longest && (loops > 0) == plans, "{p}: {}: {loops}", kernel.name);
        }
    }
}

/// Returns the bytes of text that a C++ compiler makes of a kernel at -Os.
fn compiled(kernels: &Kernels, name: &str, calls: Calls) -> Option<u32> {
    let kernel = kernels.kernels.iter().find(|kernel| kernel.name == name)?;
    let copy = "inline __attribute__((always_inline))";
    let text = kernels.whole(&kernel.text).replace("__aicore__ inline", copy);
    // The macro of the functions that are called is empty where each is copied.
    let text = if calls == Calls::Copied {
        text.replace(CALLED, copy).replace(&format!("#define {copy}"), "//")
    } else {
        text
    };
    let folder = env::temp_dir().join(format!("avsg-size-{}-{name}-{calls:?}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (source, object) = (folder.join("k.cpp"), folder.join("k.o"));
    fs::write(&source, text).expect("a file");
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/code_size");
    let flags = [
        "-std=c++17",
        "-Os",
        "-w",
        "-fno-asynchronous-unwind-tables",
        "-fno-exceptions",
        "-I",
        header,
    ];
    let mut compile = compiler::cpp()?;
    let output = compile.args(flags).arg("-c").arg(&source).arg("-o").arg(&object).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = text_bytes(&object);
    let _ = fs::remove_dir_all(&folder);
    bytes
}

fn text_bytes(object: &Path) -> Option<u32> {
    let output = Command::new("size").arg(object).output().ok()?;
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    table.lines().nth(1)?.split_whitespace().next()?.parse().ok()
}

/// `g++ -Os` makes fewer bytes of the same text if functions are called, too. Its instructions are those of another
/// machine, so only the trend is compared.
#[test]
fn a_compiler_for_size_shows_the_same_trend() {
    let kernels = ascendc(&geometries()[0], Abi::Direct).expect("the kernels fit");
    let all = ["avsg_step", "avsg_plan", "avsg_transfer", "avsg_append", "avsg_reset"];
    for name in &all[..if tier::thorough() { 5 } else { 1 }] {
        let kernel = kernels.kernels.iter().find(|kernel| kernel.name == *name).expect("a kernel");
        let [before, after] = [Calls::Copied, Calls::Marked].map(|calls| {
            let estimate = Code::of(&kernels.whole(&kernel.text), name, calls).bytes();
            compiled(&kernels, name, calls).map(|bytes| (estimate, bytes))
        });
        let (Some(before), Some(after)) = (before, after) else {
            println!("skipped: no C++ compiler, or no program size");
            return;
        };
        println!(
            "{name}: estimate {} to {}, g++ -Os {} to {}",
            before.0, after.0, before.1, after.1
        );
        assert!(after.1 < before.1 && after.0 < before.0, "{name}");
        let shrinks = |a: u32, b: u32| f64::from(b) / f64::from(a);
        let (estimate, size) = (shrinks(before.0, after.0), shrinks(before.1, after.1));
        assert!((estimate / size - 1.0).abs() < 0.3, "{name}: {estimate} and {size}");
    }
}
