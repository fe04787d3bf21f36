//! The kernels on the oldest CANN that builds them, which has another name for a call.

use super::{compile_errors, has_cpp_compiler, kernel_around};
use avsg_device::params::Params;
use avsg_linker::ascend::stage_one;

/// CANN passes its version to every compilation. The shim declares the newer name only, so the text
/// compiles for CANN 9 and lacks the older name for CANN 8.
#[test]
fn compares_has_its_older_name_on_cann_8() {
    if !has_cpp_compiler() {
        return;
    }
    let p = Params::wide(64, 1, 256);
    let stage_one = stage_one(&p).expect("a small geometry fits");
    let text = kernel_around(&p, &stage_one, "avsg_plan").text;
    let errors_on =
        |major: u32| compile_errors(&format!("#define ASC_DEVKIT_MAJOR {major}\n{text}"));
    assert_eq!(errors_on(9), None);
    let errors = errors_on(8).expect("CompareScalar does not exist here");
    assert!(errors.contains("CompareScalar") && text.contains(" Compares("), "{errors}");
}
