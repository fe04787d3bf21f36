//! The functions for kernel binaries, kernel arguments and launches.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use super::{not_null, write_result};
use crate::binary::{Binary, Code};
use crate::capture::enqueue;
use crate::fault::{Outcome, invalid};
use crate::machine::{ArgList, Function, Machine};
use crate::registry::handle_value;
use crate::sys;
use crate::task::{Launch, Task};

/// Maximum number of arguments of a kernel.
const MAX_ARGS: usize = 128;

pub(super) unsafe fn aclrtBinaryLoadFromFile(
    machine: &mut Machine,
    path: *const c_char,
    options: *mut sys::aclrtBinaryLoadOptions,
    binary: *mut *mut c_void,
) -> Outcome {
    not_null(path)?;
    not_null(binary)?;
    // The runtime takes options of which a file needs none, and refuses options without an entry.
    if !options.is_null() {
        return invalid("AVSG loads files without options; pass null for the defaults");
    }
    let context = machine.current()?;
    // SAFETY: the pointer is not null, hence a string by the contract of `entry` (`# Safety`).
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let loaded = Binary::load(Path::new(&path))?;
    let handle = machine.binaries.add((context, loaded));
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(binary, handle as *mut c_void) }
}

pub(super) unsafe fn aclrtBinaryLoadFromData(
    machine: &mut Machine,
    data: *const c_void,
    length: usize,
    options: *const sys::aclrtBinaryLoadOptions,
    binary: *mut *mut c_void,
) -> Outcome {
    not_null(data)?;
    not_null(options)?;
    not_null(binary)?;
    if length == 0 {
        return invalid("the kernel binary has 0 bytes");
    }
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    if !unsafe { for_vector_cores(options)? } {
        // This rule is stricter than the runtime, which does not document the default.
        return invalid(
            "the load options do not select vector cores; pass ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE",
        );
    }
    let context = machine.current()?;
    // SAFETY: the pointer is not null, hence valid for `length` bytes by the contract of `entry`.
    let code = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), length) };
    let handle = machine.binaries.add((context, Binary::from_data(code)?));
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(binary, handle as *mut c_void) }
}

/// Returns whether the load options select vector cores.
///
/// # Safety
/// `options` is valid, and its array has `numOpt` elements.
unsafe fn for_vector_cores(options: *const sys::aclrtBinaryLoadOptions) -> Outcome<bool> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let options = unsafe { &*options };
    let mut vector = false;
    for i in 0..options.numOpt {
        // SAFETY: `i` is below the length of the array.
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

pub(super) unsafe fn aclrtBinaryGetFunction(
    machine: &mut Machine,
    binary: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Outcome {
    not_null(name)?;
    not_null(function)?;
    // SAFETY: the pointer is not null, hence a string by the contract of `entry` (`# Safety`).
    let symbol = unsafe { CStr::from_ptr(name) };
    let name = symbol.to_string_lossy().into_owned();
    let code = match &machine.binaries.get(handle_value(binary))?.1 {
        Binary::Closure => machine.kernels.get(&name).cloned().map(Code::Closure),
        Binary::Shim(shim) => shim.kernel(symbol),
    };
    let Some(code) = code else {
        return invalid(format!("the kernel binary has no kernel {name}"));
    };
    let handle = machine.functions.add(Function { binary: handle_value(binary), name, code });
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(function, handle as *mut c_void) }
}

pub(super) unsafe fn aclrtBinaryUnLoad(machine: &mut Machine, binary: *mut c_void) -> Outcome {
    let handle = handle_value(binary);
    if machine.binaries.get(handle)?.0 != machine.current()? {
        return invalid("the kernel binary was loaded in another context");
    }
    if machine.streams.iter().any(|(_, s)| s.queue.iter().any(Task::is_launch)) {
        return invalid("a kernel is still queued; synchronise the streams first");
    }
    machine.binaries.remove(handle)?;
    let functions: Vec<u64> =
        machine.functions.drain(|f| f.binary == handle).into_iter().map(|(f, _)| f).collect();
    machine.args.drain(|a| functions.contains(&a.function));
    Ok(())
}

pub(super) unsafe fn aclrtKernelArgsInit(
    machine: &mut Machine,
    function: *mut c_void,
    args: *mut *mut c_void,
) -> Outcome {
    not_null(args)?;
    machine.functions.get(handle_value(function))?;
    let (values, buffers) = (Vec::new(), BTreeMap::new());
    let function = handle_value(function);
    let handle = machine.args.add(ArgList { function, values, buffers, finished: false });
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(args, handle as *mut c_void) }
}

