//! The program runs on a driver for tests (`tests/libcuda.c`), whose kernels run on the shim.

mod libcuda;

use std::fs;
use std::path::Path;
use std::time::Duration;

use avsg_cli::baseline::Policy;
use avsg_cli::terminal::exit_status;
use avsg_sim::nvcc;
use avsg_testkit::tier::thorough;
use serde_json::Value;

use super::device::Gpu;
use super::driver::{Driver, Functions};
use super::memory::{Memory, bytes, words};
use super::pack::{self, Image};
use super::sizes::{ProbeSizes, Sizes};
use super::step::{Kernel, Step};
use super::texts::table_name;
use super::{judge, measure};
use crate::contenders::HiSparse;
use libcuda::{Fake, Mode, start};

/// The sizes of a run on the shim.
const SMALL: Sizes = Sizes {
    k: 512,
    slots: &[1024],
    spreads: &[2],
    row_bytes: &[656],
    missing: &[2, 103, 512],
    requests: &[2],
    pool_rows: 8192,
    threads: 256,
    flush_bytes: 4096,
    warm_up: 1,
    samples: 1,
    cell_limit: Duration::from_secs(60),
    run_limit: Duration::from_secs(600),
    probes: ProbeSizes {
        rows: 100,
        blocks: &[1, 3],
        warps: &[1, 8],
        ring_bytes: &[32 << 10],
        // More than requests.
        tables: &[3],
        engine_bytes: 1 << 20,
    },
};

/// It states all fields of the JSON.
const README: &str = include_str!("../../README.md");

#[test]
fn a_run_gives_figures_without_a_wrong_byte() {
    let all = Sizes {
        slots: &[1024, 2048],
        spreads: &[2, 4],
        row_bytes: &[512, 1152],
        requests: &[1],
        ..SMALL
    };
    for (capability, sizes) in [(9, &SMALL), (8, &all), (9, &all)] {
        if capability == 8 && !thorough() {
            return println!("default tier: one geometry and one architecture of three");
        }
        let mode = Mode { capability, ..Mode::default() };
        let Some((fake, images)) = start(mode, sizes) else { return };
        let report = measure(fake.driver(), images, sizes).unwrap_or_else(|e| panic!("{e:#}"));
        judge(&report, "gpu.json").unwrap();
        assert_eq!(fake.live(), 0, "memory and handles that are not released");
        let report = serde_json::to_value(&report).unwrap();
        let objects = ["/machine", "/method", "/cells/0", "/cells/0/us", "/probes/0", ""];
        for object in objects.map(|at| report.pointer(at).and_then(Value::as_object).unwrap()) {
            for field in object.keys() {
                let stated = [format!("`{field}`"), format!("`{field}[]`")];
                assert!(stated.iter().any(|name| README.contains(name)), "{field}");
            }
        }
        let cells = report["cells"].as_array().unwrap();
        let geometries = sizes.geometries().count();
        let kernels =
            geometries * (sizes.row_bytes.len() + 1) + sizes.slots.len() * sizes.row_bytes.len();
        assert_eq!(cells.len(), kernels * sizes.missing.len() * sizes.requests.len());
        for cell in cells {
            // An id of a table that has lost its links is one miss more.
            let more = cell["misses"].as_f64().unwrap() - cell["missing"].as_f64().unwrap();
            let most = if cell["kernel"] == "comparator" { 0.0 } else { 3.0 };
            assert!((0.0..=most).contains(&more), "{cell}");
            assert!(cell["us"]["median"].as_f64().unwrap() > 0.0, "{cell}");
        }
        let probes = report["probes"].as_array().unwrap();
        let count = |name| probes.iter().filter(|probe| probe["probe"] == name).count();
        let gathers = sizes.row_bytes.len() * sizes.probes.blocks.len();
        assert_eq!(count("loads"), gathers);
        assert_eq!(count("loads_ahead"), gathers);
        assert_eq!(count("bulk"), if capability == 9 { 2 * gathers } else { 0 });
        assert_eq!(count("table_bulk"), if capability == 9 { geometries } else { 0 });
        assert_eq!((count("empty_kernels"), count("copy_engine")), (2, 1));
    }
}

