//! Kernel files, arguments, launches.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use super::{give, not_null};
use crate::binary::{Binary, Code};
use crate::capture::enqueue;
use crate::fault::{Outcome, invalid};
use crate::registry::number;
use crate::sys;
use crate::task::{Launch, Task};
use crate::world::{ArgList, Function, World};

/// The most arguments of a kernel.
const MOST_ARGS: usize = 128;

pub(super) unsafe fn aclrtBinaryLoadFromFile(
    w: &mut World,
    path: *const c_char,
    _options: *mut sys::aclrtBinaryLoadOptions,
    binary: *mut *mut c_void,
) -> Outcome {
    not_null(path)?;
    not_null(binary)?;
    let context = w.current()?;
    // SAFETY: not null, hence a string by the caller's contract.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let loaded = Binary::load(Path::new(&path))?;
    let made = w.binaries.add((context, loaded));
    // SAFETY: the caller's contract.
    unsafe { give(binary, made as *mut c_void) }
}

pub(super) unsafe fn aclrtBinaryLoadFromData(
    w: &mut World,
    data: *const c_void,
    length: usize,
    options: *const sys::aclrtBinaryLoadOptions,
    binary: *mut *mut c_void,
) -> Outcome {
    not_null(data)?;
    not_null(options)?;
    not_null(binary)?;
    if length == 0 {
        return invalid("a kernel of 0 bytes");
    }
    // SAFETY: the caller's contract.
    if !unsafe { for_vector_cores(options)? } {
        // Stricter: which cores the device takes such code to be for nobody says.
        return invalid("the options do not say that the kernel is for vector cores");
    }
    let context = w.current()?;
    // SAFETY: not null, hence so many bytes by the caller's contract.
    let code = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), length) };
    let made = w.binaries.add((context, Binary::from_data(code)?));
    // SAFETY: the caller's contract.
    unsafe { give(binary, made as *mut c_void) }
}

/// Whether the options say that a kernel is for vector cores.
///
/// # Safety
/// They are valid, with as many of them as they say.
unsafe fn for_vector_cores(options: *const sys::aclrtBinaryLoadOptions) -> Outcome<bool> {
    // SAFETY: the contract, here and below.
    let options = unsafe { &*options };
    let mut vector = false;
    for i in 0..options.numOpt {
        // SAFETY: as above.
        let option = unsafe { *options.options.add(i) };
        match (option.type_, option.value[0]) {
            (sys::ACL_RT_BINARY_LOAD_OPT_MAGIC, sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE) => {
                vector = true;
            }
            (kind, value) => return invalid(format!("load option {kind} of {value:#x}")),
        }
    }
    Ok(vector)
}

