//! The AscendC kernels of a geometry: hand-written text around the generated Stage One.
//!
//! A kernel is a file that includes some of the headers, which lie beside it, and `kernel_operator.h`. The
//! texts lie in `ascendc/kernels`; `@NAME@` is replaced, everything else stands there as it is shipped.

use avsg_device::batched::Batched;
use avsg_device::kernels::KernelName;
use avsg_device::memory::{state_words, table_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::record;
use avsg_device::state::{DEAD, EMPTY, INVALID, header};
use avsg_device::tiling::{HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, Tiling};

use super::limits::{FRAME_BYTES, UB_BYTES};
use super::one_file::one_file;
use super::request;
use super::stage_one::StageOneText;
use crate::lower::camel;
use crate::ub::TooLarge;

/// As `avsg_rows.h.in` lays them out: scalars, window, lists, chunk pointers, two halves.
const COPY_BYTES: u32 =
    128 + (128 * 18 * 4 + 32) + 2 * 32 * MAX_HALF_ROWS + 8 * MAX_CHUNKS + 2 * HALF_BYTES;
/// As `avsg_reset.cpp.in` does: scalars, a header, three runs.
const RESET_BYTES: u32 = 128 + 64 + 3 * 2048 * 4;

/// The text of a kernel or header.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("kernels/", $name, ".in"))
    };
}

/// Who launches a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// AVSG's host side.
    Direct,
    /// An operator package, which passes what is updated in place once more as an output, behind the
    /// other outputs.
    Operator,
}

/// One kernel, ready to compile beside the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its entry point, and its file's name.
    pub name: &'static str,
    /// C++.
    pub text: String,
    /// Unified buffer that it may touch, in bytes from 0.
    pub ub_bytes: u32,
}

/// The kernels of a geometry, and what they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Name and text of each header. One includes only those before it.
    pub headers: Vec<(&'static str, String)>,
    /// The kernels, each a file that includes some of the headers.
    pub kernels: Vec<Kernel>,
}

impl Kernels {
    /// All files, by name. They lie in one folder.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let headers = self.headers.iter().map(|(name, text)| ((*name).into(), text.as_str()));
        headers.chain(self.kernels.iter().map(|k| (format!("{}.cpp", k.name), k.text.as_str())))
    }

    /// A kernel's text with these headers in it: a file that needs none of them beside it.
    pub fn whole(&self, text: &str) -> String {
        one_file(text, &self.headers)
    }
}

/// The kernels of a geometry around its Stage One.
///
/// # Errors
/// If they do not fit the unified buffer.
pub fn kernels(p: &Params, stage_one: &StageOneText, abi: Abi) -> Result<Kernels, TooLarge> {
    let frame = stage_one.ub_bytes.next_multiple_of(32);
    let limit = UB_BYTES - FRAME_BYTES;
    if frame > limit {
        return Err(TooLarge { needs: frame, limit });
    }
    let plan = frame + FRAME_BYTES;
    let marks = marks(p, stage_one, frame);
    let fill = |text: &str| marks.iter().fold(text.into(), |t: String, (m, v)| t.replace(m, v));
    let kernel = |name: KernelName, text: &str, ub_bytes| {
        let text = fill(&text.replace("@PARAMETERS@", &parameters(name, abi)));
        Kernel { name: name.entry().to_str().unwrap_or_default(), text, ub_bytes }
    };
    let (late, step) = if defers(p) { (1, step_bytes(p)) } else { (0, COPY_BYTES) };
    let headers = HEADERS.iter().chain(&LATE[..late]);
    Ok(Kernels {
        headers: headers.map(|(name, text)| (*name, fill(text))).collect(),
        kernels: vec![
            kernel(KernelName::Plan, text!("avsg_plan.cpp"), plan),
            kernel(KernelName::Transfer, text!("avsg_transfer.cpp"), COPY_BYTES),
            kernel(KernelName::Step, text!("avsg_step.cpp"), plan.max(step)),
            kernel(KernelName::Append, text!("avsg_append.cpp"), COPY_BYTES),
            kernel(KernelName::Reset, text!("avsg_reset.cpp"), RESET_BYTES),
        ],
    })
}

