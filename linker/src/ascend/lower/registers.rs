//! Assigns registers to the temporaries of a tile. Names that are live at the same time get
//! different registers.

use crate::ascend::aiv::{
    Act, Buffer, Call, Expr, If, Length, Loop, Node, Operation, Place, Tensor,
};
use std::collections::{BTreeMap, BTreeSet};

/// A temporary of a tile.
#[derive(Clone, Debug)]
pub struct Temp {
    /// Whether it is a mask.
    pub mask: bool,
    /// The name that it gets if the name is free, and else with a number.
    pub name: String,
}

/// A named register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name, which is unique in the kernel.
    pub name: String,
    /// Whether it holds masks.
    pub mask: bool,
    /// Its number among the masks or vectors. Names that are never live at the same time may share
    /// a register.
    pub number: usize,
}

/// The names of the temporaries of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Name>);

#[derive(Clone, Debug, Default)]
struct Name {
    mask: bool,
    /// The names that are live at the same time.
    with: BTreeSet<String>,
    /// The names of the same sweeps that are live at other times.
    beside: BTreeSet<String>,
}

impl Names {
    /// Names every temporary in the calls of a sweep's body. A temporary may reuse the name of one
    /// that the same call reads for the last time, if that call may write where it reads. `taken`
    /// are the other names of the kernel.
    pub fn name(&mut self, body: &mut [Node], all: &[Temp], taken: &mut BTreeSet<String>) {
        let mut live: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (n, t) in body.iter().enumerate().flat_map(|(n, node)| temps(node).map(move |t| (n, t)))
        {
            live.entry(t).or_insert((n, n)).1 = n;
        }
        let place = |n: usize| body[n].call().is_some_and(Call::in_place);
        let mut order: Vec<_> = live.into_iter().map(|(t, (a, z))| (a, z, t)).collect();
        order.sort_unstable();
        let mut named: Vec<(usize, String)> = Vec::new();
        let mut names = vec![String::new(); all.len()];
        for (a, z, t) in order {
            let Temp { mask, name } = &all[t];
            let free = |name: &String| {
                let conflicts = |end: usize| end > a || end == a && !place(a);
                self.0.get(name).map_or(!taken.contains(name), |n| n.mask == *mask)
                    && !named.iter().any(|(end, other)| other == name && conflicts(*end))
            };
            let numbered = (2..).map(|n| format!("{name}{n}"));
            let name = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or_default();
            taken.insert(name.clone());
            self.0.entry(name.clone()).or_default().mask = *mask;
            for (end, other) in named.iter().filter(|(_, other)| *other != name) {
                for (one, two) in [(&name, other), (other, &name)] {
                    let one = self.0.entry(one.clone()).or_default();
                    let set = if *end >= a { &mut one.with } else { &mut one.beside };
                    set.insert(two.clone());
                }
            }
            names[t].clone_from(&name);
            named.push((z, name));
        }
        body.iter_mut().for_each(|node| rename(node, &names));
    }

    /// Assigns a register to every name by graph coloring, names with the most conflicts first.
    /// Among the free registers a name gets the one with the fewest names of its own sweeps,
    /// because calls on one register wait for each other.
    pub fn registers(&self) -> Vec<Register> {
        let mut order: Vec<_> = self.0.iter().collect();
        let width = |name: &Name| std::cmp::Reverse(name.with.len());
        order.sort_by_key(|(text, name)| (name.mask, width(name), *text));
        let color = |counts: [usize; 2]| {
            let mut registers: Vec<Register> = Vec::new();
            for (text, name) in &order {
                let of = |number: usize, set: &BTreeSet<String>| {
                    let same = |r: &&Register| r.mask == name.mask && r.number == number;
                    registers.iter().filter(same).filter(|r| set.contains(&r.name)).count()
                };
                let free = |&number: &usize| of(number, &name.with) == 0;
                let known = (0..counts[usize::from(name.mask)]).filter(free);
                let best = known.min_by_key(|&number| (of(number, &name.beside), number));
                let number = best.or_else(|| (0..).find(free)).unwrap_or_default();
                registers.push(Register { name: (*text).clone(), mask: name.mask, number });
            }
            registers
        };
        let count = |all: &[Register], mask| {
            let numbers = all.iter().filter(|r| r.mask == mask).map(|r| r.number + 1);
            numbers.max().unwrap_or(0)
        };
        // The number of registers is that of a coloring in which each name gets the first free
        // register.
        let first_fit = color([0, 0]);
        let counts = [false, true].map(|mask| count(&first_fit, mask));
        let spread = color(counts);
        let mut registers = if [false, true].map(|mask| count(&spread, mask)) == counts {
            spread
        } else {
            first_fit
        };
        registers.sort_by_key(|r| (r.mask, r.number));
        registers
    }
}

/// Replaces the numbers of temporaries in a call by names.
fn rename(node: &mut Node, names: &[String]) {
    let Node::Call(call) = node else { return };
    for tensor in call.tensors_mut() {
        if let Buffer::Temp(t) = tensor.buffer {
            tensor.buffer = Buffer::Named(names[t].clone());
        }
    }
}

/// Returns the temporaries of a node.
fn temps(node: &Node) -> impl Iterator<Item = usize> {
    node.call().into_iter().flat_map(Call::tensors).filter_map(Tensor::as_temp)
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
    let mut used = BTreeSet::new();
    for expr in nodes.iter().flat_map(Node::all).flat_map(Node::expressions) {
        expr.each(&mut |e| {
            if let Expr::Name(name) = e {
                used.insert(name.clone());
            }
        });
    }
    let calls = nodes.iter().flat_map(Node::all).filter_map(Node::call);
    used.extend(calls.flat_map(Call::lengths).filter_map(Length::variable).map(String::from));
    remove(
        nodes,
        &|call| matches!(&call.operation, Operation::Let(name, _) if !used.contains(name)),
    );
}

fn remove(nodes: &mut Vec<Node>, which: &impl Fn(&Call) -> bool) {
    nodes.retain_mut(|node| match node {
        Node::Call(call) => !which(call),
        Node::Loop(Loop { body, .. }) => {
            remove(body, which);
            true
        }
        Node::If(If { body, otherwise, .. }) => {
            remove(body, which);
            remove(otherwise, which);
            true
        }
        Node::Note(_) => true,
    });
}