pub(super) unsafe fn aclrtBinaryGetFunction(
    w: &mut World,
    binary: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Outcome {
    not_null(name)?;
    not_null(function)?;
    // SAFETY: not null, hence a string by the caller's contract.
    let symbol = unsafe { CStr::from_ptr(name) };
    let name = symbol.to_string_lossy().into_owned();
    let code = match &w.binaries.get(number(binary))?.1 {
        Binary::Native => w.kernels.get(&name).cloned().map(Code::Native),
        Binary::Shim(shim) => shim.has(symbol).then(|| Code::Shim(shim.clone())),
    };
    let Some(code) = code else {
        return invalid(format!("the file has no kernel {name}"));
    };
    let made = w.functions.add(Function { binary: number(binary), name, code });
    // SAFETY: the caller's contract.
    unsafe { give(function, made as *mut c_void) }
}

pub(super) unsafe fn aclrtBinaryUnLoad(w: &mut World, binary: *mut c_void) -> Outcome {
    let handle = number(binary);
    if w.binaries.get(handle)?.0 != w.current()? {
        return invalid("the file was loaded in another context");
    }
    if w.streams.iter().any(|(_, s)| s.queue.iter().any(Task::is_launch)) {
        return invalid("a kernel is still queued");
    }
    w.binaries.remove(handle)?;
    let functions: Vec<u64> =
        w.functions.drain(|f| f.binary == handle).into_iter().map(|(f, _)| f).collect();
    w.args.drain(|a| functions.contains(&a.function));
    Ok(())
}

pub(super) unsafe fn aclrtKernelArgsInit(
    w: &mut World,
    function: *mut c_void,
    args: *mut *mut c_void,
) -> Outcome {
    not_null(args)?;
    w.functions.get(number(function))?;
    let (values, buffers) = (Vec::new(), BTreeMap::new());
    let function = number(function);
    let made = w.args.add(ArgList { function, values, buffers, finished: false });
    // SAFETY: the caller's contract.
    unsafe { give(args, made as *mut c_void) }
}

/// Parameters are numbers from 1.
fn append(w: &mut World, args: *mut c_void, value: u64) -> Outcome<usize> {
    let list = w.args.get_mut(number(args))?;
    if list.values.len() == MOST_ARGS {
        return invalid(format!("a kernel has at most {MOST_ARGS} arguments"));
    }
    if !list.buffers.values().all(Option::is_none) {
        return invalid("buffers are fetched after everything is appended");
    }
    list.finished = false;
    list.values.push(value);
    Ok(list.values.len())
}

pub(super) unsafe fn aclrtKernelArgsAppend(
    w: &mut World,
    args: *mut c_void,
    param: *mut c_void,
    bytes: usize,
    handle: *mut *mut c_void,
) -> Outcome {
    not_null(param)?;
    not_null(handle)?;
    // Slots are of 8 bytes; larger ones nobody here uses.
    if bytes != 8 {
        return invalid(format!("an argument of {bytes} bytes"));
    }
    // SAFETY: the caller's contract.
    let value = unsafe { param.cast::<u64>().read_unaligned() };
    let made = append(w, args, value)?;
    // SAFETY: the caller's contract.
    unsafe { give(handle, made as *mut c_void) }
}

pub(super) unsafe fn aclrtKernelArgsAppendPlaceHolder(
    w: &mut World,
    args: *mut c_void,
    handle: *mut *mut c_void,
) -> Outcome {
    not_null(handle)?;
    let made = append(w, args, 0)?;
    w.args.get_mut(number(args))?.buffers.insert(made - 1, None);
    // SAFETY: the caller's contract.
    unsafe { give(handle, made as *mut c_void) }
}

pub(super) unsafe fn aclrtKernelArgsGetPlaceHolderBuffer(
    w: &mut World,
    args: *mut c_void,
    handle: *mut c_void,
    bytes: usize,
    buffer: *mut *mut c_void,
) -> Outcome {
    not_null(buffer)?;
    let list = w.args.get_mut(number(args))?;
    let at = (handle as usize).wrapping_sub(1);
    let Some(place) = list.buffers.get_mut(&at) else {
        return invalid("the parameter is no buffer");
    };
    // More is permitted and slow; nobody here needs it.
    if bytes == 0 || bytes > 2048 {
        return invalid(format!("a buffer of {bytes} bytes among the arguments"));
    }
    let made = place.insert(vec![0; bytes].into_boxed_slice());
    // SAFETY: the caller's contract.
    unsafe { give(buffer, made.as_mut_ptr().cast()) }
}

pub(super) unsafe fn aclrtKernelArgsParaUpdate(
    w: &mut World,
    args: *mut c_void,
    handle: *mut c_void,
    param: *mut c_void,
    bytes: usize,
) -> Outcome {
    not_null(param)?;
    let list = w.args.get_mut(number(args))?;
    let at = (handle as usize).wrapping_sub(1);
    if bytes != 8 || at >= list.values.len() || list.buffers.contains_key(&at) {
        return invalid("no such argument of 8 bytes");
    }
    // SAFETY: the caller's contract.
    list.values[at] = unsafe { param.cast::<u64>().read_unaligned() };
    list.finished = false;
    Ok(())
}

pub(super) unsafe fn aclrtKernelArgsFinalize(w: &mut World, args: *mut c_void) -> Outcome {
    w.current()?;
    let list = w.args.get_mut(number(args))?;
    if list.buffers.values().any(Option::is_none) {
        return invalid("a buffer was never fetched");
    }
    list.finished = true;
    Ok(())
}

pub(super) unsafe fn aclrtLaunchKernelWithConfig(
    w: &mut World,
    function: *mut c_void,
    blocks: u32,
    stream: *mut c_void,
    config: *mut sys::aclrtLaunchKernelCfg,
    args: *mut c_void,
    reserved: *mut c_void,
) -> Outcome {
    // Stricter: what the device does with more blocks than the stream's limit nobody says.
    if let Some(limit) = w.own_stream(number(stream))?.cores.filter(|&limit| blocks > limit) {
        return invalid(format!("{blocks} blocks in a stream that may have {limit} vector cores"));
    }
    let list = w.args.get(number(args))?;
    if blocks == 0 || !reserved.is_null() {
        return invalid(format!("{blocks} blocks, reserved {reserved:?}"));
    }
    if list.function != number(function) {
        return invalid("the arguments are another kernel's");
    }
    if !list.finished {
        return invalid("the arguments are not finalised");
    }
    // SAFETY: the caller's contract.
    let batch = unsafe { batch_mode(config)? };
    let found = w.functions.get(number(function))?;
    let carried = list.buffers.iter();
    let carried = carried.map(|(&at, b)| (at, b.as_deref().unwrap_or_default().to_vec()));
    let launch = Launch {
        name: found.name.clone(),
        code: found.code.clone(),
        device: w.device()?,
        args: list.values.clone(),
        carried: carried.collect(),
        blocks,
        batch,
    };
    enqueue(w, number(stream), Task::Launch(launch))
}

/// Whether the configuration asks for batch mode.
///
/// # Safety
/// It is null or valid, with as many attributes as it says.
unsafe fn batch_mode(config: *const sys::aclrtLaunchKernelCfg) -> Outcome<bool> {
    if config.is_null() {
        return Ok(false);
    }
    // SAFETY: the contract, here and below.
    let config = unsafe { &*config };
    let (mut batch, mut timeouts) = (false, 0);
    for i in 0..config.numAttrs {
        // SAFETY: as above.
        let attr = unsafe { *config.attrs.add(i) };
        match attr.id as i32 {
            sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE => match attr.value[0] & 0xFF {
                mode @ 0..=1 => batch = mode == 1,
                mode => return invalid(format!("scheduling mode {mode}")),
            },
            sys::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT | sys::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US => {
                timeouts += 1
            }
            other => return invalid(format!("launch attribute {other}")),
        }
    }
    if timeouts > 1 {
        return invalid("two timeouts");
    }
    Ok(batch)
}
