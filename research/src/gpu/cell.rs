//! One cell: a batch of requests with full tables selects ids of which some miss. Replays are timed, and then all slots
//! are compared with the rows of the ids that they hold.

use anyhow::Result;
use avsg::device::request::record;
use serde::Serialize;

use super::device::Gpu;
use super::memory::{bytes, words};
use super::sizes::SELECTIONS;
use super::step::{Kernel, Step};
use super::timer::{Timer, Times};

/// The figures of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub kernel: Kernel,
    pub slots: u32,
    /// Links per slot; null for the comparator, which has none.
    pub spread: Option<u32>,
    pub row_bytes: u32,
    pub requests: u32,
    /// The ids of each request that no slot held.
    pub missing: u32,
    /// The slots of a request that got another id, on average. More than `missing` if ids have lost their links.
    pub misses: f64,
    pub us: Times,
    /// Bytes of copied rows over the median of the time; null for a kernel that copies none.
    pub gb_per_s: Option<f64>,
    /// Selected ids of which the returned slot does not hold them.
    pub wrong_slots: usize,
    /// Bytes of slots that are not those of the row of the slot's id; null for a kernel that copies none.
    pub wrong_bytes: Option<usize>,
}

/// The host's copies of memory, which all cells use.
#[derive(Default)]
pub struct Scratch {
    tables: Vec<u8>,
    before: Vec<u8>,
    slots: Vec<u8>,
    out: Vec<u8>,
}

/// Measures a cell.
pub fn measure(
    gpu: &Gpu,
    timer: &Timer<'_>,
    step: &Step<'_>,
    missing: u32,
    scratch: &mut Scratch,
) -> Result<Cell> {
    prepare(gpu, step, missing)?;
    let launch = step.launch(step.p.k)?;
    let graph = gpu.capture(|| gpu.launch(&launch))?;
    let us = timer.replays(step.sizes, &graph, |i| reset(gpu, step, i))?;
    reset(gpu, step, 0)?;
    graph.replay()?;
    gpu.wait()?;
    let found = check(gpu, step, missing, scratch)?;
    let requests = f64::from(step.requests);
    let misses = found.changed as f64 / requests;
    let copied = found.changed as f64 * f64::from(step.row_bytes);
    let copies = step.kernel.copies();
    Ok(Cell {
        kernel: step.kernel,
        slots: step.p.slots,
        spread: (step.kernel != Kernel::Comparator).then_some(step.p.spread),
        row_bytes: step.row_bytes,
        requests: step.requests,
        missing,
        misses,
        us,
        gb_per_s: copies.then_some(copied / us.median / 1e3),
        wrong_slots: found.wrong_slots,
        wrong_bytes: copies.then_some(found.wrong_bytes),
    })
}

/// Calls a function for each request and joins what it returns, in rows of K words.
fn of_all(step: &Step<'_>, ids: impl Fn(u32) -> Vec<i32>) -> Vec<u8> {
    let row = |request| {
        let mut row = ids(request);
        row.resize(step.p.k as usize, 0);
        row
    };
    bytes(&(0..step.requests).flat_map(row).collect::<Vec<_>>())
}

/// Fills all slots, runs a step of the ids that will hit, so that an id without a link gets one, and saves tables and
/// slots.
fn prepare(gpu: &Gpu, step: &Step<'_>, missing: u32) -> Result<()> {
    let sizes = step.sizes;
    let (m, slots, requests) = (step.memory, step.p.slots, step.requests);
    m.requests.upload(&bytes(&[requests as i32]))?;
    m.tables.upload(&step.kernel.empty_tables(&step.p, requests as usize))?;
    for round in 0..slots / sizes.k {
        m.ids.upload(&of_all(step, |request| sizes.filling(requests, request, round)))?;
        gpu.launch(&step.launch(sizes.k)?)?;
    }
    let hits = sizes.k - missing;
    if step.kernel != Kernel::Comparator && hits > 0 {
        m.ids.upload(&of_all(step, |request| sizes.hits(slots, requests, request, hits)))?;
        // A step may replace an id that it does not select and that hits later.
        const MOST: usize = 4;
        for _ in 0..MOST {
            gpu.launch(&step.launch(hits)?)?;
            let mut records = vec![0; requests as usize * record::WORDS * 4];
            gpu.download(m.record.span(), &mut records)?;
            let misses = |record: &[i32]| record[record::TOTAL as usize];
            if words(&records).chunks_exact(record::WORDS).all(|record| misses(record) == 0) {
                break;
            }
        }
    }
    let all = |number| {
        of_all(step, |request| sizes.selection(slots, requests, request, (missing, number)))
    };
    m.selections.upload(&(0..SELECTIONS).flat_map(all).collect::<Vec<_>>())?;
    gpu.copy(m.saved_tables.span(), m.tables.span(), table_bytes(step))?;
    if step.kernel.copies() {
        gpu.copy(m.saved_slots.span(), m.slots.span(), slot_bytes(step) * requests as usize)?;
    }
    gpu.wait()
}

