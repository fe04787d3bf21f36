//! Writes the headers that depend on a geometry. All other files of the kernels are the same for
//! every geometry: they take their numbers from `avsg_geometry.h`, and the interface from its macros.

use avsg_device::learned::{self, LIFETIMES, part};
use avsg_device::memory::{life_words, table_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{status, summary};
use avsg_device::state::{DEAD, EMPTY, INVALID, header};
use avsg_device::tiling::{Field, HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, MAX_SLOT_BLOCKS, Tiling};
use avsg_device::vector_core::VectorCore;

use super::limits::{FRAME_BYTES, UB_BYTES};
use super::names::camel;
use super::stage_one::StageOneText;
use super::tiling::tiling;
use super::{learn, request};

/// The interface through which a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// AVSG's host library launches the kernel.
    Direct,
    /// An operator package launches the kernel, and passes each array that is updated in place a
    /// second time, as an output behind the other outputs.
    Operator,
}

/// Bytes of UB that `avsg_rows.h` uses: scalars, window, two lists of words, chunk pointers, lists of
/// items and of addresses, entries of `slotBlocks`, and two halves.
pub(super) const COPY_BYTES: u32 = 128
    + (128 * 18 * 4 + 32)
    + 2 * 32 * MAX_HALF_ROWS
    + 8 * MAX_CHUNKS
    + (16 + 32) * MAX_HALF_ROWS
    + 4 * MAX_SLOT_BLOCKS
    + 2 * HALF_BYTES;
/// Bytes of UB that `avsg_globalize.h` uses: a window, entries of `slotBlocks`, their addends, and
/// three columns of slots.
pub(super) const GLOBAL_BYTES: u32 =
    (2 * 16 * 4 + 32) + 2 * 4 * MAX_SLOT_BLOCKS + 32 + 3 * 2048 * 4;
/// Bytes of UB that `avsg_reset.cpp` uses: scalars, a header and four fills.
pub(super) const RESET_BYTES: u32 = 128 + 64 + 4 * 2048 * 4;

/// Returns whether a step defers its last refreshes behind its miss list, and cores may share a
/// token.
fn defers(p: &Params) -> bool {
    // The slots of a longer row do not fit behind the memory of Stage Two.
    VectorCore::serves(p) && p.k <= 2048
}

/// Returns the slots of a row in `avsg_late.h`, rounded up, and log2 of the slots of a part at most.
fn late_shape(p: &Params) -> (u32, u32) {
    (p.k.next_multiple_of(256), p.slot_bits().min(13))
}

/// Returns the bytes of UB of a step: the memory of Stage Two, and for deferred refreshes two columns
/// of slots, a mask, a rule and lifetimes.
pub(super) fn step_bytes(p: &Params) -> u32 {
    let (lanes, shift) = late_shape(p);
    COPY_BYTES + if defers(p) { 8 * lanes + lanes / 8 + 512 + (1 << shift) } else { 0 }
}

/// Returns the slots of a sample, if lifetimes are learned.
fn learn_slots(p: &Params) -> u32 {
    if p.lifetime == Lifetime::Learned { learned::sample_slots(p) as u32 } else { 0 }
}

/// Returns the bytes of UB that `avsg_learn.h` uses: a window, four words of a header, the lifetimes after
/// a hit, what the table has for each lifetime, and a sample.
pub(super) fn learn_bytes(p: &Params) -> u32 {
    (2 * 16 * 4 + 32) + 32 + 2 * LIFETIMES as u32 + 4 * (part::RESULT as u32 + learn_slots(p))
}

/// Returns the text of a header: what it is about, the headers that it includes, and a text in a namespace.
fn header(p: &Params, about: &str, includes: &[&str], namespace: &str, text: &str) -> String {
    let mut included: String =
        includes.iter().map(|name| format!("#include \"{name}\"\n")).collect();
    if !includes.is_empty() {
        included.push('\n');
    }
    format!(
        "// {about}\n// {p}\n// Written by AVSG's linker; do not edit. Apache-2.0.\n#pragma once\n\n\
         {included}namespace {namespace} {{\n\n{}\n\n}} // namespace {namespace}\n",
        text.trim_end()
    )
}

