//! Times of graph replays between two events.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::device::{DeviceMemory, Event, Gpu, Graph};
use super::sizes::Sizes;

/// What some samples were, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub samples: usize,
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
}

/// Two events, and memory that is written before the first one.
pub struct Timer<'g> {
    gpu: &'g Gpu,
    start: Event<'g>,
    end: Event<'g>,
    flush: DeviceMemory<'g>,
}

impl<'g> Timer<'g> {
    /// Creates the events.
    pub fn new(gpu: &'g Gpu, sizes: &Sizes) -> Result<Self> {
        let flush = gpu.allocate(sizes.flush_bytes)?;
        Ok(Self { gpu, start: gpu.event()?, end: gpu.event()?, flush })
    }

    /// Times replays of a graph. `reset` puts work into the stream before the one of a number, which no time has.
    ///
    /// Then memory is written, which takes longer than the calls that follow, so that a replay never waits for the
    /// host, and which leaves nothing of the reset in the L2 cache.
    pub fn replays(
        &self,
        sizes: &Sizes,
        graph: &Graph<'_>,
        reset: impl Fn(usize) -> Result<()>,
    ) -> Result<Times> {
        const FEWEST: usize = 3;
        let began = Instant::now();
        let mut samples = Vec::new();
        for i in 0..sizes.warm_up + sizes.samples {
            if samples.len() >= FEWEST && began.elapsed() > sizes.cell_limit {
                break;
            }
            reset(i)?;
            self.flush.clear()?;
            self.start.record()?;
            graph.replay()?;
            self.end.record()?;
            self.gpu.wait()?;
            let us = self.end.us_since(&self.start)?;
            if i >= sizes.warm_up {
                samples.push(us);
            }
        }
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
        Ok(Times { samples: samples.len(), median: at(0.5), p10: at(0.1), p90: at(0.9) })
    }
}
