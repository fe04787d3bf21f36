//! Devices by their names: contexts, and a runtime library that is found by path.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::simulated;

/// Returns the context of "ascend-sim", or of "ascend" over the simulator's library; None for "cpu".
pub fn context_of(device: &CStr) -> Option<Arc<Context>> {
    match device.to_bytes() {
        b"cpu" => None,
        b"ascend" => {
            let acl = Acl::open(&Source::Path(simulator_library())).unwrap();
            Some(Context::for_device(Arc::new(acl), 0).unwrap())
        }
        _ => Some(simulated::context().unwrap()),
    }
}

/// Returns a path as a C string.
pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Returns the path of the simulator's shared library, which cargo builds as a dependency of the
/// test.
pub fn simulator_library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let candidates = [deps.join(name), deps.parent().unwrap().join(name)];
    candidates.into_iter().find(|path| path.exists()).expect("cargo builds the simulator's library")
}
