//! The functions for kernel binaries, kernel arguments and launches.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::BTreeMap;
use std::path::Path;

use super::argument::{Handle, In, Out, Text, refuse_null};
use crate::binary::{Binary, Code};
use crate::capture::enqueue;
use crate::fault::{Outcome, invalid};
use crate::machine::{ArgList, Function, Runtime};
use crate::sys;
use crate::task::{QueuedLaunch, Task};

/// Maximum number of arguments of a kernel.
const MAX_ARGS: usize = 128;

pub(super) fn aclrtBinaryLoadFromFile(
    machine: &mut Runtime,
    path: Text,
    options: In<sys::aclrtBinaryLoadOptions>,
    binary: Out<Handle>,
) -> Outcome {
    let path = path.text()?;
    binary.check()?;
    // The runtime takes options of which a file needs none, and refuses options without an entry.
    if !options.is_null() {
        return invalid("AVSG loads files without options; pass null for the defaults");
    }
    let context = machine.current()?;
    let loaded = Binary::load(Path::new(&*path.to_string_lossy()))?;
    let handle = machine.binaries.add((context, loaded));
    binary.handle(handle)
}

pub(super) fn aclrtBinaryLoadFromData(
    machine: &mut Runtime,
    data: u64,
    length: usize,
    options: In<sys::aclrtBinaryLoadOptions>,
    binary: Out<Handle>,
) -> Outcome {
    refuse_null(data as *const u8)?;
    let options = options.get()?;
    binary.check()?;
    if length == 0 {
        return invalid("the kernel binary has 0 bytes");
    }
    if !for_vector_cores(options)? {
        // This rule is stricter than the runtime, which does not document the default.
        return invalid(
            "the load options do not select vector cores; pass ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE",
        );
    }
    let context = machine.current()?;
    // SAFETY: the pointer is not null, hence valid for `length` bytes by the contract of `entry`.
    let code = unsafe { core::slice::from_raw_parts(data as *const u8, length) };
    let handle = machine.binaries.add((context, Binary::from_data(code)?));
    binary.handle(handle)
}

/// Returns whether the load options select vector cores.
fn for_vector_cores(options: &sys::aclrtBinaryLoadOptions) -> Outcome<bool> {
    let mut vector = false;
    for i in 0..options.numOpt {
        // SAFETY: `i` is below the length of the array, which is valid by the contract of `entry`.
        let option = unsafe { *options.options.add(i) };
        match (option.type_, option.value[0]) {
            (sys::ACL_RT_BINARY_LOAD_OPT_MAGIC, sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE) => {
                vector = true;
            }
            (kind, value) => {
                return invalid(format!(
                    "load option {kind} with value {value:#x} is not supported"
                ));
            }
        }
    }
    Ok(vector)
}

pub(super) fn aclrtBinaryGetFunction(
    machine: &mut Runtime,
    binary: u64,
    name: Text,
    function: Out<Handle>,
) -> Outcome {
    let symbol = name.text()?;
    function.check()?;
    let name = symbol.to_string_lossy().into_owned();
    let code = match &machine.binaries.get(binary)?.1 {
        Binary::Closure => machine.kernels.get(&name).cloned().map(Code::Closure),
        Binary::Shim(shim) => shim.kernel(symbol),
    };
    let Some(code) = code else {
        return invalid(format!("the kernel binary has no kernel {name}"));
    };
    let handle = machine.functions.add(Function { binary, name, code });
    function.handle(handle)
}

pub(super) fn aclrtBinaryUnLoad(machine: &mut Runtime, binary: u64) -> Outcome {
    if machine.binaries.get(binary)?.0 != machine.current()? {
        return invalid("the kernel binary was loaded in another context");
    }
    if machine.streams.iter().any(|(_, s)| s.queue.iter().any(|task| task.runs(binary))) {
        return invalid("a kernel of the binary is still queued; synchronise the streams first");
    }
    machine.binaries.remove(binary)?;
    let functions: Vec<u64> =
        machine.functions.drain(|f| f.binary == binary).into_iter().map(|(f, _)| f).collect();
    machine.args.drain(|a| functions.contains(&a.function));
    Ok(())
}

pub(super) fn aclrtKernelArgsInit(
    machine: &mut Runtime,
    function: u64,
    args: Out<Handle>,
) -> Outcome {
    args.check()?;
    machine.functions.get(function)?;
    let (values, buffers) = (Vec::new(), BTreeMap::new());
    let handle = machine.args.add(ArgList { function, values, buffers, finished: false });
    args.handle(handle)
}

/// Appends an argument and returns its handle, which is its number from 1 on.
fn append(machine: &mut Runtime, args: u64, value: u64) -> Outcome<usize> {
    let list = machine.args.get_mut(args)?;
    if list.values.len() == MAX_ARGS {
        return invalid(format!("a kernel has at most {MAX_ARGS} arguments"));
    }
    if !list.buffers.values().all(Option::is_none) {
        return invalid("append all arguments before the first placeholder buffer is fetched");
    }
    list.finished = false;
    list.values.push(value);
    Ok(list.values.len())
}