/// A driver that runs no kernel leaves all slots as they were.
#[test]
fn wrong_bytes_are_found() {
    let mode = Mode { dry: true, ..Mode::default() };
    let Some((fake, images)) = start(mode, &SMALL) else { return };
    let report = measure(fake.driver(), images, &SMALL).unwrap();
    let wrong = report.wrong();
    assert!(wrong > 1000 * 656, "{wrong}");
    let error = judge(&report, "gpu.json").unwrap_err();
    assert_eq!(exit_status(&error), 1);
    assert!(error.to_string().contains(&format!("{wrong} slots and bytes are wrong")), "{error}");
}

/// Each function of the driver fails in turn. A driver without words for its codes is no reason to lose the code.
#[test]
fn the_call_that_failed_is_named() {
    let mode = Mode { failing: "cuInit", code: 100, ..Mode::default() };
    let Some(fake) = Fake::start(mode) else { return };
    let text = Driver::open(fake.path).err().unwrap().to_string();
    let named = "cuInit failed with code 100 (CUDA_ERROR: words); make a GPU";
    assert!(text.starts_with(named), "{text}");
    drop(fake);
    let words = ["cuGetErrorName", "cuGetErrorString"];
    for &name in Functions::NAMES.iter().filter(|name| !words.contains(name)) {
        let mode = Mode { failing: name, code: 2, dry: true, ..Mode::default() };
        let Some((fake, images)) = start(mode, &SMALL) else { return };
        let result = Driver::open(fake.path).and_then(|driver| measure(driver, images, &SMALL));
        let Err(error) = result else { panic!("{name} failed, and the run did not") };
        let text = format!("{error:#}");
        assert!(text.contains(&format!("{name} failed with code 2 (CUDA_ERROR_OUT")), "{text}");
        assert!(text.contains("free memory"), "{text}");
        assert_eq!(exit_status(&error), 1, "{text}");
        // What a call did not release, or a capture that did not end, is left.
        let leaves = ["Free", "Destroy", "Unload", "Release", "EndCapture"];
        let leaves = leaves.iter().any(|end| name.contains(end));
        assert!(leaves || fake.live() == 0, "{name}: {} things are not released", fake.live());
    }
}

#[test]
fn a_machine_that_cannot_run_is_refused_with_status_2() {
    let refused = |error: anyhow::Error, words: &[&str]| {
        let text = format!("{error:#}");
        assert_eq!(exit_status(&error), 2, "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{text}"));
    };
    let driver = |name: &str| Driver::open(Path::new(name)).err().unwrap();
    let words = ["libcuda-of-no-machine.so.1: cannot open", "machine with an NVIDIA GPU"];
    refused(driver("libcuda-of-no-machine.so.1"), &words);
    refused(driver("libc.so.6"), &["CUDA driver", "libc.so.6, which has no cuInit"]);
    let own = std::env::current_exe().unwrap();
    refused(pack::read(&own, 90).unwrap_err(), &["machine code", "gpu pack"]);
    let Some(fake) = Fake::start(Mode { capability: 12, ..Mode::default() }) else { return };
    let error = measure(fake.driver(), |_| Ok(Vec::new()), &SMALL).err().unwrap();
    refused(error, &["compute capability is 12", "8, 9 and 10"]);
    drop(fake);
    let Some(fake) = Fake::start(Mode::default()) else { return };
    let large = Image { name: String::new(), shared_bytes: 300 << 10, code: Vec::new() };
    let error = measure(fake.driver(), |_| Ok(vec![large.clone()]), &SMALL).err().unwrap();
    refused(error, &["shared memory is 232448", "for sm_90 needs 307200 bytes"]);
}

