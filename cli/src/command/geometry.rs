//! The options that say which table, and how rows look.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use avsg::ascend::acl::owned::Context;
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::MachineChoice;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg::{Error, geometry};
use clap::{Args, ValueEnum};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// The paper's, bit for bit
    Paper,
    /// More links than slots, the oldest or least used slots as victims
    Wide,
}

/// Which vector machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MachineKind {
    Auto,
    Emu,
    Avx2,
    Avx512,
    Neon,
}

impl MachineKind {
    /// The library's word for it.
    pub fn choice(self) -> MachineChoice {
        match self {
            Self::Auto => MachineChoice::Auto,
            Self::Emu => MachineChoice::Emu,
            Self::Avx2 => MachineChoice::Avx2,
            Self::Avx512 => MachineChoice::Avx512,
            Self::Neon => MachineChoice::Neon,
        }
    }
}

/// Which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// Threads as cores, process memory as device memory
    Cpu,
    /// An Ascend 910B
    Ascend,
    /// The emitted kernels on the simulated runtime: slow, and exact
    AscendSim,
}

/// The table's geometry and rules.
#[derive(Args, Clone, Debug)]
pub struct TableOptions {
    /// Which table
    #[arg(long, value_enum, default_value = "wide")]
    pub table: TableKind,
    /// Links per slot: 1, 2 or 4 [default: wide 4, paper 1]
    #[arg(long, value_name = "N")]
    pub spread: Option<u32>,
    /// Links examined after the first [default: 3, or 7 with spread 2]
    #[arg(long, value_name = "R")]
    pub retries: Option<u32>,
    /// constant:L (least recently used), or frequency:LAMBDA (least frequently and recently used;
    /// frequency alone is 0.87)
    /// [default: wide frequency:0.87 where K < S < 4·K, else constant:127; paper constant:16]
    #[arg(long, value_name = "RULE")]
    pub lifetime: Option<String>,
    /// Multipliers of the paper's hash
    #[arg(long, value_name = "A1,A2")]
    pub primes: Option<String>,
}

impl TableOptions {
    /// The checked geometry for K ids, N_q tokens and S slots.
    pub fn params(&self, k: usize, tokens: usize, slots: u32, page: u32) -> Result<Params> {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (k, tokens) = (narrow(k), narrow(tokens));
        let mut p = match self.table {
            TableKind::Paper => Params::paper(k, tokens, slots),
            TableKind::Wide => Params::wide(k, tokens, slots),
        };
        p.page = page;
        p.spread = self.spread.unwrap_or(p.spread);
        p.retries = self.retries.unwrap_or(if p.spread == 2 { 7 } else { 3 });
        if let Some(rule) = &self.lifetime {
            p.lifetime = lifetime(rule)?;
        }
        if let Some(primes) = &self.primes {
            p.table = multipliers(primes, p.table)?;
        }
        geometry::check(&p)?;
        Ok(p)
    }
}

/// constant:L or frequency:LAMBDA.
pub fn lifetime(rule: &str) -> Result<Lifetime> {
    let bad = || {
        let limit = "it must be constant:L (0..=127) or frequency:LAMBDA (0.5..=0.965)";
        Error::invalid("--lifetime", rule, limit, "for example frequency:0.87")
    };
    if rule == "frequency" {
        return Ok(Lifetime::frequency());
    }
    match rule.split_once(':') {
        Some(("constant", l)) => {
            let l: i8 = l.parse().map_err(|_| bad())?;
            if l < 0 { Err(bad().into()) } else { Ok(Lifetime::Constant(l)) }
        }
        Some(("frequency", l)) => Ok(geometry::frequency(l.parse::<f64>().map_err(|_| bad())?)?),
        _ => Err(bad().into()),
    }
}

/// The paper's table with the multipliers A1,A2.
pub fn multipliers(primes: &str, table: Table) -> Result<Table> {
    let bad =
        |limit| Error::invalid("--primes", primes, limit, "for example 2654435761,2246822519");
    if table == Table::Wide {
        return Err(bad("only the paper's table takes multipliers").into());
    }
    let parsed = primes
        .split_once(',')
        .and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    let (a1, a2) = parsed.ok_or_else(|| bad("it must be two unsigned 32-bit numbers"))?;
    Ok(Table::Paper { a1, a2 })
}

/// How rows look and who copies them.
#[derive(Args, Clone, Debug)]
pub struct RowOptions {
    /// Bytes of a KV row in one segment
    #[arg(long, value_name = "N", default_value_t = 1152, conflicts_with = "segments")]
    pub row_bytes: usize,
    /// Bytes of each segment of a row, for example 1024,128
    #[arg(long, value_name = "N,N..", value_delimiter = ',')]
    pub segments: Vec<usize>,
}

impl RowOptions {
    /// The row format.
    pub fn format(&self) -> Result<RowFormat> {
        Ok(if self.segments.is_empty() {
            RowFormat::single(self.row_bytes)?
        } else {
            RowFormat::segments(&self.segments)?
        })
    }
}

/// The device that runs it.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    /// Which device
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: Device,
    /// Folder with the kernels of the geometry, compiled for the device [default: those built in]
    #[arg(long, value_name = "DIR")]
    pub kernels: Option<PathBuf>,
    /// Copying cores; above the CPUs of this machine they are played in turns [default: the CPUs]
    #[arg(long, value_name = "C")]
    pub cores: Option<usize>,
    /// Which vector machine runs the kernels
    #[arg(long, value_enum, default_value = "auto")]
    pub machine: MachineKind,
}

impl DeviceOptions {
    /// An engine's configuration.
    pub fn config(&self, params: Params, states: usize) -> Config {
        let mut config = Config::new(params, states);
        config.cores = self.cores.unwrap_or(config.cores);
        config.machine = self.machine.choice();
        config
    }

    /// An engine with a pool of its own.
    pub fn engine(&self, config: Config, pool: &PoolConfig) -> Result<Engine> {
        let context = match self.device {
            Device::Cpu => return Ok(Engine::new(config, HostPool::new(pool)?)?),
            Device::AscendSim => simulated::context()?,
            Device::Ascend => Context::for_device(Arc::new(Acl::open(&Source::System)?), 0)?,
        };
        let pool = RegisteredPool::create(&context, pool)?;
        let options =
            AscendOptions { kernels: self.kernels.clone(), ..AscendOptions::new(context) };
        Ok(Engine::on_ascend(config, pool, &options)?)
    }
}
