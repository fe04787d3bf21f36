//! Options of the model and of the requests that memory is computed for.

use std::path::PathBuf;

use anyhow::Result;
use avsg::rows::RowFormat;
use clap::Args;
use serde::Serialize;

use super::config::Config;
use super::geometry::{ROW_BYTES, RowOptions};
use crate::checks::check_tables;

/// The layers of a model that nothing names.
const LAYERS: usize = 78;

#[derive(Args, Clone, Debug)]
pub struct ModelOptions {
    /// Take layers, indexers, the bytes of a row and K from the config.json of a Hugging Face model; the
    /// options of these figures replace them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Layers whose KV rows are offloaded, at least 1 [default: 78, and in avsg size those of the trace with
    /// --layer all]
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Tables per request, one for each layer with an indexer of its own (other layers share one); 1 to
    /// the layers [default: the layers]
    #[arg(long, value_name = "N")]
    indexers: Option<usize>,
    /// B, the requests that are resident at the same time; at least 1
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    #[command(flatten)]
    rows: RowOptions,
}

/// The checked figures of a model and its requests.
#[derive(Serialize)]
pub struct Model {
    /// K of the model; `None` without `--config`.
    #[serde(skip)]
    pub k: Option<usize>,
    pub layers: usize,
    pub indexers: usize,
    pub requests: usize,
    pub row_bytes: usize,
    #[serde(skip)]
    pub format: RowFormat,
}

impl ModelOptions {
    /// Returns the figures; `k` and `layers` are those that neither the file nor an option has to name.
    pub fn model(&self, k: Option<usize>, layers: Option<usize>) -> Result<Model> {
        let config = self.config.as_deref().map(Config::read).transpose()?;
        let config = config.as_ref();
        let of = |given: Option<usize>, field: &dyn Fn(&Config) -> Result<usize>| match (
            given, config,
        ) {
            (None, Some(config)) => field(config).map(Some),
            _ => Ok(given),
        };
        let layers = of(self.layers, &Config::layers)?.or(layers).unwrap_or(LAYERS);
        let indexers = of(self.indexers, &|config| config.indexers(layers))?.unwrap_or(layers);
        let requests = self.requests;
        check_tables([layers, indexers, requests])?;
        let k = of(k, &Config::k)?;
        let format = self.rows.format(|| config.map_or(Ok(ROW_BYTES), Config::row_bytes))?;
        Ok(Model { k, layers, indexers, requests, row_bytes: format.bytes(), format })
    }
}
