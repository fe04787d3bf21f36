//! Panics that become a status print nothing.
//!
//! Rust's panic hook prints to standard error before a panic is caught. The hook here passes panics
//! inside a call of this library, and inside a piece of a launch on any thread, to the log instead.
//! Other panics, which exist if the process has Rust code of its own, go to the hook before it.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

use avsg::cpu::worker_pool::in_piece;

thread_local! {
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call` as a call of this library on this thread.
pub(crate) fn within<T>(call: impl FnOnce() -> T) -> T {
    let outer = IN_CALL.replace(true);
    let result = call();
    IN_CALL.set(outer);
    result
}

/// Installs the hook, at the first call.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if IN_CALL.get() || in_piece() {
                log::error!("a defect of libavsg: {info}");
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
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
        let output = command.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output();
        let output = output.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !errors.contains("inside"), "{errors}");
        assert!(errors.contains("outside"), "other panics print as before: {errors}");
    }
}
