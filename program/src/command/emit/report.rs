//! What the kernels of a geometry need: lines of text, bytes of unified buffer, blocks per launch.

use avsg::device::memory::table_words;
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::Kernels;
use avsg_linker::ascend::limits::UB_BYTES;
use avsg_linker::ascend::soc::Soc;
use serde::Serialize;

use crate::command::output::{self, Cell, Page, Table};

/// The chip, the geometry and the files of its kernels.
#[derive(Serialize)]
pub struct Report {
    soc: &'static str,
    cores: u32,
    geometry: String,
    /// Bytes of device memory of one table.
    table_bytes: usize,
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    file: String,
    lines: usize,
    /// Bytes of unified buffer, of a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    unified_buffer_bytes: Option<u32>,
    /// The most blocks of a launch, for a kernel whose blocks must all run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u32>,
}

impl Report {
    pub fn new(p: &Params, soc: Soc, kernels: &Kernels) -> Self {
        let header = |(name, text): &(&str, String)| File {
            file: (*name).to_owned(),
            lines: text.lines().count(),
            unified_buffer_bytes: None,
            blocks: None,
        };
        let mut files: Vec<File> = kernels.headers.iter().map(header).collect();
        files.extend(kernels.kernels.iter().map(|kernel| File {
            file: format!("{}.cpp", kernel.name),
            lines: kernel.text.lines().count(),
            unified_buffer_bytes: Some(kernel.ub_bytes),
            // All blocks of a kernel that calls SyncAll must run at the same time.
            blocks: kernel.text.contains("SyncAll<true>()").then_some(soc.cores),
        }));
        let (cores, table_bytes) = (soc.cores, 4 * table_words(p));
        Self { soc: soc.name, cores, geometry: p.to_string(), table_bytes, files }
    }

    /// Returns the page that begins with what was written.
    pub fn page(&self, written: &str) -> Page {
        let mut page = Page::default();
        page.text(written);
        let columns =
            "file | lines | unified buffer, bytes | share of its 184 KiB, % | blocks per launch";
        let mut table = Table::new(columns.split(" | "));
        for file in &self.files {
            let share = |bytes: u32| 100.0 * f64::from(bytes) / f64::from(UB_BYTES);
            let used = file.unified_buffer_bytes;
            let blocks = file.blocks.map_or_else(|| "any".into(), |n| format!("at most {n}"));
            table.add_row([
                file.file.clone().into(),
                file.lines.into(),
                used.map_or_else(Cell::none, Cell::from),
                used.map_or_else(Cell::none, |bytes| Cell::number(share(bytes), 0)),
                used.map_or_else(Cell::none, |_| blocks.into()),
            ]);
        }
        page.table(&table);
        page.text(format!("chip      {}: {} vector cores of dav-c220", self.soc, self.cores));
        page.text(format!("geometry  {}", self.geometry));
        let bytes = output::bytes(self.table_bytes);
        page.text(format!("table     {bytes} of device memory per state"));
        page
    }
}
