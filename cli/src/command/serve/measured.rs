//! Figures of a deployment that somebody measured.

use std::path::Path;

use anyhow::{Context, Result};
use avsg::Error;
use serde::{Deserialize, Serialize};

use super::deployment::Setting;

/// The paper's table "End-to-end cold-start comparison" as JSON.
const PUBLISHED: &str = include_str!("../../published/serving.json");

/// Figures of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The setting: `no_offload`, `kv_offload` or `avsg` in JSON.
    pub setting: Setting,
    /// Tokens that a rank has memory for.
    pub kv_tokens: usize,
    /// Device memory of a decode rank in percent.
    pub hbm_percent: f64,
    /// Mean seconds to the first token.
    pub ttft_s: f64,
    /// Mean milliseconds per output token.
    pub tpot_ms: f64,
    /// 99th percentile of the milliseconds per output token.
    pub tpot_p99_ms: f64,
    /// Mean seconds to the last token.
    pub e2e_s: f64,
    /// Output tokens per second.
    pub output_tok_s: f64,
    /// Requests per second.
    pub request_rate: f64,
}

#[derive(Deserialize)]
struct File {
    settings: Vec<Measured>,
}

impl Measured {
    /// Returns the mean number of output tokens per request.
    pub fn output(&self) -> f64 {
        self.output_tok_s / self.request_rate
    }
}

/// Returns the paper's figures.
///
/// # Errors
/// An error is returned if the committed figures do not parse.
pub fn published() -> Result<Vec<Measured>> {
    Ok(serde_json::from_str::<File>(PUBLISHED)?.settings)
}

/// Reads figures from a file of the same form as the paper's.
pub fn read(path: &Path) -> Result<Vec<Measured>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let bad = |limit: String| {
        let remedy = "take cli/src/published/serving.json as a pattern";
        Error::invalid("--measured", path.display(), limit, remedy)
    };
    let file: File = serde_json::from_str(&text).map_err(|error| {
        bad(format!("it must be a list of settings and their figures: {error}"))
    })?;
    for one in &file.settings {
        let figures = [one.ttft_s, one.tpot_ms, one.e2e_s, one.output_tok_s, one.request_rate];
        if figures.iter().any(|figure| !figure.is_finite() || *figure <= 0.0) {
            return Err(bad(format!("a figure of {} is not above 0", one.setting.name())).into());
        }
    }
    Ok(file.settings)
}

/// Returns the figures of a setting, if there are any.
pub fn of(figures: &[Measured], setting: Setting) -> Option<&Measured> {
    figures.iter().find(|one| one.setting == setting)
}
