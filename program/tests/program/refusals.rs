//! Tests of input that is refused: one line and status 2, with the option, its value and what is permitted.

use std::fs;

use avsg_cli::trace::Trace;

use crate::support::{SAMPLE, file, npy, refused, run};

/// A command line, and the parts of its message. A rule that several subcommands share is named once.
type Refusal<'a> = (&'a str, &'a [&'a str]);

const INDEXERS: &[&str] = &["--indexers is 9", "--layers is 4", "at most the layers"];

const REFUSALS: &[Refusal<'_>] = &[
    // The geometry of a table. The library's rules for it are in `tests/engine/bad_batches.rs`.
    ("replay SAMPLE --slots 512", &["N_q*K is 1024"]),
    ("replay SAMPLE --slots 1000", &["multiple of 64 in 64..=65536"]),
    ("replay SAMPLE --lifetime constant:x", &["constant:x"]),
    ("replay SAMPLE --lifetime frequency:0.87", &["or learned"]),
    ("size SAMPLE --slots 512", &["N_q*K", "1024", "S = 512"]),
    ("bench match SAMPLE --k 300", &["K is 300"]),
    ("bench step SAMPLE --steps 1 --slots 512 --tokens 3", &["512"]),
    ("info --k 9000", &["K is 9000"]),
    ("emit --slots 4160", &["S 4160", "multiple of 128"]),
    (
        "emit --slots 32768 --spread 4",
        &["S 32768", "unified buffer", "187360", "choose fewer slots"],
    ),
    // Four links per slot do not fit the unified buffer at this size.
    ("info --device ascend-sim --spread 4", &["unified buffer"]),
    // Numbers of things.
    ("replay SAMPLE --requests 0", &["0"]),
    ("replay SAMPLE --cores 0", &["0"]),
    ("replay SAMPLE --row-bytes 999999999999", &["bytes"]),
    ("bench match --steps 0", &["--steps is 0"]),
    ("bench step --layers 0", &["--layers is 0"]),
    ("bench step --tokens 17", &["--tokens is 17"]),
    ("bench step --threads 65", &["--threads is 65"]),
    ("bench step --requests 64 --steps 100000", &["choose fewer --steps"]),
    ("bench transfer --row-bytes 0", &["--row-bytes is 0"]),
    ("bench transfer --rows-in-pool 4000000", &["at most 2000000000 bytes"]),
    ("bench transfer --k 64 --rows-in-pool 4096 --cores 0", &["cores is 0"]),
    ("info --requests 0", &["--requests is 0"]),
    ("info --row-bytes 0", &["segment bytes is 0"]),
    ("info --context 18446744073709551615", &["address space"]),
    ("size SAMPLE --layers 0", &["--layers is 0", "at least 1"]),
    // The parameters of a synthetic trace.
    ("synth --out /nonexistent/x.npz --gamma 1.5", &["gamma is 1.5"]),
    ("synth --out /nonexistent/x.npz --mu NaN", &["mu is NaN"]),
    ("synth --out /nonexistent/x.npz --k 16385", &["k is 16385", "16384 ids"]),
    ("synth --out /nonexistent/x.npz --context 33554432", &["context is 33554432"]),
    ("synth --out /nonexistent/x.npz --steps 0", &["steps is 0"]),
    ("synth --out /nonexistent/x.npz --steps 18446744073709551615", &["steps is"]),
    // More indexers than layers are refused before the trace is read.
    ("size /nowhere.npz --layers 4 --indexers 9", INDEXERS),
    ("info --layers 4 --indexers 9", INDEXERS),
    // What `size` answers for.
    (
        "size SAMPLE --context 4351",
        &["--context is 4351", "selects from 4352 tokens", "leave it out"],
    ),
    ("size SAMPLE --device-gb 0", &["'0' for '--device-gb", "above 0", "10^9 bytes"]),
    ("size SAMPLE --hit-rate 101", &["'101' for '--hit-rate", "1 to 100"]),
    ("size SAMPLE --hit-rate 0.9", &["'0.9' for '--hit-rate", "pass 90 for 90 %"]),
    ("size SAMPLE --tokens 3", &["--tokens is 3", "has 4"]),
    ("size SAMPLE --config /nowhere.json", &["/nowhere.json", "config.json of a Hugging Face"]),
    ("info --context 1.5", &["'1.5' for '--context", "131072 or 128K"]),
    ("size SAMPLE --tpot-ms 5", &["--link-gbs"]),
    ("size SAMPLE --accepted 5", &["--link-gbs", "--link <"]),
    ("size SAMPLE --step-ms 0 --link-gbs 1", &["'0' for '--step-ms", "above 0"]),
    ("size SAMPLE --match-us=-1 --link-gbs 1", &["'-1' for '--match-us", "at least 0"]),
    ("size SAMPLE --step-ms 1 --link-gbs 1 --accepted 5", &["--accepted is 5", "N_q = 4"]),
    ("size SAMPLE --link tape", &["disk:FOLDER"]),
    ("size SAMPLE --link disk:1000,2", &["disk:400000,6,80"]),
    ("size SAMPLE --link disk:1000,-2,3", &["disk:1000,-2,3", "above 0"]),
    ("size SAMPLE --link disk:1000,2,3,1000", &["disk:1000,2,3,1000", "512 to 65536"]),
    // Files and folders.
    ("replay nowhere.npz", &["nowhere.npz"]),
    ("synth --steps 2 --k 16 --out /nonexistent/x.npz", &["/nonexistent"]),
    ("bench disk SAMPLE --slots 512 --steps 1 --folder /nonexistent", &["--folder /nonexistent"]),
    (
        "bench disk SAMPLE --slots 512 --steps 1 --folder /dev/shm",
        &["--folder is /dev/shm", "in memory", "on a disk"],
    ),
    ("bench disk SAMPLE --layers 2 --indexers 3", &["--indexers is 3", "--layers is 2"]),
    ("replay SAMPLE --file /dev/shm", &["--file is /dev/shm", "on a disk"]),
    ("size SAMPLE --link disk:/dev/shm", &["--link is /dev/shm", "on a disk"]),
    // Targets.
    ("emit --soc ascend310p", &["'ascend310p' for '--soc", "ascend910b3"]),
    ("opp --out /dev/null/x --soc b5", &["'b5' for '--soc"]),
];