pub(super) fn aclrtKernelArgsAppend(
    machine: &mut Runtime,
    args: u64,
    param: u64,
    bytes: usize,
    handle: Out<Handle>,
) -> Outcome {
    refuse_null(param as *const u64)?;
    handle.check()?;
    // The runtime takes other sizes as well, which AVSG does not use.
    if bytes != 8 {
        return invalid(format!(
            "an argument of {bytes} bytes; the simulator supports 8 bytes only"
        ));
    }
    // SAFETY: the pointer is not null, hence to 8 bytes by the contract of `entry` (`# Safety`).
    let value = unsafe { (param as *const u64).read_unaligned() };
    let number = append(machine, args, value)?;
    handle.handle(number as u64)
}

pub(super) fn aclrtKernelArgsAppendPlaceHolder(
    machine: &mut Runtime,
    args: u64,
    handle: Out<Handle>,
) -> Outcome {
    handle.check()?;
    let number = append(machine, args, 0)?;
    machine.args.get_mut(args)?.buffers.insert(number - 1, None);
    handle.handle(number as u64)
}

pub(super) fn aclrtKernelArgsGetPlaceHolderBuffer(
    machine: &mut Runtime,
    args: u64,
    handle: u64,
    bytes: usize,
    buffer: Out<Handle>,
) -> Outcome {
    buffer.check()?;
    let list = machine.args.get_mut(args)?;
    let at = (handle as usize).wrapping_sub(1);
    let Some(place) = list.buffers.get_mut(&at) else {
        return invalid("the argument is not a placeholder");
    };
    // The runtime takes larger buffers as well, which are slow and which AVSG does not use.
    if bytes == 0 || bytes > 2048 {
        return invalid(format!(
            "a placeholder buffer of {bytes} bytes; the simulator supports 1 to 2048"
        ));
    }
    let contents = place.insert(vec![0; bytes].into_boxed_slice());
    buffer.write(contents.as_mut_ptr().cast())
}

pub(super) fn aclrtKernelArgsParaUpdate(
    machine: &mut Runtime,
    args: u64,
    handle: u64,
    param: u64,
    bytes: usize,
) -> Outcome {
    refuse_null(param as *const u64)?;
    let list = machine.args.get_mut(args)?;
    let at = (handle as usize).wrapping_sub(1);
    if bytes != 8 || at >= list.values.len() || list.buffers.contains_key(&at) {
        return invalid("the handle is not that of an argument of 8 bytes");
    }
    // SAFETY: the pointer is not null, hence to 8 bytes by the contract of `entry` (`# Safety`).
    list.values[at] = unsafe { (param as *const u64).read_unaligned() };
    list.finished = false;
    Ok(())
}

pub(super) fn aclrtKernelArgsFinalize(machine: &mut Runtime, args: u64) -> Outcome {
    machine.current()?;
    let list = machine.args.get_mut(args)?;
    if list.buffers.values().any(Option::is_none) {
        return invalid("the buffer of a placeholder was not fetched");
    }
    list.finished = true;
    Ok(())
}

pub(super) fn aclrtLaunchKernelWithConfig(
    machine: &mut Runtime,
    function: u64,
    blocks: u32,
    stream: u64,
    config: In<sys::aclrtLaunchKernelCfg>,
    args: u64,
    reserved: u64,
) -> Outcome {
    // This rule is stricter than the runtime, which does not document launches above the limit.
    if let Some(limit) = machine.own_stream(stream)?.cores.filter(|&limit| blocks > limit) {
        return invalid(format!(
            "{blocks} blocks exceed the stream's limit of {limit} vector cores"
        ));
    }
    let list = machine.args.get(args)?;
    if blocks == 0 || reserved != 0 {
        return invalid(format!(
            "{blocks} blocks (at least 1), reserved {reserved:#x} (must be null)"
        ));
    }
    if list.function != function {
        return invalid("the arguments were made for another kernel");
    }
    if !list.finished {
        return invalid("the arguments are not finalised; call aclrtKernelArgsFinalize");
    }
    let batch_mode = !config.is_null() && batch_mode(config.get()?)?;
    let entry = machine.functions.get(function)?;
    let buffers = list.buffers.iter();
    let buffers = buffers.map(|(&at, b)| (at, b.as_deref().unwrap_or_default().to_vec()));
    let launch = QueuedLaunch {
        binary: entry.binary,
        name: entry.name.clone(),
        code: entry.code.clone(),
        device: machine.device()?,
        args: list.values.clone(),
        buffers: buffers.collect(),
        blocks,
        batch_mode,
    };
    enqueue(machine, stream, Task::Launch(launch))
}

/// Returns whether the launch configuration selects batch mode.
fn batch_mode(config: &sys::aclrtLaunchKernelCfg) -> Outcome<bool> {
    let (mut batch, mut timeouts) = (false, 0);
    for i in 0..config.numAttrs {
        // SAFETY: `i` is below the length of the array, which is valid by the contract of `entry`.
        let attr = unsafe { *config.attrs.add(i) };
        match attr.id as i32 {
            sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE => match attr.value[0] & 0xFF {
                mode @ 0..=1 => batch = mode == 1,
                mode => return invalid(format!("scheduling mode {mode} is not 0 or 1")),
            },
            sys::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT | sys::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US => {
                timeouts += 1
            }
            other => return invalid(format!("launch attribute {other} is not supported")),
        }
    }
    if timeouts > 1 {
        return invalid("the launch configuration has more than one timeout");
    }
    Ok(batch)
}
