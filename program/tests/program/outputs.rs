//! Tests of the files that the program writes: nothing but the named file changes, and a failure leaves
//! no part of it; and of what standard output gets.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use avsg_cli::trace::Trace;
use serde_json::Value;

use crate::support::{LLAMA, bytes, command, errors, folder, has, refused, run};

/// Returns the names of the files in a folder in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_link_and_a_pipe_stay_and_a_file_is_replaced_as_a_whole() {
    let dir = folder("replaced");
    let [target, link, pipe, part] =
        ["target.json", "link.json", "pipe", "target.part"].map(|name| dir.join(name));
    fs::write(&target, "old and much longer than nothing").unwrap();
    // An earlier version wrote to NAME.part and renamed it.
    fs::write(&part, "mine").unwrap();
    symlink(&target, &link).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for out in [&target, &link] {
        bytes(&format!("info --json {}", out.display()));
        let report: Value = serde_json::from_slice(&fs::read(&target).unwrap()).unwrap();
        assert!(report["bytes"]["table"].is_u64());
        let command = report["command"].as_array().unwrap();
        assert_eq!((command.len(), &command[1]), (4, &"info".into()));
        has(report["version"].as_str().unwrap(), &[env!("CARGO_PKG_VERSION")]);
        fs::write(&target, "old").unwrap();
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&part).unwrap(), "mine");
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    bytes(&format!("info --json {}", pipe.display()));
    let read = reader.wait_with_output().unwrap().stdout;
    assert!(serde_json::from_slice::<Value>(&read).is_ok());
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(names(&dir), ["link.json", "pipe", "target.json", "target.part"]);
}

#[test]
fn a_bad_output_fails_before_the_run_and_an_input_is_never_an_output() {
    let dir = folder("early");
    fs::copy(LLAMA, dir.join("trace.npz")).unwrap();
    symlink(dir.join("trace.npz"), dir.join("alias")).unwrap();
    for (line, part) in [
        ("replay DIR/trace.npz --json DIR/trace.npz", "an input"),
        ("replay DIR/trace.npz --json DIR/alias", "an input"),
        ("replay DIR/alias --json DIR/trace.npz", "an input"),
        ("compare DIR/trace.npz --slots 64 --json DIR/trace.npz", "an input"),
        ("replay /nowhere.npz --json /nonexistent/x.json", "/nonexistent"),
        ("compare /nowhere.npz --json /nonexistent/x.json", "/nonexistent"),
        ("size /nowhere.npz --json /proc/x.json", "/proc"),
        ("replay /nowhere.npz --json DIR", "directory"),
    ] {
        let message = refused(&line.replace("DIR", &dir.display().to_string()), &[part]);
        // No such trace: a message about the output shows that it was checked first.
        assert!(!message.contains("nowhere") && !message.contains(".avsg-"), "{message}");
    }
    assert_eq!(fs::read(dir.join("trace.npz")).unwrap(), fs::read(LLAMA).unwrap());
    assert_eq!(names(&dir), ["alias", "trace.npz"]);
}

/// Checks that a full disk is status 2 with one line that contains `part`.
fn is_full(line: &str, output: &Output, part: &str) {
    let errors = errors(output);
    assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
    assert!(errors.contains(part) && errors.lines().count() == 1, "{line}: {errors}");
}

#[test]
fn a_full_disk_leaves_no_file_and_is_status_2() {
    let dir = folder("full");
    let full = dir.join("full");
    symlink("/dev/full", &full).unwrap();
    for line in ["info", "compare LLAMA --slots 256", "replay LLAMA --slots 256"] {
        let output = run(&format!("{line} --json {}", full.display()));
        is_full(line, &output, "No space left");
        assert!(output.stdout.len() > 200, "{line} shows its results");
    }
    for line in ["info", "info --json -", "completions bash", "emit --plan"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(line).stdout(full).stderr(Stdio::piped()).output().unwrap();
        is_full(line, &output, "standard output");
    }
    // The shell limits the size of files; the program sees a write that fails.
    let out = dir.join("trace.npz");
    let limited = concat!("trap '' XFSZ; ulimit -f 1; exec ", env!("CARGO_BIN_EXE_avsg"));
    let line = format!("{limited} synth --k 2048 --steps 9 --out {}", out.display());
    fs::write(&out, "old").unwrap();
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert_eq!(names(&dir), ["full", "trace.npz"]);
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

#[test]
fn a_closed_pipe_ends_quietly_everywhere_and_a_closed_standard_error_changes_nothing() {
    let closed = || io::pipe().unwrap().1;
    let dir = folder("closed").display().to_string();
    for line in [
        "info",
        "info --json -",
        "completions bash",
        "man DIR",
        "replay LLAMA --steps 4",
        "synth --k 16 --steps 4 --context 64 --out -",
        "bench transfer --k 64 --rows-in-pool 4096 --repeats 2 --cores 1",
        "--help",
        "help size",
    ] {
        let line = line.replace("DIR", &dir);
        let output = command(&line).stdout(closed()).stderr(Stdio::piped()).output().unwrap();
        let errors = errors(&output);
        assert_eq!((output.status.code(), &errors[..]), (Some(141), ""), "{line}");
    }
    let mut timed = command("bench match LLAMA --slots 64 --steps 2");
    let output = timed.stderr(closed()).stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty(), "{:?}", output.status);
}

#[test]
fn a_hyphen_is_standard_output() {
    let dir = folder("hyphen");
    let written = |line: &str| {
        let output = command(line).current_dir(&dir).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        output.stdout
    };
    let synth = "synth --k 16 --steps 4 --context 64 --out";
    let trace = written(&format!("{synth} -"));
    let shown = written(&format!("{synth} trace.npz"));
    has(&String::from_utf8_lossy(&shown), &["4 steps of", "written   trace.npz"]);
    let shown = written("info --json info.json");
    has(&String::from_utf8_lossy(&shown), &["It takes ", "written   info.json"]);
    // The bytes of an archive contain the time.
    fs::write(dir.join("out.npz"), trace).unwrap();
    let read = |name: &str| Trace::read(dir.join(name)).unwrap();
    assert_eq!(read("trace.npz"), read("out.npz"));
    assert_eq!(names(&dir), ["info.json", "out.npz", "trace.npz"]);
}
