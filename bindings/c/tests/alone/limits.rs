//! A lack of memory is a status, and what was made before is released. Each case runs
//! in a process of its own, because a few small allocations of the standard library end it.

use std::ffi::c_void;
use std::process::{Command, Output};
use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::{part, region};
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{allocations, alone};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The environment variable that tells a child what to do.
const CASE: &str = "AVSG_TEST_CASE";
/// The most bytes of an allocation that may end the process: docs/c-api.md lists them. Every array
/// of [`scenario`] is longer.
const MOST_FIXED: usize = 1024;
const STATES: usize = 1100;

/// Returns a status that is not AVSG_OK as an error.
fn done(status: avsg_status) -> Result<(), avsg_status> {
    if status == AVSG_OK { Ok(()) } else { Err(status) }
}

/// What a scenario makes.
type Made = (Handles, *mut avsg_workers);

/// Makes calls whose allocation number `fail_at`, counted from 1, fails, and destroys what they made. Returns the first
/// status that is not AVSG_OK, and whether the calls came to that allocation.
fn calls(
    fail_at: usize,
    run: impl FnOnce(&mut Made) -> Result<(), avsg_status>,
) -> (avsg_status, bool) {
    let mut made = (Handles::from_raw(null_mut(), null_mut(), null_mut()), null_mut());
    let (result, reached) = allocations::failing(fail_at, || run(&mut made));
    made.0.destroy();
    ok(avsg_workers_destroy(made.1));
    (result.err().unwrap_or(AVSG_OK), reached)
}

/// Returns choices that are not measured.
fn chosen() -> avsg_tuning {
    avsg_tuning { copier: avsg_copier::AVSG_COPIER_PLAIN as i32, ..sized() }
}

/// Makes a pool, workers, an engine and a plan, and runs a step.
fn scenario(cores: u32, fail_at: usize) -> (avsg_status, bool) {
    let mut pool_config = pool_config();
    // 128 chunks.
    (pool_config.layers, pool_config.rows, pool_config.chunk_bytes) = (1, 8192, 4096);
    let (mut config, tuning) = (engine_config(), chosen());
    (config.states, config.cores, config.page) = (STATES, cores, 0);
    config.tuning = &tuning;
    let workers_config = avsg_workers_config { threads: cores, ..sized() };
    let n = 300;
    let owned = OwnedBatch::uniform(K, n, 1, 100);
    let batch = c_batch(&owned);
    // SAFETY: handles are looked up, structs have their `size` set, and `owned` owns the arrays.
    calls(fail_at, |(made, workers)| unsafe {
        done(avsg_pool_create(&pool_config, &mut made.pool))?;
        done(avsg_workers_create(&workers_config, workers))?;
        config.workers = *workers;
        done(avsg_engine_create(&config, made.pool, &mut made.engine))?;
        done(avsg_plan_create(made.engine, n, n, &mut made.plan))?;
        done(avsg_engine_step(made.engine, &batch, made.plan, 0, null(), null_mut()))
    })
}

/// Makes a pool over memory that the caller laid out, an engine with an indexer for each layer and
/// the caller's slots, and a plan, and loads and forks a state. Each layer is a region of its own.
fn scenario_in_own_memory(fail_at: usize) -> (avsg_status, bool) {
    const LAYERS: usize = 160;
    let mut host = vec![[0u8; ROW * ROWS]; LAYERS];
    let mut slots = vec![[0u8; ROW * 2 * 64]; LAYERS];
    let regions: Vec<_> = host.iter_mut().map(|of| region(of.as_mut_ptr(), of.len())).collect();
    let part = |n| avsg_pool_part { region: n, first_layer: n, layers: 1, ..part(0, 0, 0) };
    let parts: Vec<avsg_pool_part> = (0..LAYERS).map(part).collect();
    let mut layout = avsg_pool_layout { row_stride: [ROW, 0, 0, 0], ..sized() };
    (layout.regions, layout.region_count) = (regions.as_ptr(), LAYERS);
    (layout.parts, layout.part_count) = (parts.as_ptr(), LAYERS);
    let mut pool_config = avsg_pool_config { layout: &layout, ..pool_config() };
    (pool_config.layers, pool_config.segments) = (LAYERS, 1);
    pool_config.segment_bytes = [ROW, 0, 0, 0];
    let starts: Vec<*mut c_void> = slots.iter_mut().map(|of| of.as_mut_ptr().cast()).collect();
    let (bases, slot_stride) = (starts.as_ptr(), [ROW, 0, 0, 0]);
    let buffer = avsg_caller_buffer { bases, base_count: LAYERS, slot_stride, ..sized() };
    let layer_indexer: Vec<u32> = (0..LAYERS as u32).collect();
    let (mut config, tuning) = (engine_config(), chosen());
    (config.layer_indexer, config.layer_indexers) = (layer_indexer.as_ptr(), LAYERS);
    (config.buffer, config.page, config.tuning) = (&raw const buffer, 0, &tuning);
    let list: Vec<i32> = (0..20).collect();
    let ids = avsg_i32s { data: list.as_ptr(), len: list.len() };
    let load = avsg_load { ids, indexer: 1, generation: 1, seq_len: ROWS as i32, ..sized() };
    // SAFETY: handles are looked up, structs have their `size` set, and the arrays and the memory
    // have the lengths beside them and outlive the handles.
    calls(fail_at, |(made, _)| unsafe {
        done(avsg_pool_create(&pool_config, &mut made.pool))?;
        done(avsg_engine_create(&config, made.pool, &mut made.engine))?;
        done(avsg_plan_create(made.engine, 64, 32, &mut made.plan))?;
        done(avsg_engine_load(made.engine, &load, made.plan))?;
        done(avsg_engine_fork(made.engine, 0, 1, &1, &2, 1))
    })
}

