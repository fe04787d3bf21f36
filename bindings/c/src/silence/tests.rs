use crate::status::avsg_status::AVSG_INTERNAL;
use crate::status::enter;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};

/// The environment variable that makes a child panic.
const CHILD: &str = "AVSG_TEST_PANIC";

#[test]
fn a_child_panics() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    assert_eq!(enter(|| panic!("inside a call")), AVSG_INTERNAL);
    let workers = WorkerPool::new(&WorkerConfig::new(3)).unwrap();
    let stage = Stage { pieces: 50, run: &|_, _| panic!("inside a piece") };
    assert!(workers.launch(u64::MAX, Some(stage), None).is_err());
    assert!(std::panic::catch_unwind(|| panic!("outside")).is_err());
}

#[test]
fn panics_inside_the_library_print_nothing() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "silence::tests::a_child_panics";
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !errors.contains("inside"), "{errors}");
    assert!(errors.contains("outside"), "other panics print as before: {errors}");
}
