//! The figures of `bench disk` as a page.

use super::Report;
use super::turns::Row;
use crate::command::bench::{number, with_ratio};
use crate::command::output::{Cell, Page, Table, bytes, count};

/// Returns the page: what was measured, a row for each setting, and Stage Two beside plain reads.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { workload, steps, k, slots, layers, row_bytes, file, .. } = report;
    let cores = count(report.machine.cores, "CPU");
    page.text(format!("machine   {} ({cores})", report.machine.cpu));
    page.text(format!(
        "trace     {workload}: {steps} timed steps of one token, K = {k}, S = {slots}"
    ));
    let cache = if file.direct { "past the page cache" } else { "through the page cache" };
    let engine = if file.io_uring { "io_uring" } else { "preadv" };
    page.text(format!(
        "file      in {}: {}, blocks of {}, {cache}, {engine}",
        file.folder,
        bytes(file.file_bytes as usize),
        file.block
    ));
    page.text(format!(
        "record    {} of {row_bytes} bytes with checksums: {} bytes, {:.1} % of them padding",
        count(*layers, "row"),
        file.record_bytes,
        file.padding_percent
    ));
    page.table(settings(&report.settings));
    page.text("(x): how many times as much as AVSG");
    for row in &report.settings {
        row.page_cache.iter().for_each(|by| page.text(format!("{}: limited by {by}", row.setting)));
    }
    report.no_control_group.iter().for_each(|fault| {
        page.text(format!("A page cache in a control group was not measured: {fault}."));
    });
    page.table(stage_two(report));
    report.stage_two.fio_missing.iter().for_each(|fault| page.text(format!("fio: {fault}")));
    page.text(format!("times of the steps: {}", report.disturbance.line()));
    page
}

fn settings(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "setting",
        "reads per step (x)",
        "bytes per step (x)",
        "step, us (x)",
        "p99, us",
        "wrong rows",
        "memory bytes",
    ])
    .titled("a step: counts are means, times medians");
    let Some(avsg) = rows.last() else { return table };
    for row in rows {
        table.add_row([
            row.setting.into(),
            with_ratio(row.reads_per_step, row.reads_per_step / avsg.reads_per_step),
            with_ratio(row.bytes_per_step, row.bytes_per_step / avsg.bytes_per_step),
            with_ratio(row.step_us, row.step_us / avsg.step_us),
            number(row.step_p99_us),
            row.wrong_rows.into(),
            row.memory_bytes.into(),
        ]);
    }
    table
}

fn stage_two(report: &Report) -> Table {
    let all = &report.stage_two;
    let mut table = Table::new(["reads of records", "reads per second", "Stage Two, % of it"])
        .titled("Stage Two when every row misses, beside fio");
    let own = all.reads_per_second;
    table.add_row(["Stage Two".into(), number(own), Cell::none()]);
    let (name, rate) =
        (format!("fio, {}, depth {}", all.engine, all.depth), all.fio_reads_per_second);
    let rate = rate.unwrap_or(f64::NAN);
    table.add_row([name.into(), number(rate), Cell::number(100.0 * own / rate, 1)]);
    table
}
