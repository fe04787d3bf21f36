//! Kernels on several cores: the barrier, races, waves, and launches that fail.

use super::harness::{Failure, Kernels, Launch, Mode};

fn input() -> Vec<i32> {
    (0..4096).map(|i| i * 31 % 977).collect()
}

fn kernels() -> Option<Kernels> {
    kernels!("cores.cpp")
}

fn run(k: &Kernels, name: &str, blocks: u32, mode: Mode) -> (Result<u32, Failure>, Vec<i32>) {
    let (input, mut out) = (input(), vec![1; 4096]);
    let launch = Launch::new(name).blocks(blocks).input(&input).device(&mut out);
    (launch.mode(mode, 5).run(k), out)
}

/// Checks that a kernel fails with a code and with `pieces` in its message.
fn expect_refusal(k: &Kernels, name: &str, blocks: u32, code: i32, pieces: &[&str]) {
    for mode in [Mode::InOrder, Mode::Adversarial] {
        let failure = run(k, name, blocks, mode).0.expect_err(name);
        assert_eq!(failure.code, code, "{name}: {failure:?}");
        for piece in pieces {
            assert!(failure.text.contains(piece), "{name}: {failure:?}");
        }
    }
}

#[test]
fn cores_exchange_data_at_the_barrier() {
    let Some(k) = kernels() else { return };
    let x = input();
    for mode in [Mode::InOrder, Mode::Adversarial, Mode::Unchecked] {
        for blocks in [1, 2, 7, 32] {
            let (result, out) = run(&k, "passed", blocks, mode);
            assert_eq!(result, Ok(256), "{mode:?}");
            for core in 0..blocks as usize {
                let next = (core + 1) % blocks as usize;
                assert_eq!(out[core * 64..][..64], x[core * 64..][..64]);
                assert_eq!(out[2048 + core * 64..][..64], x[next * 64..][..64]);
            }
        }
    }
}

#[test]
fn races_between_cores_are_found() {
    let Some(k) = kernels() else { return };
    expect_refusal(
        &k,
        "race",
        2,
        1,
        &["gm-race", "DataCopyPad(UB to GM) at", "DataCopyPad(GM to UB) at"],
    );
    expect_refusal(&k, "race", 8, 1, &["gm-race", "no SyncAll between"]);
    expect_refusal(&k, "both_write", 2, 1, &["gm-race", "core 0 writes and core 1 writes"]);
    expect_refusal(&k, "edge_race", 3, 1, &["gm-race", "writes"]);
    // A single core races with no other.
    assert!(run(&k, "both_write", 1, Mode::InOrder).0.is_ok());
    assert!(run(&k, "edge_race", 1, Mode::InOrder).0.is_ok());
}

#[test]
fn a_barrier_that_some_cores_never_reach_is_a_hang() {
    let Some(k) = kernels() else { return };
    expect_refusal(&k, "early_return", 4, 3, &["hang"]);
    expect_refusal(&k, "unequal", 4, 3, &["hang"]);
    assert!(run(&k, "early_return", 1, Mode::InOrder).0.is_ok());
    let (input, mut out) = (input(), vec![0; 4096]);
    let failure = Launch::new("passed")
        .blocks(5)
        .cores(4)
        .input(&input)
        .device(&mut out)
        .run(&k)
        .expect_err("more blocks than cores");
    assert_eq!(failure.code, 3);
    assert!(failure.text.contains("5 blocks on 4 cores"), "{failure:?}");
}

#[test]
fn without_a_barrier_blocks_run_in_waves() {
    let Some(k) = kernels() else { return };
    let (input, mut out) = (input(), vec![0; 4096]);
    Launch::new("waves")
        .blocks(100)
        .cores(3)
        .input(&input)
        .device(&mut out)
        .run(&k)
        .expect("waves are legal");
    assert!((0..800).all(|i| out[i] == i as i32 / 8));
}

#[test]
fn a_failing_core_ends_the_launch() {
    let Some(k) = kernels() else { return };
    expect_refusal(&k, "one_fails", 8, 1, &["undefined", "[core 2]"]);
    let (input, mut out) = (input(), vec![0; 4096]);
    let failure = Launch::new("passed")
        .blocks(6)
        .fault(Some(3))
        .input(&input)
        .device(&mut out)
        .run(&k)
        .expect_err("an injected exception");
    assert_eq!(failure.code, 1);
    assert!(failure.text.starts_with("aicore-exception"), "{failure:?}");
    assert!(failure.text.ends_with("[core 3]"), "{failure:?}");
    // The next launch does not inherit the failure.
    Launch::new("passed").blocks(6).input(&input).device(&mut out).run(&k).expect("a new launch");
}

#[test]
fn invalid_launches_are_refused_with_their_values() {
    let Some(k) = kernels() else { return };
    for (launch, piece) in [
        (Launch::new("nothing"), "no kernel named nothing"),
        (Launch::new("waves").blocks(0), "0 blocks"),
        (Launch::new("waves").blocks(65536), "65536 blocks"),
        (Launch::new("waves").cores(0), "0 cores"),
    ] {
        let failure = launch.run(&k).expect_err(piece);
        assert_eq!(failure.code, 2);
        assert!(failure.text.contains(piece), "{failure:?}");
    }
}
