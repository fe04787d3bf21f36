//! The report of `avsg doctor`, in which every field has a value or the reason why it has none.

use serde::Serialize;
use serde_json::Value;

/// One measured property.
#[derive(Serialize, Debug)]
pub struct Field {
    value: Value,
    unit: &'static str,
    /// The reason why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Field {
    /// Creates a field with a value.
    pub fn with_value(value: impl Serialize, unit: &'static str) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        Self { value, unit, reason: None }
    }

    /// Creates a field with the value of `result`, or with its error as the reason.
    pub fn new(result: anyhow::Result<impl Serialize>, unit: &'static str) -> Self {
        match result {
            Ok(value) => Self::with_value(value, unit),
            Err(error) => Self { value: Value::Null, unit, reason: Some(format!("{error:#}")) },
        }
    }
}

/// The properties of a device.
#[derive(Serialize, Debug)]
pub struct Report {
    pub device: &'static str,
    pub library: String,
    pub soc: String,
    pub vector_cores: usize,
    pub memory_free_bytes: usize,
    pub memory_total_bytes: usize,
    /// The result of INT32_MAX + 1 on a vector core.
    pub int32_overflow: Field,
    pub gather_rate: Field,
    pub sync_all_cost: Field,
    pub launch_cost: Field,
    /// Bandwidth of all cores for each number of rows of 1152 bytes in flight per core.
    pub mte2_rows_in_flight: Field,
    /// Whether memory in explicit hugepages can be registered.
    pub hugetlb_registration: Field,
    /// Bytes of the largest registration that succeeded.
    pub largest_registration: Field,
    /// Whether a kernel reads the new content of a host row that was rewritten before its launch.
    pub rewritten_row_seen: Field,
    /// Time of Stage One of one request.
    pub match_latency: Field,
    /// Bandwidth of Stage Two by strategy.
    pub h2d_bandwidth: Bandwidth,
    /// The code that a wait returns after a kernel has read memory that is not registered.
    pub kernel_fault_code: Field,
}

/// Bandwidth from host to device by strategy, and the paper's.
#[derive(Serialize, Debug)]
pub struct Bandwidth {
    pub request_s1: Field,
    pub position_s2: Field,
    pub balanced_s3: Field,
    /// Bandwidth of the link on the paper's device, in GB/s.
    pub paper_gigabytes_per_second: f64,
}
