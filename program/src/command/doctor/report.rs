//! The report of `avsg doctor`, in which every line has a value or the reason why it has none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::command::output::{Page, Table};

/// A line of the report.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Line {
    pub value: Value,
    /// The value that kernels and host are written for, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// Why there is no value, or what is not right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Line {
    /// Creates a line with the value of `result`, or with its error as the reason.
    pub fn new(result: anyhow::Result<Value>) -> Self {
        match result {
            Ok(value) => Self { value, expected: String::new(), reason: None },
            Err(error) => Self::bad(Value::Null, format!("{error:#}")),
        }
    }

    /// Creates a line of what is not right.
    pub fn bad(value: impl Into<Value>, reason: String) -> Self {
        Self { value: value.into(), expected: String::new(), reason: Some(reason) }
    }

    /// Returns whether there is a value, and the expected one if one is expected.
    pub fn is_expected(&self) -> bool {
        let shown = shown(&self.value).filter(|_| self.reason.is_none());
        shown.is_some_and(|shown| self.expected.is_empty() || shown == self.expected)
    }
}

/// Returns a value as a reader sees it, if there is one.
pub fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(time) => {
            let [us, low, high] =
                ["us", "low", "high"].map(|name| time[name].as_f64().unwrap_or(f64::NAN));
            Some(format!("{us:.3} us ({low:.3} to {high:.3})"))
        }
        other => Some(other.to_string()),
    }
}

#[derive(Serialize, Debug)]
pub struct Report {
    /// The versions of AVSG, of the driver, of the firmware and of Linux, if they are known.
    pub versions: BTreeMap<&'static str, Option<String>>,
    /// The version of the CANN toolkit of this machine, and as remarks what it is too old for, or the reason why there is
    /// no version.
    pub cann: Value,
    /// The reason why there is no device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
    /// The device as its runtime describes it, and the geometry of the kernels that run.
    #[serde(flatten)]
    pub device: Option<Map<String, Value>>,
    /// Whether the kernels were built, and what the checks found; none without a device.
    #[serde(serialize_with = "as_map")]
    pub lines: Vec<(String, Line)>,
}

fn as_map<S: Serializer>(lines: &[(String, Line)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(lines.iter().map(|(name, line)| (name, line)))
}

impl Report {
    /// Returns whether the device answered, the kernels were built, and each of them that ran was right.
    pub fn kernels_are_good(&self) -> bool {
        let counts = |(name, line): &&(String, Line)| {
            ["device", "build"].contains(&name.as_str()) || line.expected == "good"
        };
        let is_good = |(_, line): &(String, Line)| line.value == "good" || line.value == true;
        self.lines.iter().filter(counts).all(is_good)
    }

    /// Returns the report as a page, which begins with the verdict; one sentence if there is no device.
    pub fn page(&self) -> Page {
        let mut page = Page::default();
        if let Some(reason) = &self.no_device {
            page.text(format!("skipped: no device: {reason}"));
            return page;
        }
        let good =
            if self.kernels_are_good() { "The kernels are good" } else { "A kernel is not good" };
        let odd = self.lines.iter().filter(|(_, line)| !line.is_expected());
        let odd: Vec<&str> = odd.map(|(name, _)| name.as_str()).collect();
        page.text(match &odd[..] {
            [] => format!("{good}, and every line is as expected."),
            _ => format!("{good}; without a value, or not as expected: {}.", odd.join(", ")),
        });
        let mut table = Table::new(["line", "value", "expected", "reason"]);
        for (name, line) in &self.lines {
            let [value, reason] =
                [shown(&line.value), line.reason.clone()].map(Option::unwrap_or_default);
            table.add_row([name, &value, &line.expected, &reason]);
        }
        page.table(&table);
        if let Some(device) = &self.device {
            let [soc, cores, library, k, slots] = ["soc", "vector_cores", "library", "k", "slots"]
                .map(|name| shown(&device[name]).unwrap_or_default());
            page.text(format!(
                "device    {soc}, {cores} vector cores, {library}; K = {k}, S = {slots}"
            ));
        }
        page
    }
}
