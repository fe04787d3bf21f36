//! One pool, two processes: the writer makes rows, the reader gathers them through an engine of its
//! own, also when the writer has been killed. On the CPU, on the simulated Ascend, and on one of each.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Role};
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{exact, fixture};

/// Set for the second process, which is this binary again, to the writer's device.
const CHILD: &str = "AVSG_TWO_PROCESSES_WRITER";
const PROMPT: i32 = 300;
const ROWS: usize = 512;
const K: usize = 12;
const PAGE: usize = 16;
/// Rows that the writer makes in a step.
const NEW: i32 = 2;

fn format() -> RowFormat {
    RowFormat::segments(&[100, 28]).unwrap()
}

/// An engine on a device, with the kernels that are shipped.
fn engine(device: &str, states: usize, cores: usize, pool: HostPool) -> Engine {
    let params = Params { page: PAGE as u32, ..Params::wide(K as u32, 2, 128) };
    if device == "cpu" {
        return fixture::engine(params, states, cores, pool);
    }
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let options = AscendOptions::new(context);
    Engine::on_ascend(Config { cores, ..Config::new(params, states) }, pool, &options).unwrap()
}

/// A batch of one request, whose blocks are the pool's in order.
fn owned(numbers: [i32; 4], rows: &[Vec<i32>], gap: usize) -> OwnedBatch {
    let blocks = ROWS / PAGE;
    let (block_stride, blocks) = (blocks, (0..blocks as i32).collect());
    let mut owned = OwnedBatch { block_stride, blocks, ..OwnedBatch::new(K, gap) };
    owned.push(numbers, rows);
    owned
}

fn ids(step: i32, below: i32, newest: bool) -> Vec<i32> {
    let id = |i: i32| if newest && i < NEW { below - 1 - i } else { (step * 13 + i * 7) % below };
    let mut ids: Vec<i32> = (0..K as i32).map(id).collect();
    // Distinct, as an indexer's are.
    for i in 0..K {
        let taken = ids[..i].contains(&ids[i]);
        ids[i] = if taken { -1 } else { ids[i] };
    }
    ids
}

/// The version of a row: the prompt's is its layer's number, 0; what step t wrote has t + 1.
fn content(_: usize, id: i32) -> (i32, u32) {
    (id, if id < PROMPT { 0 } else { ((id - PROMPT) / NEW) as u32 + 1 })
}

/// The writer: on each byte from the socket it decodes a step, appends its rows, and answers.
#[test]
fn writer() {
    let Ok(device) = std::env::var(CHILD) else { return };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let mut socket = UnixStream::from(socket);
    let pool = fixture::pool(1, ROWS, format());
    pool.send(&socket).unwrap();
    let mut engine = engine(&device, 1, 1, pool);
    let mut plan = engine.new_plan(2, 1).unwrap();
    let mut order = [0];
    while socket.read_exact(&mut order).is_ok() {
        let step = i32::from(order[0]);
        let stable = PROMPT + NEW * step;
        let rows = [ids(step, stable + 1, true), ids(step + 1, stable + 2, true)];
        let owned = owned([0, 1, stable, stable + NEW], &rows, 0);
        let mut fresh = FreshRows::new(&format(), 2);
        (0..2).for_each(|g| fresh.put(g, stable + g as i32, step as u32 + 1));
        let fresh = Fresh { segments: &fresh.segments() };
        engine.step(&owned.batch(), &mut plan, 0, Some(&fresh)).unwrap();
        assert!(exact::check_step(&engine, &plan, &owned, 0, content) > K);
        engine.append(&owned.batch(), 0, &fresh).unwrap();
        socket.write_all(&order).unwrap();
    }
}

fn gather(engine: &mut Engine, plan: &mut Plan, step: i32, len: i32) {
    let rows = [ids(step, len, true), ids(step * 3 + 1, len, false)];
    let owned = owned([0, 4, -1, len], &rows, 3);
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    assert!(exact::check_step(engine, plan, &owned, 0, content) > K, "step {step}");
    assert_eq!(plan.status(0), 0);
}

#[test]
fn a_reader_gathers_what_the_writer_appends_and_outlives_it() {
    let (cpu, simulated) = ("cpu", "ascend-sim");
    for devices in [[cpu, cpu], [simulated, simulated], [cpu, simulated], [simulated, cpu]] {
        let needs_compiler = devices.contains(&simulated);
        if needs_compiler && avsg_sim::compiler::cpp().is_none() {
            println!("skipped: no C++ compiler, which the emitted kernels need here");
            continue;
        }
        let [writer, reader] = devices;
        outlives(writer, reader);
    }
}

fn outlives(writer: &str, reader: &str) {
    let (mut here, there) = UnixStream::pair().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--test-threads=1"])
        .env(CHILD, writer)
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let export = avsg::pool::PoolExport::recv(&here).unwrap();
    let again = export.fd.try_clone().unwrap();
    let desc = export.desc.clone();
    let pool = HostPool::import(&export.desc, export.fd, Role::Reader).unwrap();
    let mut engine = engine(reader, 1, 2, pool);
    let mut plan = engine.new_plan(2, 1).unwrap();
    let mut answer = [0];
    for step in 0..40u8 {
        here.write_all(&[step]).unwrap();
        here.read_exact(&mut answer).unwrap();
        assert_eq!(answer[0], step);
        gather(&mut engine, &mut plan, step.into(), PROMPT + NEW * (i32::from(step) + 1));
    }

    // A reader cannot append, and says so before it touches read-only memory.
    let owned = owned([0, 4, PROMPT, PROMPT + 1], &[ids(0, PROMPT, false)], 0);
    let junk = [&[0; 100][..], &[0; 28][..]];
    let refused = engine.append(&owned.batch(), 0, &Fresh { segments: &junk }).unwrap_err();
    assert!(refused.to_string().contains("reader"), "{refused}");
    let taken = HostPool::import(&desc, again.try_clone().unwrap(), Role::Writer).unwrap_err();
    assert!(taken.to_string().contains("has a writer"), "{taken}");

    // It dies in the middle of a step, whose rows may be half there; nobody was told of them.
    here.write_all(&[40]).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was killed in the middle of its workload");
    for step in 40..80 {
        gather(&mut engine, &mut plan, step, PROMPT + NEW * 40);
    }
    // The right to write ended with its owner.
    let successor = HostPool::import(&desc, again, Role::Writer).unwrap();
    let mut row = [0; 128];
    fill_row(PROMPT + 80, 41, &mut row);
    successor.write_row(0, (PROMPT + 80) as usize, &row).unwrap();
    gather(&mut engine, &mut plan, 80, PROMPT + 81);
}
