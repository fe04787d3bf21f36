//! Tests of `avsg replay`: its results agree with a model, and every refused input is one line.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use avsg_cli::trace::Trace;
use avsg_testkit::content::tag;
use npyz::{NpyFile, WriterBuilder};
use zip::ZipArchive;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");

/// Recorded by `adapters/llama_cpp` from a model with random weights.
const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/llama-deepseek32-k64.npz");

fn avsg(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_avsg")).args(args).output().expect("the program starts")
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay");
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir.join(name)
}

fn array<T: npyz::Deserialize>(path: &Path, name: &str) -> (Vec<u64>, Vec<T>) {
    let mut archive = ZipArchive::new(File::open(path).expect("a file")).expect("an npz file");
    let file = archive.by_name(&format!("{name}.npy")).expect("an array of that name");
    let array = NpyFile::new(file).expect("a NumPy file");
    (array.shape().to_vec(), array.into_vec().expect("the right dtype"))
}

/// Replays the sample, checks the results file against a `HashMap` from slots to ids, and returns the
/// JSON.
fn replay_and_check(args: &[&str], name: &str) -> serde_json::Value {
    let out = scratch(&format!("{name}.npz"));
    let mut all = vec!["replay", SAMPLE, "--json", "-", "--results", out.to_str().expect("UTF-8")];
    all.extend(args);
    let output = avsg(&all);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");

    let trace = Trace::read(SAMPLE).expect("the sample");
    let trace = if args.contains(&"--mtp0") { trace.as_mtp0() } else { trace };
    let steps = args.iter().position(|arg| *arg == "--steps");
    let steps = steps.map_or(trace.steps, |at| args[at + 1].parse().expect("a number"));
    let trace = trace.truncated(steps).expect("at least one step");
    let stable = trace.stable.as_ref().expect("the sample has `stable`");
    let (tokens, k) = (trace.tokens, trace.k);
    let (shape, slot) = array::<i32>(&out, "slot");
    assert_eq!(shape, [trace.steps as u64, tokens as u64, k as u64]);
    let (_, hit) = array::<u8>(&out, "hit");
    let (_, tags) = array::<u64>(&out, "tag");
    let (_, misses) = array::<i32>(&out, "misses");
    let (_, miss) = array::<i32>(&out, "miss");
    let (cut_shape, cut) = array::<i32>(&out, "cut");
    let cores = cut_shape[1] as usize - 1;

    let mut id_in_slot: HashMap<i32, i32> = HashMap::new();
    let mut version: HashMap<i32, u32> = HashMap::new();
    let mut list = miss.chunks_exact(4);
    let mut missed = 0;
    for step in 0..trace.steps {
        (0..tokens as i32).for_each(|g| {
            version.insert(stable[step] + g, step as u32 + 1);
        });
        let n: i32 = misses[step * tokens..][..tokens].iter().sum();
        missed += n;
        let mut entries: HashMap<i32, (i32, i32)> = HashMap::new();
        let mut last = -1;
        for entry in list.by_ref().take(n as usize) {
            assert_eq!(entry[0], step as i32);
            assert!(entry[1] > last, "token order");
            last = entry[1];
            entries.insert(entry[1], (entry[2], entry[3]));
        }
        for i in 0..tokens * k {
            let at = step * tokens * k + i;
            let id = trace.ids[at];
            if let Some(&(miss_id, miss_slot)) = entries.get(&(i as i32)) {
                assert_eq!((hit[at], miss_id, miss_slot), (0, id, slot[at]));
                id_in_slot.insert(slot[at], id);
            } else {
                assert_eq!(hit[at], 1);
                assert_eq!(id_in_slot.get(&slot[at]), Some(&id), "a hit's slot holds its id");
            }
            let v = version.get(&id).copied().unwrap_or(0);
            assert_eq!(tags[at], tag(id, v), "step {step}, id {id}");
        }
        let cuts = &cut[step * (cores + 1)..][..=cores];
        assert_eq!((cuts[0], cuts[cores]), (0, n));
        if !args.contains(&"--requests") {
            let sizes = cuts.windows(2).map(|w| w[1] - w[0]);
            assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1);
        }
    }
    assert!(list.next().is_none());
    assert_eq!(json["wrong_rows"], 0);
    if !args.contains(&"--requests") {
        assert_eq!(json["misses"], missed);
        assert_eq!(json["verified_rows"].as_u64(), Some(trace.ids.len() as u64));
    }
    json
}

