//! Searches over all links of a list's ids, and the row that cores share.

use super::Lower;
use super::lanes::{BARRIER, SCRATCH, ub, v};
use super::whole::wrapped;
use crate::aiv::{Act, Pipe, Place, Sync};
use crate::tape::{Code, Op};
use avsg_device::hash::{MIX_BITS, MULTIPLIERS};
use avsg_device::state::PRINT_AND_SLOT_BITS;

/// A search puts the number of a link on top of so many bits.
pub const FOUND_BITS: u32 = 20;

/// The numbers of a table that its searches use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Links of an id.
    pub links: u32,
    /// Bits of a link's position.
    pub link_bits: u32,
    /// Bits of a slot.
    pub slot_bits: u32,
}

impl Shape {
    /// Where a print lies in the mixed word.
    pub fn print_shift(self) -> u32 {
        MIX_BITS - self.print_bits()
    }

    fn print_bits(self) -> u32 {
        PRINT_AND_SLOT_BITS - self.slot_bits
    }

    /// The words that searches mask with: position, slot, print, what was found.
    pub fn words(self) -> [(&'static str, u32); 4] {
        let low = |bits: u32| (1 << bits) - 1;
        [
            ("POSITION_WORD_AT", low(self.link_bits)),
            ("SLOT_WORD_AT", low(self.slot_bits)),
            ("PRINT_WORD_AT", low(self.print_bits())),
            ("FOUND_WORD_AT", low(FOUND_BITS)),
        ]
    }
}

impl Lower<'_> {
    /// `Find` and `FindFree`: helpers over a whole column, all links of some of its ids at once.
    pub(super) fn search(&mut self, op: &Op, retries: u32) {
        let ids = if matches!(op.code, Code::Find(_)) { 2 } else { 1 };
        let bits = |n: usize| self.tape.column(op.columns[n]).len.ilog2();
        let shape =
            Shape { links: retries + 1, link_bits: bits(ids + 1), slot_bits: bits(ids + 2) };
        let columns: Vec<String> = op.columns.iter().map(|&c| self.storage(c, 0)).collect();
        let n = self.bare(op.args[0]);
        let (p, q) = MULTIPLIERS[0];
        let text = match &columns[..] {
            [slot, way, wanted, link, id] => {
                format!("Find({slot}, {way}, {wanted}, {n}, {link}, {id});")
            }
            [at, way, link, id] => format!("FindFree({at}, {way}, {n}, {link}, {id}, {p}, {q});"),
            _ => unreachable!("the checker counts columns"),
        };
        let words: Vec<u32> = shape.words().map(|(_, word)| word).into_iter().collect();
        let more = if ids == 1 { vec![0xFFFF, 0x3F] } else { Vec::new() };
        let columns: Vec<Place> = columns.into_iter().map(Place::Ub).collect();
        // A round of `Find` begins where nothing of the last one lies.
        self.passes(ids == 1, text, &[words, more].concat(), &columns[1..], &columns[..1]);
    }

    /// `Collect`: a helper over the columns of a token's ids and slots.
    pub(super) fn collect(&mut self, op: &Op) {
        let [x, lane, void, ids, slot] = [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]
            .map(|(n, column)| self.storage(op.columns[n], column));
        let [len, voids] = [0, 1].map(|n| self.len_name(op.columns[n]));
        let n = self.bare(op.args[0]);
        let text = format!("Collect({x}, {lane}, {len}, {void}, {voids}, {ids}, {slot}, {n});");
        let places = [x, lane, void, ids, slot].map(Place::Ub);
        let writes = [&places[..3], &places[4..]].concat();
        self.passes(true, text, &[], &[&places[..], &[ub("iota")]].concat(), &writes);
    }

    /// `AppendLow`: a helper over the column of a token's slots.
    pub(super) fn append_low(&mut self, op: &Op) {
        let [list, slots, life] = [0, 1, 2].map(|n| self.storage(op.columns[n], 0));
        let (len, slot_word) =
            (self.len_name(op.columns[0]), self.tape.column(op.columns[2]).len - 1);
        let [n, t] = [0, 1].map(|n| self.bare(op.args[n]));
        let text = format!("{len} += AppendLow({list}, {len}, {slots}, {n}, {life}, {t});");
        let [list, slots, life] = [list, slots, life].map(Place::Ub);
        self.passes(false, text, &[slot_word], &[slots, life, list.clone()], &[list]);
    }

    /// A helper that makes what it writes in scratch memory, in any number of passes; `waits`: each for the last.
    fn passes(
        &mut self,
        waits: bool,
        text: String,
        words: &[u32],
        reads: &[Place],
        writes: &[Place],
    ) {
        let words: Vec<Place> = words.iter().map(|w| self.word(w.cast_signed()).1).collect();
        let [scratch, keep, select] = [ub("scratch"), ub("keep"), ub(SCRATCH)];
        let all: Vec<&Place> = words.iter().chain(reads).chain([&scratch, &keep]).collect();
        let writes: Vec<&Place> = writes.iter().collect();
        let once = [v(&all, &[&scratch, &keep, &select]), BARRIER, v(&[&scratch, &keep], &writes)];
        let again = [&once[..], &[BARRIER], &once, &[BARRIER]].concat();
        let acts = if waits { again } else { once.to_vec() };
        self.helper(text, vec![Act::Maybe(acts)]);
    }

    /// The row that cores share: this core's part out, and once all are there, the whole row in.
    pub(super) fn share(&mut self, op: &Op) {
        let a: Vec<String> = op.args.iter().map(|&v| wrapped(&self.bare(v), "?")).collect();
        let (column, row) = (self.storage(op.columns[0], 0), self.gm(op.columns[1]));
        let (ours, gm) = (vec![Place::Ub(column.clone())], vec![Place::Gm(row.clone())]);
        let text = format!("Push(gm.{row}[{} + {}], {column}, {});", a[0], a[1], a[2]);
        self.call(Pipe::Mte3, text, ours.clone(), gm.clone());
        // SyncAll lets nothing past; without it nothing is moved.
        let text = format!("if ({} > 0 && Leaves(q.owner)) {{", a[3]);
        self.helper(text, vec![Act::Sync(Sync::Flag(Pipe::Mte3, Pipe::Mte2))]);
        self.statement("    return;".into());
        self.statement("}".into());
        let text = format!("Pull({column}, gm.{row}[{}], {});", a[0], a[3]);
        self.call(Pipe::Mte2, text, gm, ours);
    }
}
