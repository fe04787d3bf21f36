//! The model of the time per output token: a step matches, waits until the rows that it misses have
//! crossed the link or were read from a disk, and takes the time that it takes without offload.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use avsg::copy::Copier;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::splitmix::SplitMix64;
use clap::{ArgGroup, Args};
use serde::Serialize;

use super::deployment::Deployment;
use super::disk_times::{self, Disk, Link};
use crate::checks::require;
use crate::quantity::{not_negative, positive};
use crate::stats::{Summary, summary, us_since};
use crate::trace::Trace;

/// Bytes of the rows that are copied to measure host memory, many times what caches hold.
const COPIED_BYTES: usize = 256 << 20;
/// Of rows that are shorter than this many bytes fewer bytes are copied, because a list of their order would take more
/// memory than the rows.
const MIN_COPIED: usize = 64;

#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("any_link").args(["link_gbs", "link"]).multiple(true)))]
pub struct TimeOptions {
    /// Bandwidth of the link to host memory in GB/s; shows the time per output token by a model, and
    /// the speed-up over no buffer [default with --link: measured, a core of this machine that copies rows
    /// in its memory]
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    link_gbs: Option<f64>,
    /// Also show the time with rows on a disk: `disk:FOLDER` measures the disk of a folder in about two
    /// seconds, and `disk:READS,GB/S,US[,BLOCK]` takes reads per second, bandwidth and the microseconds of a
    /// read alone [default BLOCK: 4096]
    #[arg(long, value_name = "disk:WHAT", value_parser = disk_times::link)]
    link: Option<Link>,
    /// Microseconds of matching (Stage One) per token and indexer on your device [default: measured on
    /// this machine's CPU]
    #[arg(long, value_name = "US", requires = "any_link", value_parser = not_negative)]
    match_us: Option<f64>,
    /// Milliseconds of a decode step of the whole batch without offload [default: none, and times are
    /// those of the KV offload alone: matching and copies]
    #[arg(long, value_name = "MS", requires = "any_link", value_parser = positive)]
    step_ms: Option<f64>,
    /// Tokens that a request gets per step, 1 to N_q [default: the mean growth of the trace's `stable`,
    /// or N_q without it]
    #[arg(long, value_name = "TOKENS", requires = "any_link")]
    accepted: Option<f64>,
}

/// The model, of which is measured what is not given.
#[derive(Serialize)]
pub struct Model {
    pub link_gbs: f64,
    /// Whether the bandwidth is that of this machine's memory.
    pub link_measured: bool,
    pub disk: Option<Disk>,
    /// Time of a step without offload; null if times are those of the KV offload alone.
    pub step_ms: Option<f64>,
    /// Tokens that a request gets per step.
    pub accepted: f64,
    /// The given time of matching per token and indexer; null if it is measured at each S.
    pub match_us: Option<f64>,
    /// The vector machine that matching is measured on.
    pub machine: &'static str,
    /// Tokens that a step matches for all indexers together, one after the other.
    matched: usize,
    /// Rows of a layer and request that a step copies without a buffer.
    #[serde(skip)]
    all: f64,
    /// Bytes of a row of each layer and request.
    #[serde(skip)]
    bytes: f64,
}

/// The times of a step.
#[derive(Clone, Copy, Serialize)]
pub struct Times {
    /// Matching of one token with one indexer.
    pub match_us: f64,
    /// Matching of all tokens with all indexers.
    pub matching_ms: f64,
    /// With rows in host memory, and on a disk if one is named.
    pub host: PlaceTimes,
    pub disk: Option<PlaceTimes>,
}

/// The times of a step and of an output token with rows in one place.
#[derive(Clone, Copy, Serialize)]
pub struct PlaceTimes {
    /// Copies over the link, or reads.
    pub wait_ms: f64,
    pub tpot_ms: f64,
    /// The time per output token without a buffer, divided by this one.
    pub speed_up: f64,
}

impl Times {
    /// Returns the milliseconds per output token that decide: with rows on the disk, if one is named.
    pub fn deciding(&self) -> f64 {
        self.disk.unwrap_or(self.host).tpot_ms
    }
}

