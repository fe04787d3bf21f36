//! The CUDA kernels of a geometry: hand-written files, which are the same for every geometry, around the
//! generated headers with its numbers and its Stage One.

use super::Options;
use super::place::PLAN_BYTES;
use super::print::rule_text;
use super::stage_one::{Failed, StageOneText, record, text};
use crate::launch::tiling;
use crate::learn;
use crate::one_file::one_file;
use crate::request;
use avsg_device::learned::{AFTER_HIT, LEVELS, LIFETIMES};
use avsg_device::memory::{life_at, life_words, links_end, table_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::record as line;
use avsg_device::state::header;

/// The kernels of a geometry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// The headers by name.
    pub headers: Vec<(&'static str, String)>,
    /// The kernels' files by the name of their entry points, which is also the name of the file.
    pub kernels: Vec<(&'static str, String)>,
    /// Bytes of shared memory that a launch gives to a block.
    pub shared_bytes: u32,
    /// The addresses in it while Stage One runs, for a reader.
    pub plan: String,
}

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("kernels/", $name)))
    };
}

const HEADERS: [(&str, &str); 10] = [
    file!("avsg_instructions.cuh"),
    file!("avsg_block.cuh"),
    file!("avsg_scan.cuh"),
    file!("avsg_life.cuh"),
    file!("avsg_links.cuh"),
    file!("avsg_learn.cuh"),
    file!("avsg_rows.cuh"),
    file!("avsg_copies.cuh"),
    file!("avsg_transfer.cuh"),
    file!("avsg_plan.cuh"),
];
const KERNELS: [(&str, &str); 3] = [
    ("avsg_plan", include_str!("kernels/avsg_plan.cu")),
    ("avsg_step", include_str!("kernels/avsg_step.cu")),
    ("avsg_transfer", include_str!("kernels/avsg_transfer.cu")),
];

// The lanes of a warp estimate all levels of a class at once. In class 1 the uses after a hit are those of the
// same class, so no hit may lead to a level that an estimate in order would have replaced before.
const _: () = {
    let mut level = 0;
    while level < LEVELS {
        assert!(AFTER_HIT[LIFETIMES - 2 * LEVELS + level] >= AFTER_HIT[LIFETIMES - LEVELS + level]);
        level += 1;
    }
};

/// Bytes of shared memory with which copies of rows keep a link busy, where a block may use as many.
const COPY_BYTES: u32 = 96 * 1024;

/// Returns all kernels of a geometry as CUDA C++.
///
/// # Errors
/// If Stage One breaks a rule of the kernel language, or does not fit the shared memory of a block.
pub fn cuda(p: &Params, options: Options) -> Result<Kernels, Failed> {
    Ok(kernels(p, &text(p, &record(p)?, options)?, options))
}

/// Writes the kernels of a geometry around its Stage One.
pub fn kernels(p: &Params, stage_one: &StageOneText, options: Options) -> Kernels {
    // A transfer has a word for each thread behind the scratch memory.
    let ends_at = stage_one.plan.scratch.end.next_multiple_of(128);
    let copies_at = stage_one.plan.bytes.max(ends_at + 4 * options.threads).next_multiple_of(128);
    let shared_bytes = options.shared_bytes.min(copies_at + COPY_BYTES).max(copies_at + PLAN_BYTES);
    let mut headers: Vec<_> = HEADERS.map(|(name, text)| (name, text.to_owned())).into();
    let geometry = geometry(p, stage_one, options, [ends_at, copies_at, shared_bytes]);
    headers.push(("avsg_geometry.cuh", geometry));
    headers.push(("avsg_stage_one.cuh", stage_one_header(p, stage_one)));
    let kernels = KERNELS.map(|(name, text)| (name, text.to_owned())).into();
    Kernels { headers, kernels, shared_bytes, plan: stage_one.plan.to_string() }
}

impl Kernels {
    /// Returns all files, which belong in one folder, with their names.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let headers = self.headers.iter().map(|(name, text)| ((*name).into(), text.as_str()));
        headers.chain(self.kernels.iter().map(|(name, text)| (format!("{name}.cu"), text.as_str())))
    }

    /// Returns the text of a kernel with its headers in it, all or all but the one with instructions of a GPU.
    pub fn whole(&self, text: &str, instructions: bool) -> String {
        let headers = self.headers.iter().filter(|(name, _)| instructions || *name != HEADERS[0].0);
        one_file(text, &headers.cloned().collect::<Vec<_>>())
    }
}

