//! The shim refuses kernels that the device would run with wrong results, and kernels that break
//! the rules on operands, data, conversions, DMA and events.

use super::harness::{CompiledKernels, Mode, RegionKind, ShimLaunch, has_cpp_compiler};

/// Returns the name of each kernel of a text that must fail, the rule that its failure names and a part of the message, which
/// are the arguments of a macro.
fn refused_kernels(text: &'static str) -> Vec<[&'static str; 3]> {
    let lines = text.lines().map(|line| line.splitn(5, '"').collect::<Vec<_>>());
    let arguments = |parts: Vec<&'static str>| {
        let [head, rule, _, piece, _] = parts[..] else { return None };
        Some([head.split(['(', ',']).nth(1)?, rule, piece])
    };
    lines.filter_map(arguments).collect()
}

#[test]
fn wrong_kernels_are_refused() {
    let Some(k) = kernels!("wrong.cpp") else { return };
    let input: Vec<i32> = (0..4096).map(|i| i % 100 + 17).collect();
    let refused = refused_kernels(include_str!("wrong.cpp"));
    assert_eq!(refused.len(), 58);
    for mode in [Mode::InOrder, Mode::Adversarial] {
        for &[name, rule, piece] in &refused {
            let mut out = vec![0; 4096];
            let result = ShimLaunch::new(name).input(&input).device(&mut out).mode(mode, 3).run(&k);
            let failure = result.expect_err(name);
            assert_eq!(failure.code, 1, "{name}: {failure:?}");
            assert!(failure.text.starts_with(&format!("{rule}: ")), "{name}: {failure:?}");
            assert!(failure.text.contains(piece), "{name}: {failure:?}");
            assert!(failure.text.ends_with("[core 0]"), "{name}: {failure:?}");
        }
        // A kernel that keeps the rules runs on the same memory.
        let mut out = vec![0; 4096];
        ShimLaunch::new("right")
            .input(&input)
            .device(&mut out)
            .mode(mode, 3)
            .run(&k)
            .expect("right");
        assert_eq!(out[..1024], input[..1024]);
    }
}

/// Without the checks, a store adds to memory or a mask counts elements as an earlier kernel left
/// them, and a store that nothing drains is lost.
#[test]
fn what_an_earlier_kernel_leaves_and_a_missing_last_barrier_corrupt_data() {
    let Some(k) = kernels!("wrong.cpp") else { return };
    let input: Vec<i32> = (0..4096).collect();
    // Returns word 9 of the output for many seeds. It is 500 before the kernel.
    let seen = |name: &str| -> Vec<i32> {
        let run = |seed| {
            let mut out = vec![500; 4096];
            let launch = ShimLaunch::new(name).input(&input).device(&mut out);
            launch.mode(Mode::Unchecked, seed).run(&k).expect(name);
            out[9]
        };
        (0..40).map(run).collect()
    };
    assert!(seen("right").iter().all(|&word| word == 9));
    let sums = seen("no_init");
    assert!(sums.contains(&9) && sums.contains(&509), "{sums:?}");
    let counted = seen("no_init_repeats");
    assert!(counted.contains(&3) && counted.contains(&4), "{counted:?}");
    let lost = seen("not_drained");
    assert!(lost.contains(&9) && lost.contains(&500), "{lost:?}");
}

#[test]
fn files_with_no_kernel_type_or_two_are_refused() {
    let (two, none) = (kernels!("two_types.cpp"), kernels!("no_type.cpp"));
    for (kernels, piece) in [(two, "two kernel types"), (none, "no kernel type is set")] {
        let Some(kernels) = kernels else { return };
        for name in ["one", "two"] {
            let failure = ShimLaunch::new(name).run(&kernels).expect_err(name);
            assert_eq!(failure.code, 1);
            assert!(failure.text.starts_with(&format!("kernel-type: {name}: ")), "{failure:?}");
            assert!(failure.text.contains(piece), "{failure:?}");
        }
    }
}

#[test]
fn unregistered_memory_is_out_of_range() {
    let Some(k) = kernels!("wrong.cpp") else { return };
    let mut foreign = vec![0i32; 4096];
    for at in [foreign.as_mut_ptr().cast(), std::ptr::null_mut()] {
        let mut out = vec![0; 4096];
        let failure = ShimLaunch::new("unregistered").raw(at).device(&mut out).run(&k);
        let failure = failure.expect_err("memory that no launch registered");
        let named = failure.text.contains("DDR address of the MTE instruction is out of range");
        assert!(failure.code == 1 && named, "{failure:?}");
    }
    // The same kernel may access registered host memory.
    let mut out = vec![0; 4096];
    let at = foreign.as_mut_ptr().cast();
    let launch = ShimLaunch::new("unregistered").region(&mut foreign, RegionKind::Host).raw(at);
    launch.device(&mut out).run(&k).expect("registered");
}

/// The compiler runs once on all statements, and must refuse each of them.
#[test]
fn calls_that_the_device_lacks_do_not_compile() {
    if !has_cpp_compiler() {
        return;
    }
    let text = include_str!("refused.cpp");
    // The compiler prints a statement that it refuses, so it gets them without the messages.
    let without = |line: &str| format!("{}\n", line.split(" // ").next().unwrap_or(line));
    let bare: String = text.lines().map(without).collect();
    let refused = CompiledKernels::compile(&bare, &["-fsyntax-only"]);
    let errors = refused.expect_err("none of these may compile");
    // The quotation marks depend on the locale.
    let errors = errors.replace(['\u{2018}', '\u{2019}'], "'");
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.starts_with("void ")) {
        let (statement, piece) = line.split_once(" // ").expect("a part of the message");
        assert!(errors.contains(&format!(".cpp:{number}:")), "{statement} compiles:\n{errors}");
        assert!(errors.contains(piece), "{statement}: no {piece:?} in\n{errors}");
    }
}
