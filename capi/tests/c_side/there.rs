//! A batch in device memory, and the device by path.
#![allow(dead_code, reason = "each test uses its part")]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::owned::Context;
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::simulated;
use avsg::engine::DeviceArray;
use avsg_capi::*;
use avsg_testkit::batch::Owned;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::on_device::OnDevice;

use super::c::*;
use super::workload::{self, SLOTS, params};

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
            let emitted = simulated::emit(&params()).unwrap();
            (runtime, kernels) = (text(&library()), text(&emitted));
            (config.runtime, config.kernels) = (runtime.as_ptr(), kernels.as_ptr());
            let acl = Acl::open(&Source::Path(library())).unwrap();
            Some(Context::for_device(Arc::new(acl), 0).unwrap())
        }
        _ => Some(simulated::context().unwrap()),
    };
    let life = Life::with_rows(workload::POOL_ROWS, &config, context);
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

/// The structs that a C program fills for a stream: addresses and lengths, which a graph keeps. The memory
/// goes with them.
pub struct There {
    pub batch: avsg_batch,
    /// By layer.
    pub fresh: [avsg_fresh; 2],
    memory: OnDevice,
}

impl There {
    /// A step's arrays, which are there.
    pub fn new(context: &Arc<Context>, arrays: &Arrays) -> Self {
        let rows = [arrays.rows.clone(), arrays.rows.clone()];
        let there = Self::room(context, arrays, &rows);
        there.write(arrays, &rows);
        there
    }

    /// Room for steps with arrays of these lengths.
    pub fn room(context: &Arc<Context>, like: &Owned, rows: &[FreshRows; 2]) -> Self {
        let memory = OnDevice::new(context, like, rows).unwrap();
        let on_device = memory.batch();
        let array =
            |a: DeviceArray| avsg_i32s { data: without_provenance(a.address as usize), len: a.len };
        let batch = avsg_batch {
            ids: array(on_device.ids),
            cu_q: array(on_device.cu_q),
            state: array(on_device.state),
            generation: array(on_device.generation),
            stable_len: array(on_device.stable_len),
            seq_len: array(on_device.seq_len),
            block_table: array(on_device.block_table),
            ..c_batch(like)
        };
        let fresh = [0, 1].map(|layer| {
            let mut fresh = c_fresh(&rows[layer]);
            for (place, rows) in fresh.data.iter_mut().zip(memory.fresh(layer)) {
                *place = without_provenance::<c_void>(rows.address as usize);
            }
            fresh
        });
        Self { batch, fresh, memory }
    }

    /// Brings a step there.
    pub fn write(&self, step: &Owned, rows: &[FreshRows]) {
        self.memory.write(step, rows).unwrap();
    }
}