fn preamble(p: &Params) -> String {
    format!("// {p}\n// Written by AVSG's linker; do not edit. Apache-2.0.\n#pragma once\n")
}

/// Returns `avsg_geometry.cuh`.
fn geometry(p: &Params, stage_one: &StageOneText, options: Options, addresses: [u32; 3]) -> String {
    let plan = &stage_one.plan;
    let planes = 4 * life_at(p) as u32;
    let life_at = plan.table.start + if plan.whole_table { planes } else { 0 };
    let totals_bytes = 4 * plan.totals;
    let totals_at = plan.scratch.end - 2 * totals_bytes;
    let [ends_at, copies_at, shared_bytes] = addresses.map(i64::from);
    let mut text = format!(
        "// avsg_geometry.cuh: the geometry, the addresses in shared memory and the launch scalars.\n{}\n\
         namespace avsg {{\n\n\
         typedef int int32_t;\ntypedef long long int64_t;\ntypedef unsigned long long uint64_t;\n\n",
        preamble(p)
    );
    let mut word = |name: &str, value: i64, doc: &str| {
        text += &format!("constexpr int {name} = {value};  // {doc}\n");
    };
    word("THREADS", options.threads.into(), "threads of a block");
    word("K", p.k.into(), "ids per row at most; the row stride of slots and miss lists");
    word("TOKENS", p.tokens.into(), "N_q, rows of a request at most");
    word("SLOTS", p.slots.into(), "S, slots of a request");
    word("ID_LIMIT", ID_LIMIT.into(), "every id is below it");
    word("NO_STABLE_LEN", NO_STABLE_LEN.into(), "above every id: nothing is invalidated");
    word("RECORD_WORDS", line::WORDS as i64, "words of a request's record");
    word("RECORD_TOTAL", line::TOTAL.into(), "word of the misses of all tokens");
    let last = match p.lifetime {
        Lifetime::Constant(_) => header::THRESHOLD,
        Lifetime::Learned => header::LAST_SAMPLE,
    };
    let used = i64::from(last) + 1;
    word("HEADER_USED", used, "words of a table's header up to the last one that a step changes");
    word("TABLE_WORDS", table_words(p) as i64, "words from one table to the next");
    word("LINKS_END", links_end(p) as i64, "words of header, ids, lifetimes and links");
    word("LIFE_WORD", i64::from(planes / 4), "the first word of a table's lifetimes");
    word("LIFE_WORDS", life_words(p) as i64, "words of a table's lifetimes and their padding");
    word("TABLE_AT", plan.table.start.into(), "the table in shared memory");
    word("LIFE_AT", life_at.into(), "the lifetimes in shared memory");
    word("SCRATCH_AT", plan.scratch.start.into(), "counts of lifetimes");
    word("TOTALS_AT", totals_at.into(), "two buffers for totals of warps");
    word("TOTALS_BYTES", totals_bytes.into(), "bytes of one of them");
    word("ENDS_AT", ends_at, "in a transfer, the ends of requests among the misses");
    word("COPY_PLAN_BYTES", PLAN_BYTES.into(), "bytes of the plan of these copies");
    word("COPIES_AT", copies_at, "the memory of copies that begin while Stage One runs");
    word("SHARED_BYTES", shared_bytes, "bytes of shared memory that a launch gives to a block");
    text += &learn::constants(p);
    text += &format!(
        "constexpr bool WHOLE_TABLE = {};  // whether ids and links are in shared memory\n\n{}\n\n}} // namespace avsg\n",
        plan.whole_table,
        tiling()
    );
    text
}

/// Returns `avsg_stage_one.cuh`.
fn stage_one_header(p: &Params, text: &StageOneText) -> String {
    format!(
        "// avsg_stage_one.cuh: Stage One of one request, generated from its tape.\n{}\n\
         #include \"avsg_life.cuh\"\n#include \"avsg_links.cuh\"\n\nnamespace avsg {{\n\n\
         // The arguments of Stage One for one request. Offsets are in words from the start of an array in Gm.\n\
         struct Request {{\n{}}};\n\n\
         // The lifetime after a hit, by the one before it + 128, where lifetimes are learned.\n{}\n\
         {}{}\n}} // namespace avsg\n",
        preamble(p),
        request::fields(p),
        rule_text("AFTER_HIT", &AFTER_HIT),
        text.rules,
        text.body
    )
}
