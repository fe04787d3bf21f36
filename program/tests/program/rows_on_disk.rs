//! Tests of the commands for rows on a disk: `bench disk`, `size --link disk`, `replay --file`, and the file in
//! `info`. Times are only checked to be positive.

use std::fs;

use serde_json::Value;

use crate::support::{command, errors, folder, has, json, near, number, text};

/// Steps of one token that fit the committed trace behind the warm-up.
const BENCH: &str = "bench disk SAMPLE --slots 512 --steps 24";

/// Checks a report of `bench disk`.
fn check_bench(report: &Value) {
    let settings = report["settings"].as_array().expect("settings");
    for row in settings {
        assert_eq!(row["wrong_rows"], 0, "{row}");
        assert!(number(&row["step_us"]) > 0.0 && number(&row["memory_bytes"]) > 0.0, "{row}");
        assert!(number(&row["step_us"]) <= number(&row["step_p99_us"]), "{row}");
    }
    let [every, mapped, avsg] = &settings[..] else { panic!("{report}") };
    assert_eq!((&every["setting"], &mapped["setting"]), (&"every row".into(), &"mapped".into()));
    let record = number(&report["file"]["record_bytes"]);
    assert_eq!(record % number(&report["file"]["block"]), 0.0, "{report}");
    assert_eq!(number(&every["bytes_per_step"]), 256.0 * record);
    for count in ["bytes_per_step", "reads_per_step"] {
        assert!(number(&avsg[count]) < number(&every[count]) / 2.0, "{report}");
    }
    assert_eq!(mapped["memory_bytes"], avsg["memory_bytes"]);
    let stage_two = &report["stage_two"];
    assert!(number(&stage_two["reads_per_second"]) > 0.0, "{stage_two}");
    let rate = &stage_two["fio_reads_per_second"];
    assert!(rate.is_null() != stage_two["fio_missing"].is_null(), "{stage_two}");
}

#[test]
fn bench_disk_compares_the_settings_every_row_is_right_and_the_page_says_that_fio_is_missing() {
    check_bench(&json(BENCH));
    let path = folder("bench-disk").join("report.json");
    let options = "--layers 3 --row-bytes 200 --buffered";
    let mut command = command(&format!("{BENCH} {options} --json {}", path.display()));
    let output = command.env("PATH", "/nonexistent").output().expect("the program starts");
    assert!(output.status.success(), "{}", errors(&output));
    let parts = ["every row", "mapped", "AVSG", "fio is not installed", "padding"];
    has(&String::from_utf8_lossy(&output.stdout), &parts);
    check_bench(&serde_json::from_slice(&fs::read(path).expect("a report")).expect("JSON"));
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
        let (times, disk) = (&copies["times"], &copies["times"]["disk"]);
        let reads = number(&copies["misses_per_step"]) * 5.0;
        let wait = 0.08 * reads.min(1.0) + (reads / 50.0).max(reads * record / 2e6);
        near(&disk["reads_per_step"], 2.0 * reads);
        near(&disk["read_ms"], 2.0 * wait);
        near(&disk["tpot_ms"], (number(&times["matching_ms"]) + 2.0 * wait) / 4.0);
    }
    // The wish is one for rows on the disk.
    let host = number(&points[0]["copies"]["times"]["tpot_ms"]);
    let wish = |ms: f64| json(&format!("{line} --tpot-ms {ms}"))["recommended"].clone();
    assert_eq!(wish(host * 1.01), Value::Null);
    let slow = number(&points[0]["copies"]["times"]["disk"]["tpot_ms"]);
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
    let report =
        json("info --file --row-bytes 1152 --layers 6 --indexers 2 --context 100 --requests 3");
    let files = report["files"].as_array().expect("files");
    for (file, block, record) in [(&files[0], 512, 3584), (&files[1], 4096, 4096)] {
        assert_eq!((&file["block"], &file["record_bytes"]), (&block.into(), &record.into()));
        assert_eq!(file["bytes"], 3 * 2 * 100 * record);
        near(&file["padding_percent"], 100.0 - 100.0 * 3.0 * 1160.0 / f64::from(record));
    }
    has(&text("info --file"), &["file, blocks of 4096"]);
    assert!(!text("info").contains("file, blocks"));
}

#[test]
fn replay_from_a_file_gives_the_rows_and_counts_of_memory() {
    let folder = folder("replayed");
    for options in ["--launches 2", "--launches 1 --page 16 --requests 2 --segments 500,12"] {
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
