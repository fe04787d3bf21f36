//! Tests of `avsg replay`: its results agree with a model.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use avsg_cli::trace::Trace;
use avsg_testkit::content::tag;
use npyz::NpyFile;
use serde_json::Value;
use zip::ZipArchive;

use crate::support::{
    SAMPLE, command, errors, file, has, has_cpp_compiler, json, near, npy, number, refused, text,
};

/// Returns the values of an array in the results of a test, which has this shape.
fn array<T: npyz::Deserialize>(name: &str, array: &str, shape: &[u64]) -> Vec<T> {
    let path = file(&format!("{name}.npz"));
    let mut archive = ZipArchive::new(File::open(path).expect("a file")).expect("an npz file");
    let file = archive.by_name(&format!("{array}.npy")).expect("an array of that name");
    let array = NpyFile::new(file).expect("a NumPy file");
    assert_eq!(array.shape(), shape);
    array.into_vec().expect("the right dtype")
}

/// Replays a trace with `stable`, checks the results file against a `HashMap` from slots to ids, and returns
/// the JSON.
fn replay_and_check(path: &str, options: &str, name: &str) -> Value {
    let out = file(&format!("{name}.npz"));
    let json = json(&format!("replay {path} --results {} {options}", out.display()));
    let trace = Trace::read(path).expect("a trace");
    let trace =
        if options.contains("--mtp0") { trace.as_mtp0().expect("causal ids") } else { trace };
    let steps = json["steps"].as_u64().expect("a number") as usize;
    let trace = trace.truncated(steps).expect("at least one step");
    let stable = trace.stable.as_ref().expect("the trace has `stable`");
    let (tokens, k) = (trace.tokens, trace.k);
    let cores = json["geometry"]["cores"].as_u64().expect("a number") as usize;
    let shape = [trace.steps, tokens, k].map(|n| n as u64);
    let slot = array::<i32>(name, "slot", &shape);
    let (hit, tags) = (array::<u8>(name, "hit", &shape), array::<u64>(name, "tag", &shape));
    let misses = array::<i32>(name, "misses", &shape[..2]);
    let missed: i32 = misses.iter().sum();
    let miss = array::<i32>(name, "miss", &[missed as u64, 4]);
    let cut = array::<i32>(name, "cut", &[shape[0], cores as u64 + 1]);

    let mut id_in_slot: HashMap<i32, i32> = HashMap::new();
    let mut version: HashMap<i32, u32> = HashMap::new();
    let mut list = miss.chunks_exact(4);
    for step in 0..trace.steps {
        version.extend((0..tokens as i32).map(|g| (stable[step] + g, step as u32 + 1)));
        let n: i32 = misses[step * tokens..][..tokens].iter().sum();
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
        if !options.contains("--requests") {
            let sizes = cuts.windows(2).map(|w| w[1] - w[0]);
            assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1);
        }
    }
    assert_eq!(json["wrong_rows"], 0);
    if !options.contains("--requests") {
        assert_eq!(json["misses"], missed);
        assert_eq!(json["verified_rows"].as_u64(), Some(trace.ids.len() as u64));
    }
    json
}

#[test]
fn results_agree_with_a_model() {
    let json = replay_and_check(SAMPLE, "", "plain");
    assert!(number(&json["hit_rate"]) > 97.0);
    let fields = ["geometry", "rows_copied", "bytes_copied", "plan_us", "transfer_us", "pages"];
    fields.iter().for_each(|field| assert!(!json[field].is_null(), "{field}"));
    replay_and_check(SAMPLE, "--mtp0 --slots 256 --cores 7 --steps 80", "small");
    replay_and_check(SAMPLE, "--table paper --slots 1024 --segments 64,9 --steps 20", "paper");
    replay_and_check(SAMPLE, "--page 16 --requests 3 --row-bytes 656 --steps 16", "paged");
    let one_launch = "--launches 1 --spread 2 --lifetime constant:127 --steps 16";
    let json = replay_and_check(SAMPLE, one_launch, "one-launch");
    assert!(number(&json["step_us"]["p50"]) > 0.0 && json["plan_us"].is_null());
}

#[test]
fn readme_shows_the_first_lines_with_the_bytes_of_both_gathers() {
    let report = json("replay SAMPLE");
    let trace = Trace::read(SAMPLE).expect("the sample");
    let distinct = |step: &[i32]| step.iter().collect::<HashSet<_>>().len();
    let once: Vec<usize> = trace.ids.chunks(4 * 256).map(distinct).collect();
    near(&report["bytes_selected"], trace.ids.len() as f64 * 1152.0);
    near(&report["bytes_without_repeats"], once.iter().sum::<usize>() as f64 * 1152.0);
    // After the first step these are the copies of `size`. The page about sizing has its words.
    let per_step = &json("size SAMPLE --slots 1024")["no_repeats"]["misses_per_step"];
    near(per_step, once[1..].iter().sum::<usize>() as f64 / 63.0);
    let parts = ["| no buffer, no repeats |", "row copies 1024.0, one without"];
    has(&text("compare SAMPLE --slots 1024"), &parts);
    let shown = text("replay SAMPLE");
    let lines: Vec<_> = shown.lines().take(2).collect();
    let parts =
        ["31 times fewer bytes than a gather of every selected row, 14 times fewer than one"];
    has(lines[0], &parts);
    has(include_str!("../../../README.md"), &[&lines.join("\n")]);
}

