//! The rules of the simulator for kernels and captured work, tested by raw calls
//! as a C program makes them.

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calls::*;
use avsg_sim::entries::*;
use avsg_sim::{ClosureKernel, Options, Session, sys};

/// A kernel that adds the number in its buffer to the word at its address.
fn adder(sync_all: bool) -> ClosureKernel {
    ClosureKernel::new(sync_all, |device| {
        let (word, by) = (device.slice(device.args[0], 8)?, device.slice(device.args[1], 8)?);
        // SAFETY: `slice` has checked the range, and the simulator runs one kernel at a time.
        let word = unsafe { AtomicU64::from_ptr(word.cast()) };
        // SAFETY: `slice` has checked the range of 8 bytes.
        word.fetch_add(unsafe { by.cast::<u64>().read() }, Ordering::Relaxed);
        Ok(())
    })
}

/// A loaded kernel with its arguments: an address, and a placeholder buffer with a number.
struct Prepared {
    binary: Handle,
    function: Handle,
    args: Handle,
    buffer: Handle,
}

fn prepare(session: &Session, address: Handle) -> Prepared {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = session.kernel_file(folder).unwrap();
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let mut binary = null_mut();
    // The runtime refuses options without an entry.
    let mut none = sys::aclrtBinaryLoadOptions { options: null_mut(), numOpt: 0 };
    assert_eq!(code!(aclrtBinaryLoadFromFile(path.as_ptr(), &mut none, &mut binary)), INVALID);
    ok!(aclrtBinaryLoadFromFile(path.as_ptr(), null_mut(), &mut binary));
    let (mut function, mut args) = (null_mut(), null_mut());
    assert_eq!(code!(aclrtBinaryGetFunction(binary, c"missing".as_ptr(), &mut function)), INVALID);
    ok!(aclrtBinaryGetFunction(binary, c"add".as_ptr(), &mut function));
    ok!(aclrtKernelArgsInit(function, &mut args));
    let (mut value, mut param, mut place) = (address, null_mut(), null_mut());
    let from = (&raw mut value).cast();
    ok!(aclrtKernelArgsAppend(args, from, 8, &mut param));
    ok!(aclrtKernelArgsAppendPlaceHolder(args, &mut place));
    assert_eq!(code!(aclrtKernelArgsFinalize(args)), INVALID, "the buffer was not fetched");
    let mut buffer = null_mut();
    ok!(aclrtKernelArgsGetPlaceHolderBuffer(args, place, 8, &mut buffer));
    Prepared { binary, function, args, buffer }
}

impl Prepared {
    fn launch(&self, stream: Handle, blocks: u32, batch: bool, by: u64) -> i32 {
        // SAFETY: the buffer has 8 bytes.
        unsafe { self.buffer.cast::<u64>().write(by) };
        ok!(aclrtKernelArgsFinalize(self.args));
        let mode = sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE as u32;
        let mut attr = sys::aclrtLaunchKernelAttr { id: mode, value: [u32::from(batch), 0, 0, 0] };
        let mut config = sys::aclrtLaunchKernelCfg { attrs: &mut attr, numAttrs: 1 };
        let (f, args) = (self.function, self.args);
        code!(aclrtLaunchKernelWithConfig(f, blocks, stream, &mut config, args, null_mut()))
    }
}

#[test]
fn kernels_run_in_their_streams_with_the_arguments_of_their_launch() {
    let session = begin(no_jitter());
    session.kernel("add", adder(false));
    let stream = create!(aclrtCreateStream());
    let host = create!(aclrtMallocHost(4096));
    words(host, 1)[0] = 100;
    let mut mapped = null_mut();
    ok!(aclrtHostRegister(host, 4096, 0, &mut mapped));
    let kernel = prepare(&session, mapped);
    let (f, args) = (kernel.function, kernel.args);
    let early = code!(aclrtLaunchKernelWithConfig(f, 1, stream, null_mut(), args, null_mut()));
    assert_eq!(early, INVALID, "not finalised");
    assert_eq!(kernel.launch(stream, 0, false, 1), INVALID, "no blocks");
    assert_eq!(kernel.launch(stream, 4, false, 1) + kernel.launch(stream, 4, false, 10), OK);
    assert_eq!(words(host, 1)[0], 100, "the kernel has not run before a wait");
    assert_eq!(code!(aclrtHostUnregister(host)), INVALID, "a kernel may read it");
    assert_eq!(code!(aclrtBinaryUnLoad(kernel.binary)), INVALID, "a kernel is queued");
    let idle = prepare(&session, mapped);
    assert_eq!(code!(aclrtBinaryUnLoad(idle.binary)), OK, "no kernel of this binary is queued");
    ok!(aclrtSynchronizeStreamWithTimeout(stream, 100));
    // The host sees what a kernel writes through the mapped address.
    assert_eq!(words(host, 1)[0], 111);
    ok!(aclrtHostUnregister(host));
    // The range is not registered any more: the kernel raises an exception, which every wait
    // reports.
    assert_eq!(kernel.launch(stream, 4, false, 1), OK);
    let exception = sys::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
    assert_eq!(code!(aclrtSynchronizeStream(stream)), exception);
    // SAFETY: the message is valid until the next call.
    let text = unsafe { CStr::from_ptr(aclGetRecentErrMsg()) }.to_str().unwrap().to_owned();
    assert!(text.contains("out of range"), "{text}");
    assert_eq!(code!(aclrtSynchronizeStream(stream)), exception);
    ok!(aclrtDestroyStream(stream), aclrtBinaryUnLoad(kernel.binary), aclrtFreeHost(host));
    assert!(aclGetRecentErrMsg().is_null(), "the next call removes the message");
    end(&session);
}

