//! The host part of an operator: its prototype, from the parameters of its kernel.

use avsg_device::kernels::{Arg, KernelName};

/// `missPos` as `miss_pos`.
fn snake(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_uppercase() {
        true => format!("_{}", c.to_ascii_lowercase()),
        false => c.into(),
    };
    name.chars().map(letter).collect()
}

/// `avsg_plan` as `AvsgPlan`.
pub fn name(kernel: KernelName) -> String {
    let words = entry(kernel).split('_');
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The entry point of a kernel.
pub fn entry(kernel: KernelName) -> &'static str {
    kernel.entry().to_str().unwrap_or_default()
}

/// The parameters that an operator takes.
fn inputs(kernel: KernelName) -> Vec<Arg> {
    let output = |arg: &Arg| kernel.outputs().contains(arg);
    kernel.args().iter().copied().filter(|arg| !output(arg)).collect()
}

/// The input's number; -1 where the operator has none.
fn number(kernel: KernelName, arg: Arg) -> i32 {
    let at = inputs(kernel).iter().position(|&input| input == arg);
    at.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1)
}

/// The inputs that the launch's scalars are made from, in the order of `avsg::Places`.
pub fn places(kernel: KernelName) -> String {
    let places = [Arg::Ids, Arg::State, Arg::BlockTable, Arg::Tables, Arg::HostChunks];
    places.map(|arg| number(kernel, arg).to_string()).join(", ")
}

/// The shape of each output.
pub fn shapes(kernel: KernelName) -> String {
    let rows = format!("avsg::Dim(context, {}, 0)", number(kernel, Arg::Ids));
    let requests = format!("avsg::Dim(context, {}, 0)", number(kernel, Arg::State));
    let own = kernel.outputs().iter().map(|arg| match arg {
        Arg::Slot => format!("{{{rows}, avsg::K}}"),
        Arg::Valid => format!("{{{rows}}}"),
        Arg::Record => format!("{{{requests}, avsg::RECORD_WORDS}}"),
        _ => format!("{{{rows} * avsg::K}}"),
    });
    let same = |arg| format!("*context->GetOptionalInputShape({})", number(kernel, arg));
    let shapes = own.chain(kernel.updated().iter().map(|&arg| same(arg))).enumerate();
    shapes.map(|(n, shape)| format!("    *context->GetOutputShape({n}) = {shape};\n")).collect()
}

/// The type of each output.
pub fn types(kernel: KernelName) -> String {
    let own = kernel.outputs().iter().map(|_| "DT_INT32".to_string());
    let same = |arg| format!("context->GetOptionalInputDataType({})", number(kernel, arg));
    let types = own.chain(kernel.updated().iter().map(|&arg| same(arg))).enumerate();
    types.map(|(n, ty)| format!("    context->SetOutputDataType({n}, {ty});\n")).collect()
}

/// Inputs, outputs and attributes.
pub fn prototype(kernel: KernelName) -> String {
    let tensor = |kind: &str, arg: Arg| {
        let needed = match arg {
            Arg::BlockTable | Arg::Rules | Arg::Fresh0 | Arg::Fresh1 => "OPTIONAL",
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
    let all = tensors.chain(attributes.iter().map(attribute));
    all.map(|declared| format!("        this->{declared};\n")).collect()
}

/// The attributes in the order of `avsg::Attr`: the first of every operator with a batch, the rest of those that copy.
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
