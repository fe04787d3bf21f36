//! Writes the host part of an operator, its prototype, from the parameters of its kernel.

use avsg_device::kernels::{Arg, KernelName};

/// Returns a name in snake case: `miss_pos` for `missPos`.
fn snake(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_uppercase() {
        true => format!("_{}", c.to_ascii_lowercase()),
        false => c.into(),
    };
    name.chars().map(letter).collect()
}

/// Returns the type of an operator: `AvsgPlan` for `avsg_plan`.
pub fn name(kernel: KernelName) -> String {
    let words = entry(kernel).split('_');
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Returns the entry point of a kernel, and the name of its file: CANN derives both from the type of the operator.
pub fn entry(kernel: KernelName) -> &'static str {
    kernel.entry().to_str().unwrap_or_default()
}

/// Returns the parameters that are inputs of the operator.
fn inputs(kernel: KernelName) -> Vec<Arg> {
    let output = |arg: &Arg| kernel.outputs().contains(arg);
    kernel.args().iter().copied().filter(|arg| !output(arg)).collect()
}

/// Returns the number of an input; -1 if the operator does not have it.
fn number(kernel: KernelName, arg: Arg) -> i32 {
    let at = inputs(kernel).iter().position(|&input| input == arg);
    at.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1)
}

/// Returns the numbers of the inputs that the launch scalars depend on, in the order of
/// `avsg::InputNumbers`.
pub fn input_numbers(kernel: KernelName) -> String {
    let inputs =
        [Arg::Ids, Arg::State, Arg::BlockTable, Arg::Tables, Arg::HostChunks, Arg::SlotBlocks];
    inputs.map(|arg| number(kernel, arg).to_string()).join(", ")
}

/// Returns the shape of each output.
pub fn shapes(kernel: KernelName) -> String {
    let own = kernel.outputs().iter().map(|arg| {
        let (of, times, columns) = match arg {
            Arg::Slot => (Arg::Ids, "1", "avsg::K"),
            Arg::Valid => (Arg::Ids, "1", "0"),
            Arg::Summary => (Arg::State, "1", "avsg::SUMMARY_WORDS"),
            _ => (Arg::Ids, "avsg::K", "0"),
        };
        format!("avsg::RowsOf(context, {}, {times}, {columns})", number(kernel, of))
    });
    let same = |arg| format!("*context->GetOptionalInputShape({})", number(kernel, arg));
    let shapes = own.chain(kernel.updated().iter().map(|&arg| same(arg))).enumerate();
    shapes.map(|(n, shape)| format!("    *context->GetOutputShape({n}) = {shape};\n")).collect()
}

/// Returns the type of each output.
pub fn types(kernel: KernelName) -> String {
    let own = kernel.outputs().iter().map(|_| "DT_INT32".to_string());
    let same = |arg| format!("context->GetOptionalInputDataType({})", number(kernel, arg));
    let types = own.chain(kernel.updated().iter().map(|&arg| same(arg))).enumerate();
    types.map(|(n, ty)| format!("    context->SetOutputDataType({n}, {ty});\n")).collect()
}

/// Returns the declarations of the inputs, outputs and attributes.
pub fn prototype(kernel: KernelName) -> String {
    let tensor = |kind: &str, arg: Arg| {
        let needed = match arg {
            Arg::BlockTable | Arg::Rules | Arg::SlotBlocks | Arg::Fresh0 | Arg::Fresh1 => {
                "OPTIONAL"
            }
            _ => "REQUIRED",
        };
        let types = match arg {
            Arg::Rules => "HALVES",
            Arg::HostChunks => "POINTERS",
            Arg::Kv0 | Arg::Kv1 | Arg::Fresh0 | Arg::Fresh1 => "ROWS",
            _ => "WORDS",
        };
        let name = snake(arg.name());
        format!("{kind}(\"{name}\").ParamType({needed}).DataType(avsg::{types}).Format(avsg::ND)")
    };
    let outputs = kernel.outputs().iter().chain(kernel.updated());
    let tensors = inputs(kernel).into_iter().map(|arg| tensor("Input", arg));
    let tensors = tensors.chain(outputs.map(|&arg| tensor("Output", arg)));
    let attribute = |(name, ty): &(&str, &str)| format!("Attr(\"{name}\").AttrType({ty}");
    let has = |arg| number(kernel, arg) >= 0;
    let attributes = match (has(Arg::State), has(Arg::HostChunks)) {
        (_, true) => &ATTRIBUTES[..],
        (true, false) => &ATTRIBUTES[..1],
        (false, false) => &[],
    };
    let places = if has(Arg::SlotBlocks) { &PLACES[..] } else { &[] };
    let all = tensors.chain(attributes.iter().chain(places).map(attribute));
    all.map(|declared| format!("        this->{declared};\n")).collect()
}

/// The attributes in the order of `avsg::Attr`. Every operator with a batch has the first one, and
/// operators that copy rows have all.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("pool_units", "REQUIRED).Int()"),
    ("bytes", "REQUIRED).ListInt()"),
    ("host_stride", "REQUIRED).ListInt()"),
    ("kv_stride", "REQUIRED).ListInt()"),
    ("fresh_stride", "REQUIRED).ListInt()"),
    ("chunks", "REQUIRED).ListInt()"),
    ("chunk_shift", "REQUIRED).ListInt()"),
    ("copy_cores", "OPTIONAL).Int(0)"),
];
/// The attributes of operators that have `slotBlocks`, behind the others: the blocks of the device
/// buffers, and the index of slot 0 of state 0.
const PLACES: [(&str, &str); 2] =
    [("kv_blocks", "OPTIONAL).Int(0)"), ("slot_base", "OPTIONAL).Int(-1)")];
