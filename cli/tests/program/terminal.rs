//! A test of what a terminal shows while the program is busy.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;
use std::ptr::{null, null_mut};
use std::thread;

use crate::support::{command, errors, file, has_cpp_compiler, run};

/// Runs a command whose standard error is a terminal, and returns what that shows.
fn on_terminal(line: &str) -> String {
    let (mut own, mut its) = (-1, -1);
    // SAFETY: `openpty` writes two descriptors to the integers, and reads nothing through the null pointers.
    let opened = unsafe { libc::openpty(&mut own, &mut its, null_mut(), null(), null()) };
    assert_eq!(opened, 0, "a terminal");
    // SAFETY: the descriptors are open, and nothing else owns them.
    let [mut own, its] = [own, its].map(|fd| unsafe { File::from_raw_fd(fd) });
    let mut command = command(line);
    command.env("TERM", "xterm");
    command.stdout(Stdio::null()).stderr(OwnedFd::from(its));
    let mut child = command.spawn().expect("the program starts");
    // The terminal ends with its last writer.
    drop(command);
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // At its end a terminal is an error.
        let _ = own.read_to_end(&mut shown);
        shown
    });
    assert!(child.wait().expect("a status").success(), "{line}");
    String::from_utf8_lossy(&reader.join().expect("a reader")).into_owned()
}

#[test]
fn long_work_is_named_on_a_terminal_only() {
    let out = file("terminal.npz").display().to_string();
    let replay = format!("replay LLAMA --slots 256 --steps 2 --results {out}");
    let synth = format!("synth --k 16 --steps 4 --context 64 --out {out}");
    let mut cases = vec![(&replay[..], ["read", "write"]), (&synth, ["synth", "write"])];
    let kernels = "replay SAMPLE --slots 1024 --steps 1 --device ascend-sim";
    if has_cpp_compiler() {
        cases.push((kernels, ["read", "compile kernels"]));
    }
    for (line, parts) in cases {
        let shown = on_terminal(line);
        for part in parts {
            assert!(
                shown.contains(&format!("\r\x1b[K{part} 0 %")),
                "{line}: `{part}` is not in {shown:?}"
            );
        }
        assert_eq!(errors(&run(line)), "", "{line}");
    }
}