/// Four steps of four tokens are one step of 16.
#[test]
fn steps_of_sixteen_tokens_agree_with_a_model() {
    let four = Trace::read(SAMPLE).expect("the sample");
    let stable = four.stable.map(|all| all.into_iter().step_by(4).collect());
    let trace = Trace { steps: four.steps / 4, tokens: 16, stable, ..four };
    let path = file("sixteen.npz");
    trace.write(&path).expect("scratch");
    let path = path.display().to_string();
    replay_and_check(&path, "--slots 8192 --page 16 --steps 8", "sixteen-learned");
    // S is N_q * K.
    let paper = "--slots 4096 --table paper --requests 2 --steps 8";
    replay_and_check(&path, paper, "sixteen-paper");
    for command in ["size", "compare"] {
        let report = json(&format!("{command} {path} --slots 4096 --steps 4"));
        assert_eq!(report["tokens"], 16, "{command}");
    }
}

/// The expected hits come from an independent implementation of the paper's equations in another
/// language, on the committed trace with one token per step. A print of other bits than the lowest
/// changes them by up to ten percentage points.
#[test]
fn the_papers_table_hits_as_the_papers_equations_do() {
    let trace = Trace::read(SAMPLE).expect("the sample").as_mtp0().expect("causal ids");
    // A file without `stable`, so that no row is rewritten.
    let ids = npy("ids.npy", &[trace.steps as u64, 1, trace.k as u64], &trace.ids);
    for (slots, hits) in [("256", 37_337), ("512", 53_386), ("1024", 61_303)] {
        let rules = "--table paper --lifetime constant:16 --primes 244529,1003273";
        let json = json(&format!("replay {ids} {rules} --slots {slots}"));
        assert_eq!(trace.ids.len() as u64 - json["misses"].as_u64().expect("a count"), hits);
    }
}

#[test]
fn the_simulated_device_agrees_in_one_launch_and_in_two() {
    if !has_cpp_compiler() {
        return;
    }
    let file = |options: &str, name: &str| {
        let report = replay_and_check(SAMPLE, &format!("--slots 1024 --steps 6 {options}"), name);
        let miss = array::<i32>(name, "miss", &[report["misses"].as_u64().expect("a number"), 4]);
        (array::<i32>(name, "slot", &[6, 4, 256]), miss)
    };
    let cpu = file("--spread 2 --cores 3", "cpu-6");
    for options in ["--launches 1 --cores 3", "--launches 2 --cores 40"] {
        let sim = file(&format!("--device ascend-sim {options}"), "sim-6");
        assert!(sim == cpu, "{options}");
    }
    // Requests that decode one sequence share its pool rows. If each of them appended the rows of a step, several cores
    // would write one row at the same time, which the simulator refuses as a race.
    for device in ["cpu", "ascend-sim"] {
        let requests = "--slots 1024 --steps 2 --requests 2";
        let shown = text(&format!("replay SAMPLE --device {device} {requests}"));
        assert!(shown.starts_with("4096 rows right, 0 wrong: "), "{shown}");
    }
}

/// Without a compiler the simulated device ends where it would compile kernels, which is after its choice of
/// the geometry.
#[test]
fn the_default_geometry_of_a_device_fits_its_unified_buffer() {
    for k in [2048, 4096] {
        let path = npy(&format!("wide-{k}.npy"), &[1, k], &(0..k as i32).collect::<Vec<_>>());
        let mut command = command(&format!("replay {path} --device ascend-sim"));
        let output = command.env("CXX", "/nonexistent/c++").output().expect("the program starts");
        let errors = errors(&output);
        assert!(errors.contains("a C++ compiler is needed"), "K = {k}: {errors}");
    }
    let geometry = &json("info --device ascend-sim")["geometry"];
    assert_eq!((&geometry["spread"], &geometry["retries"]), (&2.into(), &7.into()));
    let named = format!("{} --slots 8192 --spread 4", npy("wide.npy", &[1, 2048], &[0i32; 2048]));
    refused(&format!("replay {named} --device ascend-sim"), &["a vector core cannot run it"]);
}

#[test]
fn the_vector_machine_is_the_one_that_is_named() {
    for machine in avsg::cpu::machine::Machine::all() {
        let name = machine.to_string();
        let name = name.split(' ').next().expect("a word");
        let found = &json(&format!("replay SAMPLE --steps 1 --machine {name}"))["machine"];
        assert!(found.as_str().is_some_and(|found| found.starts_with(name)), "{name}: {found}");
    }
}
