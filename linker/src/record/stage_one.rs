//! The tape of Stage One: the kernel, recorded with the columns and arguments that it declares.

use super::{Input, Life, List, Output, Recorder, Recording, Scalar, Words};
use crate::check::Refused;
use crate::tape::{Kind, Range, Tape};
use avsg_device::machine::declare::{Arguments, Columns};
use avsg_device::params::{ID_LIMIT, Lifetime, Params};
use avsg_device::request::Request;
use avsg_device::schedule::{Schedule, Work};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::state::{EMPTY, INVALID, State, header};
use avsg_device::vector_core::VectorCore;
use std::ops::RangeInclusive;

/// Records Stage One for a geometry as vector cores run it: by the schedule [`VectorCore`] if it
/// serves the table, else by [`Sequential`]. State columns are `id`, `life`, `link`, `header` and `learned`;
/// working columns and arguments have their declared names.
///
/// # Errors
/// If the kernel carries values in Rust variables; [`crate::check`] finds all other violations.
pub fn record_stage_one(p: &Params) -> Result<Tape, Refused> {
    if VectorCore::serves(p) {
        record_scheduled(VectorCore, p)
    } else {
        record_scheduled(Sequential, p)
    }
}

fn record_scheduled<S: Schedule>(schedule: S, p: &Params) -> Result<Tape, Refused> {
    record_with(schedule, p, |m, state, work, request| {
        stage_one(m, schedule, p, state, work, request);
    })
}

/// Records any kernel on the memory and the arguments of Stage One.
///
/// # Errors
/// As [`record_stage_one`].
pub fn record_with<S: Schedule>(
    schedule: S,
    p: &Params,
    kernel: impl for<'a, 't> FnOnce(
        Recorder<'t>,
        &mut State<'a, Recorder<'t>>,
        &mut Work<'a, Recorder<'t>, S>,
        &mut Request<'a, Recorder<'t>>,
    ),
) -> Result<Tape, Refused> {
    let recording = Recording::new("stage_one");
    {
        let mut m = recording.recorder();
        let mut state = state(m, p);
        let mut work = Work::declare(schedule, p, &mut m);
        let mut request = Request::declare(p, &mut m);
        kernel(m, &mut state, &mut work, &mut request);
    }
    recording.finish()
}

/// Declares the columns of a table.
fn state<'a, 't>(m: Recorder<'t>, p: &Params) -> State<'a, Recorder<'t>> {
    State {
        id: m.plane("id", "held", p.slots, Range::new(EMPTY, ID_LIMIT - 1)),
        life: m.life("life", p.slots),
        link: m.plane("link", "entry", p.links(), Range::new(0, 2 * INVALID - 1)),
        header: m.line("header", None, &header::NAMES),
        learned: (p.lifetime == Lifetime::Learned).then(|| m.output("learned", Range::ANY)),
    }
}

/// Returns a range of the tape.
fn range(words: RangeInclusive<i32>) -> Range {
    Range::new(*words.start(), *words.end())
}

impl<'t> Columns<'_, Recorder<'t>> for Recorder<'t> {
    fn column(&mut self, name: &'static str, len: u32, words: RangeInclusive<i32>) -> Words {
        Recorder::column(*self, name, len, range(words))
    }
    fn list<const W: usize>(
        &mut self,
        name: &'static str,
        len: u32,
        columns: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<W> {
        Recorder::list(*self, name, len, columns.map(|(name, words)| (name, range(words))))
    }
    fn life(&mut self, name: &'static str, slots: u32) -> Life {
        self.working_life(name, slots)
    }
}

impl<'t> Arguments<'_, Recorder<'t>> for Recorder<'t> {
    fn scalar(
        &mut self,
        name: &'static str,
        doc: &'static str,
        words: RangeInclusive<i32>,
    ) -> Scalar<'t> {
        self.param(name, doc, range(words))
    }
    fn input(&mut self, name: &'static str) -> Input {
        Input(self.declare(name, Kind::Input, 0, vec![(name, Range::ANY)]))
    }
    fn output(&mut self, name: &'static str, words: RangeInclusive<i32>) -> Output {
        Recorder::output(*self, name, range(words))
    }
    fn line(
        &mut self,
        name: &'static str,
        at: Scalar<'t>,
        words: &'static [(i32, &'static str)],
    ) -> Output {
        Recorder::line(*self, name, Some(at.value), words)
    }
}