/// A kernel's parameters as C++, in lines of at most 100 columns.
fn parameters(kernel: KernelName, abi: Abi) -> String {
    let mut names: Vec<String> = kernel.args().iter().map(|arg| arg.name().into()).collect();
    if abi == Abi::Operator {
        names.extend(kernel.updated().iter().map(|arg| format!("{}Out", arg.name())));
    }
    names.extend(["workspace", "tiling"].map(String::from));
    let mut lines = vec![String::from("    ")];
    for (at, name) in names.iter().enumerate() {
        let end = if at + 1 < names.len() { "," } else { "" };
        let parameter = format!("GM_ADDR {name}{end}");
        let line = lines.last_mut().expect("one line at least");
        if line.trim().is_empty() {
            line.push_str(&parameter);
        } else if line.len() + 1 + parameter.len() <= 100 {
            line.push(' ');
            line.push_str(&parameter);
        } else {
            lines.push(format!("    {parameter}"));
        }
    }
    lines.join("\n")
}

const HEADERS: [(&str, &str); 6] = [
    ("avsg_kernel.h", text!("avsg_kernel.h")),
    ("avsg_ops.h", text!("avsg_ops.h")),
    ("avsg_stage_one.h", text!("avsg_stage_one.h")),
    ("avsg_plan.h", text!("avsg_plan.h")),
    ("avsg_rows.h", text!("avsg_rows.h")),
    ("avsg_transfer.h", text!("avsg_transfer.h")),
];
/// For steps that defer refreshes.
const LATE: [(&str, &str); 1] = [("avsg_late.h", text!("avsg_late.h"))];

/// What is replaced, in order: parts first, then the values in them.
fn marks(p: &Params, stage_one: &StageOneText, frame: u32) -> Vec<(&'static str, String)> {
    let generated = [&stage_one.setup, &stage_one.body].map(|t| t.trim_end());
    let lives = i32::from_ne_bytes([p.empty_life().cast_unsigned(); 4]);
    let life_words = state_words(p) - header::WORDS - (p.slots + p.links()) as usize;
    let preamble = "// @GEOMETRY@\n// Written by AVSG's linker; do not edit. Apache-2.0.";
    let mut marks = late(p);
    marks.extend([
        ("@PREAMBLE@", preamble.into()),
        ("@TILING@", tiling()),
        ("@ARRAYS@", include_str!("kernels/arrays.h.in").trim_end().into()),
        ("@INITIALISERS@", request::initialisers(p)),
        ("@REQUEST@", request::fields(p)),
        ("@MEMBERS@", request::members(p)),
        ("@GEOMETRY@", p.to_string()),
        ("@K@", p.k.to_string()),
        ("@TOKENS@", p.tokens.to_string()),
        ("@SLOTS@", p.slots.to_string()),
        ("@LINKS@", p.links().to_string()),
        ("@PAGE@", p.page.to_string()),
        ("@PAGE_SHIFT@", p.page.max(1).ilog2().to_string()),
        ("@ID_LIMIT@", ID_LIMIT.to_string()),
        ("@NO_STABLE_LEN@", NO_STABLE_LEN.to_string()),
        ("@RECORD_WORDS@", record::WORDS.to_string()),
        ("@RECORD_TOTAL@", record::TOTAL.to_string()),
        ("@RECORD_STATUS@", record::STATUS.to_string()),
        ("@HEADER_GENERATION@", header::GENERATION.to_string()),
        ("@HEADER_TOP@", header::TOP.to_string()),
        ("@LIFE_WORD@", (header::WORDS + p.slots as usize).to_string()),
        ("@TABLE_WORDS@", table_words(p).to_string()),
        ("@HEADER_WORDS@", header::WORDS.to_string()),
        ("@HEADER_THRESHOLD@", header::THRESHOLD.to_string()),
        ("@THRESHOLD@", DEAD.to_string()),
        ("@NO_ID@", EMPTY.to_string()),
        ("@LIFE_WORDS@", life_words.to_string()),
        ("@EMPTY_LIVES@", lives.to_string()),
        ("@EMPTY_LINK@", INVALID.to_string()),
        ("@UB_BYTES@", UB_BYTES.to_string()),
        ("@FRAME@", frame.to_string()),
        ("@FRAME_BYTES@", FRAME_BYTES.to_string()),
        ("@HALF_ROWS@", MAX_HALF_ROWS.to_string()),
        ("@HALF_BYTES@", HALF_BYTES.to_string()),
        ("@MAX_CHUNKS@", MAX_CHUNKS.to_string()),
        ("@COPY_BYTES@", COPY_BYTES.to_string()),
        ("@RESET_BYTES@", RESET_BYTES.to_string()),
        // Last: nothing in generated text is a mark.
        ("@OPS@", stage_one.ops.trim_end().into()),
        ("@STAGE_ONE@", generated.join("\n\n")),
    ]);
    marks
}

