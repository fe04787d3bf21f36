//! Tests of the commands for rows on a disk: `bench disk`, `size --link disk`, `replay --file`, and the file in
//! `info`. Times are only checked to be positive.

use std::fs;

use serde_json::Value;

use crate::support::{command, errors, folder, has, json, near, number, text};

const BENCH: &str = "bench disk SAMPLE --k 64 --slots 256 --steps 4 --compute-us 50";

/// Returns the rows of a race in a report of `bench disk`: the names, and the rows.
fn race(report: &Value, at: usize) -> (Vec<&str>, &Vec<Value>) {
    let rows = report["races"][at]["rows"].as_array().expect("rows");
    for row in rows {
        assert!(number(&row["step_us"]) > 0.0 && number(&row["bytes_per_step"]) >= 0.0, "{row}");
        assert!(number(&row["step_us"]) <= number(&row["step_p99_us"]), "{row}");
    }
    (rows.iter().map(|row| row["what"].as_str().expect("a name")).collect(), rows)
}

/// Checks the races with arithmetic and without.
fn check_arithmetic(report: &Value, first: usize, ways: &[&str]) {
    for at in first..first + 2 {
        let (names, rows) = race(report, at);
        assert_eq!(names, ways);
        for count in ["operations_per_step", "bytes_per_step"] {
            assert!(rows.iter().all(|row| row[count] == rows[0][count]), "{count}: {rows:?}");
        }
    }
}

#[test]
fn bench_disk_compares_the_settings_every_row_is_right_and_the_page_says_that_fio_is_missing() {
    let folder = folder("bench-disk");
    let (path, place) = (folder.join("report.json"), folder.join("files"));
    fs::create_dir(&place).expect("a folder");
    let options = "--layers 5 --indexers 2 --row-bytes 200 --buffered";
    let files = format!("--folder {} --json {}", place.display(), path.display());
    let mut command = command(&format!("{BENCH} {options} {files}"));
    let output = command.env("PATH", "/nonexistent").output().expect("the program starts");
    assert!(output.status.success(), "{}", errors(&output));
    let parts =
        ["A prompt of", "every row", "fio is not installed", "padding", "every row was right"];
    has(&String::from_utf8_lossy(&output.stdout), &parts);
    assert_eq!(fs::read_dir(&place).expect("the folder").count(), 0);
    let report: Value = serde_json::from_slice(&fs::read(path).expect("a report")).expect("JSON");
    let file = &report["file"];
    let (block, padded) = (number(&file["block"]), number(&file["padded_bytes"]));
    assert_eq!(number(&file["record_bytes"]) % block, 0.0, "{file}");
    assert_eq!(number(&file["payload_bytes"]), 1000.0 * number(&report["rows"]));
    let (names, session) = race(&report, 0);
    assert_eq!(names, ["prompt", "all rows", "first step"]);
    assert!((1.0..1.1).contains(&(number(&session[0]["bytes_per_step"]) / padded)), "{session:?}");
    assert_eq!(number(&session[1]["bytes_per_step"]), padded);
    assert_eq!(number(&session[2]["bytes_per_step"]), 64.0 * padded / number(&report["rows"]));
    let (names, settings) = race(&report, 1);
    assert_eq!(names, ["every row", "mapped", "AVSG"]);
    let [every, mapped, avsg] = &settings[..] else { panic!("{report}") };
    assert_eq!(every["bytes_per_step"], session[2]["bytes_per_step"]);
    for count in ["bytes_per_step", "operations_per_step"] {
        assert!(number(&avsg[count]) < number(&every[count]) / 2.0, "{report}");
    }
    assert_eq!(mapped["memory_bytes"], avsg["memory_bytes"]);
    check_arithmetic(&report, 2, &["transfer", "hits first", "followers", "two groups"]);
}

#[test]
fn bench_disk_has_the_rates_of_fio_and_computes_over_rows_in_memory() {
    let report = json(&format!("{BENCH} --requests 1"));
    let missing = report["fio_missing"].is_string();
    assert_eq!(race(&report, 0).0.len(), if missing { 3 } else { 6 }, "{report}");
    assert_eq!(report["races"][0]["rows"][0]["time_ratio"].is_null(), missing);
    check_arithmetic(&report, 2, &["transfer", "hits first", "followers"]);
    let report = json(&format!("{BENCH} --memory --layers 2 --indexers 2"));
    assert!(report["file"].is_null());
    check_arithmetic(&report, 0, &["transfer", "hits first", "two groups"]);
}

