//! The AscendC kernels of a geometry: hand-written text around the generated Stage One.
//!
//! One kernel is one file that includes `kernel_operator.h` and nothing else. The texts lie in
//! `write/ascendc`; `@NAME@` is replaced, everything else stands there as it is shipped.

use core::fmt::Write as _;

use avsg_device::machine::memory::state_words;
use avsg_device::params::{ID_LIMIT, NO_STABLE_LEN, Params};
use avsg_device::stage_one::record;
use avsg_device::state::{DEAD, EMPTY, INVALID, header};
use avsg_device::tiling::{HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, Tiling};

use super::StageOneText;

/// Bytes of unified buffer that a kernel may use: `Select` scribbles above.
pub const UB_BYTES: u32 = 184 * 1024;
/// What the request loop keeps behind Stage One's memory: scalars, a tile of descriptor words, a
/// column of zeros and one of -1.
pub const FRAME_BYTES: u32 = 128 + (5 * 64 + 32) + 64 + 1024;

/// What a kernel does with an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    In,
    /// Reads it where there is one; else it is null.
    Optional,
    /// Writes all of it that the batch covers.
    Out,
    /// Keeps state in it.
    State,
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Its name in the text.
    pub name: &'static str,
    /// What the kernel does with it.
    pub access: Access,
}

const fn arg(name: &'static str, access: Access) -> Arg {
    Arg { name, access }
}

const CU_Q: Arg = arg("cuQ", Access::In);
const STATE: Arg = arg("state", Access::In);
const STABLE: Arg = arg("stableLen", Access::In);
const SEQ: Arg = arg("seqLen", Access::In);
const BLOCKS: Arg = arg("blockTable", Access::Optional);
const TABLES: Arg = arg("tables", Access::State);
const CHUNKS: Arg = arg("hostChunks", Access::In);
const KV: [Arg; 2] = [arg("kv0", Access::State), arg("kv1", Access::State)];
const FRESH: [Arg; 2] = [arg("fresh0", Access::Optional), arg("fresh1", Access::Optional)];
const BATCH: [Arg; 9] = [
    arg("ids", Access::In),
    CU_Q,
    STATE,
    arg("generation", Access::In),
    STABLE,
    SEQ,
    BLOCKS,
    TABLES,
    arg("rules", Access::Optional),
];
const PLAN: [Arg; 7] = [
    arg("slot", Access::Out),
    arg("valid", Access::Out),
    arg("missPos", Access::Out),
    arg("missId", Access::Out),
    arg("missSlot", Access::Out),
    arg("missRow", Access::Out),
    arg("record", Access::Out),
];
/// The last two of every kernel.
const LAST: [Arg; 2] = [arg("workspace", Access::Optional), arg("tiling", Access::In)];

/// Who launches a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// AVSG's host side: the arguments of [`entries`].
    Direct,
    /// An operator package, which passes what is updated in place once more as an output, behind the
    /// other outputs.
    Operator,
}

/// Every kernel's name and arguments, in the order in which a launch passes them.
pub fn entries() -> [(&'static str, Vec<Arg>); 5] {
    let missed =
        [arg("missSlot", Access::In), arg("missRow", Access::In), arg("record", Access::In)];
    // What it updates in place lies behind the pointers.
    let pool = arg("hostChunks", Access::State);
    let copy: &[Arg] = &[CHUNKS, KV[0], KV[1], FRESH[0], FRESH[1]];
    [
        ("avsg_plan", [&BATCH[..], &PLAN, &LAST].concat()),
        ("avsg_transfer", [&[CU_Q, STATE], &missed[..], copy, &LAST].concat()),
        ("avsg_step", [&BATCH[..], copy, &PLAN, &LAST].concat()),
        ("avsg_append", [&[CU_Q, STATE, STABLE, SEQ, BLOCKS, pool][..], &FRESH, &LAST].concat()),
        ("avsg_reset", [&[TABLES][..], &LAST].concat()),
    ]
}

/// One kernel, ready to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its entry point, and its file's name.
    pub name: &'static str,
    /// C++.
    pub text: String,
    /// Unified buffer that it may touch, in bytes from 0.
    pub ub_bytes: u32,
}

/// A geometry whose Stage One leaves no room for the request loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Stage One of this geometry takes {needs} bytes of unified buffer with its request loop, {} more \
     than the {UB_BYTES} that there are; choose fewer slots, less spread or a smaller K", .needs - UB_BYTES
)]
pub struct TooLarge {
    /// Bytes.
    pub needs: u32,
}