/// Whether a step's last refreshes come after its miss list, and cores may share a token.
pub fn defers(p: &Params) -> bool {
    // More slots do not fit beside Stage Two's memory at once.
    Batched::serves(p) && p.k <= 2048
}

/// Room for a row's slots in `avsg_late.h.in`, and log2 of those in a part at most.
fn late_shape(p: &Params) -> (u32, u32) {
    (p.k.next_multiple_of(256), p.slot_bits().min(13))
}

/// What a step keeps beside Stage Two's memory: two columns of slots, a mask, a rule, lifetimes.
fn step_bytes(p: &Params) -> u32 {
    let (lanes, shift) = late_shape(p);
    COPY_BYTES + 8 * lanes + lanes / 8 + 512 + (1 << shift)
}

/// The marks of deferral, for tables that have it.
fn late(p: &Params) -> Vec<(&'static str, String)> {
    let (lanes, shift) = late_shape(p);
    let lines = |text: &str| if defers(p) { text.to_string() } else { String::new() };
    let (rule, life) = match p.lifetime {
        Lifetime::Constant(l) => (String::new(), l.to_string()),
        Lifetime::Frequency(_) => (
            "        CopyIn(Local<half>(LATE_RULE_AT, 256), gm.rules, 256);\n".into(),
            "static_cast<float>(Local<half>(LATE_RULE_AT, 256).GetValue(life.GetValue(at) + 128))"
                .into(),
        ),
    };
    vec![
        ("@LATE@", lines("#include \"avsg_late.h\"\n")),
        ("@ASK_LATE@", lines("    avsg::Late late(t, gm, cuQ, state);\n")),
        ("@RUN_LATE@", lines("    late.Run();\n")),
        ("@DEFERS@", defers(p).to_string()),
        ("@LATE_LANES@", lanes.to_string()),
        ("@LATE_SHIFT@", shift.to_string()),
        ("@LATE_RULE@", rule),
        ("@LATE_LIFE@", life),
        ("@SLOT_BITS@", p.slot_bits().to_string()),
        ("@STEP_BYTES@", step_bytes(p).to_string()),
    ]
}

/// The launch's scalars: the struct, and that its fields are where the host puts them.
fn tiling() -> String {
    let (mut fields, mut asserts) = (String::new(), vec![]);
    for field in Tiling::FIELDS {
        let name = camel(field.name);
        let array = if field.array > 0 { format!("[{}]", field.array) } else { String::new() };
        let declared = format!("    int32_t {name}{array};");
        fields += &format!("{declared:<36}// {}\n", field.doc);
        asserts.push(format!("__builtin_offsetof(Tiling, {name}) == {}", field.offset));
    }
    asserts.push(format!("sizeof(Tiling) == {}", size_of::<Tiling>()));
    let asserts: Vec<_> = asserts.chunks(2).map(|two| two.join(" && ")).collect();
    format!(
        "// Every scalar of a launch, as the host writes it.\nstruct Tiling {{\n{fields}}};\n\
         static_assert({}, \"Tiling\");",
        asserts.join("\n    && ")
    )
}
