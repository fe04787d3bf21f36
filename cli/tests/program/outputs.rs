//! Tests of the files that the program writes: nothing but the named file changes, and a failure leaves
//! no part of it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use avsg_cli::trace::Trace;
use serde_json::Value;

use crate::support::{LLAMA, bytes, command, errors, folder, refused, run};

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
fn an_input_is_never_an_output() {
    let dir = folder("input");
    let [trace, alias] = ["trace.npz", "alias"].map(|name| dir.join(name));
    fs::copy(LLAMA, &trace).unwrap();
    symlink(&trace, &alias).unwrap();
    let before = fs::read(&trace).unwrap();
    let (trace, alias) = (trace.display(), alias.display());
    for line in [
        format!("replay {trace} --json {trace}"),
        format!("replay {trace} --results {trace}"),
        format!("replay {trace} --json {alias}"),
        format!("replay {alias} --results {trace}"),
        format!("compare {trace} --slots 64 --json {trace}"),
    ] {
        refused(&line, &["an input"]);
    }
    let both = dir.join("both").display().to_string();
    refused(&format!("replay {trace} --json {both} --results {both}"), &["another output"]);
    assert_eq!(fs::read(dir.join("trace.npz")).unwrap(), before);
    assert_eq!(names(&dir), ["alias", "trace.npz"]);
}

#[test]
fn a_bad_output_fails_before_the_run() {
    let dir = folder("early");
    let (both, dir) = (dir.join("both").display().to_string(), dir.display());
    // No such trace: a message about the output shows that it was checked first.
    for line in [
        format!("compare /nowhere.npz --json {both} --plot {both}"),
        format!("size /nowhere.npz --json {both} --plot {both}"),
        format!("size /nowhere.npz --json {dir} --plot {dir}/."),
        format!("emit --json {both} --out {both}"),
        format!("opp --json {both} --out {both}"),
    ] {
        refused(&line, &["another output", "choose another name"]);
    }
    assert!(!Path::new(&both).exists());
    for options in [
        "replay /nowhere.npz --json /nonexistent/x.json",
        "replay /nowhere.npz --results /nonexistent/x.npz",
        "compare /nowhere.npz --json /nonexistent/x.json",
        "size /nowhere.npz --plot /proc/charts",
        &format!("replay /nowhere.npz --json {dir}"),
    ] {
        let message = refused(options, &[]);
        assert!(!message.contains("nowhere") && !message.contains(".avsg-"), "{message}");
    }
}

#[test]
fn a_full_disk_leaves_no_file_and_is_status_2() {
    let dir = folder("full");
    let full = dir.join("full");
    symlink("/dev/full", &full).unwrap();
    for line in ["info", "compare LLAMA --slots 256", "replay LLAMA --slots 256"] {
        let output = run(&format!("{line} --json {}", full.display()));
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains("No space left") && errors.lines().count() == 1, "{errors}");
        assert!(output.stdout.len() > 200, "{line} shows its results");
    }
    let output = run(&format!("replay LLAMA --slots 256 --results {}", full.display()));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(2) && shown.contains("0 wrong"), "{shown}");
    // The shell limits the size of files; the program sees a write that fails.
    let out = dir.join("trace.npz");
    let line = format!(
        "trap '' XFSZ; ulimit -f 1; exec {} synth --k 2048 --steps 9 --out {}",
        env!("CARGO_BIN_EXE_avsg"),
        out.display()
    );
    fs::write(&out, "old").unwrap();
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert_eq!(
        (names(&dir), fs::read(&out).unwrap()),
        (vec!["full".into(), "trace.npz".into()], b"old".to_vec())
    );
}

#[test]
fn full_standard_output_is_status_2() {
    for line in ["info", "info --json -", "completions bash", "emit --plan"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(line).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains("standard output") && errors.lines().count() == 1, "{errors}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly_everywhere() {
    let dir = folder("closed").display().to_string();
    for line in [
        "info",
        "info --json -",
        "completions bash",
        "emit",
        "opp --out DIR",
        "man DIR",
        "replay LLAMA --steps 4",
        "compare LLAMA --steps 4",
        "size LLAMA --steps 4",
        "size LLAMA --steps 4 --json -",
        "synth --k 16 --steps 4 --context 64 --out DIR/synth.npz",
        "synth --k 16 --steps 4 --context 64 --out -",
        "bench transfer --k 64 --rows-in-pool 4096 --repeats 2 --cores 1",
        "--help",
        "--version",
        "size --help",
        "help size",
    ] {
        let line = line.replace("DIR", &dir);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = command(&line).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let errors = errors(&output);
        assert_eq!((output.status.code(), &errors[..]), (Some(141), ""), "{line}");
    }
}

#[test]
fn a_closed_standard_error_changes_nothing() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = command("bench match LLAMA --slots 64 --steps 2")
        .stderr(writer)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
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
    let trace = written(&format!("{synth} - --json parameters.json"));
    assert!(written(&format!("{synth} trace.npz")).starts_with(b"trace.npz: 4 steps"));
    // The bytes of an archive contain the time.
    fs::write(dir.join("out.npz"), trace).unwrap();
    let read = |name: &str| Trace::read(dir.join(name)).unwrap();
    assert_eq!(read("trace.npz"), read("out.npz"));
    let results = written("replay trace.npz --slots 64 --results -");
    assert!(!written("replay trace.npz --slots 64 --results results.npz").is_empty());
    assert_eq!(fs::metadata(dir.join("results.npz")).unwrap().len(), results.len() as u64);
    assert_eq!(names(&dir), ["out.npz", "parameters.json", "results.npz", "trace.npz"]);
    refused(&format!("{synth} - --json -"), &["standard output takes one"]);
}
