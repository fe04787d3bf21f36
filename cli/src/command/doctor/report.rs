//! What the doctor writes down: every field has a value or the reason why it has none.

use serde::Serialize;
use serde_json::Value;

/// One finding.
#[derive(Serialize, Debug)]
pub struct Field {
    value: Value,
    unit: &'static str,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Field {
    /// A value.
    pub fn found(value: impl Serialize, unit: &'static str) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        Self { value, unit, reason: None }
    }

    /// A value, or why there is none.
    pub fn of(result: anyhow::Result<impl Serialize>, unit: &'static str) -> Self {
        match result {
            Ok(value) => Self::found(value, unit),
            Err(error) => Self { value: Value::Null, unit, reason: Some(format!("{error:#}")) },
        }
    }
}

/// The report.
#[derive(Serialize, Debug)]
pub struct Report {
    pub device: &'static str,
    pub library: String,
    pub soc: String,
    pub vector_cores: usize,
    pub memory_free_bytes: usize,
    pub memory_total_bytes: usize,
    /// What INT32_MAX + 1 is on a vector core.
    pub int32_overflow: Field,
    pub gather_rate: Field,
    pub sync_all_cost: Field,
    pub launch_cost: Field,
    /// Bandwidth of all cores by rows of 1152 bytes on their way per core.
    pub mte2_rows_in_flight: Field,
    pub hugetlb_registration: Field,
    pub largest_registration: Field,
    /// Whether a host row that is rewritten between two kernels is seen by the second.
    pub rewritten_row_seen: Field,
    /// Stage One of one request.
    pub match_latency: Field,
    /// By strategy.
    pub h2d_bandwidth: Bandwidth,
    /// What a wait returns after a kernel touched memory that is not registered.
    pub kernel_fault_code: Field,
}

/// Host to device by strategy, beside the paper's.
#[derive(Serialize, Debug)]
pub struct Bandwidth {
    pub request_s1: Field,
    pub position_s2: Field,
    pub balanced_s3: Field,
    /// 3 us to start, 0.42 us per row of 1152 bytes and core, and this cap.
    pub paper_gigabytes_per_second: f64,
}