/// Brings back tables and slots, and selects the ids of a replay.
fn reset(gpu: &Gpu, step: &Step<'_>, replay: usize) -> Result<()> {
    let (m, requests) = (step.memory, step.requests as usize);
    gpu.copy(m.tables.span(), m.saved_tables.span(), table_bytes(step))?;
    if step.kernel.copies() {
        gpu.copy(m.slots.span(), m.saved_slots.span(), slot_bytes(step) * requests)?;
    }
    let bytes = requests * step.p.k as usize * 4;
    let selection = replay % SELECTIONS as usize * bytes;
    gpu.copy(m.ids.span(), m.selections.span().behind(selection), bytes)
}

/// Returns the bytes of the tables of a batch.
fn table_bytes(step: &Step<'_>) -> usize {
    step.kernel.table_bytes(&step.p) * step.requests as usize
}

/// Returns the bytes of the slots of a request.
fn slot_bytes(step: &Step<'_>) -> usize {
    (step.p.slots * step.row_bytes) as usize
}

/// What a replay has left.
#[derive(Default)]
struct Found {
    changed: usize,
    wrong_slots: usize,
    wrong_bytes: usize,
}

/// Compares the slots after a replay of the first selection with what they must be.
fn check(gpu: &Gpu, step: &Step<'_>, missing: u32, scratch: &mut Scratch) -> Result<Found> {
    let (m, p, sizes) = (step.memory, &step.p, step.sizes);
    let (k, slots) = (p.k as usize, p.slots as usize);
    let Scratch { tables, before, slots: rows, out } = scratch;
    tables.resize(table_bytes(step), 0);
    before.resize(table_bytes(step), 0);
    out.resize(step.requests as usize * k * 4, 0);
    gpu.download(m.tables.span(), tables)?;
    gpu.download(m.saved_tables.span(), before)?;
    gpu.download(m.out.span(), out)?;
    let mut found = Found::default();
    let (stride, first) = step.kernel.ids_of_slots(p);
    for request in 0..step.requests {
        let at = request as usize * stride + first;
        let held = words(&tables[at..at + slots * 4]);
        let old = words(&before[at..at + slots * 4]);
        found.changed += held.iter().zip(old).filter(|(held, old)| **held != *old).count();
        let ids = sizes.selection(p.slots, step.requests, request, (missing, 0));
        let base = if step.kernel == Kernel::Comparator { request as usize * slots } else { 0 };
        let returned = words(&out[request as usize * k * 4..][..k * 4]);
        let holds = |(slot, id): (i32, i32)| {
            (slot as usize).checked_sub(base).and_then(|slot| held.get(slot)) == Some(&id)
        };
        found.wrong_slots += returned.into_iter().zip(ids).filter(|&pair| !holds(pair)).count();
        if step.kernel.copies() {
            rows.resize(slot_bytes(step), 0);
            gpu.download(m.slots.span().behind(request as usize * slot_bytes(step)), rows)?;
            found.wrong_bytes += wrong_bytes(m.pool.bytes(), &held, rows, step.row_bytes as usize);
        }
    }
    Ok(found)
}

/// Returns the number of bytes in which slots are not the rows of the pool that they hold.
pub fn wrong_bytes(pool: &[u8], held: &[i32], slots: &[u8], row_bytes: usize) -> usize {
    let wrong = |(&id, slot): (&i32, &[u8])| {
        let row = usize::try_from(id).ok().and_then(|id| pool.chunks_exact(row_bytes).nth(id));
        row.map_or(row_bytes, |row| {
            // Rows are equal almost always, which is seen faster at once.
            if row == slot { 0 } else { row.iter().zip(slot).filter(|(a, b)| a != b).count() }
        })
    };
    held.iter().zip(slots.chunks_exact(row_bytes)).map(wrong).sum()
}