#[test]
fn refused_input_is_one_line_and_status_2() {
    for (line, parts) in REFUSALS {
        refused(line, parts);
    }
    let other = if cfg!(target_arch = "aarch64") { "avx512" } else { "neon" };
    refused(&format!("bench match --steps 1 --k 64 --slots 256 --machine {other}"), &[other]);
    let truncated = file("truncated.npz");
    let whole = fs::read(SAMPLE).expect("the sample");
    fs::write(&truncated, &whole[..whole.len() / 2]).expect("scratch");
    refused(&format!("replay {}", truncated.display()), &["truncated.npz"]);
    // A file that was named as the runtime and is none is a mistake, and no machine without a device.
    for file in ["/etc/passwd", &std::env::current_exe().unwrap().display().to_string()] {
        let parts = [&format!("--library is {file}"), "is no Ascend runtime", "libascendcl.so"];
        refused(&format!("doctor --library {file}"), &parts);
    }
    // The least K is named, and not a larger S.
    for line in ["info --k 0", "synth --k 0 --out /nonexistent/x.npz"] {
        let message = refused(line, &["1..="]).to_lowercase();
        assert!(message.contains("k is 0") && !message.contains("raise s"), "{message}");
    }
    // A negative number is the value of its option.
    for line in ["size SAMPLE --slots -64", "bench transfer --k -64"] {
        let message = refused(line, &["invalid value '-64' for '--"]);
        assert!(!message.contains("tip:"), "{message}");
    }
}

#[test]
fn every_command_refuses_ids_of_rows_that_a_step_does_not_have() {
    let trace = Trace::read(SAMPLE).expect("the sample");
    let stable = trace.stable.as_ref().expect("it has them");
    let from_decode = stable.iter().map(|n| n - stable[0]).collect();
    let path = file("stable-from-decode.npz");
    Trace { stable: Some(from_decode), ..trace }.write(&path).expect("scratch");
    for line in ["size", "compare", "replay", "bench match --steps 1"] {
        let parts = ["id is 64 at step 0, row 0, position 1", "below 4", "start of the prompt"];
        refused(&format!("{line} {}", path.display()), &parts);
    }
}

#[test]
fn too_many_tokens_are_refused_with_the_file_and_the_options() {
    let many = npy("many.npy", &[2, 32, 64], &[0i64; 2 * 32 * 64]);
    for command in ["size", "replay", "compare"] {
        let parts = ["many.npy", "32 * 64", "at most 16", "--layer", "--request", "--mtp0"];
        refused(&format!("{command} {many}"), &parts);
    }
    assert!(run(&format!("size {many} --mtp0")).status.success());
    let wide = npy("wide.npy", &[2, 2, 40000], &(0..160_000).collect::<Vec<i64>>());
    refused(&format!("size {wide}"), &["wide.npy", "2 * 40000 = 80000", "65536", "--mtp0"]);
}
