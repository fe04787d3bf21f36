//! The deployment that is sized, and its memory as the library plans it.

use anyhow::Result;
use avsg::buffer::BufferConfig;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use serde::Serialize;

use crate::checks::{product, require};
use crate::command::model::Model;
use crate::command::traces::Traces;
use crate::trace::Trace;

/// Layers and requests that all behave as the one in the trace, or as the mean of its layers.
#[derive(Serialize)]
pub struct Deployment {
    #[serde(flatten)]
    pub model: Model,
    pub context: usize,
    /// Bytes of the host pool of all requests.
    pub host_bytes: usize,
}

impl Deployment {
    /// Plans the host pool of a model, which must be that of the traces.
    pub fn new(model: Model, context: Option<usize>, traces: &Traces) -> Result<Self> {
        let Model { k, layers, requests, ref format, .. } = model;
        let limit = format!("the model of --config has K = {}", k.unwrap_or_default());
        let own = traces.first().k;
        let remedy = "record this model, or name its figures by options in the place of --config";
        require(k.is_none_or(|k| k == own), "K of the trace", own, limit, remedy)?;
        let selected_from = traces.iter().map(Trace::rows).max().unwrap_or(1);
        let context = context.unwrap_or(selected_from);
        let limit = format!("the trace selects from {selected_from} tokens");
        let remedy = "pass at least as many, or leave it out";
        require(context >= selected_from, "--context", context, limit, remedy)?;
        let pool = HostPool::plan_bytes(&PoolConfig::new(layers, context, format.clone()))?;
        let host_bytes = product("--requests", &[pool, requests])?;
        Ok(Self { model, context, host_bytes })
    }

    /// Returns the bytes that a step copies if each layer of each request misses `misses` rows.
    pub fn bytes(&self, misses: f64) -> f64 {
        let Model { layers, requests, row_bytes, .. } = self.model;
        misses * row_bytes as f64 * layers as f64 * requests as f64
    }

    /// Returns the bytes of the slots, tables and working columns.
    pub fn device_bytes(&self, params: Params) -> Result<usize> {
        let Model { layers, indexers, requests, ref format, .. } = self.model;
        let (slots, format) = (params.slots as usize, format.clone());
        let buffer = BufferConfig { states: requests, layers, slots, format };
        // Each indexer of a request has a table of its own, which is a state of an engine.
        let states = product("--indexers", &[indexers, requests])?;
        // The tables do not depend on the layers.
        let pool = PoolConfig::new(1, self.context, buffer.format.clone());
        let (_, tables) = Engine::bytes_needed(&Config::new(params, states), &pool, None)?;
        Ok(buffer.bytes()?.saturating_add(tables))
    }
}
