//! Writes the AscendC kernels of a geometry: hand-written text around the generated Stage One.
//!
//! A kernel is a file that includes `kernel_operator.h` and some of the headers in its folder. The
//! texts are in `kernels/`: marks of the form `@NAME@` are replaced, and all other text is
//! emitted unchanged.

use std::path::Path;
use std::{fs, io};

use avsg_device::batched::Batched;
use avsg_device::kernels::KernelName;
use avsg_device::memory::{state_words, table_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{record, status};
use avsg_device::state::{DEAD, EMPTY, INVALID, header};
use avsg_device::tiling::{Field, HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, MAX_SLOT_BLOCKS, Tiling};

use super::code_size;
use super::limits::{FRAME_BYTES, STAGE_ONE_BYTES, UB_BYTES};
use super::one_file::one_file;
use super::request;
use super::stage_one::StageOneText;
use crate::ascend::ub::TooLarge;
use crate::names::camel;

/// Bytes of UB that `avsg_rows.h.in` uses: scalars, window, two lists of words, chunk pointers, lists
/// of items and of addresses, entries of `slotBlocks`, and two halves.
const COPY_BYTES: u32 = 128
    + (128 * 18 * 4 + 32)
    + 2 * 32 * MAX_HALF_ROWS
    + 8 * MAX_CHUNKS
    + (16 + 32) * MAX_HALF_ROWS
    + 4 * MAX_SLOT_BLOCKS
    + 2 * HALF_BYTES;
/// Bytes of UB that `avsg_globalize.h.in` uses: a window, entries of `slotBlocks`, their addends, and
/// three columns of slots.
const GLOBAL_BYTES: u32 = (2 * 16 * 4 + 32) + 2 * 4 * MAX_SLOT_BLOCKS + 32 + 3 * 2048 * 4;
/// Bytes of UB that `avsg_reset.cpp.in` uses: scalars, a header and three fills.
const RESET_BYTES: u32 = 128 + 64 + 3 * 2048 * 4;

/// Returns the text of a kernel or header.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("kernels/", $name, ".in"))
    };
}

/// The interface through which a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// AVSG's host library launches the kernel.
    Direct,
    /// An operator package launches the kernel, and passes each array that is updated in place a
    /// second time, as an output behind the other outputs.
    Operator,
}

/// One kernel, ready to compile beside the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its entry point and of its file.
    pub name: &'static str,
    /// Its C++ text.
    pub text: String,
    /// Bytes of unified buffer that it may access, from address 0.
    pub ub_bytes: u32,
}

/// The kernels of a geometry, and their headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Name and text of each header. A header includes only headers before it.
    pub headers: Vec<(&'static str, String)>,
    /// The kernels, each a file that includes some of the headers.
    pub kernels: Vec<Kernel>,
}

impl Kernels {
    /// Returns all files, which belong in one folder, with their names.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let headers = self.headers.iter().map(|(name, text)| ((*name).into(), text.as_str()));
        headers.chain(self.kernels.iter().map(|k| (format!("{}.cpp", k.name), k.text.as_str())))
    }

    /// Writes all files into a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.files().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    /// Returns all kernels as one text for the shim, which is compiled in a third of the time that
    /// their files take. CANN would take one type for all kernels of such a file.
    pub fn together(&self) -> String {
        let kernels: String = self.kernels.iter().map(|kernel| kernel.text.as_str()).collect();
        format!("#define AVSG_SHIM_SEVERAL_FILES\n{}", self.whole(&kernels))
    }

    /// Returns the text of a kernel with its headers included, so that the file needs no other.
    pub fn whole(&self, text: &str) -> String {
        one_file(text, &self.headers)
    }

    /// Estimates the instructions of a kernel. See [`code_size`].
    pub fn instructions(&self, kernel: &Kernel) -> u32 {
        code_size::instructions(&self.whole(&kernel.text), kernel.name)
    }
}

