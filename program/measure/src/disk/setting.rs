//! What takes turns in `bench disk`, and what a step of it did.

use anyhow::{Result, ensure};
use avsg::disk::DiskStats;

use crate::turns::Contender;

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The time in microseconds; NaN for a step that could not be done.
    pub us: f64,
    /// Reads and writes of the disk; what lies side by side in the file is one of them.
    pub operations: usize,
    /// Bytes of these.
    pub bytes: usize,
    /// Rows whose bytes are not those of their ids.
    pub wrong_rows: usize,
}

impl Step {
    /// Returns a step whose file has these counters before it and after it.
    pub fn of_file(us: f64, [before, after]: [DiskStats; 2], wrong_rows: usize) -> Self {
        let operations = after.reads + after.writes - before.reads - before.writes;
        let bytes = |stats: DiskStats| stats.read_bytes + stats.written_bytes;
        let bytes = (bytes(after) - bytes(before)) as usize;
        Self { us, operations: operations as usize, bytes, wrong_rows }
    }
}

/// A way to do a step: the bytes of the memory that has rows and of what finds them there, and a contender whose parts
/// are the time, the operations and the bytes of a step.
pub type Setting<'a> = (usize, Contender<'a>);

/// Returns a setting. `step` gets the ids that all requests select, those of each request after the other. Every row that
/// it brings into memory is compared, which is not timed.
pub fn setting<'a>(
    name: &'static str,
    memory_bytes: usize,
    mut step: impl FnMut(&[i32]) -> Result<Step> + 'a,
) -> Setting<'a> {
    let parts = vec!["us", "operations", "bytes"];
    let contender = Contender::new(name, parts, move |ids, figures| {
        let Step { us, operations, bytes, wrong_rows } = step(ids)?;
        ensure!(wrong_rows == 0, "{name}: {wrong_rows} rows were wrong");
        figures.copy_from_slice(&[us, operations as f64, bytes as f64]);
        Ok(())
    });
    (memory_bytes, contender)
}
