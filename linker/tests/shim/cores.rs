//! Kernels on several cores: the barrier, races, waves, and launches that fail.

use super::harness::{CompiledKernels, Mode, RunFailure, ShimLaunch};

/// Runs a kernel and returns its result and its output.
fn run(
    k: &CompiledKernels,
    launch: ShimLaunch<'_>,
    input: &[i32],
) -> (Result<u32, RunFailure>, Vec<i32>) {
    let mut out = vec![1; 4096];
    (launch.input(input).device(&mut out).run(k), out)
}

/// Cores exchange data at the barrier, and without one blocks run in waves.
#[test]
fn cores_run_side_by_side_or_in_waves() {
    let Some(k) = kernels!("cores.cpp") else { return };
    let x = input();
    for mode in [Mode::InOrder, Mode::Adversarial, Mode::Unchecked] {
        for blocks in [1, 2, 7, 32] {
            let (result, out) = run(&k, ShimLaunch::new("passed").blocks(blocks).mode(mode, 5), &x);
            assert_eq!(result, Ok(256), "{mode:?}");
            for core in 0..blocks as usize {
                let next = (core + 1) % blocks as usize;
                assert_eq!(out[core * 64..][..64], x[core * 64..][..64]);
                assert_eq!(out[2048 + core * 64..][..64], x[next * 64..][..64]);
            }
        }
    }
    let (result, out) = run(&k, ShimLaunch::new("waves").blocks(100).cores(3), &x);
    result.expect("waves are legal");
    assert!((0..800).all(|i| out[i] == i as i32 / 8));
}

fn input() -> Vec<i32> {
    (0..4096).map(|i| i * 31 % 977).collect()
}

/// Races, barriers that some cores never reach, cores that fail, and launches that are invalid.
#[test]
fn what_goes_wrong_between_cores_is_refused() {
    let Some(k) = kernels!("cores.cpp") else { return };
    let x = input();
    let of = |name, blocks| ShimLaunch::new(name).blocks(blocks);
    let transfers = ["gm-race", "DataCopyPad(UB to GM) at", "DataCopyPad(GM to UB) at"];
    // Each is given by a function, because two orders run it.
    type Case<'a> = (&'a dyn Fn() -> ShimLaunch<'static>, i32, &'a [&'a str]);
    let cases: [Case<'_>; 14] = [
        (&|| of("race", 2), 1, &transfers),
        (&|| of("race", 8), 1, &["gm-race", "no SyncAll between"]),
        (&|| of("both_write", 2), 1, &["gm-race", "core 0 writes and core 1 writes"]),
        (&|| of("edge_race", 3), 1, &["gm-race", "writes"]),
        (&|| of("early_return", 4), 3, &["hang"]),
        (&|| of("unequal", 4), 3, &["hang"]),
        (&|| of("passed", 5).cores(4), 3, &["5 blocks on 4 cores"]),
        (&|| of("one_fails", 8), 1, &["undefined", "[core 2]"]),
        (&|| of("passed", 6).fault(Some(3)), 1, &["aicore-exception", "[core 3]"]),
        // A launch does not inherit the failure of an earlier one.
        (&|| of("passed", 6), 0, &[]),
        (&|| of("nothing", 1), 2, &["no kernel named nothing"]),
        (&|| of("waves", 0), 2, &["0 blocks"]),
        (&|| of("waves", 65536), 2, &["65536 blocks"]),
        (&|| of("waves", 1).cores(0), 2, &["0 cores"]),
    ];
    for (launch, code, pieces) in cases {
        for mode in [Mode::InOrder, Mode::Adversarial] {
            let result = run(&k, launch().mode(mode, 5), &x).0;
            let (found, text) = result.map_or_else(|f| (f.code, f.text), |_| (0, String::new()));
            let named = pieces.iter().all(|piece| text.contains(piece));
            assert!(found == code && named, "{pieces:?}: {found}, {text}");
        }
    }
    // A single core races with no other, and waits for none.
    for name in ["both_write", "edge_race", "early_return"] {
        run(&k, of(name, 1), &x).0.expect(name);
    }
}
