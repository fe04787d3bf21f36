//! Reads per second of Stage Two, beside fio, which does nothing but read.

use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::process::Command;

use anyhow::{Context, Result, bail};
use avsg_measure::splitmix::SplitMix64;
use serde::Serialize;
use serde_json::Value;

use crate::disk::{Operator, Records, path_in_proc};
use crate::turns::{Contender, Turns};

/// Turns of each contender.
const ROUNDS: usize = 5;
/// Batches of a turn.
const BATCHES: usize = 8;
/// Reads in flight of fio, as many as those of Stage Two.
const DEPTH: usize = 256;
/// Seconds that a turn of fio takes.
const FIO_SECONDS: u32 = 1;

/// Medians of reads per second, of records that are no neighbours.
#[derive(Serialize)]
pub struct StageTwo {
    /// Bytes of a read.
    pub read_bytes: usize,
    /// Reads in flight of fio.
    pub depth: usize,
    /// The call of Stage Two, and of fio.
    pub engine: &'static str,
    pub reads_per_second: f64,
    pub fio_reads_per_second: Option<f64>,
    /// Why there is no figure of fio; null if there is one.
    pub fio_missing: Option<String>,
}

/// Measures transfers of `k` missing records, and the same reads of `file`, which has `records` of the same
/// size and was opened for direct reads or not.
pub fn measure(
    operator: &mut Operator,
    file: &File,
    records: Records,
    k: usize,
) -> Result<StageTwo> {
    let count = k.min(records.count.div_ceil(2));
    let bytes = records.stride;
    let engine = if operator.info()?.io_uring { "io_uring" } else { "psync" };
    // Ids that are no neighbours, in random order.
    let mut ids: Vec<i32> = (0..records.count as i32).step_by(2).collect();
    SplitMix64::new(5).shuffle(&mut ids);
    let mut batches = ids.chunks_exact(count).cycle();
    let padding = vec![-1; k - count];
    let (reads, mut fio_missing) = ((BATCHES * count) as f64, None);
    // A time is that of a read.
    let mut contenders = [
        Contender::new("Stage Two", |_, us| {
            us[0] = 0.0;
            for batch in batches.by_ref().take(BATCHES) {
                us[0] += operator.read_all(&[batch, &padding].concat())? / reads;
            }
            Ok(())
        }),
        Contender::new("fio", |_, us| {
            if fio_missing.is_none() {
                match fio(file, bytes, engine) {
                    Ok(rate) => us[0] = 1e6 / rate,
                    Err(fault) => fio_missing = Some(format!("{fault:#}")),
                }
            }
            Ok(())
        }),
    ];
    let turns = Turns { warm_up: 0, steps: ROUNDS, turn: 1, settle: 0 };
    let times = turns.take(&mut contenders, |_| Cow::default(), |_| ())?.concat();
    drop(contenders);
    let [own, fio] = [0, 1].map(|at| 1e6 / times[at].p50);
    Ok(StageTwo {
        read_bytes: bytes,
        depth: DEPTH,
        engine,
        reads_per_second: own,
        fio_reads_per_second: fio_missing.is_none().then_some(fio),
        fio_missing,
    })
}

/// Returns the reads per second of fio on an open file.
fn fio(file: &File, bytes: usize, engine: &str) -> Result<f64> {
    let direct = rustix::fs::fcntl_getfl(file)?.contains(rustix::fs::OFlags::DIRECT);
    let options = format!(
        "--name=avsg --readonly --rw=randread --filename={} --bs={bytes} --iodepth={DEPTH} --ioengine={engine} --direct={} \
         --time_based --runtime={FIO_SECONDS} --output-format=json",
        path_in_proc(file).display(),
        u8::from(direct)
    );
    let output = match Command::new("fio").args(options.split(' ')).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("fio is not installed"),
        output => output.context("starting fio")?,
    };
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("fio failed: {}", errors.lines().next().unwrap_or("without a message"));
    }
    // Notes may stand before the results.
    let text = String::from_utf8_lossy(&output.stdout);
    let results = text.find('{').map(|start| serde_json::from_str::<Value>(&text[start..]));
    let results =
        results.context("fio printed no results")?.context("reading the results of fio")?;
    results["jobs"][0]["read"]["iops"].as_f64().context("fio printed no reads per second")
}