/// The kernels of a geometry around its Stage One, in the order of [`entries`].
///
/// # Errors
/// If they do not fit the unified buffer.
pub fn kernels(p: &Params, stage_one: &StageOneText, abi: Abi) -> Result<Vec<Kernel>, TooLarge> {
    let frame = stage_one.ub_free.max(stage_one.ub_bytes).next_multiple_of(32);
    let plan = frame.checked_add(FRAME_BYTES).filter(|&n| n <= UB_BYTES);
    let plan = plan.ok_or(TooLarge { needs: frame.saturating_add(FRAME_BYTES) })?;
    Ok(entries()
        .into_iter()
        .map(|(name, args)| {
            let ub_bytes = match name {
                "avsg_plan" => plan,
                "avsg_step" => plan.max(COPY_BYTES),
                "avsg_reset" => RESET_BYTES,
                _ => COPY_BYTES,
            };
            Kernel { name, text: text(name, &names(&args, abi), p, stage_one, frame), ub_bytes }
        })
        .collect())
}

/// As `copy.h.in` lays them out: scalars, window, lists, chunk pointers, two halves.
const COPY_BYTES: u32 =
    128 + (128 * 18 * 4 + 32) + 2 * 32 * MAX_HALF_ROWS + 8 * MAX_CHUNKS + 2 * HALF_BYTES;
/// As `reset.h.in` does: scalars, a header, three runs.
const RESET_BYTES: u32 = 128 + 64 + 3 * 2048 * 4;

fn names(args: &[Arg], abi: Abi) -> Vec<String> {
    let (array, last) = args.split_at(args.len() - LAST.len());
    let again = array.iter().filter(|arg| abi == Abi::Operator && arg.access == Access::State);
    let again = again.map(|arg| format!("GM_ADDR {}Out", arg.name));
    let name = |arg: &Arg| format!("GM_ADDR {}", arg.name);
    array.iter().map(name).chain(again).chain(last.iter().map(name)).collect()
}

fn text(name: &str, args: &[String], p: &Params, stage_one: &StageOneText, frame: u32) -> String {
    let stage_one = format!(
        "// ---- Stage One, from its tape \
         -------------------------------------------------------------------\n\n\
         namespace stage_one {{\n\n{}\n\n{}\n\n{}\n\n}} // namespace stage_one\n",
        stage_one.constants.trim_end(),
        stage_one.setup.trim_end(),
        stage_one.body.trim_end()
    );
    let parts: [(&str, &str); 14] = [
        ("@HEAD@", include_str!("ascendc/head.h.in")),
        ("@GEOMETRY@", &geometry(p)),
        ("@TILING@", &tiling()),
        ("@COMMON@", include_str!("ascendc/common.h.in")),
        ("@WINDOW@", include_str!("ascendc/window.h.in")),
        ("@REQUESTS@", include_str!("ascendc/requests.h.in")),
        ("@STAGE_ONE@", &stage_one),
        ("@PLAN@", include_str!("ascendc/plan.h.in")),
        ("@COPY@", include_str!("ascendc/copy.h.in")),
        ("@TRANSFER@", include_str!("ascendc/transfer.h.in")),
        ("@APPEND@", include_str!("ascendc/append.h.in")),
        ("@RESET@", include_str!("ascendc/reset.h.in")),
        ("@ARRAYS@", include_str!("ascendc/arrays.h.in").trim_end()),
        ("@ARGS@", &lines(args)),
    ];
    let file = match name {
        "avsg_plan" => include_str!("ascendc/avsg_plan.cpp.in"),
        "avsg_transfer" => include_str!("ascendc/avsg_transfer.cpp.in"),
        "avsg_step" => include_str!("ascendc/avsg_step.cpp.in"),
        "avsg_append" => include_str!("ascendc/avsg_append.cpp.in"),
        _ => include_str!("ascendc/avsg_reset.cpp.in"),
    };
    let text = parts.iter().fold(file.to_string(), |text, (mark, part)| text.replace(mark, part));
    text.replace("@CONSTANTS@", &constants(p, frame, &text))
}

/// Arguments, a line full at a time.
fn lines(args: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (i, arg) in args.iter().enumerate() {
        let comma = if i + 1 < args.len() { "," } else { "" };
        if width + arg.len() > 90 {
            text.push_str("\n    ");
            width = 0;
        } else if i > 0 {
            text.push(' ');
        }
        width += arg.len() + 2;
        text.push_str(arg);
        text.push_str(comma);
    }
    text
}