impl TimeOptions {
    /// Returns the model of a step that copies `all` rows of each layer and request without a buffer, or
    /// `None` if no link is named.
    pub fn model(
        &self,
        trace: &Trace,
        deployment: &Deployment,
        all: f64,
        machine: Machine,
    ) -> Result<Option<Model>> {
        if self.link_gbs.is_none() && self.link.is_none() {
            return Ok(None);
        }
        let most = trace.tokens as f64;
        let accepted =
            self.accepted.unwrap_or_else(|| growth(trace).unwrap_or(most).clamp(1.0, most));
        let limit = format!("it must be 1 to N_q = {most}");
        let remedy = "pass the mean number of accepted drafts plus 1";
        require((1.0..=most).contains(&accepted), "--accepted", accepted, limit, remedy)?;
        let disk = self.link.as_ref().map(|link| Disk::new(link, deployment)).transpose()?;
        let link_gbs = self.link_gbs.map_or_else(|| copy_gbs(deployment.model.row_bytes), Ok)?;
        Ok(Some(Model {
            link_gbs,
            link_measured: self.link_gbs.is_none(),
            disk,
            step_ms: self.step_ms,
            accepted,
            match_us: self.match_us,
            machine: machine.name(),
            matched: trace.tokens * deployment.model.indexers,
            all,
            bytes: deployment.bytes(1.0),
        }))
    }
}

impl Model {
    /// Returns the times of a step that misses `misses` rows of each layer and request, if matching takes
    /// `match_us` per token and indexer.
    pub fn times(&self, misses: f64, match_us: f64) -> Times {
        let matching_ms = match_us * self.matched as f64 / 1e3;
        let token = |offload: f64| (self.step_ms.unwrap_or(0.0) + offload) / self.accepted;
        let place = |wait: &dyn Fn(f64) -> f64| {
            let wait_ms = wait(misses);
            let tpot_ms = token(matching_ms + wait_ms);
            PlaceTimes { wait_ms, tpot_ms, speed_up: token(wait(self.all)) / tpot_ms }
        };
        let host = place(&|misses| misses * self.bytes / (self.link_gbs * 1e6));
        let disk = self.disk.as_ref().map(|disk| place(&|misses| disk.wait_ms(misses)));
        Times { match_us, matching_ms, host, disk }
    }

    /// Returns the microseconds of matching per token and indexer: the median over the steps of a trace on this machine's
    /// CPU, and the first and the ninth decile; the given time if there is one.
    pub fn matching(&self, trace: &Trace, params: &Params, machine: Machine) -> Result<[f64; 3]> {
        if let Some(us) = self.match_us {
            return Ok([us; 3]);
        }
        let mut table = StandaloneTable::new(params)?;
        let time = |ids: &[i32]| {
            let start = Instant::now();
            black_box(table.stage_one(machine, ids, trace.tokens, -1));
            let us = us_since(start) / trace.tokens as f64;
            table.learn();
            us
        };
        let steps = trace.ids.chunks_exact(trace.tokens * trace.k);
        let Summary { p10, p50, p90, .. } = summary(&mut steps.map(time).collect::<Vec<_>>());
        Ok([p50, p10, p90])
    }
}

/// Copies rows of `bytes` bytes from scattered places to others, and returns the speed of this one thread in 10^9 bytes
/// per second.
fn copy_gbs(bytes: usize) -> Result<f64> {
    let rows = COPIED_BYTES.div_ceil(bytes.max(MIN_COPIED));
    let config = PoolConfig::new(1, rows, RowFormat::single(bytes)?);
    let (from, to) = (HostPool::new(&config)?, HostPool::new(&config)?);
    let (from, to) = (from.view(0, 0)?, to.view(0, 0)?);
    let mut order: Vec<usize> = (0..rows).collect();
    SplitMix64::new(3).shuffle(&mut order);
    let (start, slot) = (Instant::now(), |row: usize| to.ptr(order[rows - 1 - row]).cast_mut());
    // SAFETY: both pools hold rows of `bytes` bytes, `order` has each row once, and nothing else uses the pools.
    unsafe { Copier::for_rows(bytes).copy_rows(rows, bytes, |row| from.ptr(order[row]), slot) };
    Ok((rows * bytes) as f64 / start.elapsed().as_secs_f64() / 1e9)
}

/// Returns by how much `stable` grows per step; `None` if it is not known in the first and last step.
fn growth(trace: &Trace) -> Option<f64> {
    let stable = trace.stable.as_ref()?;
    let (first, last) = (*stable.first()?, *stable.last()?);
    let known = first >= 0 && last > first;
    known.then(|| f64::from(last - first) / (trace.steps - 1) as f64)
}
