//! A batch's arrays in device memory, and the device by path.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, DeviceMemory};
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::simulated;
use avsg::device::params::Params;
use avsg_capi::*;

use super::c::*;

/// Slots of every life here.
pub const SLOTS: u32 = 128;

/// A life on "cpu", "ascend-sim", or "ascend": the real device's code, with a runtime that is found by
/// path, and the simulator's shared library as that.
pub fn life(device: &'static CStr) -> Life {
    life_with(device, |_| ())
}

/// The same with something else in its configuration.
pub fn life_with(device: &'static CStr, set: impl FnOnce(&mut avsg_engine_config)) -> Life {
    let mut config = config_on(device);
    (config.cores, config.slots) = (3, SLOTS);
    set(&mut config);
    let (mut runtime, mut kernels) = Default::default();
    let context = match device.to_bytes() {
        b"cpu" => None,
        b"ascend" => {
            // The geometry of `config`.
            let params = Params { page: 16, ..Params::wide(K as u32, 2, SLOTS) };
            (runtime, kernels) = (text(&library()), text(&simulated::emit(&params).unwrap()));
            (config.runtime, config.kernels) = (runtime.as_ptr(), kernels.as_ptr());
            let acl = Acl::open(&Source::Path(library())).unwrap();
            Some(Context::open(Arc::new(acl), 0).unwrap())
        }
        _ => Some(simulated::context().unwrap()),
    };
    let life = Life::with(&config, context);
    let _: (CString, CString) = (runtime, kernels);
    life
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// The simulator's shared library, which cargo builds as a dependency of this test.
pub fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the simulator's library")
}

/// A batch and its fresh rows for a stream. The memory goes with it.
pub struct There {
    pub batch: avsg_batch,
    pub fresh: avsg_fresh,
    _memory: Vec<DeviceMemory>,
}

impl There {
    pub fn new(context: &Arc<Context>, owned: &Arrays) -> Self {
        let (mut batch, mut fresh) = (owned.batch(), owned.fresh());
        let mut memory = Vec::new();
        let mut bring = |bytes: &[u8]| {
            let there = DeviceMemory::new(context, bytes.len()).unwrap();
            there.write(0, bytes).unwrap();
            memory.push(there);
            memory.last().map_or(0, DeviceMemory::address) as usize
        };
        for (to, from) in [
            (&mut batch.ids, &owned.ids),
            (&mut batch.cu_q, &owned.cu_q),
            (&mut batch.state, &owned.state),
            (&mut batch.generation, &owned.generation),
            (&mut batch.stable_len, &owned.stable),
            (&mut batch.seq_len, &owned.seq),
            (&mut batch.block_table, &owned.blocks),
        ] {
            let bytes: Vec<u8> = from.iter().flat_map(|w| w.to_ne_bytes()).collect();
            to.data = without_provenance(bring(&bytes));
        }
        for (to, from) in fresh.data.iter_mut().zip(&owned.fresh) {
            *to = without_provenance::<c_void>(bring(from));
        }
        Self { batch, fresh, _memory: memory }
    }
}