/// A geometry in one line.
pub fn geometry(p: &Params) -> String {
    let Params { table, lifetime, k, tokens, slots, spread, retries, page } = p;
    let lifetime = match lifetime {
        avsg_device::params::Lifetime::Constant(l) => format!("constant lifetime {l}"),
        avsg_device::params::Lifetime::Frequency(f) => {
            format!("frequency lifetimes from {}", f.new)
        }
    };
    format!(
        "{table:?} table, K {k}, N_q {tokens}, S {slots}, spread {spread}, R {retries}, {lifetime}, \
         page {page}"
    )
}

/// Those of the geometry's constants that a text uses.
fn constants(p: &Params, frame: u32, used: &str) -> String {
    let lives = i32::from_ne_bytes([p.empty_life().cast_unsigned(); 4]);
    let table = table_words(p);
    let life = state_words(p) - header::WORDS - (p.slots + p.links()) as usize;
    let (signed, unsigned) = ("int32_t", "uint32_t");
    let all: [(&str, &str, i64, &str); 21] = [
        (signed, "K", p.k.into(), "row stride of slots and miss lists"),
        (signed, "TOKENS", p.tokens.into(), "N_q, rows of a request at most"),
        (signed, "SLOTS", p.slots.into(), "S"),
        (signed, "LINKS", p.links().into(), "T"),
        (signed, "PAGE", p.page.into(), "rows of a host block; 0: no block table"),
        (signed, "PAGE_SHIFT", p.page.max(1).ilog2().into(), ""),
        (signed, "ID_LIMIT", ID_LIMIT.into(), "ids are below it"),
        (signed, "NO_STABLE_LEN", NO_STABLE_LEN.into(), "no id reaches it"),
        (signed, "RECORD_WORDS", record::WORDS as i64, "a 64-byte line"),
        (signed, "RECORD_TOTAL", record::TOTAL.into(), "the request's misses"),
        ("uint64_t", "TABLE_WORDS", table as i64, "header, ids, lifetimes and pad, links"),
        (signed, "HEADER_WORDS", header::WORDS as i64, ""),
        (signed, "HEADER_THRESHOLD", header::THRESHOLD.into(), ""),
        (signed, "THRESHOLD", DEAD.into(), "an empty table's words"),
        (signed, "NO_ID", EMPTY.into(), ""),
        (signed, "LIFE_WORDS", life as i64, ""),
        (signed, "EMPTY_LIVES", lives.into(), ""),
        (signed, "EMPTY_LINK", INVALID.into(), ""),
        (unsigned, "UB_BYTES", UB_BYTES.into(), "Select scribbles above"),
        (unsigned, "FRAME", frame.into(), "what follows Stage One's memory"),
        (unsigned, "FRAME_BYTES", FRAME_BYTES.into(), ""),
    ];
    let copy = [
        ("HALF_ROWS", MAX_HALF_ROWS, "rows of one half of the staging area at most"),
        ("HALF_BYTES", HALF_BYTES, ""),
        ("MAX_CHUNKS", MAX_CHUNKS, "host chunks of a layer"),
    ];
    let copy = copy.map(|(name, value, doc)| (unsigned, name, i64::from(value), doc));
    let mut text = String::new();
    let words: Vec<_> = used.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for (kind, name, value, doc) in all.iter().chain(&copy).filter(|c| words.contains(&c.1)) {
        let line = format!("constexpr {kind} {name} = {value};");
        let _ = match *doc {
            "" => writeln!(text, "{line}"),
            doc => writeln!(text, "{line:<52}// {doc}"),
        };
    }
    text.trim_end().into()
}

/// The launch's scalars: the struct, and that its fields are where the host puts them.
fn tiling() -> String {
    let (mut fields, mut asserts) = (String::new(), vec![]);
    for field in Tiling::FIELDS {
        let name = camel(field.name);
        let array = if field.array > 0 { format!("[{}]", field.array) } else { String::new() };
        let declared = format!("    int32_t {name}{array};");
        let _ = writeln!(fields, "{declared:<36}// {}", field.doc);
        asserts.push(format!("__builtin_offsetof(Tiling, {name}) == {}", field.offset));
    }
    asserts.push(format!("sizeof(Tiling) == {}", size_of::<Tiling>()));
    let asserts: Vec<_> = asserts.chunks(2).map(|three| three.join(" && ")).collect();
    format!(
        "// Every scalar of a launch, as the host writes it.\nstruct Tiling {{\n{fields}}};\n\
         static_assert({}, \"Tiling\");",
        asserts.join("\n    && ")
    )
}

/// Whole 64-byte lines of one table, in words.
pub fn table_words(p: &Params) -> usize {
    state_words(p).next_multiple_of(16)
}

/// `ids_stride` as `idsStride`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_string();
    words.fold(first, |all, word| {
        let (head, tail) = word.split_at(1);
        all + &head.to_uppercase() + tail
    })
}
