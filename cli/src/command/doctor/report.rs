//! The report of `avsg doctor`, in which every field has a value or the reason why it has none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::check::Property;

#[derive(Serialize, Deserialize, Debug)]
pub struct Field {
    pub value: Value,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The value that kernels and host are written for, if there is one, and whether this is the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_expected: Option<bool>,
    /// The reason why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Field {
    /// Creates a field with the value of `result`, or with its error as the reason.
    pub fn new(result: anyhow::Result<impl Serialize>) -> Self {
        let value = result.and_then(|value| Ok(serde_json::to_value(value)?));
        match value {
            // JSON has no number for a rate over a time of zero.
            Ok(Value::Null) => Self::without_value("the measured time is zero".into()),
            Ok(value) => Self { value, reason: None, ..Self::without_value(String::new()) },
            Err(error) => Self::without_value(format!("{error:#}")),
        }
    }

    pub fn without_value(reason: String) -> Self {
        let (value, unit) = (Value::Null, String::new());
        Self { value, unit, expected: None, as_expected: None, reason: Some(reason) }
    }

    /// Returns the field of a property, whose value is judged.
    pub fn of(self, property: &Property) -> Self {
        let expected = Some(property.expected).filter(|expected| !expected.is_empty());
        let seen = match &self.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let as_expected = seen.zip(expected).map(|(seen, expected)| seen == expected);
        let (unit, expected) = (property.unit.into(), expected.map(String::from));
        Self { unit, expected, as_expected, ..self }
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
    #[serde(skip)]
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
    pub geometry: Geometry,
}

/// The reason why there is no device.
#[derive(Serialize, Deserialize, Debug)]
pub struct NoDevice {
    pub reason: String,
    /// The files that were tried if none of them is a runtime.
    pub no_runtime: Option<String>,
}

impl NoDevice {
    pub fn new(error: &anyhow::Error) -> Self {
        let no_runtime = match error.downcast_ref() {
            Some(avsg::Error::Unavailable { tried, .. }) => Some(tried.clone()),
            _ => None,
        };
        Self { reason: format!("{error:#}"), no_runtime }
    }
}

/// The geometry of the kernels that run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
pub struct Geometry {
    pub k: u32,
    pub slots: u32,
    pub row_bytes: usize,
}

/// A time that was measured, beside that of the model.
#[derive(Serialize, Debug)]
pub struct Time {
    /// What is done in this time.
    pub of: &'static str,
    /// The number of vector cores that do it.
    pub cores: usize,
    pub measured: Option<Spread>,
    /// The time that the clocks give with the default constants.
    pub clocks_us: Option<f64>,
    /// The reason why nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Serialize, Debug)]
pub struct Report {
    /// The versions of AVSG, of the driver, of the firmware and of Linux, if they are known.
    pub versions: BTreeMap<&'static str, Option<String>>,
    pub cann: Toolkit,
    /// The reason why there is no device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
    #[serde(flatten)]
    pub device: Option<Device>,
    /// Whether the kernels and the probes were built.
    pub build: Field,
    /// Whether the kernels of four tokens with learned lifetimes were built.
    pub build_learned: Field,
    /// What each kernel does when it runs alone, by the kernel's name.
    pub kernels: BTreeMap<String, Kernel>,
    /// The properties of `check::PROPERTIES` by their names.
    #[serde(flatten, serialize_with = "as_map")]
    pub properties: Vec<(&'static str, Field)>,
    /// The times of `times::ROWS` by their names.
    #[serde(serialize_with = "as_map")]
    pub times: Vec<(&'static str, Time)>,
    /// The reason why the clocks of the model gave no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_clocks: Option<String>,
}

fn as_map<T: Serialize, S: Serializer>(
    fields: &[(&str, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, field)| (name, field)))
}

/// Microseconds of an operation: the median of several measurements, the least and the most.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub us: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// Returns the spread of measurements, of which there is at least one.
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |n: usize| samples.get(n).copied().unwrap_or(f64::NAN);
        Self { us: at(samples.len() / 2), low: at(0), high: at(samples.len().saturating_sub(1)) }
    }
}