#[test]
fn size_with_a_disk_follows_its_formula_and_decides_by_it() {
    let model = "--link-gbs 30 --match-us 20 --layers 6 --indexers 2 --requests 5 --row-bytes 656";
    let line = format!("size SAMPLE {model} --link disk:50000,2,80,512");
    let report = json(&line);
    let disk = &report["model"]["disk"];
    // Three rows of 656 bytes with their checksums.
    let record = (3.0 * 664.0f64 / 512.0).ceil() * 512.0;
    near(&disk["record_bytes"], record);
    near(&disk["padding_percent"], 100.0 - 100.0 * 3.0 * 664.0 / record);
    near(&disk["file_bytes"], 5.0 * 2.0 * record * number(&report["deployment"]["context"]));
    let points = report["points"].as_array().expect("points");
    let all = [&report["no_buffer"]].into_iter().chain(points.iter().map(|point| &point["copies"]));
    for copies in all {
        let (times, disk) = (&copies["times"][0], &copies["times"][0]["disk"]);
        let reads = number(&copies["misses_per_step"]) * 5.0;
        let wait = 0.08 * reads.min(1.0) + (reads / 50.0).max(reads * record / 2e6);
        near(&disk["wait_ms"], 2.0 * wait);
        near(&disk["tpot_ms"], (number(&times["matching_ms"]) + 2.0 * wait) / 4.0);
    }
    // The wish is one for rows on the disk.
    let host = number(&points[0]["copies"]["times"][0]["host"]["tpot_ms"]);
    let wish = |ms: f64| json(&format!("{line} --tpot-ms {ms}"))["recommended"].clone();
    assert_eq!(wish(host * 1.01), Value::Null);
    let slow = number(&points[0]["copies"]["times"][0]["disk"]["tpot_ms"]);
    assert_eq!(wish(slow * 1.01)["slots"], points[0]["slots"]);
}

#[test]
fn size_measures_a_disk_and_host_memory() {
    let report = json("size SAMPLE --slots 1024 --match-us 20 --layers 2 --link disk");
    let model = &report["model"];
    assert_eq!(model["link_measured"], true);
    assert!(number(&model["link_gbs"]) > 0.0);
    for speed in ["reads_per_second", "gbs", "us"] {
        assert!(number(&model["disk"][speed]) > 0.0, "{model}");
    }
    assert!(model["disk"]["folder"].is_string());
    let shown = text("size SAMPLE --slots 1024 --match-us 20 --link-gbs 30 --link disk:9000,1,90");
    has(
        &shown,
        &["ms of KV offload per token with rows on the disk", "disk: ms of KV", "as given"],
    );
    has(&shown, &["blocks of 4096"]);
}

#[test]
fn info_shows_the_file_of_a_row_format() {
    let line = "info --file --row-bytes 1152 --layers 6 --indexers 2 --context 100 --requests 3";
    let report = json(line);
    let parts =
        ["records of at most 3584 B, 2.9 % padding", "records of at most 4096 B, 15.0 % padding"];
    has(&text(line), &parts);
    for (block, record) in [(512, 3584), (4096, 4096)] {
        assert_eq!(report["bytes"][format!("file_blocks_of_{block}")], 3 * 2 * 100 * record);
    }
    has(&text("info --file"), &["file, blocks of 4096"]);
    assert!(!text("info").contains("file, blocks"));
}

#[test]
fn replay_from_a_file_gives_the_rows_and_counts_of_memory() {
    let folder = folder("replayed");
    for options in ["--launches 2", "--launches 1 --page 16 --requests 2 --row-bytes 500,12"] {
        let line = format!("replay SAMPLE --slots 1024 --steps 20 {options}");
        let (memory, file) = (json(&line), json(&format!("{line} --file {}", folder.display())));
        for figure in ["hit_rate", "misses", "verified_rows", "wrong_rows"] {
            assert_eq!(memory[figure], file[figure], "{figure}");
        }
        assert!(memory["file"].is_null() && number(&file["file"]["read_bytes"]) > 0.0);
        assert!(number(&file["file"]["written_bytes_per_row"]) >= 512.0);
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
    }
    let line = format!("replay SAMPLE --steps 4 --file {}", folder.display());
    has(&text(&line), &["reads of", "bytes per row"]);
}
