//! Probes of a GPU and its link to the host: what a launch costs, what the copy engine reaches, how fast rows are
//! gathered by loads and by bulk copies, and how fast a table comes to shared memory.

use anyhow::Result;
use avsg::device::memory::table_words;
use serde::Serialize;

use super::cell::wrong_bytes;
use super::device::{DeviceMemory, Gpu, Launch, Module};
use super::memory::{Memory, bytes, words};
use super::sizes::Sizes;
use super::texts::Architecture;
use super::timer::{Timer, Times};

/// The figures of a probe. What it does not have is null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Probe {
    pub probe: &'static str,
    pub row_bytes: Option<u32>,
    pub blocks: Option<u32>,
    /// Warps of a block that start bulk copies, each thread one at a time.
    pub warps: Option<u32>,
    /// Bytes of shared memory of a block for the rows that are under way.
    pub ring_bytes: Option<u32>,
    /// Bytes of the table that each block loads.
    pub table_bytes: Option<u32>,
    /// Kernels or copies of a graph.
    pub nodes: Option<u32>,
    pub us: Option<Times>,
    pub gb_per_s: Option<f64>,
    pub wrong_bytes: Option<usize>,
}

/// What all probes use.
pub struct Probes<'a> {
    pub gpu: &'a Gpu,
    pub timer: &'a Timer<'a>,
    pub sizes: &'a Sizes,
    pub memory: &'a Memory<'a>,
    pub module: &'a Module<'a>,
    pub architecture: Architecture,
}

/// The parameters of a probe's kernel behind its pointers, in the order of `ProbeSizes` of `probe.cu`.
#[derive(Clone, Copy, Default)]
struct Scalars {
    rows: u32,
    row_bytes: u32,
    warps: u32,
    ring_bytes: u32,
    table_bytes: u32,
    ids: u32,
}

impl Scalars {
    fn words(self) -> Vec<i32> {
        let Self { rows, row_bytes, warps, ring_bytes, table_bytes, ids } = self;
        [rows, row_bytes, warps, ring_bytes, table_bytes, ids].map(|word| word as i32).into()
    }
}

