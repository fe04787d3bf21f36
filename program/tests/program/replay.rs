//! Tests of `avsg replay`: every row is right, and the counts are those of `size` and of the paper's equations.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;

use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params, Table};
use avsg_cli::baseline::count_operator_hits;
use avsg_cli::trace::Trace;
use serde_json::Value;
use zip::ZipArchive;

use crate::support::{
    SAMPLE, command, errors, file, has, has_cpp_compiler, json, near, npy, number, refused, text,
};

/// Replays a trace, whose ids must all get their rows, and returns the JSON.
fn replayed(path: &str, options: &str) -> Value {
    let json = json(&format!("replay {path} {options}"));
    let g = &json["geometry"];
    let sizes = [&json["steps"], &g["tokens"], &g["k"], &g["requests"]];
    let ids: u64 = sizes.iter().map(|n| n.as_u64().expect("a number")).product();
    assert_eq!(
        (&json["verified_rows"], &json["wrong_rows"]),
        (&ids.into(), &0.into()),
        "{options}"
    );
    near(&json["bytes_copied"], number(&json["misses"]) * number(&g["row_bytes"]));
    json
}

/// Four steps of four tokens are one step of 16.
fn sixteen() -> String {
    let four = Trace::read(SAMPLE).expect("the sample");
    let stable = four.stable.map(|all| all.into_iter().step_by(4).collect());
    let trace = Trace { steps: four.steps / 4, tokens: 16, stable, ..four };
    let path = file("sixteen.npz");
    trace.write(&path).expect("scratch");
    path.display().to_string()
}

#[test]
fn every_row_is_right_with_every_option_and_with_steps_of_sixteen_tokens() {
    let (json, sixteen) = (replayed(SAMPLE, ""), sixteen());
    assert!(number(&json["hit_rate"]) > 97.0);
    let fields = ["plan_us", "transfer_us", "pages"];
    fields.iter().for_each(|field| assert!(!json[field].is_null(), "{field}"));
    for (trace, options) in [
        (SAMPLE, "--mtp0 --slots 256 --cores 7 --steps 80"),
        (SAMPLE, "--table paper --slots 1024 --row-bytes 64,9 --steps 20"),
        (SAMPLE, "--page 16 --requests 3 --row-bytes 656 --steps 16"),
        (&sixteen, "--slots 8192 --page 16 --steps 8"),
        // S is N_q * K.
        (&sixteen, "--slots 4096 --table paper --requests 2 --steps 8"),
    ] {
        replayed(trace, options);
    }
    let json = replayed(SAMPLE, "--launches 1 --spread 2 --lifetime constant:127 --steps 16");
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

/// The expected hits come from an independent implementation of the paper's equations in another
/// language, on the committed trace with one token per step. A print of other bits than the lowest
/// changes them by up to ten percentage points.
#[test]
fn the_papers_table_hits_as_the_papers_equations_do() {
    let trace = Trace::read(SAMPLE).expect("the sample").as_mtp0().expect("causal ids");
    // Without `stable`, so that no row is rewritten.
    let trace = Trace { stable: None, ..trace };
    let machine = Machine::all()[0];
    let table = Table::Paper { a1: 244_529, a2: 1_003_273 };
    for (slots, hits) in [(256, 37_337), (512, 53_386), (1024, 61_303)] {
        let lifetime = Lifetime::Constant(16);
        let params = Params { table, lifetime, ..Params::paper(256, 1, slots) };
        assert_eq!(count_operator_hits(&trace, &params, machine).expect("memory").hits, hits);
    }
}

#[test]
fn the_simulated_device_agrees_in_one_launch_and_in_two() {
    if !has_cpp_compiler() {
        return;
    }
    let results = |options: &str, name: &str| {
        let path = file(name);
        let to = format!("--slots 1024 --steps 6 --results {} {options}", path.display());
        let misses = number(&replayed(SAMPLE, &to)["misses"]) as usize;
        let mut all = ZipArchive::new(File::open(path).expect("a file")).expect("an npz file");
        ["slot", "hit", "misses", "miss", "tag"].map(|name| {
            let mut bytes = Vec::new();
            let mut array = all.by_name(&format!("{name}.npy")).expect("an array");
            array.read_to_end(&mut bytes).expect("its bytes");
            // NumPy's header has 128 bytes.
            let [words, rows] = [6 * 4 * 256, misses].map(|n| 128 + 4 * n);
            let lengths = HashMap::from([
                ("slot", words),
                ("tag", 2 * words - 128),
                ("miss", 4 * rows - 384),
            ]);
            assert!(lengths.get(name).is_none_or(|&len| len == bytes.len()), "{name}");
            bytes
        })
    };
    let cpu = results("--spread 2 --cores 3", "cpu-6.npz");
    for options in ["--launches 1 --cores 3", "--launches 2 --cores 40"] {
        let sim = results(&format!("--device ascend-sim {options}"), "sim-6.npz");
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
