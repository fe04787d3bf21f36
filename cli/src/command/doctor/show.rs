//! The report of `avsg doctor` as a page.

use serde_json::Value;

use super::report::Report;
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
    let mut table = Table::new(["property", "value", "unit", "reason"]).titled("Properties");
    let bandwidth = &report.h2d_bandwidth;
    let first = [("build", &report.build), ("gather_mask_count", &report.gather_mask_count)];
    let last = [
        ("h2d_bandwidth/request_s1", &bandwidth.request_s1),
        ("h2d_bandwidth/position_s2", &bandwidth.position_s2),
        ("h2d_bandwidth/balanced_s3", &bandwidth.balanced_s3),
        ("kernel_fault_code", &report.kernel_fault_code),
    ];
    let measured = report.properties.iter().map(|(name, field)| (*name, field));
    for (name, field) in first.into_iter().chain(measured).chain(last) {
        let value = match &field.value {
            Value::Null => Cell::none(),
            Value::String(text) => text.into(),
            Value::Number(n) if n.is_f64() => Cell::number(n.as_f64().unwrap_or(f64::NAN), 3),
            other => other.into(),
        };
        let unit = if field.unit.is_empty() { Cell::none() } else { (&field.unit).into() };
        table.add_row([name.into(), value, unit, reason(report, &field.reason)]);
    }
    let paper = Cell::number(bandwidth.paper_gigabytes_per_second, 0);
    table.add_row(["h2d_bandwidth of the paper".into(), paper, "GB/s".into(), Cell::none()]);
    table
}
