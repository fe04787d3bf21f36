//! Random workloads on an Ascend 910B with the emitted kernels, compiled by CANN, give the results
//! of the CPU. Without a device the tests print "skipped: no device" and pass.
//!
//! `AVSG_ASCEND_LIBRARY` names another runtime library. With the simulator's library the tests run
//! on any machine with a C++ compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::simulated;
use avsg::device::kernels::KernelName;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::pool::HostPool;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::soc::OF_THE_PAPER;
use avsg_linker::ascend::toolchain::Toolchain;
use avsg_testkit::workload::{DEVICE_SHAPES, long_workload, run};

use crate::harness;

/// Returns the first device and whether it is simulated. Without a device it prints the reason.
fn device() -> Option<(Arc<Context>, bool)> {
    let library = env::var_os("AVSG_ASCEND_LIBRARY").map(PathBuf::from);
    let simulated = library.as_deref().and_then(Path::file_name);
    let simulated = simulated.is_some_and(|name| name == "libavsg_ascendcl_sim.so");
    let source = library.map_or(Source::System, Source::Path);
    match Acl::open(&source).and_then(|acl| Context::for_device(Arc::new(acl), 0)) {
        Ok(context) => Some((context, simulated)),
        Err(error) => {
            println!("skipped: no device: {error}");
            None
        }
    }
}

/// Emits the kernels of a geometry: for the simulator as one file, or compiled for a real device in a
/// folder.
fn emit_kernels(params: &Params, simulated: bool) -> PathBuf {
    let file = simulated::emit(params).unwrap();
    if simulated {
        return file;
    }
    let folder = file.parent().unwrap();
    ascendc(params, Abi::Direct).unwrap().write(folder).unwrap();
    let toolchain = Toolchain::find().expect("CANN on a machine with a device");
    let names = KernelName::ALL.map(|kernel| kernel.entry().to_str().unwrap());
    toolchain.build(folder, &names, OF_THE_PAPER.name).unwrap();
    folder.into()
}

#[test]
fn workloads_match_the_cpu_on_the_device() {
    let Some((context, simulated)) = device() else { return };
    for bytes in DEVICE_SHAPES {
        let workload = long_workload(bytes, if simulated { 4 } else { 200 });
        let config = workload.shape.config(MachineChoice::Auto);
        let expected = run(&workload, &mut workload.shape.engine(MachineChoice::Emu));
        for one_launch in [true, false] {
            let kernels = emit_kernels(&config.params, simulated);
            let pool = HostPool::new(&workload.shape.pool()).unwrap();
            let mut engine = harness::engine(&context, &config, pool, kernels, one_launch).unwrap();
            assert!(run(&workload, &mut engine) == expected, "{bytes:?}");
        }
    }
}