/// Appends an argument and returns its handle, which is its number from 1 on.
fn append(machine: &mut Machine, args: *mut c_void, value: u64) -> Outcome<usize> {
    let list = machine.args.get_mut(handle_value(args))?;
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

pub(super) unsafe fn aclrtKernelArgsAppend(
    machine: &mut Machine,
    args: *mut c_void,
    param: *mut c_void,
    bytes: usize,
    handle: *mut *mut c_void,
) -> Outcome {
    not_null(param)?;
    not_null(handle)?;
    // The runtime takes other sizes as well, which AVSG does not use.
    if bytes != 8 {
        return invalid(format!(
            "an argument of {bytes} bytes; the simulator supports 8 bytes only"
        ));
    }
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    let value = unsafe { param.cast::<u64>().read_unaligned() };
    let number = append(machine, args, value)?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(handle, number as *mut c_void) }
}

pub(super) unsafe fn aclrtKernelArgsAppendPlaceHolder(
    machine: &mut Machine,
    args: *mut c_void,
    handle: *mut *mut c_void,
) -> Outcome {
    not_null(handle)?;
    let number = append(machine, args, 0)?;
    machine.args.get_mut(handle_value(args))?.buffers.insert(number - 1, None);
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(handle, number as *mut c_void) }
}

pub(super) unsafe fn aclrtKernelArgsGetPlaceHolderBuffer(
    machine: &mut Machine,
    args: *mut c_void,
    handle: *mut c_void,
    bytes: usize,
    buffer: *mut *mut c_void,
) -> Outcome {
    not_null(buffer)?;
    let list = machine.args.get_mut(handle_value(args))?;
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
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(buffer, contents.as_mut_ptr().cast()) }
}

pub(super) unsafe fn aclrtKernelArgsParaUpdate(
    machine: &mut Machine,
    args: *mut c_void,
    handle: *mut c_void,
    param: *mut c_void,
    bytes: usize,
) -> Outcome {
    not_null(param)?;
    let list = machine.args.get_mut(handle_value(args))?;
    let at = (handle as usize).wrapping_sub(1);
    if bytes != 8 || at >= list.values.len() || list.buffers.contains_key(&at) {
        return invalid("the handle is not that of an argument of 8 bytes");
    }
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    list.values[at] = unsafe { param.cast::<u64>().read_unaligned() };
    list.finished = false;
    Ok(())
}

pub(super) unsafe fn aclrtKernelArgsFinalize(machine: &mut Machine, args: *mut c_void) -> Outcome {
    machine.current()?;
    let list = machine.args.get_mut(handle_value(args))?;
    if list.buffers.values().any(Option::is_none) {
        return invalid("the buffer of a placeholder was not fetched");
    }
    list.finished = true;
    Ok(())
}

pub(super) unsafe fn aclrtLaunchKernelWithConfig(
    machine: &mut Machine,
    function: *mut c_void,
    blocks: u32,
    stream: *mut c_void,
    config: *mut sys::aclrtLaunchKernelCfg,
    args: *mut c_void,
    reserved: *mut c_void,
) -> Outcome {
    // This rule is stricter than the runtime, which does not document launches above the limit.
    if let Some(limit) =
        machine.own_stream(handle_value(stream))?.cores.filter(|&limit| blocks > limit)
    {
        return invalid(format!(
            "{blocks} blocks exceed the stream's limit of {limit} vector cores"
        ));
    }
    let list = machine.args.get(handle_value(args))?;
    if blocks == 0 || !reserved.is_null() {
        return invalid(format!(
            "{blocks} blocks (at least 1), reserved {reserved:?} (must be null)"
        ));
    }
    if list.function != handle_value(function) {
        return invalid("the arguments were made for another kernel");
    }
    if !list.finished {
        return invalid("the arguments are not finalised; call aclrtKernelArgsFinalize");
    }
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    let batch_mode = unsafe { batch_mode(config)? };
    let entry = machine.functions.get(handle_value(function))?;
    let buffers = list.buffers.iter();
    let buffers = buffers.map(|(&at, b)| (at, b.as_deref().unwrap_or_default().to_vec()));
    let launch = Launch {
        name: entry.name.clone(),
        code: entry.code.clone(),
        device: machine.device()?,
        args: list.values.clone(),
        buffers: buffers.collect(),
        blocks,
        batch_mode,
    };
    enqueue(machine, handle_value(stream), Task::Launch(launch))
}

/// Returns whether the launch configuration selects batch mode.
///
/// # Safety
/// `config` is null or valid, and its array has `numAttrs` elements.
unsafe fn batch_mode(config: *const sys::aclrtLaunchKernelCfg) -> Outcome<bool> {
    if config.is_null() {
        return Ok(false);
    }
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let config = unsafe { &*config };
    let (mut batch, mut timeouts) = (false, 0);
    for i in 0..config.numAttrs {
        // SAFETY: `i` is below the length of the array.
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
