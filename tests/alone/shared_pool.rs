//! Two processes share a pool, as the ranks of a node do: the writer appends rows, and both gather them through
//! engines of their own, the reader also after the writer was killed. Each process uses the CPU or the simulated
//! device.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{DESC_BYTES, HostPool, PoolDesc, Role};
use avsg::rows::RowFormat;

use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{alone, exact, fixture, tier};

use crate::prerequisites;

/// Environment variable that holds the device of the writer, a second process of this binary.
const WRITER_DEVICE: &str = "AVSG_TWO_PROCESSES_WRITER";
/// Rows of the pool that are written before the first step.
const PROMPT: i32 = 300;
const ROWS: usize = 512;
const K: usize = 8;
const PAGE: usize = 16;
/// Rows that the writer appends in a step.
const NEW: i32 = 2;

fn format() -> RowFormat {
    RowFormat::segments(&[100, 28]).unwrap()
}

/// Returns an engine on a device, with the emitted kernels if it is the simulated one. Its geometry is the second of
/// `DEVICE_SHAPES`, whose kernels other tests compile, too.
fn engine(device: &str, states: usize, cores: usize, pool: HostPool) -> Engine {
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    assert_eq!((params.k as usize, params.tokens, params.page as usize), (K, 2, PAGE));
    if device == "cpu" {
        return fixture::engine(params, states, cores, pool);
    }
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let options = AscendOptions::new(context);
    Engine::on_ascend(Config { cores, ..Config::new(params, states) }, pool, &options).unwrap()
}

/// Returns a batch of one request whose block table lists all blocks of the pool in order.
/// `numbers` are its state, generation, stable length and sequence length.
fn one_request(numbers: [i32; 4], rows: &[Vec<i32>], gap: usize) -> OwnedBatch {
    let blocks = ROWS / PAGE;
    let (block_stride, blocks) = (blocks, (0..blocks as i32).collect());
    let mut owned = OwnedBatch { block_stride, blocks, ..OwnedBatch::new(K, gap) };
    owned.push(numbers, rows);
    owned
}

fn ids(step: i32, below: i32, newest: bool) -> Vec<i32> {
    let id = |i: i32| if newest && i < NEW { below - 1 - i } else { (step * 13 + i * 7) % below };
    (0..K as i32).map(id).collect()
}

/// Returns the id and version that a row holds: version 0 for the prompt, t + 1 for rows of step t.
fn content(_: usize, id: i32) -> (i32, u32) {
    (id, if id < PROMPT { 0 } else { ((id - PROMPT) / NEW) as u32 + 1 })
}

/// Runs in the writer's process: for each byte from the socket it runs that step, appends its rows
/// and sends the byte back. Without the variable, as in a run of all tests, it returns at once.
#[test]
fn the_writer_appends_every_step() {
    let _turn = alone::turn();
    let Ok(device) = std::env::var(WRITER_DEVICE) else { return };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let mut socket = UnixStream::from(socket);
    let pool = fixture::pool(1, ROWS, format());
    let export = pool.export().unwrap();
    socket.write_all(&export.desc.to_bytes()).unwrap();
    socket.write_all(&export.fd.as_raw_fd().to_ne_bytes()).unwrap();
    let mut engine = engine(&device, 1, 1, pool);
    let mut plan = engine.new_plan(2, 1).unwrap();
    let mut request = [0];
    while socket.read_exact(&mut request).is_ok() {
        let step = i32::from(request[0]);
        let stable = PROMPT + NEW * step;
        let rows = [ids(step, stable + 1, true), ids(step + 1, stable + 2, true)];
        let owned = one_request([0, 1, stable, stable + NEW], &rows, 0);
        let mut fresh = FreshRows::new(&format(), 2);
        (0..2).for_each(|g| fresh.put(g, stable + g as i32, step as u32 + 1));
        let fresh = Fresh { segments: &fresh.segments() };
        engine.step(&owned.batch(), &mut plan, 0, Some(&fresh)).unwrap();
        assert!(exact::check_step(&engine, &plan, &owned, 0, content) > K);
        engine.append(&owned.batch(), 0, &fresh).unwrap();
        socket.write_all(&request).unwrap();
    }
}

