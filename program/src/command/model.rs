//! Options of the model and of the requests that memory is computed for.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use avsg::Error;
use avsg::rows::RowFormat;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::engine_options::{ROW_BYTES, RowOptions};
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
        let of = |given: Option<usize>, field: &dyn Fn(&Config) -> Result<usize>| {
            given.map(Ok).or_else(|| config.map(field)).transpose()
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

const REMEDY: &str = "pass the config.json of a Hugging Face model";

/// The fields of the `config.json` of Hugging Face, which names the sizes of a model.
struct Config(Value);

impl Config {
    fn read(path: &Path) -> Result<Self> {
        let what = path.display().to_string();
        let bytes = std::fs::read(path);
        let os = |source| Error::Os { call: "open", what: what.clone(), source, remedy: REMEDY };
        let mut all: Value = serde_json::from_slice(&bytes.map_err(os)?).map_err(|e| {
            Error::invalid("--config", &what, format!("it is no JSON ({e})"), REMEDY)
        })?;
        // A model of several modalities has the fields of its text in an object.
        let text = all.get_mut("text_config").filter(|text| text.is_object()).map(Value::take);
        Ok(Self(text.unwrap_or(all)))
    }

    /// Returns a number; `remedy` names the option that replaces it.
    fn number(&self, field: &'static str, remedy: &'static str) -> Result<usize> {
        let number = self.0[field].as_u64().and_then(|n| usize::try_from(n).ok());
        number.ok_or_else(|| self.wrong(field, "it must be a whole number", remedy))
    }

    fn wrong(&self, field: &'static str, limit: &str, remedy: &'static str) -> anyhow::Error {
        let value = &self.0[field];
        let value = if value.is_null() { "missing".to_owned() } else { value.to_string() };
        Error::invalid(field, value, format!("{limit} in the file of --config"), remedy).into()
    }

    /// Returns the layers, which must all have rows that an indexer selects.
    fn layers(&self) -> Result<usize> {
        if self.0["layer_types"].to_string().contains("linear") {
            let limit = "layers of linear attention have no rows to select";
            bail!(self.wrong("layer_types", limit, "pass --layers and --indexers"));
        }
        self.number("num_hidden_layers", "pass --layers")
    }

    /// Returns how many of the first `layers` layers have an indexer of their own.
    fn indexers(&self, layers: usize) -> Result<usize> {
        let remedy = "pass --indexers";
        for field in ["indexer_types", "index_topk_pattern"] {
            let shared: Vec<bool> = match &self.0[field] {
                Value::Array(all) => {
                    all.iter().map(|kind| kind == "shared" || kind == "S").collect()
                }
                Value::String(all) => all.chars().map(|kind| kind == 'S').collect(),
                _ => continue,
            };
            let limit = || format!("it must have an entry for each of {layers} layers");
            let first = shared.get(..layers).ok_or_else(|| self.wrong(field, &limit(), remedy))?;
            return Ok(first.iter().filter(|shared| !**shared).count());
        }
        let given = |field, default| match &self.0[field] {
            Value::Null => Ok(default),
            _ => self.number(field, remedy),
        };
        // The first layers have one, and of those behind them every so many.
        let (first, every) = (given("index_skip_topk_offset", 2)?, given("index_topk_freq", 1)?);
        Ok(layers.min(first) + layers.saturating_sub(first) / every.max(1))
    }

    /// Returns the bytes of the row of a token: its latent values and their rotary part, in the type of the model.
    fn row_bytes(&self) -> Result<usize> {
        let remedy = "pass --row-bytes";
        let field = if self.0["dtype"].is_null() { "torch_dtype" } else { "dtype" };
        let bytes = match self.0[field].as_str().unwrap_or_default() {
            "bfloat16" | "float16" => 2,
            "float32" => 4,
            _ => bail!(self.wrong(field, "it must be bfloat16, float16 or float32", remedy)),
        };
        let [latent, rotary] = ["kv_lora_rank", "qk_rope_head_dim"].map(|f| self.number(f, remedy));
        Ok(latent?.saturating_add(rotary?).saturating_mul(bytes))
    }

    /// Returns K.
    fn k(&self) -> Result<usize> {
        self.number("index_topk", "pass --k to avsg info, or options in the place of --config")
    }
}
