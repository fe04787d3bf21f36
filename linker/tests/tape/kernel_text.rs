//! What the text of every kernel has: its type, its first and its last call, no SyncAll that it
//! never runs, and no list on the stack of the scalar unit.

use avsg_device::kernels::KernelName;
use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::kernels::{Abi, Kernel, kernels};
use avsg_linker::ascend::stage_one;
use std::sync::OnceLock;

/// A kernel, and its text with its headers, with and without comments.
struct Text {
    p: Params,
    kernel: Kernel,
    whole: String,
    code: String,
}

/// Returns each kernel of some geometries, for both interfaces.
fn all_texts() -> &'static [Text] {
    static TEXTS: OnceLock<Vec<Text>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
        let learned = Params { lifetime: Lifetime::Learned, page: 128, ..wide };
        let small = Params { page: 16, ..Params::wide(8, 2, 128) };
        let geometries = [wide, learned, small, Params::paper(256, 4, 1024)];
        let texts = geometries.map(|p| [Abi::Direct, Abi::Operator].map(|abi| texts(p, abi)));
        texts.into_iter().flatten().flatten().collect()
    })
}

/// Returns the kernels of a geometry for an interface.
fn texts(p: Params, abi: Abi) -> Vec<Text> {
    let stage_one = stage_one(&p).unwrap_or_else(|e| panic!("{p}: {e}"));
    let all = kernels(&p, &stage_one, abi).expect("the kernels fit");
    assert_eq!(all.kernels.len(), 5);
    let text = |kernel: &Kernel| {
        let whole = all.whole(&kernel.text);
        let code: Vec<_> = whole.lines().map(|l| l.split("//").next().unwrap_or("")).collect();
        Text { p, kernel: kernel.clone(), code: code.join("\n"), whole }
    };
    all.kernels.iter().map(text).collect()
}

/// Returns the qualifiers of an entry point and its statements.
fn entry<'t>(kernel: &Kernel, code: &'t str) -> (&'t str, Vec<&'t str>) {
    let (head, body) = code.split_once(&format!(" void {}(", kernel.name)).expect("an entry point");
    let qualifiers = head.rsplit("extern \"C\" ").next().expect("qualifiers");
    let body = body.split_once("\n{\n").expect("a body").1;
    let body = body.split_once("\n}").expect("an end").0;
    (qualifiers, body.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
}

/// A kernel sets its type, clears the core first and drains it last. CANN takes one type per file, from the preprocessed
/// text. The operator compiler searches that text for SyncAll, and schedules a kernel that has it as one whose cores wait for
/// each other. No other name contains the word, and no comment of a kernel that does not call it.
#[test]
fn a_kernel_sets_its_type_and_clears_and_drains_the_core_and_only_a_step_has_sync_all() {
    for Text { p, kernel, code, whole } in all_texts() {
        let (qualifiers, statements) = entry(kernel, code);
        let step = kernel.name == "avsg_step";
        let ty = if step { "KERNEL_TYPE_MIX_AIV_1_0" } else { "KERNEL_TYPE_AIV_ONLY" };
        assert_eq!(qualifiers, "__global__ __aicore__");
        assert_eq!(code.matches("KERNEL_TASK_TYPE_DEFAULT(").count(), 1);
        let ends = [statements[0], statements[1], statements[statements.len() - 1]];
        let ty = format!("KERNEL_TASK_TYPE_DEFAULT({ty});");
        assert_eq!(ends, [&ty, "InitSocState();", "PipeBarrier<PIPE_ALL>();"], "{p}: {kernel:?}");
        assert!(!statements.iter().any(|statement| statement.starts_with("return")));
        let (calls, words) = (code.matches("SyncAll<true>();").count(), code.matches("SyncAll"));
        assert_eq!(calls, words.count(), "{p}: {}", kernel.name);
        assert_eq!((calls > 0, whole.contains("SyncAll")), (step, step), "{p}: {}", kernel.name);
    }
}

/// The stack of the scalar unit is in global memory, so arrays of more than a few words are in UB.
#[test]
fn no_kernel_declares_a_list_on_the_stack() {
    for Text { p, kernel, code, .. } in all_texts() {
        let declarations = code.lines().map(|line| line.trim().trim_end_matches(';'));
        let arrays = declarations.filter(|l| l.ends_with(']') && !l.contains(['=', '(', '.']));
        for (declared, n) in arrays.filter_map(|line| Some((line, line.rsplit_once('[')?.1))) {
            let few = n.trim_end_matches(']').parse().is_ok_and(|n: u32| n <= 6);
            assert!(few, "{p}: {} declares {declared}", kernel.name);
        }
        assert!(!code.contains("] = {"), "{p}: {} declares an array with values", kernel.name);
    }
}

/// The parameters are those that the host passes, with each array that an operator updates in place
/// once more. The operator compiler passes a null pointer for the launch scalars if it knows all shapes, so that an
/// operator's kernel passes the pointer to the macro that CANN documents, and reads it nowhere.
#[test]
fn the_parameters_of_a_kernel_are_those_of_its_launch_and_a_macro_alone_reads_the_scalars() {
    for Text { p, kernel, code, .. } in all_texts() {
        let (_, list) = code.split_once(&format!(" void {}(", kernel.name)).expect("parameters");
        let (list, _) = list.split_once("\n{").expect("a body");
        let words = list.split([' ', ',', '(', ')', '\n']).filter(|w| !w.is_empty());
        let words: Vec<_> = words.collect();
        let names: Vec<_> =
            words.split(|word| *word == "AVSG_UPDATED").map(<[_]>::concat).collect();
        let name = KernelName::ALL.into_iter().find(|n| n.entry().to_str() == Ok(kernel.name));
        let name = name.expect("a known kernel");
        let own: String = name.args().iter().map(|arg| format!("GM_ADDR{}", arg.name())).collect();
        let again = name.updated().iter().map(|arg| format!("GM_ADDR{}Out", arg.name()));
        let behind = format!("{}GM_ADDRworkspaceGM_ADDRtiling", again.collect::<String>());
        assert_eq!(names, [own, behind], "{p}: {}", kernel.name);
        let passes = code.contains("#define AVSG_UPDATED(...) __VA_ARGS__,\n");
        let by_macro = code.matches(" GET_TILING_DATA(data, tiling);").count();
        assert_eq!(passes, by_macro > 0, "{p}: {}", kernel.name);
        let by_pointer = code.matches("LaunchWords(tiling, ").count();
        assert_eq!(by_macro + by_pointer, 1, "{p}: {}", kernel.name);
        assert_eq!(code.matches("    AVSG_TILING(t, ").count(), 1, "{p}: {}", kernel.name);
        let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        assert_eq!(words.filter(|word| *word == "tiling").count(), 2, "{p}: {}", kernel.name);
    }
    let operators = all_texts().iter().filter(|text| text.code.contains("GET_TILING_DATA"));
    assert_eq!(operators.count(), all_texts().len() / 2);
}
