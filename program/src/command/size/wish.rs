//! What the user wants of an S.

use clap::Args;
use serde::Serialize;

use crate::quantity::{gigabytes, percent, positive};

/// What the user wants; null in JSON where nothing was said.
#[derive(Args, Clone, Copy, Debug, Serialize)]
pub struct Wish {
    /// Recommend the least S with this hit rate, 1 to 100
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub hit_rate: Option<f64>,
    /// Recommend the S that copies least of those that fit this much device memory: 4, 4G or 4GB for
    /// 4 * 10^9 bytes, 4Gi for 4 * 2^30
    #[arg(long = "device-gb", value_name = "GB", value_parser = gigabytes)]
    pub device_bytes: Option<f64>,
    /// Recommend the least S with this time per output token in milliseconds, by the model; with --link,
    /// with rows on the disk
    #[arg(long, value_name = "MS", requires = "any_link", value_parser = positive)]
    pub tpot_ms: Option<f64>,
}
