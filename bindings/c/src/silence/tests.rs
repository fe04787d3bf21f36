use std::ffi::{CStr, c_char, c_void};

use crate::boundary::enter;
use crate::log::avsg_set_log;
use crate::status::avsg_status::{AVSG_INTERNAL, AVSG_OK};
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};

/// The environment variable that makes a child panic.
const CHILD: &str = "AVSG_TEST_PANIC";

unsafe extern "C" fn is_one_line(_: *mut c_void, _: i32, message: *const c_char) {
    // SAFETY: the message is a NUL-terminated string that is valid during the call.
    assert!(!unsafe { CStr::from_ptr(message) }.to_bytes().contains(&b'\n'));
}

#[test]
fn a_child_panics() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // SAFETY: the function may be called on any thread at any time.
    assert_eq!(unsafe { avsg_set_log(Some(is_one_line), std::ptr::null_mut(), 4) }, AVSG_OK);
    assert_eq!(enter(|| panic!("inside a call")), AVSG_INTERNAL);
    let workers = WorkerPool::new(&WorkerConfig::new(3)).unwrap();
    let stage = Stage { pieces: 50, run: &|_, _| panic!("inside a piece") };
    assert!(workers.launch(u64::MAX, [Some(stage), None], None).is_err());
    assert!(std::panic::catch_unwind(|| panic!("outside")).is_err());
}

#[test]
fn panics_inside_the_library_print_nothing_and_are_one_line_of_the_log() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "silence::tests::a_child_panics";
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !errors.contains("inside"), "{errors}");
    assert!(errors.contains("outside"), "other panics print as before: {errors}");
}
