//! The sizes of a model that the `config.json` of Hugging Face names.

use std::path::Path;

use anyhow::{Result, bail};
use avsg::Error;
use serde_json::Value;

const REMEDY: &str = "pass the config.json of a Hugging Face model";

/// The fields of a file.
pub struct Config(Value);

impl Config {
    pub fn read(path: &Path) -> Result<Self> {
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
    pub fn layers(&self) -> Result<usize> {
        if self.0["layer_types"].to_string().contains("linear") {
            let limit = "layers of linear attention have no rows to select";
            bail!(self.wrong("layer_types", limit, "pass --layers and --indexers"));
        }
        self.number("num_hidden_layers", "pass --layers")
    }

    /// Returns how many of the first `layers` layers have an indexer of their own.
    pub fn indexers(&self, layers: usize) -> Result<usize> {
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
    pub fn row_bytes(&self) -> Result<usize> {
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
    pub fn k(&self) -> Result<usize> {
        self.number(
            "index_topk",
            "pass --k to avsg info, or no --config but its figures by options",
        )
    }
}
