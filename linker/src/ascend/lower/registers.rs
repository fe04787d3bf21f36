//! Gives the temporaries of sweeps registers, by their lifetimes alone, and then names in the text.
//!
//! No temporary lives longer than a round of its sweep, so all sweeps of one width share the same
//! registers.

use crate::ascend::aiv::{
    Act, Buffer, Call, Loop, Node, Operation, Place, Set, Temp, Tensor, Width, names_read,
};
use crate::ascend::names::fresh;
use std::collections::{BTreeMap, BTreeSet};

/// A register under one of the names of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The name, which is unique in the kernel.
    pub name: String,
    /// Whether it holds masks.
    pub mask: bool,
    /// Its number among the masks or vectors.
    pub number: usize,
}

/// A temporary, and the calls of a body that access it, in order. The first one defines it.
struct LiveRange {
    temp: usize,
    mask: bool,
    calls: Vec<usize>,
    /// Whether the first call may write where it reads.
    in_place: bool,
}

impl LiveRange {
    /// Returns the time from which on it occupies a register. Call n reads at 2n and writes at
    /// 2n + 1, or already at 2n if it must not write where it reads.
    fn from(&self) -> usize {
        2 * self.calls[0] + usize::from(self.in_place)
    }

    /// Returns the last time at which it occupies a register.
    fn to(&self) -> usize {
        self.from().max(2 * self.calls[self.calls.len() - 1])
    }
}

/// Returns the lives of the temporaries of a sweep's body, in the order in which they begin.
fn lives(body: &[Node]) -> Vec<LiveRange> {
    let mut lives: BTreeMap<usize, LiveRange> = BTreeMap::new();
    for (n, call) in body.iter().enumerate().filter_map(|(n, node)| Some((n, node.call()?))) {
        for &Temp { number: temp, mask, .. } in call.tensors().into_iter().filter_map(Tensor::temp)
        {
            let in_place = matches!(&call.operation, Operation::Vector(v) if v.op.in_place());
            let new = || LiveRange { temp, mask, calls: Vec::new(), in_place };
            lives.entry(temp).or_insert_with(new).calls.push(n);
        }
    }
    let mut lives: Vec<_> = lives.into_values().collect();
    lives.sort_by_key(|life| (life.from(), life.temp));
    lives
}

/// Returns the least numbers of vector and mask registers for a sweep's body: as many as are live
/// at once.
pub fn needed(body: &[Node]) -> [usize; 2] {
    let lives = lives(body);
    [false, true].map(|mask| {
        let at = |time| {
            let live = |l: &&LiveRange| l.mask == mask && l.from() <= time && time <= l.to();
            lives.iter().filter(live).count()
        };
        lives.iter().map(|life| at(life.from())).max().unwrap_or(0)
    })
}

/// Returns the register of each temporary of a body.
fn assigned(body: &[Node], counts: [usize; 2]) -> BTreeMap<usize, usize> {
    let lives = lives(body);
    let mut last: [Vec<Option<&LiveRange>>; 2] = counts.map(|count| vec![None; count]);
    let mut numbers = BTreeMap::new();
    for life in &lives {
        let n = life.calls[0];
        // The call waits for the definitions of its operands, and so for all calls before them.
        let operands = lives.iter().filter(|l| l.calls[0] < n && l.calls.contains(&n));
        let done = operands.map(|l| l.calls[0]).max();
        let last = &mut last[usize::from(life.mask)];
        // It writes where it reads if it waits for no other call there, and else where no call has
        // been for longest.
        let wait = |number: &usize| {
            let accesses = last[*number].map(|l| &l.calls[..]).unwrap_or_default();
            let before = accesses.iter().rev().find(|&&call| call < n).copied();
            (before > done, accesses.last() != Some(&n), before)
        };
        let free = |number: &usize| last[*number].is_none_or(|l| l.to() < life.from());
        let best = (0..last.len()).filter(free).min_by_key(wait);
        let best = best.expect("there are as many registers as temporaries live at once");
        last[best] = Some(life);
        numbers.insert(life.temp, best);
    }
    numbers
}

/// Replaces the temporaries of all sweeps by registers, whose names are not among `taken`. Returns
/// the registers of sweeps that take a tile, and those of wide ones.
pub fn assign(nodes: &mut [Node], taken: &mut BTreeSet<String>) -> [Vec<Register>; 2] {
    let is_wide = |sweep: &Loop| usize::from(sweep.width() != Some(Width::Tile));
    let mut counts = [[0; 2]; 2];
    each_sweep(nodes, &mut |sweep| {
        let counts = &mut counts[is_wide(sweep)];
        *counts = [0, 1].map(|mask| counts[mask].max(needed(&sweep.body)[mask]));
    });
    let mut names = [BTreeMap::new(), BTreeMap::new()];
    each_sweep(nodes, &mut |sweep| {
        let wide = is_wide(sweep);
        let numbers = assigned(&sweep.body, counts[wide]);
        for tensor in sweep.body.iter_mut().filter_map(call_mut).flat_map(Call::tensors_mut) {
            let Some(Temp { number, mask, name }) = tensor.temp() else { continue };
            let name = if wide == 1 { format!("wide_{name}") } else { name.clone() };
            let key = (*mask, numbers[number], name);
            let name = names[wide].entry(key).or_insert_with_key(|(.., name)| fresh(taken, name));
            tensor.buffer = Buffer::Named(name.clone());
        }
    });
    names.map(|names: BTreeMap<_, String>| {
        let register = |((mask, number, _), name)| Register { name, mask, number };
        names.into_iter().map(register).collect()
    })
}

/// Calls `f` for every sweep.
pub fn each_sweep(nodes: &mut [Node], f: &mut impl FnMut(&mut Loop)) {
    for node in nodes {
        match node {
            Node::Loop(sweep) if sweep.width().is_some() => f(sweep),
            node => node.bodies_mut().into_iter().for_each(|body| each_sweep(body, f)),
        }
    }
}

/// Returns the statement for changing it, if the node is one.
pub fn call_mut(node: &mut Node) -> Option<&mut Call> {
    if let Node::Call(call) = node { Some(call) } else { None }
}

/// Removes calls whose result no later call reads.
pub fn drop_unread(body: &mut Vec<Node>) {
    let mut read = BTreeSet::new();
    for n in (0..body.len()).rev() {
        let Some(acts) = body[n].call().map(Call::acts) else { continue };
        let (writes, reads): (Vec<_>, Vec<_>) =
            acts.iter().flat_map(Act::uses).partition(|(_, write)| *write);
        let unread = |w: &Place| matches!(w, Place::Temp(_)) && !read.contains(w);
        if !writes.is_empty() && writes.iter().all(|(place, _)| unread(place)) {
            body.remove(n);
        } else {
            read.extend(reads.into_iter().map(|(place, _)| place.clone()));
        }
    }
}

/// Removes variables that no expression reads.
pub fn drop_unused(nodes: &mut Vec<Node>) {
    let used: BTreeSet<_> = names_read(nodes).into_iter().map(String::from).collect();
    remove(nodes, &|call| match &call.operation {
        Operation::Set(Set::Let, name, _) => !used.contains(name),
        _ => false,
    });
}

fn remove(nodes: &mut Vec<Node>, which: &impl Fn(&Call) -> bool) {
    nodes.retain_mut(|node| {
        node.bodies_mut().into_iter().for_each(|body| remove(body, which));
        !node.call().is_some_and(which)
    });
}