/// Returns `avsg_geometry.h`. Stage One uses the unified buffer up to byte `frame`.
pub(super) fn geometry(p: &Params, frame: u32, abi: Abi) -> String {
    let empty_lifetimes = i32::from_ne_bytes([p.empty_life().cast_unsigned(); 4]);
    let lifetime = match p.lifetime {
        Lifetime::Constant(lifetime) => lifetime.into(),
        Lifetime::Learned => -1,
    };
    let (lanes, shift) = late_shape(p);
    let mut text = String::new();
    let mut define = |ty: &str, name: &str, value: i64, doc: &str| {
        text += &format!("constexpr {ty} {name} = {value};  // {doc}\n");
    };
    let mut word = |name: &str, value: i64, doc: &str| define("int32_t", name, value, doc);
    word("K", p.k.into(), "ids per row at most; the row stride of slots and miss lists");
    word("TOKENS", p.tokens.into(), "N_q, rows of a request at most");
    word("SLOTS", p.slots.into(), "S, slots of a request");
    word("SLOT_BITS", p.slot_bits().into(), "log2 of the least power of two that is not below S");
    word("PAGE", p.page.into(), "rows of a host block, a power of two; 0: no block table");
    word("PAGE_SHIFT", p.page.max(1).ilog2().into(), "log2 PAGE; 0 without a block table");
    let doc = "lifetime of a slot after a hit; -1: by the rule of its lifetime before";
    word("LIFETIME", lifetime, doc);
    word("ID_LIMIT", ID_LIMIT.into(), "every id is below it");
    word("NO_STABLE_LEN", NO_STABLE_LEN.into(), "above every id: nothing is invalidated");
    word("SUMMARY_WORDS", summary::WORDS as i64, "words of a request's summary, 64 bytes");
    let misses = match p.tokens {
        ..=summary::TOKENS => "word of the misses of token 0; one word for each token",
        _ => {
            "word of the misses of token 0, and in its upper half those of token 8; then 1 and 9, and so on"
        }
    };
    word("SUMMARY_MISSES", summary::MISSES.into(), misses);
    word("SUMMARY_TOTAL", summary::TOTAL.into(), "word of the misses of all tokens");
    let doc = "word of status bits: 1 bad id, 2 row outside of the pool, 4 too many slotBlocks";
    word("SUMMARY_STATUS", summary::STATUS.into(), doc);
    word("TOO_MANY_SLOT_BLOCKS", status::TOO_MANY_SLOT_BLOCKS.into(), "the last of these bits");
    word("HEADER_WORDS", header::WORDS as i64, "words of a table's header, 64 bytes");
    let doc = "word of the generation that the table was built for; 0: none";
    word("HEADER_GENERATION", header::GENERATION.into(), doc);
    word("HEADER_TOP", header::TOP.into(), "word of the bound that all ids in the table are below");
    let doc = "word of the last eviction threshold, where the next bisection starts";
    word("HEADER_THRESHOLD", header::THRESHOLD.into(), doc);
    let doc = "words of a table's ids: S, rounded up to a power of two";
    word("ID_WORDS", p.slot_places().into(), doc);
    word("LIFE_WORDS", life_words(p) as i64, "words of a table's lifetimes and their padding");
    word("TABLE_LINKS", p.links().into(), "links of a table");
    word("EMPTY_THRESHOLD", DEAD.into(), "eviction threshold of an empty table");
    word("NO_ID", EMPTY.into(), "id of an empty slot");
    word("EMPTY_LIFETIMES", empty_lifetimes.into(), "lifetimes of four empty slots");
    word("EMPTY_LINK", INVALID.into(), "a link without a slot");
    word("MAX_SLOT_BLOCKS", MAX_SLOT_BLOCKS.into(), "entries of a state at most in slotBlocks");
    word("LATE_LANES", lanes.into(), "slots of a row of deferred refreshes, rounded up to 256");
    word("LATE_SHIFT", shift.into(), "log2 of the slots of a part of deferred refreshes at most");
    let mut size = |name: &str, value: u32, doc: &str| define("uint32_t", name, value.into(), doc);
    size("HALF_ROWS", MAX_HALF_ROWS, "rows at most in one half of the staging area");
    size("HALF_BYTES", HALF_BYTES, "bytes of one half");
    size("MAX_CHUNKS", MAX_CHUNKS, "chunks of the host pool per layer");
    size("UB_BYTES", UB_BYTES, "bytes of UB that kernels use; Select overwrites the memory above");
    size("FRAME_AT", frame, "memory behind that of Stage One, which does not change it");
    size("FRAME_BYTES", FRAME_BYTES, "bytes of that memory");
    size("COPY_BYTES", COPY_BYTES, "bytes of UB that copies of rows use");
    size("GLOBAL_BYTES", GLOBAL_BYTES, "bytes of UB that global slots use");
    size("RESET_BYTES", RESET_BYTES, "bytes of UB that a reset uses");
    size("STEP_BYTES", step_bytes(p), "bytes of UB that Stage Two of a step uses");
    size("LEARN_BYTES", learn_bytes(p), "bytes of UB that learning from a step uses");
    let doc = "words of a table: header, ids, lifetimes and padding, links, what lifetimes learn";
    define("uint64_t", "TABLE_WORDS", table_words(p) as i64, doc);
    let doc = "whether a step leaves the refreshes of each request's last token to LateRefresh";
    text += &format!("constexpr bool DEFERS = {};  // {doc}\n", defers(p));
    text += &learn::constants(p);
    text += "static_assert(K >= 1 && TOKENS >= 1 && TOKENS * K <= SLOTS && SLOTS <= ID_WORDS && ID_WORDS == 1 << SLOT_BITS, \"ids and slots\");\n\
             static_assert(PAGE == 0 || PAGE == 1 << PAGE_SHIFT, \"pages\");\n\
             static_assert(TABLE_WORDS == HEADER_WORDS + ID_WORDS + LIFE_WORDS + TABLE_LINKS + LEARNED_WORDS, \"tables\");\n\n";
    text += &format!("{}\n\n{}", tiling(), read_tiling(abi));
    let about = "avsg_geometry.h: the geometry, the limits and the launch scalars.";
    header(p, about, &["kernel_operator.h"], "avsg", &text)
}

