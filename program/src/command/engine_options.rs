//! Options that several subcommands share: the table, the row format and the device.

use std::sync::Arc;

use anyhow::Result;
use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::simulated;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::{Config, MachineChoice};
use avsg::geometry;
use avsg::rows::RowFormat;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// The kind of hash table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// The paper's table, bit for bit: one link per slot
    Paper,
    /// A table with more links than slots, which evicts the oldest or least used slots
    #[default]
    Wide,
}

/// Returns the parser of the name of a vector machine, which runs the kernels on the CPU device.
pub(crate) fn machine() -> impl TypedValueParser<Value = MachineChoice> {
    PossibleValuesParser::new(["auto", "emu", "avx2", "avx512", "neon"]).map(|name| {
        match name.as_str() {
            "emu" => MachineChoice::Emu,
            "avx2" => MachineChoice::Avx2,
            "avx512" => MachineChoice::Avx512,
            "neon" => MachineChoice::Neon,
            _ => MachineChoice::Auto,
        }
    })
}

/// The device that runs the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// This machine: threads are the cores, and process memory is the device memory
    Cpu,
    /// An Ascend 910B
    Ascend,
    /// The emitted kernels on the simulated runtime, which is exact but slow
    AscendSim,
}

/// The table's geometry and rules.
#[derive(Args, Clone, Debug, Default)]
pub struct TableOptions {
    /// Kind of hash table
    #[arg(long, value_enum, default_value = "wide")]
    pub table: TableKind,
    /// Links per slot: 1, 2 or 4; the paper's table has 1 [default: wide 4, and 2 for an Ascend device, paper 1]
    #[arg(long, value_name = "N")]
    pub spread: Option<u32>,
    /// R, the links examined after the first; 0 to 15 [default: 3, or 7 with spread 2]
    #[arg(long, value_name = "R")]
    pub retries: Option<u32>,
    /// Lifetime rule: constant:L (least recently used; L 0 to 127, paper from 1), or learned (each
    /// request learns which slots to keep; wide only) [default: wide learned if S >= 2*K, and with
    /// spread 2 if also S < 4*K, else constant:127; paper constant:16; avsg size measures both of wide, and
    /// it and avsg replay on the CPU take the one that the trace recommends]
    #[arg(long, value_name = "RULE", value_parser = lifetime)]
    pub lifetime: Option<Lifetime>,
}

impl TableOptions {
    /// Returns whether the rule of lifetimes is left to what the trace recommends.
    pub fn is_rule_open(&self) -> bool {
        self.table == TableKind::Wide && self.lifetime.is_none()
    }

    /// Returns the options with the default links per slot of a device: two for a vector core, so that a table `wide`
    /// fits its unified buffer.
    pub(crate) fn on(&self, device: DeviceChoice) -> Self {
        let is_compact = device != DeviceChoice::Cpu && self.table == TableKind::Wide;
        let spread = self.spread.or(is_compact.then_some(2));
        Self { spread, ..self.clone() }
    }

    /// Returns the checked geometry for `k` ids per token, `tokens` tokens per step, `slots` slots and
    /// blocks of `page` rows (0 for no block table).
    pub fn params(&self, k: usize, tokens: usize, slots: u32, page: u32) -> Result<Params> {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (k, tokens) = (narrow(k), narrow(tokens));
        let mut p = match self.table {
            TableKind::Paper => Params::paper(k, tokens, slots),
            TableKind::Wide if self.spread == Some(2) => Params::compact(k, tokens, slots),
            TableKind::Wide => Params::wide(k, tokens, slots),
        };
        p.page = page;
        p.spread = self.spread.unwrap_or(p.spread);
        p.retries = self.retries.unwrap_or(p.retries);
        p.lifetime = self.lifetime.unwrap_or(p.lifetime);
        geometry::check(&p)?;
        Ok(p)
    }
}

