//! The CUDA driver, found at run time: the table of its functions, and the error of a call.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::null;

use anyhow::{Result, anyhow};
use avsg::Error;
use libloading::Library;

/// A handle of the driver: of a context, module, function, stream, graph or event.
pub type Handle = *mut c_void;
/// An address in the memory of a GPU.
pub type Address = u64;

/// Declares the table of functions, and its loading.
macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The functions of the driver, with the signatures of `cuda.h`.
        #[expect(non_snake_case, reason = "the driver's own names")]
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// The names of all functions.
            #[cfg(test)]
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// Looks up every function.
            ///
            /// # Errors
            /// The name of a function that the library lacks.
            ///
            /// # Safety
            /// The functions of these names in the library have the signatures of `cuda.h`.
            unsafe fn load(library: &Library) -> Result<Self, &'static str> {
                // SAFETY: by the contract of `load`, each symbol has the type of its member.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(stringify!($name)).map_err(|_| stringify!($name))?,)*
                    })
                }
            }
        }
    };
}

functions! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuGetErrorName(c_int, *mut *const c_char);
    cuGetErrorString(c_int, *mut *const c_char);
    cuDeviceGet(*mut c_int, c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    cuDevicePrimaryCtxRetain(*mut Handle, c_int);
    cuDevicePrimaryCtxRelease_v2(c_int);
    cuCtxSetCurrent(Handle);
    cuModuleLoadData(*mut Handle, *const c_void);
    cuModuleUnload(Handle);
    cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    cuFuncSetAttribute(Handle, c_int, c_int);
    cuMemAlloc_v2(*mut Address, usize);
    cuMemFree_v2(Address);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyAsync(Address, Address, usize, Handle);
    cuMemsetD8Async(Address, u8, usize, Handle);
    cuStreamCreate(*mut Handle, c_uint);
    cuStreamDestroy_v2(Handle);
    cuStreamSynchronize(Handle);
    cuStreamBeginCapture_v2(Handle, c_int);
    cuStreamEndCapture(Handle, *mut Handle);
    cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
    cuGraphLaunch(Handle, Handle);
    cuGraphDestroy(Handle);
    cuGraphExecDestroy(Handle);
    cuEventCreate(*mut Handle, c_uint);
    cuEventRecord(Handle, Handle);
    cuEventElapsedTime(*mut f32, Handle, Handle);
    cuEventDestroy_v2(Handle);
    cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
}

/// Calls a function of the driver and turns its code into a result. The call is unsafe: the SAFETY comment at the call
/// tells why its arguments are valid.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $driver.check(stringify!($name), ($driver.functions().$name)($($argument),*))
    };
}
pub(super) use call;

/// A call of the driver that failed.
#[derive(Debug)]
pub struct Failed {
    call: &'static str,
    code: c_int,
    /// The driver's name of the code and its words.
    words: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, words } = self;
        write!(f, "{call} failed with code {code} ({words}); {}", remedy(*code))
    }
}

impl std::error::Error for Failed {}

/// Returns what can be done about a code of `CUresult`.
fn remedy(code: c_int) -> &'static str {
    match code {
        1 => "this is a defect of the program unless another machine gives another result",
        2 => "free memory of the GPU and of the host, or choose a machine with more",
        3 | 999 => "look at nvidia-smi and dmesg, and restart the machine",
        34 | 35 | 803 | 804 => "install a driver that fits the GPU and is of CUDA 12.8 or newer",
        100 | 101 => "make a GPU visible to this process (nvidia-smi, CUDA_VISIBLE_DEVICES)",
        200 | 209 | 218..=223 => "pack the program again with an nvcc that the driver supports",
        500 => "install a newer driver: it lacks a function or a kernel",
        700..=720 => "a kernel did what it must not do, which is a defect of the program",
        _ => "look up the code in CUresult of cuda.h",
    }
}

/// The driver of this machine.
pub struct Driver {
    functions: Functions,
    /// Keeps the functions' code mapped. It is never closed, because the driver has threads of its own.
    _library: std::mem::ManuallyDrop<Library>,
}

impl Driver {
    /// Opens a driver and initialises it.
    ///
    /// # Errors
    /// If there is no library of this name, if it lacks a function, or if `cuInit` fails.
    pub fn open(library: &Path) -> Result<Self> {
        let absent = |tried: String| Error::Unavailable {
            what: "the CUDA driver",
            tried,
            remedy: "run this program on a machine with an NVIDIA GPU and its driver, of CUDA 12 or newer",
        };
        // SAFETY: the initialisers of a driver's library have no conditions.
        let opened = unsafe { Library::new(library) };
        let opened = opened.map_err(|error| absent(format!("{:#}", anyhow!(error))))?;
        // SAFETY: a library of this name has the functions of `cuda.h`.
        let functions = unsafe { Functions::load(&opened) };
        let lacks = |name| absent(format!("{}, which has no {name}", library.display()));
        let functions = functions.map_err(lacks)?;
        let driver = Self { functions, _library: std::mem::ManuallyDrop::new(opened) };
        // SAFETY: 0 is the one value that the function takes.
        unsafe { call!(driver, cuInit(0)) }?;
        Ok(driver)
    }

    /// Returns the functions, for [`call`].
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Turns a code into a result.
    pub fn check(&self, call: &'static str, code: c_int) -> Result<(), Failed> {
        if code == 0 {
            return Ok(());
        }
        let text = |find: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = null();
            // SAFETY: the function writes null, or a string that is valid until the process ends.
            let known = unsafe { find(code, &raw mut text) } == 0 && !text.is_null();
            // SAFETY: as above.
            known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let words = [text(self.functions.cuGetErrorName), text(self.functions.cuGetErrorString)];
        let words: Vec<_> = words.into_iter().flatten().collect();
        let words = if words.is_empty() { "no words".to_owned() } else { words.join(": ") };
        Err(Failed { call, code, words })
    }

    /// Returns the CUDA version of the driver, such as 13000 for 13.0.
    pub fn version(&self) -> Result<c_int, Failed> {
        let mut version = 0;
        // SAFETY: the function writes one int.
        unsafe { call!(self, cuDriverGetVersion(&raw mut version)) }?;
        Ok(version)
    }
}
