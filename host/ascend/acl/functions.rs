//! The list of the runtime's functions, from which the library and the simulator make what they need: for each whether
//! every engine needs it, its name and its signature, typed from the runtime's public documentation, CANN 8.1 to
//! 9.1. The sections are those of the vendor's list, which links the page of each function. A function returns a
//! code, and one without a list of arguments a text.
//!
//! A signature is a promise about a library that no compiler checks. A library that has these names is the runtime,
//! and one that lacks a required function is refused as a whole.

/// Calls a macro with the list.
macro_rules! for_each_function {
    ($with:ident) => {
        $with! {
            "https://www.hiascend.com/document/detail/en/canncommercial/850/API/appdevgapi/aclcppdevg_03_1675.html"
            "System Configuration" {
                Required aclInit(config: *const c_char);
                Required aclGetDeviceCapability(device: u32, kind: i32, value: *mut i64);
                Optional aclGetRecentErrMsg;
            }
            "Device Management" {
                Required aclrtGetDeviceCount(count: *mut u32);
                Required aclrtSetDevice(device: i32);
                Required aclrtResetDevice(device: i32);
                Required aclrtSynchronizeDevice();
                Optional aclrtSynchronizeDeviceWithTimeout(timeout: i32);
                Optional aclrtGetSocName;
            }
            "Context Management" {
                Required aclrtSetCurrentContext(context: aclrtContext);
                Required aclrtGetCurrentContext(context: *mut aclrtContext);
            }
            "Stream Management" {
                Required aclrtCreateStream(stream: *mut aclrtStream);
                Required aclrtDestroyStream(stream: aclrtStream);
                Required aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout: i32);
                Optional aclrtDestroyStreamForce(stream: aclrtStream);
            }
            "Runtime Management" {
                Optional aclrtGetStreamResLimit(stream: aclrtStream, kind: i32, value: *mut u32);
            }
            "Event Management" {
                Optional aclrtCreateEventExWithFlag(event: *mut aclrtEvent, flag: u32);
                Optional aclrtDestroyEvent(event: aclrtEvent);
                Optional aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream);
                Optional aclrtEventElapsedTime(ms: *mut f32, start: aclrtEvent, end: aclrtEvent);
            }
            "Memory Management" {
                Required aclrtMalloc(at: *mut *mut c_void, bytes: usize, policy: i32);
                Required aclrtFree(at: *mut c_void);
                Required aclrtMallocHost(at: *mut *mut c_void, bytes: usize);
                Required aclrtFreeHost(at: *mut c_void);
                Required aclrtMemcpy(to: *mut c_void, room: usize, from: *const c_void, bytes: usize,
                    kind: i32);
                Required aclrtMemcpyAsync(to: *mut c_void, room: usize, from: *const c_void, bytes: usize,
                    kind: i32, stream: aclrtStream);
                Required aclrtMemset(at: *mut c_void, room: usize, value: i32, bytes: usize);
                Required aclrtHostRegister(host: *mut c_void, bytes: u64, kind: i32, device: *mut *mut c_void);
                Required aclrtHostUnregister(host: *mut c_void);
                Optional aclrtGetMemInfo(kind: i32, free: *mut usize, total: *mut usize);
            }
            "Kernel Loading and Execution" {
                Required aclrtBinaryLoadFromFile(path: *const c_char, options: *mut aclrtBinaryLoadOptions,
                    binary: *mut aclrtBinHandle);
                Required aclrtBinaryGetFunction(binary: aclrtBinHandle, name: *const c_char,
                    function: *mut aclrtFuncHandle);
                Required aclrtBinaryUnLoad(binary: aclrtBinHandle);
                Required aclrtKernelArgsInit(function: aclrtFuncHandle, list: *mut aclrtArgsHandle);
                Required aclrtKernelArgsAppend(list: aclrtArgsHandle, from: *mut c_void, bytes: usize,
                    param: *mut aclrtParamHandle);
                Required aclrtKernelArgsAppendPlaceHolder(list: aclrtArgsHandle, param: *mut aclrtParamHandle);
                Required aclrtKernelArgsGetPlaceHolderBuffer(list: aclrtArgsHandle, param: aclrtParamHandle,
                    bytes: usize, at: *mut *mut c_void);
                Required aclrtKernelArgsParaUpdate(list: aclrtArgsHandle, param: aclrtParamHandle,
                    from: *mut c_void, bytes: usize);
                Required aclrtKernelArgsFinalize(list: aclrtArgsHandle);
                Required aclrtLaunchKernelWithConfig(function: aclrtFuncHandle, blocks: u32, stream: aclrtStream,
                    config: *mut aclrtLaunchKernelCfg, list: aclrtArgsHandle, reserved: *mut c_void);
                Optional aclrtBinaryLoadFromData(data: *const c_void, bytes: usize,
                    options: *const aclrtBinaryLoadOptions, binary: *mut aclrtBinHandle);
            }
            "Model Running Instance Management" {
                Optional aclmdlRICaptureBegin(stream: aclrtStream, mode: i32);
                Optional aclmdlRICaptureEnd(stream: aclrtStream, graph: *mut aclmdlRI);
                Optional aclmdlRICaptureGetInfo(stream: aclrtStream, status: *mut i32, graph: *mut aclmdlRI);
                Optional aclmdlRIExecuteAsync(graph: aclmdlRI, stream: aclrtStream);
                Optional aclmdlRIDestroy(graph: aclmdlRI);
            }
            // What the library does not call, but programs beside it do.
            beside {
                Optional aclrtSynchronizeStream(stream: aclrtStream);
                Optional aclrtSetStreamResLimit(stream: aclrtStream, kind: i32, value: u32);
            }
        }
    };
}

pub(crate) use for_each_function;
