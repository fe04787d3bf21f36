//! Estimates how many instructions a kernel has, because a vector core's instruction cache is small.
//!
//! The estimate counts the printed text of a kernel with its headers. A function that is marked
//! [`CALLED`] stands there once, and each of its calls has a jump and its arguments. Every other function
//! counts as if it were copied to where it is called. No compiler that makes these instructions is public,
//! so the weights are assumptions.

mod functions;
mod place;

use std::collections::BTreeMap;

pub use functions::CALLED;
use functions::{arguments, functions as functions_of, last_word};
pub use place::{Part, Place, Routine};

/// Bytes of a vector core's instruction cache.
pub const INSTRUCTION_CACHE_BYTES: u32 = 16 * 1024;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: u32 = 4;

/// The instructions of a statement, beside those of what it starts.
const STATEMENT: u32 = 2;
/// A call of a function and the return from it.
const CALL: u32 = 2;
/// An argument of a call, which is moved to a register.
const ARGUMENT: u32 = 1;
/// The entry and the end of a function that is called, which save and restore registers.
const ENTRY: u32 = 8;

/// The instructions that calls of AscendC start, and those of loops, branches and scalar accesses. Other calls of
/// AscendC have none.
const STARTED: [(&str, u32); 9] = [
    // A vector instruction over a count: it sets the mask and its mode, addresses, strides and repeats,
    // starts, and resets the mask.
    (
        "Add Sub Mul Max Adds Muls Maxs And Or Not ShiftLeft ShiftRight Duplicate Gather Cast Compare Compares",
        14,
    ),
    // A Select also fills and loads a block for its mask.
    ("Select", 36),
    // A compaction, or a DMA.
    ("GatherMask DataCopyPad", 18),
    // A wait for all cores, or the state of a core.
    ("InitSocState SyncAll", 6),
    // A loop, which compares, steps and jumps.
    ("for while", 4),
    // A branch, or an access of the scalar unit to one element or register.
    ("if GetValue SetValue GetBlockIdx GetBlockNum GetGatherMaskRemainCount", 2),
    // A flag has two halves.
    ("SetWaitFlag", 2),
    // A barrier, half of a flag, an address, or a preload.
    ("PipeBarrier SetFlag WaitFlag Local LocalTensor SetGlobalBuffer ICachePreLoad", 1),
    // A view of a tensor has the address of the tensor.
    ("U16 U32 U64 F16 F32 Bytes AlignToBlock", 0),
];
/// Functions that a macro calls by another name.
const MACROS: [(&str, &[&str]); 2] =
    [("AVSG_START_TILING", &["StartLaunchWords"]), ("AVSG_TILING", &["TilingOf", "LaunchWords"])];

/// Whether the functions that are marked [`CALLED`] are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// As the text says.
    Marked,
    /// Every function is copied to where it is called, as if nothing were marked.
    Copied,
}

/// The estimated instructions of a kernel: where its statements and its functions are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The statements that have instructions of their own, in the order of their addresses.
    pub places: Vec<Place>,
    /// The functions that are called, and at the end the kernel with all copies.
    pub routines: Vec<Routine>,
}

impl Code {
    /// Returns the code of the kernel `entry` in a text that includes its headers.
    pub fn of(text: &str, entry: &str, calls: Calls) -> Self {
        let code = functions::code(text);
        let mut functions = functions_of(&code);
        if calls == Calls::Copied {
            functions.iter_mut().for_each(|function| function.called = false);
        }
        place::place(&functions, entry)
    }

    /// Returns the bytes of all instructions.
    pub fn bytes(&self) -> u32 {
        self.routines.iter().map(|routine| routine.bytes.iter().sum::<u32>()).sum()
    }

    /// Returns the bytes of a part, with the functions that it calls.
    pub fn bytes_of(&self, part: Part) -> u32 {
        self.routines.iter().map(|routine| routine.bytes[part as usize]).sum()
    }
}

/// What a piece of text starts: instructions of its own, and calls of functions of the text.
#[derive(Clone, Debug, Default)]
struct Started<'t> {
    own: u32,
    /// The functions by name, and the number of arguments.
    calls: Vec<(&'t str, u32)>,
}

/// The functions of a text by name. Functions of one name are taken together.
struct Names<'t> {
    functions: BTreeMap<&'t str, Vec<usize>>,
    started: BTreeMap<&'static str, u32>,
}

impl<'t> Names<'t> {
    fn of(functions: &[functions::Function<'t>]) -> Self {
        let mut names: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (n, function) in functions.iter().enumerate() {
            names.entry(function.name).or_default().push(n);
        }
        let started = STARTED.iter().flat_map(|(all, n)| all.split(' ').map(|name| (name, *n)));
        Self { functions: names, started: started.collect() }
    }

    /// Returns what a piece of text starts.
    fn started(&self, text: &'t str) -> Started<'t> {
        let mut all =
            Started { own: STATEMENT * text.matches(';').count() as u32, calls: Vec::new() };
        for (at, _) in text.match_indices(['(', '<']) {
            let name = last_word(&text[..at]);
            let before = text[..at].trim_end();
            let before = before[..before.len() - name.len()].trim_end();
            // An object that is constructed has a name before its arguments.
            let constructed = last_word(before);
            let method = before.ends_with('.');
            let known = |name: &&str| self.functions.contains_key(name);
            let list = &text[at + text[at..].find('(').unwrap_or(0)..];
            if let Some((_, called)) = MACROS.iter().find(|(of, _)| *of == name) {
                let called = called.iter().filter_map(|name| self.functions.get_key_value(name));
                all.calls.extend(called.map(|(name, _)| (*name, 1)));
            } else if let Some(n) = self.started.get(name).filter(|_| !method || !known(&name)) {
                all.own += n;
            } else if known(&name) {
                all.calls.push((name, arguments(list) + u32::from(method)));
            } else if !name.is_empty() && known(&constructed) {
                all.calls.push((constructed, arguments(list)));
            }
        }
        all
    }
}
