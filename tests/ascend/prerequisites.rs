//! Prerequisites of tests on the simulated device. Several test programs include this file by its
//! path.

use std::path::PathBuf;

/// Returns the path of the simulator's shared library, which cargo builds as a dependency of the
/// test.
pub fn simulator_library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the simulator's library")
}

/// Returns whether there is a C++ compiler, which the emitted kernels need on the simulated device.
/// Without one it prints that the test is skipped.
pub fn has_cpp_compiler() -> bool {
    let found = avsg_sim::compiler::cpp().is_some();
    if !found {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
    }
    found
}