/// Returns `avsg_ops.h`.
pub(super) fn ops(p: &Params, stage_one: &StageOneText) -> String {
    let about = "avsg_ops.h: constants of Stage One, and operations that the vector unit of a 910B does not have.\n\
                 // avsg_plan.h includes it behind avsg_instructions.h.";
    let table: String = stage_one.plan.lines().map(|line| format!("// {line}\n")).collect();
    header(p, about, &[], "avsg::stage_one", &format!("{table}\n{}", stage_one.ops))
}

/// Returns `avsg_search.h`.
pub(super) fn search(p: &Params, stage_one: &StageOneText) -> String {
    let about = "avsg_search.h: searches for the links of ids, and for links that can be reused.";
    header(p, about, &["avsg_ops.h"], "avsg::stage_one", &stage_one.search)
}

/// Returns `avsg_request.h`.
pub(super) fn request(p: &Params) -> String {
    let text = format!(
        "// The arguments of Stage One for one request. Offsets are in words from the start of an array in Gm.\n\
         struct Request {{\n{}    bool owner;                 // Whether this core continues after all parts are probed.\n\
         \x20   uint64_t tableAt;           // First word of the table.\n}};\n\n\
         // Arrays in global memory.\nstruct Gm {{\n    GlobalTensor<int32_t> {}, tables;\n\
         \x20   GlobalTensor<half> rules;\n}};",
        request::fields(p),
        request::members(p)
    );
    let about = "avsg_request.h: the arguments of Stage One.";
    header(p, about, &["avsg_kernel.h"], "avsg", &text)
}

/// Returns `avsg_stage_one.h`.
pub(super) fn stage_one(p: &Params, text: &StageOneText) -> String {
    let includes = ["avsg_request.h", "avsg_search.h"];
    let about = "avsg_stage_one.h: Stage One of one request, generated from its tape.\n\
                 // avsg_ops.h begins with the table of its buffers.";
    let text = format!("{}\n\n{}", text.setup.trim_end(), text.body);
    header(p, about, &includes, "avsg::stage_one", &text)
}

/// Returns the function that copies a launch's scalars to the members of the struct, and the macros of
/// the interface.
fn read_tiling(abi: Abi) -> String {
    let member = |field: &Field, index: &str, word: usize| {
        let to = camel(field.name);
        match abi {
            Abi::Direct => format!("    t.{to}{index} = words.GetValue({word});\n"),
            Abi::Operator => format!("    t.{to}{index} = data.{}{index};\n", field.name),
        }
    };
    let members = Tiling::FIELDS.iter().flat_map(|field| {
        let of = |n| if field.array == 0 { String::new() } else { format!("[{n}]") };
        (0..field.array.max(1)).map(move |n| member(field, &of(n), field.offset / 4 + n))
    });
    let (head, macros) = match abi {
        Abi::Direct => (
            "// Returns the launch scalars from their words.\n\
             __aicore__ inline Tiling TilingOf(const AscendC::LocalTensor<int32_t> &words)",
            "// AVSG's host library launches the kernels: AVSG_TILING defines t, the scalars of a launch, which are\n\
             // read through UB at an address from AVSG_START_TILING on.\n\
             #define AVSG_UPDATED(...)\n\
             #define AVSG_START_TILING(at) avsg::StartLaunchWords(tiling, at)\n\
             #define AVSG_TILING(t, at) const avsg::Tiling t = avsg::TilingOf(avsg::LaunchWords(at))\n",
        ),
        Abi::Operator => (
            "// Returns the launch scalars from what GET_TILING_DATA declares: a copy of the tiling data, or constants\n\
             // if the operator compiler knows all shapes. It passes no tiling data then.\n\
             template <typename Data> __aicore__ inline Tiling TilingOf(const Data &data)",
            "// An operator package launches the kernels, and passes each array that is updated in place once more,\n\
             // as an output behind the others. AVSG_TILING defines t, the scalars of a launch.\n\
             #define AVSG_UPDATED(...) __VA_ARGS__,\n\
             #define AVSG_START_TILING(at)\n\
             #define AVSG_TILING(t, at) GET_TILING_DATA(data, tiling); const avsg::Tiling t = avsg::TilingOf(data)\n",
        ),
    };
    format!(
        "{head}\n{{\n    Tiling t;\n{}    return t;\n}}\n\n{macros}",
        members.collect::<String>()
    )
}
