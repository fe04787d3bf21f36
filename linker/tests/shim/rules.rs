//! The shim refuses kernels that the device would run with wrong results, and kernels that break
//! the rules on operands, data, conversions, DMA and events.

use super::harness::{Kind, Launch, Mode, compile, compile_errors, has_cpp_compiler};

/// Kernel, the rule that its failure names, and a part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("compare_less", "dtype", "EQ only"),
    ("compare_unequal", "dtype", "EQ only"),
    ("select_scratch", "undefined", "stores byte 0"),
    ("select_operand_in_scratch", "overlap", "184 KB"),
    ("compare_tail", "undefined", "pattern bit 64"),
    ("gather_count", "count", "16384 is above 16383"),
    ("aiv_only", "sync", "AIV_ONLY does not start the scheduler"),
    ("no_init", "state", "runs before InitSocState"),
    ("late_init", "state", "LocalTensor::SetValue at "),
    ("no_init_repeats", "state", "runs before InitSocState"),
    ("not_drained", "drain", "is not preceded by PipeBarrier<PIPE_ALL>"),
    ("never_drained", "drain", "is not preceded by PipeBarrier<PIPE_ALL>"),
    ("drained_too_early", "drain", "is not preceded by PipeBarrier<PIPE_ALL>"),
    ("multiply_overflow", "overflow", "lane"),
    ("add_overflow", "overflow", "lane"),
    ("misaligned", "alignment", "no multiple of 32"),
    ("odd_tensor", "alignment", "has 400 bytes, which is no multiple of 32"),
    ("misaligned_dma", "alignment", "no multiple of 32"),
    ("past_tensor", "bounds", "src"),
    ("past_tensor_dst", "bounds", "dst"),
    ("past_ub", "bounds", "196608"),
    ("slice_past_end", "bounds", "past the tensor's 1024 elements"),
    ("overlap", "overlap", "partly overlaps src"),
    ("overlap_repeats", "overlap", "partly overlaps src"),
    ("cast_overlap", "overlap", "src"),
    ("gather_alias", "overlap", "src"),
    ("mask_too_wide", "count", "not in 1..64"),
    ("no_lane", "count", "not in 1..64"),
    ("negative_count", "count", "-1"),
    ("shift_too_far", "count", "33"),
    ("uninitialised_scalar", "undefined", "element 7"),
    ("uninitialised_store", "undefined", "stores byte 0 (UB 0x0)"),
    ("spreads", "undefined", "element 63"),
    ("past_rsvd", "undefined", "element 512"),
    ("dma_tail", "undefined", "element 5"),
    ("gather_undefined_offset", "undefined", "offset 0"),
    ("gather_outside", "bounds", "4096"),
    ("gather_negative", "bounds", "(-4)"),
    ("gather_unaligned", "alignment", "no multiple of 4"),
    ("no_room", "bounds", "space for 8"),
    ("in_place_compaction", "overlap", "src0"),
    ("round_mode", "dtype", "rounding mode 0"),
    ("narrowing", "overflow", "70000"),
    ("lifetime_too_long", "overflow", "128"),
    ("two_runs", "count", "one run of bytes"),
    ("padded", "count", "padding is not modelled"),
    ("long_run", "count", "2097151"),
    ("mask_by_repeats", "count", "counter mode"),
    ("odd_length", "count", "4 bytes"),
    ("past_region", "gm-range", "DDR address of the MTE instruction is out of range"),
    ("past_global", "bounds", "128 left"),
    ("read_only", "gm-range", "read-only"),
    ("reserved_event", "sync", "6 and 7 are reserved"),
    ("wait_without_set", "sync", "nothing has set"),
    ("wait_of_another_pair", "sync", "V_MTE2"),
    ("set_twice", "sync", "second time"),
    ("unpaired", "sync", "still set when the kernel ends"),
];

