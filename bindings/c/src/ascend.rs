//! The options of an Ascend device.

use std::ffi::c_char;
use std::path::PathBuf;

use crate::boundary;
use crate::status::Result;
use avsg::ascend::acl::Source;

/// An Ascend device (`avsg_engine_config.ascend`). It needs a pool of pages that its driver can register
/// (AVSG_DEVICE otherwise; try smaller `pages`), and rows of one or two segments. Its engines on one
/// pool share one registration. An engine uses at most the cores of the device, and in a stream at most the
/// stream's limit (aclrtSetStreamResLimit) at the time of the call. "cpu" ignores these options.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_ascend {
    /// sizeof(avsg_ascend).
    pub size: usize,
    /// The path of the kernels of this geometry, a file or a folder: compiled ones for "ascend"
    /// (`avsg emit` writes their sources), sources for "ascend-sim". NULL selects the kernels in
    /// this library. For "ascend" these are the kernels of the default geometries, and only if the
    /// library was built with the package feature `kernels` where CANN's compiler is installed
    /// (AVSG_INVALID otherwise); for "ascend-sim" they are those of every geometry.
    pub kernels: *const c_char,
    /// The path of the runtime's library (libascendcl.so) for "ascend". NULL searches the system's
    /// library path.
    pub runtime: *const c_char,
    /// The index of the device, as the runtime counts devices.
    pub device_id: i32,
    /// Milliseconds after which a call stops waiting for the device; 0 selects 10000.
    pub timeout_ms: u32,
}

/// The Ascend device of an engine.
pub(crate) struct AscendDevice {
    /// The runtime.
    pub source: Source,
    pub kernels: Option<PathBuf>,
    pub id: i32,
    pub timeout_ms: u32,
    pub one_launch: Option<bool>,
}

/// Reads the options of an Ascend device; NULL selects the defaults. A `simulator` takes the place of the
/// runtime.
///
/// # Safety
/// `options` is NULL or valid for reads of the number of bytes in its `size`, and its strings are NULL
/// or NUL-terminated.
pub(crate) unsafe fn ascend_device(
    options: *const avsg_ascend,
    simulator: Option<Source>,
    one_launch: Option<bool>,
) -> Result<AscendDevice> {
    let options = contract!(boundary::read_or_defaults(options))?;
    let runtime = contract!(boundary::path(options.runtime)).map_or(Source::System, Source::Path);
    Ok(AscendDevice {
        source: simulator.unwrap_or(runtime),
        kernels: contract!(boundary::path(options.kernels)),
        id: options.device_id,
        timeout_ms: if options.timeout_ms == 0 { 10_000 } else { options.timeout_ms },
        one_launch,
    })
}