#[test]
fn a_packed_program_has_all_machine_code() {
    let folder = tempfile::tempdir().unwrap();
    let (program, packed) = (folder.path().join("program"), folder.path().join("packed"));
    fs::write(&program, "\x7FELF").unwrap();
    let compiled = |text: &super::texts::Text, sm: u32| {
        Ok(format!("{} {sm} {}", text.name, text.text.contains("avsg_probe_bulk")).into_bytes())
    };
    let bytes = pack::pack(&program, &packed, compiled).unwrap();
    assert_eq!(fs::metadata(&packed).unwrap().len(), bytes);
    assert!(fs::read(&packed).unwrap().starts_with(b"\x7FELF"));
    for sm in [80, 90, 100] {
        let images = pack::read(&packed, sm).unwrap();
        assert_eq!(images.len(), Sizes::FULL.geometries().count() + 1);
        for image in images {
            let code = format!("{} {sm} {}", image.name, image.name == "probes");
            assert_eq!(image.code, code.into_bytes());
            assert!(image.shared_bytes > 90 << 10 && image.shared_bytes <= 227 << 10);
        }
    }
}

/// nvcc compiles all texts for all architectures without a warning, and no kernel keeps registers in memory.
#[test]
fn nvcc_compiles_all_kernels() {
    if !thorough() {
        return println!("default tier: nvcc is left to the thorough tier");
    }
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("packed");
    let own = std::env::current_exe().unwrap();
    let kept = own.with_file_name("cuda");
    fs::create_dir_all(&kept).unwrap();
    if let Err(why) = nvcc::find(&kept.join("cuda-packages"), &[nvcc::PACKAGE]) {
        return println!("skipped: {why}");
    }
    pack::pack(&own, &packed, |text, sm| pack::compile(text, sm, &kept)).unwrap();
    let images = pack::read(&packed, 90).unwrap();
    assert!(images.iter().all(|image| image.code.starts_with(b"\x7FELF")));
}

/// The comparator has the misses of the policy that it implements, step for step.
#[test]
fn the_comparator_evicts_as_its_policy() {
    let Some((fake, images)) = start(Mode::default(), &SMALL) else { return };
    let images = images(90).unwrap();
    let gpu = Gpu::open(fake.driver()).unwrap();
    let p = SMALL.geometries().next().unwrap();
    let image = images.iter().find(|image| image.name == table_name(&p)).unwrap();
    let module = gpu.load(&image.code).unwrap();
    let kernel = Kernel::Comparator;
    let function = &kernel.find(&module, &p, SMALL.threads, image.shared_bytes).unwrap();
    let memory = &Memory::new(&gpu, &SMALL).unwrap();
    let (sizes, row_bytes, requests) = (&SMALL, 656, 1);
    let step = Step { kernel, function, memory, sizes, p, row_bytes, requests };
    let mut policy = HiSparse::new(p.slots as usize);
    memory.requests.upload(&bytes(&[1])).unwrap();
    memory.tables.upload(&kernel.empty_tables(&p, 1)).unwrap();
    let mut held = vec![-1; p.slots as usize];
    let (mut all, mut hits) = (0, 0);
    for n in 0..12 {
        // Selections move, and some return after a while.
        let first = [0, 300, 450, 900, 100, 1300][n % 6] + 40 * n as u32;
        let ids: Vec<i32> = (first..first + p.k).map(|i| SMALL.id(1, 0, i) as i32).collect();
        memory.ids.upload(&bytes(&ids)).unwrap();
        gpu.launch(&step.launch(p.k).unwrap()).unwrap();
        let mut table = vec![0; held.len() * 4];
        gpu.download(memory.tables.span(), &mut table).unwrap();
        let table = words(&table);
        let mut got: Vec<i32> = table.iter().filter(|id| !held.contains(id)).copied().collect();
        held = table;
        let mut want = Vec::new();
        policy.token(&ids, &mut want);
        (all, hits) = (all + ids.len(), hits + ids.len() - want.len());
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "step {n}");
    }
    assert!(hits > all / 8 && hits < all * 7 / 8, "{hits} hits of {all}");
}