/// Writes the kernels of a geometry around its Stage One.
///
/// # Errors
/// If the kernels do not fit the unified buffer.
pub fn kernels(p: &Params, stage_one: &StageOneText, abi: Abi) -> Result<Kernels, TooLarge> {
    let frame = stage_one.ub_bytes.next_multiple_of(32);
    if frame > STAGE_ONE_BYTES {
        return Err(TooLarge { needs: frame, limit: STAGE_ONE_BYTES });
    }
    let plan = (frame + FRAME_BYTES).max(GLOBAL_BYTES);
    let marks = marks(p, stage_one, frame, abi);
    let fill = |text: &str| marks.iter().fold(text.into(), |t: String, (m, v)| t.replace(m, v));
    let kernel = |name: KernelName, text: &str, ub_bytes| {
        let text = text.replace("@PARAMETERS@", &parameters(name, abi));
        let text = fill(&text.replace("@LAUNCH@", &launch(name, abi)));
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

/// Returns the statements of a kernel that define its launch scalars `t`.
fn launch(kernel: KernelName, abi: Abi) -> String {
    let at = match kernel {
        KernelName::Plan | KernelName::Step => "avsg::TILING_AT",
        KernelName::Transfer | KernelName::Append => "avsg::COPY_TILING_AT",
        KernelName::Reset => "0",
    };
    let (data, from) = match abi {
        Abi::Direct => ("", format!("tiling, {at}")),
        Abi::Operator => ("    GET_TILING_DATA(data, tiling);\n", "data".into()),
    };
    format!("{data}    const avsg::Tiling t = avsg::ReadTiling({from});")
}

/// Returns the parameters of a kernel as C++, in lines of at most 100 columns.
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

const HEADERS: [(&str, &str); 7] = [
    ("avsg_kernel.h", text!("avsg_kernel.h")),
    ("avsg_ops.h", text!("avsg_ops.h")),
    ("avsg_stage_one.h", text!("avsg_stage_one.h")),
    ("avsg_plan.h", text!("avsg_plan.h")),
    ("avsg_rows.h", text!("avsg_rows.h")),
    ("avsg_transfer.h", text!("avsg_transfer.h")),
    ("avsg_globalize.h", text!("avsg_globalize.h")),
];
/// The additional headers of steps that defer refreshes.
const LATE: [(&str, &str); 1] = [("avsg_late.h", text!("avsg_late.h"))];

/// Returns the marks and their values in the order of replacement: first the parts, then the values
/// in them.
fn marks(
    p: &Params,
    stage_one: &StageOneText,
    frame: u32,
    abi: Abi,
) -> Vec<(&'static str, String)> {
    let generated = [&stage_one.setup, &stage_one.body].map(|t| t.trim_end());
    let lifetimes = i32::from_ne_bytes([p.empty_life().cast_unsigned(); 4]);
    let life_words = state_words(p) - header::WORDS - (p.slots + p.links()) as usize;
    let preamble = "// @GEOMETRY@\n// Written by AVSG's linker; do not edit. Apache-2.0.";
    let mut marks = late(p);
    marks.extend([
        ("@PREAMBLE@", preamble.into()),
        ("@TILING@", tiling()),
        ("@READ_TILING@", read_tiling(abi)),
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
        ("@TOO_MANY_SLOT_BLOCKS@", status::TOO_MANY_SLOT_BLOCKS.to_string()),
        ("@HEADER_GENERATION@", header::GENERATION.to_string()),
        ("@HEADER_TOP@", header::TOP.to_string()),
        ("@LIFE_WORD@", (header::WORDS + p.slots as usize).to_string()),
        ("@TABLE_WORDS@", table_words(p).to_string()),
        ("@HEADER_WORDS@", header::WORDS.to_string()),
        ("@HEADER_THRESHOLD@", header::THRESHOLD.to_string()),
        ("@THRESHOLD@", DEAD.to_string()),
        ("@NO_ID@", EMPTY.to_string()),
        ("@LIFE_WORDS@", life_words.to_string()),
        ("@EMPTY_LIFETIMES@", lifetimes.to_string()),
        ("@EMPTY_LINK@", INVALID.to_string()),
        ("@UB_BYTES@", UB_BYTES.to_string()),
        ("@FRAME@", frame.to_string()),
        ("@FRAME_BYTES@", FRAME_BYTES.to_string()),
        ("@HALF_ROWS@", MAX_HALF_ROWS.to_string()),
        ("@HALF_BYTES@", HALF_BYTES.to_string()),
        ("@MAX_CHUNKS@", MAX_CHUNKS.to_string()),
        ("@MAX_SLOT_BLOCKS@", MAX_SLOT_BLOCKS.to_string()),
        ("@COPY_BYTES@", COPY_BYTES.to_string()),
        ("@GLOBAL_BYTES@", GLOBAL_BYTES.to_string()),
        ("@RESET_BYTES@", RESET_BYTES.to_string()),
        // Generated text contains no marks, so it is inserted last.
        ("@OPS@", stage_one.ops.trim_end().into()),
        ("@STAGE_ONE@", generated.join("\n\n")),
    ]);
    marks
}

/// Returns whether a step defers its last refreshes behind its miss list, and cores may share a
/// token.
pub fn defers(p: &Params) -> bool {
    // The slots of a longer row do not fit behind the memory of Stage Two.
    Batched::serves(p) && p.k <= 2048
}

/// Returns the slots of a row in `avsg_late.h.in`, rounded up, and log2 of the slots of a part at
/// most.
fn late_shape(p: &Params) -> (u32, u32) {
    (p.k.next_multiple_of(256), p.slot_bits().min(13))
}

/// Returns the bytes of UB of a step: the memory of Stage Two, two columns of slots, a mask, a rule
/// and lifetimes.
fn step_bytes(p: &Params) -> u32 {
    let (lanes, shift) = late_shape(p);
    COPY_BYTES + 8 * lanes + lanes / 8 + 512 + (1 << shift)
}

/// Returns the marks of deferral and their values, which are empty for tables without it.
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
        ("@LOAD_LATE@", lines("    avsg::LateRefresh late(t, gm, cuQ, state);\n")),
        ("@RUN_LATE@", lines("    late.Run();\n")),
        ("@CORES@", if defers(p) { "SharingCores" } else { "SeparateCores" }.into()),
        ("@LATE_LANES@", lanes.to_string()),
        ("@LATE_SHIFT@", shift.to_string()),
        ("@LATE_RULE@", rule),
        ("@LATE_LIFE@", life),
        ("@SLOT_BITS@", p.slot_bits().to_string()),
        ("@STEP_BYTES@", step_bytes(p).to_string()),
    ]
}

/// Returns the struct of the launch scalars, with assertions that its layout is that of the host.
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
        "// The scalars of a launch, as the host writes them.\nstruct Tiling {{\n{fields}}};\n\
         static_assert({}, \"Tiling\");",
        asserts.join("\n    && ")
    )
}

/// Returns the function that copies a launch's scalars to the members of the struct.
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
    let text = match abi {
        Abi::Direct => text!("read_tiling.h"),
        Abi::Operator => text!("read_tiling_data.h"),
    };
    text.trim_end().replace("@TILING_MEMBERS@", &members.collect::<String>())
}
