//! How a CPU lays a table and the working columns out in plain words, and splits them again.
//!
//! Both sizes depend on the geometry alone. A table is header | ids | lifetimes and pad | links:
//! 64 + 4·S + (S + 64) + 4·S·spread bytes.

use super::Machine;
use super::cpu::{Column, Cpu, Life, List, SLACK};
use crate::params::Params;
use crate::stage_one::Work;
use crate::state::{DEAD, EMPTY, INVALID, State, header};

/// Words of one table.
pub fn state_words(p: &Params) -> usize {
    header::WORDS + p.slots as usize + life_words(p) + p.links() as usize
}

/// Words from one table to the next: whole 64-byte lines, so that two share none.
pub fn table_words(p: &Params) -> usize {
    state_words(p).next_multiple_of(16)
}

/// Words of the working columns of one core.
pub fn work_words(p: &Params) -> usize {
    column_words(p) * COLUMNS
}

const COLUMNS: usize = 2 + 2 + 2 + 2 + 3 + 1 + 2 + 2 + 2 + 1 + 1;

fn life_words(p: &Params) -> usize {
    (p.slots as usize + SLACK) / 4
}

/// K, rounded up to a power of two: a scatter reaches no further than the largest one that fits, and
/// slots are scattered to lanes. And slack for a register stored at the end.
fn column_words(p: &Params) -> usize {
    (p.k as usize).next_power_of_two() + SLACK
}

/// The words of a table that nothing was ever put in.
pub fn clear_state(p: &Params, words: &mut [i32]) {
    let (header, rest) = words.split_at_mut(header::WORDS);
    let (id, rest) = rest.split_at_mut(p.slots as usize);
    let (life, link) = rest.split_at_mut(life_words(p));
    header.fill(0);
    header[header::THRESHOLD as usize] = i32::from(DEAD);
    id.fill(EMPTY);
    bytes(life).fill(p.empty_life());
    link.fill(INVALID);
}

/// Splits a table's words.
///
/// # Panics
/// If there are fewer than [`state_words`].
pub fn split_state<'a, M>(p: &Params, words: &'a mut [i32]) -> State<'a, M>
where
    M: Machine<Column<'a> = Column<'a>, Life<'a> = Life<'a>, Output<'a> = &'a mut [i32]>,
{
    let (header, rest) = words.split_at_mut(header::WORDS);
    let (id, rest) = rest.split_at_mut(p.slots as usize);
    let (life, rest) = rest.split_at_mut(life_words(p));
    let (link, _) = rest.split_at_mut(p.links() as usize);
    State { id: Column::new(id), life: Life::new(bytes(life)), link: Column::new(link), header }
}

/// Splits a core's working words.
///
/// # Panics
/// If there are fewer than [`work_words`].
pub fn split_work<'a, C: Cpu>(p: &Params, mut words: &'a mut [i32]) -> Work<'a, C> {
    let n = column_words(p);
    let mut cut = || {
        let (column, rest) = core::mem::take(&mut words).split_at_mut(n);
        words = rest;
        column
    };
    Work {
        ids: Column::new(cut()),
        slot: Column::new(cut()),
        part_way: Column::new(cut()),
        wanted: Column::new(cut()),
        pending: List::new([cut(), cut()]),
        next: List::new([cut(), cut()]),
        miss: List::new([cut(), cut(), cut()]),
        dead: List::new([cut()]),
        way: Column::new(cut()),
        new_link: Column::new(cut()),
        open: List::new([cut(), cut()]),
        open_next: List::new([cut(), cut()]),
        at: Column::new(cut()),
        void: List::new([cut()]),
        far: List::new([]),
        outside: List::new([]),
    }
}

fn bytes(words: &mut [i32]) -> &mut [i8] {
    let len = core::mem::size_of_val(words);
    // SAFETY: the same memory under the same exclusive borrow, and any byte is a valid `i8`.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}
