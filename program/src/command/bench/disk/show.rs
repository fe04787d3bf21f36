//! The figures of `bench disk` as a page.

use super::Report;
use crate::command::bench::{number, short, with_ratio};
use crate::command::output::{Page, Table, count};

/// Returns the page: the answer, a row for each setting, and what was measured.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let rows = &report.settings;
    let [every, mapped, own] = &rows[..] else { return page };
    let stage_two = &report.stage_two;
    let beside = stage_two.fio_reads_per_second.map_or_else(String::new, |fio| {
        format!(", {:.0} % of what fio reads", 100.0 * stage_two.reads_per_second / fio)
    });
    page.text(format!(
        "A step takes {} us: {} times as fast as reads of every row, {} times as fast as a mapped file. Stage Two reads {} \
         records per second{beside}.",
        short(own.step_us),
        short(every.step_us / own.step_us),
        short(mapped.step_us / own.step_us),
        short(stage_two.reads_per_second)
    ));
    let columns = "setting | reads per step (x) | bytes per step (x) | step, us (x) | p99, us | wrong rows | memory bytes";
    let mut table = Table::new(columns.split(" | "));
    for row in rows {
        table.add_row([
            row.setting.into(),
            with_ratio(row.reads_per_step, row.reads_per_step / own.reads_per_step),
            with_ratio(row.bytes_per_step, row.bytes_per_step / own.bytes_per_step),
            with_ratio(row.step_us, row.step_us / own.step_us),
            number(row.step_p99_us),
            row.wrong_rows.into(),
            row.memory_bytes.into(),
        ]);
    }
    page.table(&table);
    let Report { workload, steps, k, slots, layers, row_bytes, file, .. } = report;
    page.text(format!(
        "measured  {}, {workload}: {steps} timed steps of one token, K = {k}, S = {slots}; counts are means, times medians, \
         (x) how many times as much as AVSG",
        report.machine.describe()
    ));
    let rows = count(*layers, "row");
    page.text(format!("file      {}; a record is {rows} of {row_bytes} bytes", file.what));
    stage_two.fio_missing.iter().for_each(|fault| page.text(format!("fio       {fault}")));
    page.text(format!("times     {}", report.disturbance.line()));
    page
}
