//! The shim refuses kernels that break a rule, by the rule that they break.

use super::gpu::{Compiled, Gpu, compile, run};
use avsg_linker::cuda::Options;
use avsg_sim::shim::{Launch, Mode};

/// The kernels, and what the shim says of them.
const KERNELS: [(&str, &str); 18] = [
    ("right", ""),
    ("reads_before_a_barrier", "since the last barrier"),
    ("a_warp_reads_behind_its_barrier", ""),
    ("a_warp_reads_before_its_barrier", "since the last barrier"),
    ("a_barrier_of_a_warp_is_not_one_of_the_block", "since the last barrier"),
    ("two_threads_write_one_byte", "has written since the last barrier"),
    ("two_blocks_write_one_word", "which another block has accessed"),
    ("writes_behind_its_memory", "which no argument has"),
    ("writes_behind_shared_memory", "byte 2048 of shared memory, of which the launch gives 2048"),
    ("writes_an_input", "which is an input"),
    ("half_of_a_block_waits", "hang: "),
    ("lanes_of_a_warp_part", "a shuffle"),
    ("lifetimes_differ", "threads set a lifetime to"),
    ("misaligned", "which is misaligned"),
    ("more_bytes_are_expected_than_arrive", "a barrier expects 80 bytes, and 64 arrive"),
    ("a_row_is_read_before_it_arrives", "which a bulk copy has that no thread has waited for"),
    ("a_slot_is_read_before_the_kernel_ends", "which a bulk copy has until the kernel ends"),
    ("nobody_waits_for_a_copy", "before a thread has waited for 1 bulk copies"),
];

fn says(compiled: &Compiled, name: &str, mode: Mode, seed: u64) -> String {
    #[repr(align(16))]
    struct Aligned([i32; 64]);
    let (mut words, input) = (vec![0; 128], Aligned([5; 64]));
    let launch = Launch::new(name).blocks(2).mode(mode, seed).device(&mut words).input(&input.0);
    run(launch, compiled).map_or_else(|failure| failure.text, |_| String::new())
}

#[test]
fn the_shim_names_the_rule_that_is_broken() {
    let names = KERNELS.map(|(name, _)| name);
    let launch = Options { threads: 64, shared_bytes: 2048 };
    let text = include_str!("wrong.cu");
    let Some(compiled) = compile(text, &names, launch, Gpu::Bulk) else { return };
    for (name, rule) in KERNELS {
        for seed in 0..4 {
            for mode in [Mode::InOrder, Mode::Adversarial] {
                let text = says(&compiled, name, mode, seed);
                assert_eq!(rule.is_empty(), text.is_empty(), "{name}, {mode:?}: {text}");
                assert!(text.contains(rule), "{name}, {mode:?}: {text}");
            }
        }
    }
}
