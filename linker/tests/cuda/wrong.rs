//! The shim refuses kernels that break a rule, by the rule that they break.

use super::gpu::{Compiled, Gpu, compile, run};
use avsg_linker::cuda::Options;
use avsg_sim::shim::{Launch, Mode};

fn says(compiled: &Compiled, name: &str, mode: Mode, seed: u64) -> String {
    #[repr(align(16))]
    struct Aligned([i32; 64]);
    let (mut words, input) = (vec![0; 128], Aligned([5; 64]));
    let launch = Launch::new(name).blocks(2).mode(mode, seed).device(&mut words).input(&input.0);
    run(launch, compiled).map_or_else(|failure| failure.text, |_| String::new())
}

#[test]
fn the_shim_names_the_rule_that_is_broken() {
    let text = include_str!("wrong.cu");
    let arguments =
        |line: &'static str| line.strip_prefix("KERNEL(")?.split_once("\")")?.0.split_once(", \"");
    let kernels: Vec<_> = text.lines().filter_map(arguments).collect();
    assert_eq!(kernels.len(), 18);
    let names: Vec<_> = kernels.iter().map(|(name, _)| *name).collect();
    let launch = Options { threads: 64, shared_bytes: 2048 };
    let Some(compiled) = compile(text, &names, launch, Gpu::Bulk) else { return };
    for (name, rule) in kernels {
        for seed in 0..4 {
            for mode in [Mode::InOrder, Mode::Adversarial] {
                let text = says(&compiled, name, mode, seed);
                assert_eq!(rule.is_empty(), text.is_empty(), "{name}, {mode:?}: {text}");
                assert!(text.contains(rule), "{name}, {mode:?}: {text}");
            }
        }
    }
}