impl Probes<'_> {
    /// Runs all probes.
    pub fn run(&self) -> Result<Vec<Probe>> {
        let mut probes = self.launches()?;
        probes.push(self.copy_engine()?);
        self.gathers(&mut probes)?;
        self.tables(&mut probes)?;
        Ok(probes)
    }

    /// Times replays of a graph of as many launches.
    fn time(&self, launch: &Launch<'_>, nodes: u32) -> Result<Times> {
        let graph = self.gpu.capture(|| (0..nodes).try_for_each(|_| self.gpu.launch(launch)))?;
        self.timer.replays(self.sizes, &graph, |_| Ok(()))
    }

    fn launches(&self) -> Result<Vec<Probe>> {
        let kernel = &self.module.function("avsg_probe_nothing", 0)?;
        let (pointers, scalars) = (vec![self.memory.out.address()], Scalars::default().words());
        let launch = Launch { kernel, blocks: 1, threads: self.sizes.threads, pointers, scalars };
        let of = |nodes| {
            let us = Some(self.time(&launch, nodes)?);
            Ok(Probe { probe: "empty_kernels", nodes: Some(nodes), us, ..Probe::default() })
        };
        [1, 10].into_iter().map(of).collect()
    }

    fn copy_engine(&self) -> Result<Probe> {
        let (memory, bytes) = (self.memory, self.sizes.probes.engine_bytes);
        let graph =
            self.gpu.capture(|| self.gpu.copy(memory.slots.span(), memory.pool.span(), bytes))?;
        let us = self.timer.replays(self.sizes, &graph, |_| Ok(()))?;
        let mut copied = vec![0; bytes];
        self.gpu.download(memory.slots.span(), &mut copied)?;
        let wrong = copied.iter().zip(memory.pool.bytes()).filter(|(a, b)| a != b).count();
        Ok(Probe {
            probe: "copy_engine",
            nodes: Some(1),
            us: Some(us),
            gb_per_s: Some(bytes as f64 / us.median / 1e3),
            wrong_bytes: Some(wrong),
            ..Probe::default()
        })
    }

    fn gathers(&self, probes: &mut Vec<Probe>) -> Result<()> {
        let sizes = &self.sizes.probes;
        let (most, rows) = (Sizes::largest(self.sizes.row_bytes), sizes.rows);
        let to = self.gpu.allocate(rows as usize * most)?;
        let row = self.gpu.allocate(rows as usize * 4)?;
        let ids: Vec<i32> = (0..rows).map(|n| self.sizes.id(1, 0, n) as i32).collect();
        row.upload(&bytes(&ids))?;
        let mut ways = vec![("loads", 0, 0), ("loads_ahead", 0, 0)];
        if self.architecture.bulk {
            for &ring in sizes.ring_bytes {
                ways.extend(sizes.warps.iter().map(|&warps| ("bulk", warps, ring)));
            }
        }
        for (probe, warps, ring_bytes) in ways {
            let kernel = &self.module.function(&format!("avsg_probe_{probe}"), ring_bytes)?;
            for &row_bytes in self.sizes.row_bytes {
                for &blocks in sizes.blocks {
                    let scalars =
                        Scalars { rows, row_bytes, warps, ring_bytes, ..Scalars::default() };
                    let pointers = vec![self.memory.pool.address(), to.address(), row.address()];
                    let (threads, scalars) = (self.sizes.threads, scalars.words());
                    to.clear()?;
                    let us =
                        self.time(&Launch { kernel, blocks, threads, pointers, scalars }, 1)?;
                    let bytes = rows * row_bytes;
                    probes.push(Probe {
                        probe,
                        row_bytes: Some(row_bytes),
                        blocks: Some(blocks),
                        warps: (warps > 0).then_some(warps),
                        ring_bytes: (warps > 0).then_some(ring_bytes),
                        nodes: Some(1),
                        us: Some(us),
                        gb_per_s: Some(f64::from(bytes) / us.median / 1e3),
                        wrong_bytes: Some(self.wrong_rows(&to, &ids, row_bytes as usize)?),
                        ..Probe::default()
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes in which gathered rows are not those of the pool.
    fn wrong_rows(&self, to: &DeviceMemory<'_>, ids: &[i32], row_bytes: usize) -> Result<usize> {
        let mut rows = vec![0; ids.len() * row_bytes];
        self.gpu.download(to.span(), &mut rows)?;
        Ok(wrong_bytes(self.memory.pool.bytes(), ids, &rows, row_bytes))
    }

    fn tables(&self, probes: &mut Vec<Probe>) -> Result<()> {
        let (gpu, memory, threads) = (self.gpu, self.memory, self.sizes.threads);
        let kinds: &[_] = match self.architecture.bulk {
            true => &["table", "table_bulk"],
            false => &["table"],
        };
        for p in self.sizes.geometries() {
            let table_bytes = table_words(&p) as u32 * 4;
            // A barrier is behind the table.
            let shared_bytes = table_bytes + 8;
            if shared_bytes > self.architecture.shared_bytes {
                continue;
            }
            let n = table_bytes / 4;
            let ids: Vec<i32> = (0..p.k).map(|i| (i * 7919 % n) as i32).collect();
            memory.ids.upload(&bytes(&ids))?;
            for &probe in kinds {
                let kernel = &self.module.function(&format!("avsg_probe_{probe}"), shared_bytes)?;
                for &blocks in self.sizes.probes.tables {
                    let all = table_bytes as usize * blocks as usize;
                    gpu.copy(memory.tables.span(), memory.pool.span(), all)?;
                    memory.out.clear()?;
                    let scalars = Scalars { table_bytes, ids: p.k, ..Scalars::default() }.words();
                    let tables = memory.tables.address();
                    let pointers = vec![tables, memory.out.address(), memory.ids.address()];
                    let us =
                        self.time(&Launch { kernel, blocks, threads, pointers, scalars }, 1)?;
                    let warps = (threads / 32) as usize;
                    let mut sums = vec![0; blocks as usize * warps * 4];
                    gpu.download(memory.out.span(), &mut sums)?;
                    let pool = words(&memory.pool.bytes()[..all]);
                    let wrong = wrong_sums(&words(&sums), warps, &pool, n as usize, &ids);
                    probes.push(Probe {
                        probe,
                        blocks: Some(blocks),
                        table_bytes: Some(table_bytes),
                        nodes: Some(1),
                        us: Some(us),
                        gb_per_s: Some(all as f64 / us.median / 1e3),
                        wrong_bytes: Some(wrong * 4),
                        ..Probe::default()
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of tables of n words of which the sums of all warps do not add up to that of some words.
fn wrong_sums(sums: &[i32], warps: usize, tables: &[i32], n: usize, ids: &[i32]) -> usize {
    let wrong = |(sums, table): &(&[i32], &[i32])| {
        let add = |sum: i32, word: &i32| sum.wrapping_add(*word);
        let want = ids.iter().map(|&id| &table[id as usize]).fold(0, add);
        sums.iter().fold(0, add) != want
    };
    sums.chunks(warps).zip(tables.chunks(n)).filter(wrong).count()
}
