//! The deployment that is sized, and its memory as the library plans it.

use anyhow::Result;
use avsg::buffer::{BufferConfig, DeviceBuffer};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use clap::Args;
use serde::Serialize;

use crate::checks::{check_tables, product, require};
use crate::command::traces::Traces;
use crate::trace::Trace;

#[derive(Args, Clone, Debug)]
pub struct DeploymentOptions {
    /// Layers whose KV rows are offloaded, at least 1 [default: 78; with --layer all, those of the trace]
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Tables per request, one for each layer with an indexer of its own (other layers share one); 1 to
    /// the layers [default: the layers]
    #[arg(long, value_name = "N")]
    indexers: Option<usize>,
    /// B, the requests that are resident at the same time; at least 1
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    /// Context length, the tokens of each request whose rows the host pool holds; at least the tokens that
    /// the trace selects from, which are the default
    #[arg(long, value_name = "N")]
    context: Option<usize>,
}

impl DeploymentOptions {
    /// Checks what can be checked without the trace.
    pub fn check(&self) -> Result<()> {
        let layers = self.layers.unwrap_or(usize::MAX);
        Ok(check_tables([layers, self.indexers.unwrap_or(layers), self.requests])?)
    }
}

/// The layers of the deployment if neither an option nor a trace of several layers says how many.
const LAYERS: usize = 78;

/// Layers and requests that all behave as the one in the trace, or as the mean of its layers.
#[derive(Serialize)]
pub struct Deployment {
    pub layers: usize,
    pub indexers: usize,
    pub requests: usize,
    pub context: usize,
    pub row_bytes: usize,
    /// Bytes of the host pool of all requests.
    pub host_bytes: usize,
    #[serde(skip)]
    pub format: RowFormat,
    /// Tokens of the context at the end of the traces.
    #[serde(skip)]
    pub selected_from: usize,
}

impl Deployment {
    /// Checks the options and plans the host pool; the traces may be the layers of a model.
    pub fn new(
        options: &DeploymentOptions,
        traces: &Traces,
        are_layers: bool,
        format: RowFormat,
    ) -> Result<Self> {
        let requests = options.requests;
        let layers = options.layers.unwrap_or(if are_layers { traces.len() } else { LAYERS });
        let indexers = options.indexers.unwrap_or(layers);
        check_tables([layers, indexers, requests])?;
        let selected_from = traces.iter().map(tokens_selected_from).max().unwrap_or(1);
        let context = options.context.unwrap_or(selected_from);
        let limit = format!("the trace selects from {selected_from} tokens");
        let remedy = "pass at least as many, or leave it out";
        require(context >= selected_from, "--context", context, limit, remedy)?;
        let pool = HostPool::plan_bytes(&PoolConfig::new(layers, context, format.clone()))?;
        let host_bytes = product("--requests", &[pool, requests])?;
        let row_bytes = format.bytes();
        Ok(Self {
            layers,
            indexers,
            requests,
            context,
            row_bytes,
            host_bytes,
            format,
            selected_from,
        })
    }

    /// Returns the bytes that a step copies if each layer of each request misses `misses` rows.
    pub fn bytes(&self, misses: f64) -> f64 {
        misses * self.row_bytes as f64 * self.layers as f64 * self.requests as f64
    }

    /// Returns the bytes of the slots, tables and working columns.
    pub fn device_bytes(&self, params: Params) -> Result<usize> {
        let buffer = BufferConfig {
            states: self.requests,
            layers: self.layers,
            slots: params.slots as usize,
            format: self.format.clone(),
        };
        // Each indexer of a request has a table of its own, which is a state of an engine.
        let states = product("--indexers", &[self.indexers, self.requests])?;
        // The tables do not depend on the layers.
        let pool = PoolConfig::new(1, self.context, self.format.clone());
        let (_, tables) = Engine::bytes_needed(&Config::new(params, states), &pool)?;
        Ok(DeviceBuffer::bytes_needed(&buffer)?.saturating_add(tables))
    }
}

/// Returns the tokens of the context at the end of the trace.
fn tokens_selected_from(trace: &Trace) -> usize {
    let selected = trace.largest_id().map_or(1, |id| id + 1);
    let stable = trace.stable.iter().flatten().filter(|&&n| n >= 0).max();
    let end = stable.map_or(0, |n| n + trace.tokens as i32);
    selected.max(end) as usize
}
