//! The estimate of a kernel's instructions, and its bounds for the kernels of a geometry.

use avsg_device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::code_size::{INSTRUCTION_BYTES, INSTRUCTION_CACHE_BYTES, instructions};
use avsg_linker::ascend::kernels::Abi;

#[test]
fn a_call_counts_as_the_body_of_its_function() {
    let text = |body: &str| {
        format!(
            "template <typename T> __aicore__ inline void Twice(T x) {{ Adds(x, x, 1, 8); Adds(x, x, 2, 8); }}\n\
             extern \"C\" __global__ __aicore__ void kernel(GM_ADDR a)\n{{\n{body}}}\n"
        )
    };
    let size = |body: &str| instructions(&text(body), "kernel");
    let twice = size("    Twice(a);\n") - size("    a;\n");
    assert_eq!(twice, size("    Adds(a, a, 1, 8);\n    Adds(a, a, 1, 8);\n") - size(""));
    assert!(twice > 0);
    assert_eq!(size("    // Twice(a);\n"), size(""));
    assert!(size("    Select(a, b, c, d, m, 8);\n") > size("    Add(a, b, c, 8);\n"));
}

/// The kernels that copy rows fit the instruction cache. Stage One does not, and must not grow
/// unnoticed.
#[test]
fn kernels_have_a_bounded_number_of_instructions() {
    let all = [
        Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) },
        Params { spread: 2, retries: 7, page: 128, ..Params::wide(2048, 2, 4096) },
        Params::paper(2048, 1, 8192),
    ];
    for p in all {
        let kernels = ascendc(&p, Abi::Direct).expect("the kernels fit");
        for kernel in &kernels.kernels {
            let bytes = INSTRUCTION_BYTES * kernels.instructions(kernel);
            println!("{p}: {} {bytes} bytes", kernel.name);
            let caches = if ["avsg_plan", "avsg_step"].contains(&kernel.name) { 4 } else { 1 };
            let least = INSTRUCTION_CACHE_BYTES / 16;
            assert!(
                (least..=caches * INSTRUCTION_CACHE_BYTES).contains(&bytes),
                "{p}: {} has {bytes} bytes",
                kernel.name
            );
        }
    }
}
