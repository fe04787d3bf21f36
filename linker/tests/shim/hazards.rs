//! The hazard checker finds and names every kind of missing synchronisation. Without the checker,
//! the missing synchronisation gives wrong data.

use super::harness::{CompiledKernels, Mode, RunFailure, ShimLaunch};

const N: usize = 1024;

fn input() -> Vec<i32> {
    (0..2 * N as i32).map(|i| i * 7 % 1009 - 300).collect()
}

fn run(
    k: &CompiledKernels,
    name: &str,
    mode: Mode,
    seed: u64,
) -> (Result<u32, RunFailure>, Vec<i32>) {
    let (input, mut out) = (input(), vec![0; 2 * N]);
    let result = ShimLaunch::new(name).input(&input).device(&mut out).mode(mode, seed).run(k);
    (result, out)
}

type Expected = fn(&[i32], usize) -> i32;

/// Kernel, the synchronisation that the message must name, and word `i` of the first half of the
/// output.
const HAZARDS: [(&str, &str, Expected); 20] = [
    ("v_v", "missing PipeBarrier<PIPE_V>", |x, i| x[i] + 3),
    ("v_v_read", "missing PipeBarrier<PIPE_V>", |x, i| x[i] + 3),
    ("mte2_v", "HardEvent::MTE2_V>", |x, i| x[i] + 3),
    ("v_s", "HardEvent::V_S>", |x, _| x[5] + 1),
    ("s_v", "HardEvent::S_V>", |_, i| if i < 64 { 3 * i as i32 + 1 } else { 0 }),
    ("s_mte3", "HardEvent::S_MTE3>", |_, i| if i < 64 { 3 * i as i32 + 1 } else { 0 }),
    ("v_mte3", "HardEvent::V_MTE3>", |x, i| x[i] + 3),
    ("mte3_mte2", "HardEvent::MTE3_MTE2>", |x, i| x[i]),
    ("mte3_mte2_global", "HardEvent::MTE3_MTE2>", |x, i| x[i]),
    ("v_mte2", "HardEvent::V_MTE2>", |x, i| x[i] + 3),
    ("mte2_mte3", "HardEvent::MTE2_MTE3>", |x, i| x[i]),
    ("mte2_s", "HardEvent::MTE2_S>", |x, _| x[5] + 1),
    ("mte3_v", "HardEvent::MTE3_V>", |x, i| x[i]),
    ("mte3_s", "HardEvent::MTE3_S>", |x, i| x[i]),
    ("s_mte2", "HardEvent::S_MTE2>", |x, i| x[i]),
    ("mte2_mte2", "missing PipeBarrier<PIPE_MTE2>", |x, i| x[i]),
    ("mte3_mte3", "missing PipeBarrier<PIPE_MTE3>", |x, i| x[i]),
    ("compacted", "HardEvent::V_S>", |x, _| x[N - 1]),
    ("count", "HardEvent::V_S>", |_, _| N as i32 / 2 * 1000 + N as i32 / 4),
    ("edge", "missing PipeBarrier<PIPE_V>", |x, i| x[i] + 3),
];

/// Missing synchronisation is found and named, and corrupts data in some order without checks. With it the data is right in
/// every order.
#[test]
fn each_hazard_is_found_and_needs_its_synchronisation() {
    let Some(k) = kernels!("hazards.cpp") else { return };
    let x = input();
    for (name, remedy, expected) in HAZARDS {
        let [right, wrong] = ["right", "wrong"].map(|end| format!("{name}_{end}"));
        for mode in [Mode::InOrder, Mode::Adversarial] {
            let failure = run(&k, &wrong, mode, 1).0.expect_err(name);
            assert_eq!(failure.code, 1, "{failure:?}");
            assert!(failure.text.starts_with("hazard: "), "{name}: {failure:?}");
            assert!(failure.text.contains(remedy), "{name}: {failure:?}");
            // The message names the lines of both instructions.
            assert!(failure.text.matches(".cpp:").count() == 2, "{name}: {failure:?}");
        }
        let (_, want) = run(&k, &right, Mode::InOrder, 1);
        (0..N).for_each(|i| assert_eq!(want[i], expected(&x, i), "{name}: word {i}"));
        for seed in 1..40 {
            for mode in [Mode::Adversarial, Mode::Unchecked] {
                let (result, out) = run(&k, &right, mode, seed);
                assert!(result.is_ok() && out == want, "{name} {mode:?} {seed}: {result:?}");
            }
        }
        let corrupts = (1..60).any(|seed| {
            let (result, out) = run(&k, &wrong, Mode::Unchecked, seed);
            assert!(result.is_ok(), "{name}: {result:?}");
            out != want
        });
        // `edge` writes the same values twice, so its data is correct in any order.
        assert_eq!(corrupts, name != "edge", "{name}: 59 orders without the synchronisation");
    }
}

#[test]
fn synchronisation_is_transitive_and_exact_to_the_byte() {
    let Some(k) = kernels!("ordered.cpp") else { return };
    let x = input();
    for name in ["transitive", "through_scalar", "all", "bytes", "double_buffer"] {
        let adversarial = (1..30).map(|seed| (Mode::Adversarial, seed));
        for (mode, seed) in [(Mode::InOrder, 1)].into_iter().chain(adversarial) {
            let (result, out) = run(&k, name, mode, seed);
            assert!(result.is_ok(), "{name} {mode:?} {seed}: {result:?}");
            for i in 0..N {
                assert_eq!((out[i], out[N + i]), (x[i] + 3, x[i]), "{name} {mode:?} {seed}: {i}");
            }
        }
    }
}
