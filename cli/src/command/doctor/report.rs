//! The report of `avsg doctor`, in which every field has a value or the reason why it has none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

#[derive(Serialize, Deserialize, Debug)]
pub struct Field {
    pub value: Value,
    pub unit: String,
    /// The reason why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Field {
    /// Creates a field with the value of `result`, or with its error as the reason.
    pub fn new(result: anyhow::Result<impl Serialize>, unit: &str) -> Self {
        let value = result.and_then(|value| Ok(serde_json::to_value(value)?));
        match value {
            // JSON has no number for a rate over a time of zero.
            Ok(Value::Null) => Self::without_value("the measured time is zero".into(), unit),
            Ok(value) => Self { value, unit: unit.into(), reason: None },
            Err(error) => Self::without_value(format!("{error:#}"), unit),
        }
    }

    pub fn without_value(reason: String, unit: &str) -> Self {
        Self { value: Value::Null, unit: unit.into(), reason: Some(reason) }
    }
}

/// How a kernel behaved.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ended, and its results are those of the CPU.
    Good,
    /// It ended with results that differ from the CPU's.
    Wrong,
    /// It raised an exception, or the process that launched it died.
    Faulted,
    /// It did not end.
    Hung,
    /// It was not launched, because something else failed.
    NotRun,
}

/// What became of a kernel.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Kernel {
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Kernel {
    pub fn bad(status: Status, reason: impl Into<String>) -> Self {
        Self { status, reason: Some(reason.into()) }
    }
}

/// The CANN toolkit of this machine.
#[derive(Serialize, Debug)]
pub struct Toolkit {
    pub folder: Option<String>,
    pub version: Option<String>,
    /// What the version is too old for, or the reason why there is no version.
    pub remarks: Vec<String>,
}

/// The device as its runtime describes it.
#[derive(Serialize, Deserialize, Debug)]
pub struct Device {
    pub device: String,
    pub library: String,
    pub soc: String,
    pub vector_cores: usize,
    pub memory_free_bytes: usize,
    pub memory_total_bytes: usize,
    /// The functions that this runtime lacks: those of a newer CANN.
    pub runtime_lacks: Vec<String>,
}

#[derive(Serialize, Debug)]
pub struct Report {
    pub cann: Toolkit,
    /// The reason why there is no device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
    #[serde(flatten)]
    pub device: Option<Device>,
    /// The folder of the kernels and objects that the checks load.
    pub build: Field,
    /// When the count of a GatherMask is right, on which the length of every list rests.
    pub gather_mask_count: Field,
    /// What each kernel does when it runs alone, by the kernel's name.
    pub kernels: BTreeMap<String, Kernel>,
    /// The properties of `Check::PROPERTIES` by their names.
    #[serde(flatten, serialize_with = "as_map")]
    pub properties: Vec<(&'static str, Field)>,
    /// Bandwidth of Stage Two by strategy.
    pub h2d_bandwidth: Bandwidth,
    /// The code that a wait returns after a kernel has read memory that is not registered.
    pub kernel_fault_code: Field,
}

fn as_map<S: Serializer>(fields: &[(&str, Field)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, field)| (name, field)))
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
