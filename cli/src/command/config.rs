//! The sizes of a model that the `config.json` of Hugging Face names.

use std::path::Path;

use anyhow::Result;
use avsg::Error;
use serde_json::Value;

/// The fields of a file.
pub struct Config(Value);

impl Config {
    pub fn read(path: &Path) -> Result<Self> {
        let os = |source| Error::Os {
            call: "open",
            what: path.display().to_string(),
            source,
            remedy: "pass the config.json of a Hugging Face model",
        };
        let mut all: Value =
            serde_json::from_slice(&std::fs::read(path).map_err(os)?).map_err(|error| {
                let limit = format!("it is no JSON ({error})");
                Error::invalid(
                    "--config",
                    path.display(),
                    limit,
                    "pass the config.json of a Hugging Face model",
                )
            })?;
        // A model of several modalities has the fields of its text in an object.
        let text = all.get_mut("text_config").filter(|text| text.is_object()).map(Value::take);
        Ok(Self(text.unwrap_or(all)))
    }

    /// Returns a number; `remedy` names the option that replaces it.
    fn number(&self, field: &'static str, remedy: &'static str) -> Result<usize> {
        let number = self.0[field].as_u64().and_then(|n| usize::try_from(n).ok());
        Ok(number.ok_or_else(|| self.wrong(field, "it must be a whole number", remedy))?)
    }

    fn wrong(&self, field: &'static str, limit: &str, remedy: &'static str) -> Error {
        let value = match &self.0[field] {
            Value::Null => "missing".to_owned(),
            value => value.to_string(),
        };
        Error::invalid(field, value, format!("{limit} in the file of --config"), remedy)
    }

    /// Returns the layers, which must all have rows that an indexer selects.
    pub fn layers(&self) -> Result<usize> {
        let remedy = "pass --layers";
        let kinds =
            self.0["layer_types"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if kinds.into_iter().any(|kind| kind.starts_with("linear")) {
            let limit = "layers of linear attention have no rows to select";
            return Err(self.wrong("layer_types", limit, "pass --layers and --indexers").into());
        }
        self.number("num_hidden_layers", remedy)
    }

    /// Returns how many of the first `layers` layers have an indexer of their own.
    pub fn indexers(&self, layers: usize) -> Result<usize> {
        let remedy = "pass --indexers";
        for field in ["indexer_types", "index_topk_pattern"] {
            let kinds: Vec<String> = match &self.0[field] {
                Value::Array(all) => {
                    all.iter().map(|kind| kind.as_str().unwrap_or_default().to_owned()).collect()
                }
                Value::String(text) => text.chars().map(String::from).collect(),
                _ => continue,
            };
            if kinds.len() < layers {
                return Err(self
                    .wrong(
                        field,
                        &format!("it must have an entry for each of {layers} layers"),
                        remedy,
                    )
                    .into());
            }
            return Ok(kinds[..layers]
                .iter()
                .filter(|kind| !["shared", "S"].contains(&kind.as_str()))
                .count());
        }
        let given = |field, default| match &self.0[field] {
            Value::Null => Ok(default),
            _ => self.number(field, remedy),
        };
        let (every, offset) =
            (given("index_topk_freq", 1)?.max(1), given("index_skip_topk_offset", 2)?);
        Ok((0..layers).filter(|layer| (layer + 1).saturating_sub(offset) % every == 0).count())
    }

    /// Returns the bytes of the row of a token: its latent values and their rotary part, in the type of the model.
    pub fn row_bytes(&self) -> Result<usize> {
        let remedy = "pass --row-bytes";
        let values =
            self.number("kv_lora_rank", remedy)? + self.number("qk_rope_head_dim", remedy)?;
        let field = if self.0["dtype"].is_null() { "torch_dtype" } else { "dtype" };
        let bytes = match self.0[field].as_str().unwrap_or_default() {
            "bfloat16" | "float16" => 2,
            "float32" => 4,
            kind if kind.starts_with("float8") => 1,
            _ => {
                return Err(self
                    .wrong(field, "it must be bfloat16, float16, float32 or float8", remedy)
                    .into());
            }
        };
        Ok(values * bytes)
    }

    /// Returns K.
    pub fn k(&self) -> Result<usize> {
        self.number(
            "index_topk",
            "pass --k to avsg info, or leave out --config and name its figures by options",
        )
    }
}
