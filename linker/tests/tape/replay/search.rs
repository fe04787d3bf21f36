//! Searches for links: their definition in the kernel language, recorded and replayed.

use super::Replay;
use avsg_device::machine::links::Links;
use avsg_device::machine::search::{find, find_free};
use avsg_linker::check::{Refused, Why};
use avsg_linker::record::Recording;
use avsg_linker::tape::{Op, Range, Tape};

impl Replay<'_> {
    /// Executes a search: replays its definition on copies of its columns, of which it changes the
    /// first.
    pub(super) fn search(&mut self, op: &Op, links: &Links) -> Result<(), String> {
        let refused = |refused: Refused| refused.to_string();
        let tape = definition(self.tape, op, links).map_err(refused)?;
        let mut replay = Replay::new(&tape, self.width).map_err(refused)?;
        for (copy, id) in replay.memory.contents.iter_mut().zip(&op.columns) {
            copy.clone_from(&self.memory.contents[id.0 as usize]);
        }
        let found = replay.set("n", self.scalar(op.args[0])).and_then(|()| replay.run());
        found.map_err(|fault| fault.to_string())?;
        let result = op.columns[0].0 as usize;
        self.memory.contents[result] = replay.memory.contents.swap_remove(0);
        Ok(())
    }
}

/// Records the definition of a search on columns of the same lengths.
fn definition(tape: &Tape, op: &Op, links: &Links) -> Result<Tape, Refused> {
    let recording = Recording::new("search");
    let m = recording.recorder();
    let lengths = op.columns.iter().map(|&id| tape.column(id).len).enumerate();
    let mut columns: Vec<_> =
        lengths.map(|(n, len)| m.plane(&format!("operand {n}"), "word", len, Range::ANY)).collect();
    let n = m.param("n", "The number of probe sequences.", Range::ANY);
    match &mut columns[..] {
        [slot, sequence, id, link, held] => {
            find(m, links, slot, [sequence, id], n, [link, held]);
        }
        [position, sequence, link, held] => {
            find_free(m, links, position, sequence, n, [link, held]);
        }
        _ => {
            let (tape, op) = (tape.name.clone(), tape.line(op));
            return Err(Refused { tape, op, why: Why::Operands });
        }
    }
    recording.finish()
}