#[test]
fn wrong_kernels_are_refused() {
    let Some(k) = kernels!("wrong.cpp") else { return };
    let input: Vec<i32> = (0..4096).map(|i| i % 100 + 17).collect();
    for mode in [Mode::InOrder, Mode::Adversarial] {
        for &(name, rule, piece) in REFUSED {
            let mut out = vec![0; 4096];
            let result = Launch::new(name).input(&input).device(&mut out).mode(mode, 3).run(&k);
            let failure = result.expect_err(name);
            assert_eq!(failure.code, 1, "{name}: {failure:?}");
            assert!(failure.text.starts_with(&format!("{rule}: ")), "{name}: {failure:?}");
            assert!(failure.text.contains(piece), "{name}: {failure:?}");
            assert!(failure.text.ends_with("[core 0]"), "{name}: {failure:?}");
        }
        // A kernel that keeps the rules runs on the same memory.
        let mut out = vec![0; 4096];
        Launch::new("right").input(&input).device(&mut out).mode(mode, 3).run(&k).expect("right");
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
            let launch = Launch::new(name).input(&input).device(&mut out);
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

/// CANN takes one kernel type per file.
#[test]
fn files_with_no_kernel_type_or_two_are_refused() {
    let file = |kernels: [(&str, &str); 2]| {
        let kernel = |(name, ty)| {
            format!(
                "extern \"C\" __global__ __aicore__ void {name}()\n\
                 {{ {ty} InitSocState(); PipeBarrier<PIPE_ALL>(); }}\n"
            )
        };
        let kernels = kernels.map(kernel).concat();
        compile(&format!("#include \"kernel_operator.h\"\nusing namespace AscendC;\n{kernels}"))
    };
    let (vector, mix) = (
        "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);",
        "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);",
    );
    let two = file([("one", vector), ("two", mix)]);
    let (Some(two), Some(none)) = (two, file([("one", ""), ("two", "")])) else { return };
    for (kernels, piece) in [(two, "two kernel types"), (none, "no kernel type is set")] {
        for name in ["one", "two"] {
            let failure = Launch::new(name).run(&kernels).expect_err(name);
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
        let failure = Launch::new("unregistered").raw(at).device(&mut out).run(&k);
        let failure = failure.expect_err("memory that no launch registered");
        let named = failure.text.contains("DDR address of the MTE instruction is out of range");
        assert!(failure.code == 1 && named, "{failure:?}");
    }
    // The same kernel may access registered host memory.
    let mut out = vec![0; 4096];
    let at = foreign.as_mut_ptr().cast();
    let launch = Launch::new("unregistered").region(&mut foreign, Kind::Host).raw(at);
    launch.device(&mut out).run(&k).expect("registered");
}

/// A statement that must not compile, and a part of the compiler's message.
const DOES_NOT_COMPILE: &[(&str, &str)] = &[
    ("And(i, i, i, 64);", "twice the count"),
    ("Or(u, u, u, 64);", "twice the count"),
    ("Not(i, i, 64);", "twice the count"),
    ("Ands(i, i, 1, 64);", "'Ands' was not declared"),
    ("Neg(i, i, 64);", "'Neg' was not declared"),
    // These two and the form of SyncAll with arguments take events from a TPipe.
    ("ReduceSum(f, f, f, 64);", "ReduceSum takes an event from a TPipe"),
    ("CreateVecIndex(i, 0, 64);", "CreateVecIndex takes an event from a TPipe"),
    ("SyncAll(g, i);", "no matching function for call to 'SyncAll"),
    // Only the compiler of the ASC language would take the type of a kernel from these.
    ("} __vector__ void q() {", "'__vector__' does not name a type"),
    ("} __mix__(0, 1) void r() {", "error: expected"),
    ("Select(i, m, i, i, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);", "reinterpret int32 operands"),
    ("g.GetValue(0);", "no member named 'GetValue'"),
    ("Scatter(i, i, u, 0, 64);", "'Scatter' was not declared"),
    ("AtomicAdd(nullptr, 1);", "'AtomicAdd' was not declared"),
    ("Gather(l, l, u, 0, 8);", "gathered as two halves"),
    ("GatherMask(i, i, s, true, 64, p, n);", "a 32-bit one uint32_t"),
    ("Compares(s, f, 0.0f, CMPMODE::LT, 64);", "is a LocalTensor<uint8_t>"),
    ("Compares(m, u, 0u, CMPMODE::EQ, 64);", "half, float or (EQ only) int32_t"),
    ("CompareScalar(m, f, 0.0f, CMPMODE::LT, 64);", "'CompareScalar' was not declared"),
    ("Add(u, u, u, 64);", "reinterpret unsigned data"),
    ("Adds(i, i, 1.0f, 64);", "no matching function for call to 'Adds"),
    ("Subs(i, i, 1, 64);", "'Subs' was not declared"),
    ("Div(i, i, i, 64);", "'Div' was not declared"),
    ("i.SetValue(0, 1.5f);", "cast it to the tensor's element type"),
    ("ShiftLeft(i, i, 3, 64);", "reinterpret it as unsigned"),
    ("ShiftLeft(i, i, i, 64);", "no matching function for call to 'ShiftLeft"),
    ("Cast(h, i, RoundMode::CAST_NONE, 64);", "int32 to half needs a scale"),
    ("PipeBarrier<PIPE_S>();", "the scalar unit needs no barrier"),
    ("SyncAll<false>();", "only vector cores are modelled"),
    ("SetFlag<HardEvent::V_V>(0);", "'V_V' is not a member of"),
    ("TPipe pipe;", "'TPipe' was not declared"),
    ("LocalTensor<double> d;", "does not exist on dav-c220"),
    ("SetAtomicAdd<int32_t>();", "'SetAtomicAdd' was not declared"),
];

/// The beginning of a file with a tensor of each type.
const PROLOGUE: &str = r#"#include "kernel_operator.h"
using namespace AscendC;
[[maybe_unused]] static LocalTensor<int32_t> i;
[[maybe_unused]] static LocalTensor<uint32_t> u;
[[maybe_unused]] static LocalTensor<uint16_t> s;
[[maybe_unused]] static LocalTensor<uint8_t> m;
[[maybe_unused]] static LocalTensor<int64_t> l;
[[maybe_unused]] static LocalTensor<half> h;
[[maybe_unused]] static LocalTensor<float> f;
[[maybe_unused]] static GatherMaskParams p;
[[maybe_unused]] static uint64_t n;
[[maybe_unused]] static GlobalTensor<int32_t> g;
"#;

#[test]
fn calls_that_the_device_lacks_do_not_compile() {
    if !has_cpp_compiler() {
        return;
    }
    assert_eq!(compile_errors(PROLOGUE), None, "the prologue alone must compile");
    // The compiler runs once, with each statement as a function on a line of its own.
    let mut text = PROLOGUE.to_owned();
    let first = PROLOGUE.lines().count() + 1;
    for (at, (statement, _)) in DOES_NOT_COMPILE.iter().enumerate() {
        text.push_str(&format!("void f{at}() {{ {statement} }}\n"));
    }
    let errors = compile_errors(&text).expect("none of these may compile");
    // The quotation marks depend on the locale.
    let errors = errors.replace(['\u{2018}', '\u{2019}'], "'");
    for (at, (statement, piece)) in DOES_NOT_COMPILE.iter().enumerate() {
        let line = format!("<stdin>:{}:", first + at);
        assert!(errors.contains(&line), "{statement} compiles:\n{errors}");
        assert!(errors.contains(piece), "{statement}: no {piece:?} in\n{errors}");
    }
}