#[test]
fn a_trace_recorded_from_llama_cpp_replays_exactly() {
    let output = avsg(&["replay", LLAMA, "--slots", "256", "--json", "-"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(
        (json["wrong_rows"].as_u64(), json["verified_rows"].as_u64()),
        (Some(0), Some(48 * 4 * 64))
    );
}

#[test]
fn results_agree_with_a_model() {
    let json = replay_and_check(&[], "plain");
    assert!(json["hit_rate"].as_f64().expect("a number") > 97.0);
    for field in ["geometry", "rows_copied", "bytes_copied", "plan_us", "transfer_us", "pages"] {
        assert!(!json[field].is_null(), "{field}");
    }
    replay_and_check(&["--mtp0", "--slots", "256", "--cores", "7"], "small");
    replay_and_check(&["--table", "paper", "--slots", "2048", "--segments", "64,9"], "paper");
    replay_and_check(&["--page", "16", "--requests", "3", "--row-bytes", "656"], "paged");
    replay_and_check(&["--spread", "2", "--lifetime", "constant:127"], "spread-2");
    let json = replay_and_check(&["--launches", "1"], "one-launch");
    assert!(json["step_us"]["p50"].as_f64().expect("a number") > 0.0 && json["plan_us"].is_null());
}

/// The expected hits come from an independent implementation of the paper's equations in another
/// language, on the committed trace with one token per step. A print of other bits than the lowest
/// changes them by up to ten percentage points.
#[test]
fn the_papers_table_hits_as_the_papers_equations_do() {
    let trace = Trace::read(SAMPLE).expect("the sample").as_mtp0();
    let ids = scratch("ids.npy");
    let file = std::fs::File::create(&ids).expect("scratch");
    let shape = [trace.steps as u64, 1, trace.k as u64];
    let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(file);
    let mut writer = options.begin_nd().expect("a header");
    writer.extend(trace.ids.iter().copied()).expect("ids");
    writer.finish().expect("written");
    for (slots, hits) in [("256", 37_337), ("512", 53_386), ("1024", 61_303)] {
        let ids = ids.to_str().expect("UTF-8");
        let table = ["--table", "paper", "--lifetime", "constant:16"];
        let size = ["--primes", "244529,1003273", "--slots", slots, "--json", "-"];
        let output = avsg(&[&["replay", ids][..], &table, &size].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(trace.ids.len() as u64 - json["misses"].as_u64().expect("a count"), hits);
    }
}

#[test]
fn the_simulated_device_agrees_in_one_launch_and_in_two() {
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let file = |args: &[&str], name: &str| {
        let mut all = vec!["--slots", "1024", "--steps", "6"];
        all.extend(args);
        replay_and_check(&all, name);
        ["slot", "miss"].map(|array| self::array::<i32>(&scratch(&format!("{name}.npz")), array).1)
    };
    let cpu = file(&["--cores", "3"], "cpu-6");
    for (launches, cores) in [("1", "3"), ("2", "40")] {
        let args = ["--device", "ascend-sim", "--launches", launches, "--cores", cores];
        assert!(file(&args, &format!("sim-6-{launches}")) == cpu, "{launches} launches");
    }
}

/// Requests that decode one sequence share its pool rows. If each of them appended the rows of a step,
/// several cores would write one row at the same time, which the simulator refuses as a race.
#[test]
fn several_requests_append_each_row_once() {
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let requests = ["--slots", "1024", "--steps", "2", "--requests", "2"];
    for device in ["cpu", "ascend-sim"] {
        let output = avsg(&[&["replay", SAMPLE, "--device", device], &requests[..]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("verified   4096 rows right, 0 wrong"), "{text}");
    }
}

#[test]
fn all_vector_machines_give_the_same_slots() {
    let file = |machine: &str| {
        replay_and_check(&["--machine", machine, "--slots", "1024"], machine);
        array::<i32>(&scratch(&format!("{machine}.npz")), "slot").1
    };
    let emu = file("emu");
    for machine in avsg::cpu::machine::Machine::all() {
        let name = machine.to_string();
        let name = name.split(' ').next().expect("a word");
        assert_eq!(file(name), emu, "{name}");
    }
}

#[test]
fn refused_input_is_one_line_and_status_2() {
    let truncated = scratch("truncated.npz");
    let whole = std::fs::read(SAMPLE).expect("the sample");
    std::fs::write(&truncated, &whole[..whole.len() / 2]).expect("scratch");
    let truncated = truncated.to_str().expect("UTF-8");
    let cases: [(&[&str], &str); 16] = [
        (&[truncated], ""),
        (&["nowhere.npz"], "nowhere.npz"),
        (&[SAMPLE, "--slots", "128"], "128"),
        (&[SAMPLE, "--slots", "512"], "N_q*K is 1024"),
        (&[SAMPLE, "--slots", "1000"], "power of two"),
        (&[SAMPLE, "--slots", "1048576"], "1048576"),
        (&[SAMPLE, "--spread", "3"], "spread is 3"),
        (&[SAMPLE, "--retries", "99"], "99"),
        (&[SAMPLE, "--lifetime", "constant:200"], "constant:200"),
        (&[SAMPLE, "--lifetime", "frequency:0.99"], "0.99"),
        (&[SAMPLE, "--table", "paper", "--primes", "2,4"], "odd"),
        (&[SAMPLE, "--row-bytes", "0"], "0"),
        (&[SAMPLE, "--page", "48"], "48"),
        (&[SAMPLE, "--requests", "0"], "0"),
        (&[SAMPLE, "--cores", "0"], "0"),
        (&[SAMPLE, "--row-bytes", "999999999999"], "bytes"),
    ];
    for (args, names) in cases {
        let mut all = vec!["replay"];
        all.extend(args);
        let output = avsg(&all);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(names), "{args:?} should name {names}: {text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{args:?}: {text}");
        assert!(text.starts_with("avsg: ") && !text.contains("panicked"), "{text}");
    }
}