#[test]
fn kernels_are_loaded_from_memory_with_the_cores_that_they_are_for() {
    let session = begin(no_jitter());
    session.kernel("add", adder(false));
    let path = session.kernel_file(std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let text = std::fs::read(path).unwrap();
    let (data, len, mut binary) = (text.as_ptr().cast(), text.len(), null_mut());
    let several = |options: *mut _, n| sys::aclrtBinaryLoadOptions { options, numOpt: n };
    let value = [sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE, 0, 0, 0];
    let mut vector = sys::aclrtBinaryLoadOption { type_: sys::ACL_RT_BINARY_LOAD_OPT_MAGIC, value };
    let (mut cube, mut lazy) = (vector, vector);
    (cube.value[0], lazy.type_) = (0x4149_4343, 1);
    let good = several(&mut vector, 1);
    assert_eq!(code!(aclrtBinaryLoadFromData(null(), len, &good, &mut binary)), 100_000);
    assert_eq!(code!(aclrtBinaryLoadFromData(data, len, null(), &mut binary)), 100_000);
    assert_eq!(code!(aclrtBinaryLoadFromData(data, len, &good, null_mut())), 100_000);
    assert_eq!(code!(aclrtBinaryLoadFromData(data, 0, &good, &mut binary)), INVALID);
    for bad in [several(&mut cube, 1), several(&mut lazy, 1), several(null_mut(), 0)] {
        assert_eq!(code!(aclrtBinaryLoadFromData(data, len, &bad, &mut binary)), INVALID);
    }
    assert!(binary.is_null(), "a call that failed gives nothing");
    ok!(aclrtBinaryLoadFromData(data, len, &good, &mut binary));
    drop(text);
    let mut function = null_mut();
    assert_eq!(code!(aclrtBinaryGetFunction(binary, c"missing".as_ptr(), &mut function)), INVALID);
    ok!(aclrtBinaryGetFunction(binary, c"add".as_ptr(), &mut function), aclrtBinaryUnLoad(binary));
    end(&session);
}

#[test]
fn kernels_with_sync_all_need_their_cores() {
    let wait = |batch, blocks| {
        let session = begin(Options { cores: 8, ..no_jitter() });
        session.kernel("add", adder(true));
        let device = create!(aclrtMalloc(64, 0));
        let kernel = prepare(&session, device);
        let (a, b) = (create!(aclrtCreateStream()), create!(aclrtCreateStream()));
        for stream in [a, b] {
            assert_eq!(kernel.launch(stream, blocks, batch, 1), OK);
        }
        let codes = [a, b].map(|s| code!(aclrtSynchronizeStreamWithTimeout(s, 10)));
        let force = |s| code!(aclrtDestroyStreamForce(s));
        assert_eq!(force(a) + force(b), OK);
        ok!(aclrtFree(device), aclrtBinaryUnLoad(kernel.binary));
        end(&session);
        codes
    };
    let late = sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    assert_eq!(wait(true, 8), [OK; 2], "in batch mode one waits for the other");
    assert_eq!(wait(false, 4), [OK; 2], "together they fit");
    assert_eq!(wait(false, 5), [late; 2], "each has some cores and waits for more");
    assert_eq!(wait(true, 9), [late; 2], "more blocks than cores");
}

#[test]
fn captured_work_runs_when_it_is_replayed() {
    let session = begin(no_jitter());
    session.kernel("add", adder(false));
    let stream = create!(aclrtCreateStream());
    let device = create!(aclrtMalloc(64, 0));
    let kernel = prepare(&session, device);
    ok!(aclrtMemset(device, 64, 0, 64), aclmdlRICaptureBegin(stream, 0));
    assert_eq!(code!(aclmdlRICaptureBegin(stream, 0)), sys::ACL_ERROR_RT_STREAM_CAPTURED);
    assert_eq!(kernel.launch(stream, 1, false, 7), OK);
    let refused = sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT;
    assert_eq!(code!(aclrtSynchronizeStream(stream)), refused);
    assert_eq!(code!(aclrtMemset(device, 64, 0, 64)), refused);
    let mut pageable = [0u64; 1];
    let to = pageable.as_mut_ptr().cast();
    assert_eq!(code!(aclrtMemcpyAsync(to, 8, device, 8, TO_HOST, stream)), refused);
    let (raw, context) = (stream as usize, create!(aclrtGetCurrentContext()) as usize);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut graph = null_mut();
            ok!(aclrtSetCurrentContext(context as Handle));
            let wrong = code!(aclmdlRICaptureEnd(raw as Handle, &mut graph));
            assert_eq!(wrong, sys::ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
        });
    });
    let mut graph = null_mut();
    ok!(aclmdlRICaptureEnd(stream, &mut graph));
    // The launch copied the arguments, so a later change of the list does not affect the graph.
    assert_eq!(kernel.launch(stream, 1, false, 1000), OK);
    for _ in 0..3 {
        ok!(aclmdlRIExecuteAsync(graph, stream));
    }
    ok!(aclrtSynchronizeStream(stream), aclrtMemcpy(to, 8, device, 8, TO_HOST));
    assert_eq!(pageable, [1021]);
    let mut again = null_mut();
    let ended = code!(aclmdlRICaptureEnd(stream, &mut again));
    assert_eq!(ended, sys::ACL_ERROR_RT_STREAM_NOT_CAPTURED);
    ok!(aclmdlRIDestroy(graph), aclrtDestroyStream(stream));
    ok!(aclrtFree(device), aclrtBinaryUnLoad(kernel.binary));
    end(&session);
}