/// Gathers rows of a context of `len` tokens and checks them.
fn gather(engine: &mut Engine, plan: &mut Plan, step: i32, len: i32) {
    let rows = [ids(step, len, true), ids(step * 3 + 1, len, false)];
    let owned = one_request([0, 4, -1, len], &rows, 3);
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    assert!(exact::check_step(engine, plan, &owned, 0, content) > K, "step {step}");
    assert_eq!(plan.status(0), 0);
}

#[test]
fn a_reader_gathers_appended_rows_and_survives_the_writer() {
    let _turn = alone::turn();
    let (cpu, sim) = ("cpu", "ascend-sim");
    if !prerequisites::has_cpp_compiler() {
        return read_and_kill_writer(cpu, cpu);
    }
    let pairs = [[sim, sim], [cpu, cpu], [cpu, sim], [sim, cpu]];
    for [writer, reader] in &pairs[..if tier::thorough() { 4 } else { 2 }] {
        read_and_kill_writer(writer, reader);
    }
}

/// Reads 40 steps of a writer, kills it, and reads on.
fn read_and_kill_writer(writer: &str, reader: &str) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_processes::the_writer_appends_every_step", "--test-threads=1"])
        .env(WRITER_DEVICE, writer)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut desc, mut fd) = ([0; DESC_BYTES], [0; 4]);
    ours.read_exact(&mut desc).unwrap();
    ours.read_exact(&mut fd).unwrap();
    let desc = PoolDesc::from_bytes(&desc).unwrap();
    // The file has no name but this one, while the writer has it open.
    let path = format!("/proc/{}/fd/{}", child.id(), i32::from_ne_bytes(fd));
    let fd: OwnedFd = File::options().read(true).write(true).open(path).unwrap().into();
    let second_fd = fd.try_clone().unwrap();
    let pool = HostPool::import(&desc, fd, Role::Reader).unwrap();
    let mut engine = engine(reader, 1, 2, pool);
    let mut plan = engine.new_plan(2, 1).unwrap();
    let mut answer = [0];
    for step in 0..40u8 {
        ours.write_all(&[step]).unwrap();
        ours.read_exact(&mut answer).unwrap();
        assert_eq!(answer[0], step);
        gather(&mut engine, &mut plan, step.into(), PROMPT + NEW * (i32::from(step) + 1));
    }

    // A reader has its own fresh rows of the next step. It refuses to append them before it writes to the
    // read-only memory.
    let stable = PROMPT + NEW * 40;
    let rows = [ids(40, stable + 1, true), ids(41, stable + 2, true)];
    let owned = one_request([0, 4, stable, stable + NEW], &rows, 0);
    let mut own = FreshRows::new(&format(), 2);
    (0..2).for_each(|g| own.put(g, stable + g as i32, 41));
    let fresh = Fresh { segments: &own.segments() };
    engine.step(&owned.batch(), &mut plan, 0, Some(&fresh)).unwrap();
    assert!(exact::check_step(&engine, &plan, &owned, 0, content) > K);
    let refused = engine.append(&owned.batch(), 0, &fresh).unwrap_err().to_string();
    assert!(refused.contains("append in the writer process"), "{refused}");
    let taken = HostPool::import(&desc, second_fd.try_clone().unwrap(), Role::Writer).unwrap_err();
    assert!(taken.to_string().contains("has a writer"), "{taken}");

    // The writer is killed within a step. The pool may hold part of its rows, which the reader does
    // not select.
    ours.write_all(&[40]).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "the writer ended before it was killed");
    for step in 40..80 {
        gather(&mut engine, &mut plan, step, PROMPT + NEW * 40);
    }
    // The role of the writer is free after the process has ended.
    let successor = HostPool::import(&desc, second_fd, Role::Writer).unwrap();
    let mut row = [0; 128];
    fill_row(PROMPT + 80, 41, &mut row);
    successor.write_row(0, (PROMPT + 80) as usize, &row).unwrap();
    gather(&mut engine, &mut plan, 80, PROMPT + 81);
}