/// Returns the address space of this process in MiB, and its open files.
fn in_use() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: usize = size.split_whitespace().next().unwrap().parse().unwrap();
    (kib >> 10, std::fs::read_dir("/proc/self/fd").unwrap().count())
}

/// Runs this test program with a case and returns its output.
fn child(case: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // With one thread the test runs on the runner's own, which then allocates nothing beside it.
    command.args(["--exact", "limits::a_child_runs_its_case", "--nocapture", "--test-threads=1"]);
    command.env(CASE, case);
    // Backtraces take most of the time.
    command.env("RUST_BACKTRACE", "0").output().unwrap()
}

/// What a child does; alone, it does nothing.
#[test]
fn a_child_runs_its_case() {
    let _turn = alone::turn();
    let Ok(case) = std::env::var(CASE) else { return };
    let (kind, number) = case.split_once(' ').unwrap();
    let number: usize = number.parse().unwrap();
    // A child that is ended shall write no core file.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).unwrap();
    match kind {
        "fail" | "fail-own-memory" => {
            let scenario = match kind {
                "fail" => |fail_at| scenario(2, fail_at),
                _ => scenario_in_own_memory,
            };
            // The first run makes what stays for the life of a process.
            assert_eq!(scenario(0).0, AVSG_OK);
            let (space, files) = in_use();
            for n in number.. {
                let live = allocations::live_bytes();
                let (status, reached) = scenario(n);
                let leaked = allocations::live_bytes() - live;
                let status = status as i32;
                println!("allocation {n} reached {reached} status {status} leaked {leaked}");
                let now = in_use();
                assert!(now.0 < space + 2 && now.1 == files, "{now:?}, before {space} {files}");
                if !reached {
                    break;
                }
            }
        }
        "space" => {
            let unlimited = getrlimit(Resource::As);
            let before = in_use().0;
            // Steps of a third of a MiB meet the few pages that a starting thread maps as well.
            for third in 0..=3 * number {
                let current = Some(((before << 20) + third * 350_000) as u64);
                setrlimit(Resource::As, Rlimit { current, ..unlimited }).unwrap();
                let status = scenario(3, 0).0 as i32;
                setrlimit(Resource::As, unlimited).unwrap();
                println!("space {third} status {status} {}", last_error());
            }
        }
        "file" => {
            let few = Rlimit { current: Some(4096), maximum: Some(4096) };
            setrlimit(Resource::Fsize, few).unwrap();
            println!("status {} {}", scenario(1, 0).0 as i32, last_error());
        }
        other => panic!("{other}"),
    }
}

/// Returns the text of a child that must have ended well and printed nothing on standard error.
fn text(case: &str) -> String {
    let output = child(case);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{case}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number that follows `name` in a line.
fn number_after(line: &str, name: &str) -> i32 {
    let rest = line.split_once(name).unwrap().1.trim_start();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Returns the status in a line, which must be one that a lack of memory may have: some memory is not needed, for
/// example that of a figure in a message.
fn status_in(line: &str) -> usize {
    let status = number_after(line, "status ");
    assert!([AVSG_OK, AVSG_NO_MEMORY, AVSG_OS].iter().any(|&s| s as i32 == status), "{line}");
    status as usize
}

#[test]
fn every_allocation_may_fail_and_nothing_leaks() {
    let _turn = alone::turn();
    std::thread::scope(|scope| {
        scope.spawn(|| fail_each("fail", 24));
        fail_each("fail-own-memory", 18);
    });
}

/// Fails each allocation of a case in turn. At least 15 are refused with a status, and at most `most_fixed` end
/// the process.
fn fail_each(case: &str, most_fixed: usize) {
    let (mut refused, mut fixed, mut next) = (0, Vec::new(), 1);
    loop {
        let output = child(&format!("{case} {next}"));
        let [out, errors] = [output.stdout, output.stderr].map(|t| String::from_utf8(t).unwrap());
        for line in out.lines().filter(|line| line.starts_with("allocation ")) {
            next = number_after(line, "allocation ") + 1;
            assert!(line.ends_with("leaked 0"), "{line}");
            refused += usize::from(status_in(line) == AVSG_NO_MEMORY as usize);
        }
        let Some(rest) = errors.strip_prefix("memory allocation of ") else {
            let ended_well = output.status.success() && errors.is_empty();
            assert!(ended_well && out.contains("reached false"), "{next}: {errors} {out}");
            break;
        };
        let bytes = number_after(rest, "") as usize;
        assert!(bytes <= MOST_FIXED, "allocation {next} of {bytes} bytes ended the process");
        fixed.push(bytes);
        next += 1;
    }
    println!("{refused} refused, {} fixed: {fixed:?}", fixed.len());
    assert!(refused >= 15, "{refused} allocations were refused");
    // Those of a starting thread come at different places among the others, some of them twice.
    assert!(fixed.len() <= most_fixed, "docs/c-api.md lists the allocations that end the process");
}

#[test]
fn a_small_address_space_is_no_memory() {
    let _turn = alone::turn();
    let (mut seen, text) = ([0; 12], text("space 24"));
    for line in text.lines().filter(|line| line.starts_with("space ")) {
        seen[status_in(line)] += 1;
    }
    assert!(seen[AVSG_NO_MEMORY as usize] > 3 && seen[AVSG_OK as usize] > 3, "{seen:?}");
}

#[test]
fn a_pool_above_the_limit_of_files_is_refused_and_does_not_end_the_process() {
    let _turn = alone::turn();
    let text = text("file 0");
    assert!(text.contains(&format!("status {}", AVSG_INVALID as i32)), "{text}");
    assert!(text.contains("files of 4096 bytes; raise the limit (ulimit -f)"), "{text}");
}