/// The table's geometry where no trace decides it.
#[derive(Args, Clone, Debug)]
pub struct GeometryOptions {
    /// K, the ids selected per token at most; 1 to S [default: 2048]
    #[arg(long, value_name = "K")]
    pub k: Option<usize>,
    /// N_q, the tokens per request and step at most (speculated tokens + 1); 1 to 16, N_q * K at most S
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// S, the slots per request and layer; up to 65536, a multiple of 64, and of 128 for an Ascend device
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    /// Rows per block of the host's block table; a power of two up to 65536, or 0 for no block table
    /// (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
}

/// K of DeepSeek V3.2 and of GLM-5.
const K: usize = 2048;

impl GeometryOptions {
    /// Returns the checked geometry for `k` ids per token on a device.
    pub(crate) fn params(&self, k: Option<usize>, device: DeviceChoice) -> Result<Params> {
        self.table.on(device).params(k.unwrap_or(K), self.tokens, self.slots, self.page)
    }
}

/// Parses a lifetime rule: `constant:L` or `learned`.
pub fn lifetime(rule: &str) -> Result<Lifetime, String> {
    let l = rule.strip_prefix("constant:").and_then(|l| l.parse().ok()).filter(|&l: &i8| l >= 0);
    let rule = if rule == "learned" { Some(Lifetime::Learned) } else { l.map(Lifetime::Constant) };
    rule.ok_or_else(|| {
        "it must be constant:L (0..=127), of which 127 is LRU, or learned".to_owned()
    })
}

/// Returns the geometry and the rules of a table as JSON.
pub(crate) fn described(p: &Params) -> Value {
    json!({
        "table": if p.table == Table::Wide { "wide" } else { "paper" },
        "k": p.k,
        "tokens": p.tokens,
        "slots": p.slots,
        "spread": p.spread,
        "retries": p.retries,
        "lifetime": p.lifetime.to_string(),
        "page": p.page,
    })
}

/// The bytes of a KV row of DeepSeek V3.2 and GLM-5 in bfloat16.
pub const ROW_BYTES: usize = 1152;

/// The segments of a KV row.
#[derive(Args, Clone, Debug)]
pub struct RowOptions {
    /// Bytes of a KV row, at least 1; several numbers are its segments, at most 4, for example 1024,128
    /// [default: 1152]
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',')]
    row_bytes: Vec<usize>,
}

impl RowOptions {
    /// Returns the checked row format, whose bytes are `default` if no option names them.
    pub fn format(&self, default: impl FnOnce() -> Result<usize>) -> Result<RowFormat> {
        Ok(match &self.row_bytes[..] {
            [] => RowFormat::single(default()?)?,
            segments => RowFormat::segments(segments)?,
        })
    }
}

/// The device that runs the operator, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeviceOptions {
    /// Device that runs the operator
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: DeviceChoice,
    /// C, the cores that match and copy; 1 to 1024. Cores above the CPUs of this machine run in turns
    /// [default: the CPUs of this machine]
    #[arg(long, value_name = "C")]
    pub cores: Option<usize>,
    /// Vector machine that runs the kernels on the CPU device; auto is the fastest that the CPU has
    #[arg(long, default_value = "auto", value_parser = machine())]
    pub machine: MachineChoice,
}

impl DeviceOptions {
    /// Returns the configuration of an engine with `states` states.
    pub fn config(&self, params: Params, states: usize) -> Config {
        let config = Config::new(params, states);
        let cores = self.cores.unwrap_or(config.cores);
        Config { cores, machine: self.machine, ..config }
    }

    /// Opens the device; `None` for the CPU.
    pub fn context(&self) -> Result<Option<Arc<Context>>> {
        Ok(match self.device {
            DeviceChoice::Cpu => None,
            DeviceChoice::AscendSim => Some(simulated::context()?),
            DeviceChoice::Ascend => {
                Some(Context::for_device(Arc::new(Acl::open(&Source::System)?), 0)?)
            }
        })
    }
}
