//! The estimate of a kernel's instructions: its bounds for the kernels of a geometry, and the numbers
//! for the hand-written files, which are counted here in their text.

use std::collections::BTreeMap;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::code_size::{
    ALL_CORES, INSTRUCTION_BYTES, INSTRUCTION_CACHE_BYTES, LONG, LOOP, SCALAR, STATEMENT, VECTOR,
    WAIT, hand_written,
};
use avsg_linker::ascend::kernels::{Abi, Kernel};

/// Calls of AscendC in the hand-written files. Other calls have no instructions.
const CALLS: [(&str, u32); 6] = [
    ("Add Adds Or ShiftLeft ShiftRight Duplicate Gather Compares", VECTOR),
    ("GatherMask DataCopyPad", LONG),
    ("InitSocState SyncAll", ALL_CORES),
    ("for while", LOOP),
    ("if GetValue SetValue GetBlockIdx GetBlockNum GetGatherMaskRemainCount", SCALAR),
    ("PipeBarrier SetFlag WaitFlag LocalTensor SetGlobalBuffer", WAIT),
];

/// Returns the instructions of the entry point `name` in `code`, with every function inlined. `bodies`
/// has the text of each function.
fn size_of<'t>(
    name: &'t str,
    bodies: &BTreeMap<&'t str, Vec<&'t str>>,
    known: &mut BTreeMap<&'t str, u32>,
) -> u32 {
    if let Some(&size) = known.get(name) {
        return size;
    }
    let mut size = 0;
    for body in bodies.get(name).into_iter().flatten() {
        size += STATEMENT * body.matches(';').count() as u32;
        let called = body.match_indices(['(', '<']).map(|(at, _)| last_word(&body[..at]));
        size += called.map(|called| size_of(called, bodies, known)).sum::<u32>();
    }
    known.insert(name, size);
    size
}

/// Returns the identifier at the end of some code.
fn last_word(code: &str) -> &str {
    let code = code.trim_end();
    let other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    &code[code.rfind(other).map_or(0, |at| at + 1)..]
}

/// Returns the text from an opening brace to the brace that closes it.
fn block(code: &str) -> &str {
    let mut depth = 0;
    let end = code.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0
    });
    &code[..end.expect("a closing brace").0]
}

/// Returns the bodies of the functions in some code, by name. Functions of one name are together.
fn bodies(code: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, _) in code.match_indices("__aicore__ inline").chain(code.match_indices("__global__")) {
        let head = &code[at..];
        let (open, start) = (head.find('(').expect("parameters"), head.find('{').expect("a body"));
        all.entry(last_word(&head[..open])).or_default().push(block(&head[start..]));
    }
    all
}

#[test]
fn the_numbers_for_the_hand_written_files_are_those_of_their_text() {
    let all = ascendc(&Params::wide(64, 1, 256), Abi::Direct).expect("a small geometry fits");
    let count = |kernel: &Kernel| {
        let whole = all.whole(&kernel.text);
        let code: Vec<_> = whole.lines().filter_map(|line| line.split("//").next()).collect();
        // The macro reads the launch scalars by these functions.
        let code = code.join("\n").replace("AVSG_TILING(t, ", "TilingOf(LaunchWords(");
        let weights = CALLS.iter().flat_map(|(names, n)| names.split(' ').map(|name| (name, *n)));
        // The nodes of these functions are counted.
        let stage_one = ["Setup", "StageOne"].map(|function| (function, 0));
        size_of(kernel.name, &bodies(&code), &mut weights.chain(stage_one).collect())
    };
    let counted: Vec<_> = all.kernels.iter().map(count).collect();
    assert_eq!(KernelName::ALL.map(hand_written), counted[..]);
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
            let bytes = INSTRUCTION_BYTES * kernel.instructions;
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
