//! The kernels of the small default geometry, as they ship: a change of the generated text is seen in
//! review. `BLESS=1 cargo test --test goldens` writes them anew.
#![cfg(feature = "cli")]

use std::fs;
use std::path::Path;

use avsg::device::params::Params;
use avsg_linker::write::ascendc;
use avsg_linker::write::kernels::Abi;

#[test]
fn emitted_kernels_are_the_committed_ones() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ascendc");
    let bless = std::env::var_os("BLESS").is_some_and(|bless| bless == "1");
    let kernels = ascendc(&p, Abi::Direct).expect("the default geometry");
    for kernel in &kernels {
        let path = dir.join(format!("{}.cpp", kernel.name));
        if bless {
            fs::create_dir_all(&dir).expect("the folder of goldens");
            fs::write(&path, &kernel.text).expect("a golden");
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        let differ = golden.lines().zip(kernel.text.lines()).position(|(a, b)| a != b);
        let at = differ.unwrap_or_else(|| golden.lines().count()) + 1;
        assert!(
            golden == kernel.text,
            "{} differs at line {at}; BLESS=1 writes it anew",
            kernel.name
        );
    }
    let step = kernels.iter().find(|kernel| kernel.name == "avsg_step").expect("the step");
    // What is written by hand: the rest is Stage One.
    let (before, rest) = step.text.split_once("namespace stage_one {").expect("Stage One");
    let (_, after) = rest.split_once("} // namespace stage_one").expect("its end");
    let lines = before.lines().count() + after.lines().count();
    assert!(lines < 600, "{lines} lines by hand are more than anybody reads");
    assert_eq!(ascendc(&p, Abi::Direct).expect("again"), kernels, "the same text on every run");
}
