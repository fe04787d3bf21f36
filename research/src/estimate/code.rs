//! The instruction cache of a timed kernel. The shim has a model of the cache, and statements of the shim in the text
//! tell it which instructions run: their addresses are those of the estimate of the kernel's size.

use std::collections::BTreeMap;

use avsg_linker::ascend::code_size::{Calls, Code, Part};
use avsg_linker::ascend::soc::Soc;
use avsg_sim::cycles::Times;
use serde::Serialize;

use super::phase::{PHASES, stage_one};

/// The size of a kernel's code, and what the cache does in Stage One of core 0.
#[derive(Clone, Debug, Serialize)]
pub struct CodeRow {
    pub kernel: &'static str,
    /// Estimated bytes of instructions.
    pub bytes: u32,
    /// Those of the loop over tokens; 0 without such a loop.
    pub token_bytes: u32,
    /// Lines of 128 bytes that were not in the cache.
    pub lines: f64,
    /// Calls of functions.
    pub calls: f64,
    /// Microseconds of Stage One after the start of the kernel, if no line and no call takes time.
    pub free_us: f64,
    /// The same with the low end, the value and the high end of `fetch`.
    pub us: [f64; 3],
}

/// The sizes of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub bytes: u32,
    pub token_bytes: u32,
}

/// Returns a kernel's text with a statement before each statement that has instructions, at the head of
/// each round of a loop, and at the start of each function that is called.
pub fn with_fetches(text: &str, kernel: &str, calls: Calls) -> (String, Size) {
    let code = Code::of(text, kernel, calls);
    let (mut before, mut behind) = (BTreeMap::new(), BTreeMap::new());
    for place in &code.places {
        let fetch = format!("AscendC::shim::fetch({}, {});\n", place.from, place.bytes);
        if place.enters {
            behind.insert(place.lines.start, format!("AscendC::shim::call();\n{fetch}"));
            continue;
        }
        if place.repeats {
            behind.insert(place.lines.end - 1, fetch.clone());
        }
        before.insert(place.lines.start, fetch);
    }
    let line = |(n, line): (usize, &str)| {
        let [before, behind] = [&before, &behind].map(|all| all.get(&n).map_or("", String::as_str));
        format!("{before}{line}\n{behind}")
    };
    let size = Size { bytes: code.bytes(), token_bytes: code.bytes_of(Part::Token) };
    (text.lines().enumerate().map(line).collect(), size)
}

/// Returns the row of a kernel from its times without prices for the cache and the calls, and with `fetch` at the low
/// end, at its value and at the high end of its range. A last SyncAll takes `sync_all` cycles.
pub fn row(
    kernel: &'static str,
    size: Size,
    times: &[Times; 4],
    soc: &Soc,
    sync_all: f64,
) -> CodeRow {
    let us = |times: &Times| soc.us(stage_one(times, sync_all));
    let phases = &times[0].phases[..PHASES.len()];
    CodeRow {
        kernel,
        bytes: size.bytes,
        token_bytes: size.token_bytes,
        lines: phases.iter().map(|phase| phase.fetched).sum(),
        calls: phases.iter().map(|phase| phase.called).sum(),
        free_us: us(&times[0]),
        us: [1, 2, 3].map(|n| us(&times[n])),
    }
}
