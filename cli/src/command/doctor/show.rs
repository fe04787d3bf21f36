//! The report of `avsg doctor` as a page.

use serde_json::Value;

use super::report::{Report, Spread};
use crate::command::output::{Cell, Page, Table, bytes};

/// Returns the page: the machine, the kernels and the measured properties, each named as in the JSON.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    if let Some(reason) = &report.no_device {
        page.text(format!("skipped: no device: {reason}"));
    }
    page.table(machine(report));
    page.table(kernels(report));
    page.table(properties(report));
    page.table(times(report));
    if let Some(reason) = &report.no_clocks {
        page.text(format!("The clocks of the model gave no times: {reason}"));
    }
    page
}

/// Returns the cell of a reason. The reason why there is no device stands once, in the first table.
fn reason(report: &Report, reason: &Option<String>) -> Cell {
    let no_device = report.no_device.as_ref().map(|why| format!("no device: {why}"));
    match reason {
        None => Cell::none(),
        Some(_) if *reason == no_device => "no device".into(),
        Some(reason) => reason.into(),
    }
}

fn machine(report: &Report) -> Table {
    let mut table = Table::new(["part", "value"]).titled("Machine");
    let mut add = |part: &str, value: Cell| table.add_row([Cell::from(part), value]);
    let text = |value: &Option<String>| value.as_ref().map_or(Cell::none(), Cell::from);
    add("CANN's folder", text(&report.cann.folder));
    add("CANN's version", text(&report.cann.version));
    report.cann.remarks.iter().for_each(|remark| add("remark", remark.into()));
    for (name, version) in &report.versions {
        add(&format!("version of {name}"), text(version));
    }
    if let Some(why) = &report.no_device {
        add("no device", why.into());
    }
    if let Some(device) = &report.device {
        let size = |n: usize| Cell::shown(n as f64, bytes(n));
        add("device", (&device.device).into());
        add("library", (&device.library).into());
        add("chip", (&device.soc).into());
        add("vector cores", device.vector_cores.into());
        add("free memory, bytes", size(device.memory_free_bytes));
        add("memory, bytes", size(device.memory_total_bytes));
        device.runtime_lacks.iter().for_each(|name| add("runtime lacks", name.into()));
    }
    table
}

fn kernels(report: &Report) -> Table {
    let mut table = Table::new(["kernel", "status", "reason"]).titled("Kernels");
    for (name, kernel) in &report.kernels {
        // The name of a status is that in the JSON.
        let status = serde_json::to_value(kernel.status).unwrap_or_default();
        let status = status.as_str().map_or_else(Cell::none, Cell::from);
        table.add_row([name.into(), status, reason(report, &kernel.reason)]);
    }
    table
}

fn properties(report: &Report) -> Table {
    let columns = ["property", "value", "expected", "unit", "reason"];
    let mut table = Table::new(columns).titled("Properties");
    let properties = report.properties.iter().map(|(name, field)| (*name, field));
    let built = [("build", &report.build), ("build_learned", &report.build_learned)];
    for (name, field) in built.into_iter().chain(properties) {
        let value = match &field.value {
            Value::Null => Cell::none(),
            Value::String(text) => text.into(),
            Value::Number(n) if n.is_f64() => Cell::number(n.as_f64().unwrap_or(f64::NAN), 3),
            other => other.into(),
        };
        let expected = match (&field.expected, field.as_expected) {
            (None, _) => Cell::none(),
            (Some(expected), Some(false)) => format!("DIFFERS: {expected}").into(),
            (Some(expected), _) => expected.into(),
        };
        let unit = if field.unit.is_empty() { Cell::none() } else { (&field.unit).into() };
        table.add_row([name.into(), value, expected, unit, reason(report, &field.reason)]);
    }
    table
}

fn times(report: &Report) -> Table {
    let columns = ["time of", "cores", "measured, us", "least", "most", "clocks, us", "reason"];
    let mut table = Table::new(columns).titled("Times, beside those of the clocks of the model");
    let us = |value: Option<f64>| value.map_or_else(Cell::none, |us| Cell::number(us, 4));
    for (name, time) in &report.times {
        let of = |value: fn(Spread) -> f64| us(time.measured.map(value));
        table.add_row([
            (*name).into(),
            time.cores.into(),
            of(|spread| spread.us),
            of(|spread| spread.low),
            of(|spread| spread.high),
            us(time.clocks_us),
            reason(report, &time.reason),
        ]);
    }
    table
}
