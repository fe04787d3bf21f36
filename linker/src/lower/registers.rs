//! Registers for a tile's temporaries: every name has one, and names that live at once have different ones.

use crate::aiv::{Act, Buffer, Call, Expr, If, Length, Loop, Node, Operation, Place, Tensor};
use std::collections::{BTreeMap, BTreeSet};

/// A temporary of a tile.
#[derive(Clone, Debug)]
pub struct Temp {
    /// Whether it is a mask.
    pub mask: bool,
    /// What it would be called.
    pub name: String,
}

/// A named register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name, in the whole kernel.
    pub name: String,
    /// Whether it holds masks.
    pub mask: bool,
    /// Which of the masks or vectors it is: names that never live at once share one.
    pub number: usize,
}

/// The names of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Name>);

#[derive(Clone, Debug, Default)]
struct Name {
    mask: bool,
    /// Those that live when it does.
    with: BTreeSet<String>,
    /// Those of the same sweeps.
    beside: BTreeSet<String>,
}

impl Names {
    /// Names every temporary in the calls of a sweep's body. A temporary takes over the name of one that
    /// ends where it begins, if that call may write where it reads. `taken` are the kernel's other names.
    pub fn name(&mut self, body: &mut [Node], all: &[Temp], taken: &mut BTreeSet<String>) {
        let mut lives: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (n, t) in body.iter().enumerate().flat_map(|(n, node)| temps(node).map(move |t| (n, t)))
        {
            lives.entry(t).or_insert((n, n)).1 = n;
        }
        let place = |n: usize| body[n].call().is_some_and(Call::in_place);
        let mut order: Vec<_> = lives.into_iter().map(|(t, (a, z))| (a, z, t)).collect();
        order.sort_unstable();
        let mut named: Vec<(usize, String)> = Vec::new();
        let mut names = vec![String::new(); all.len()];
        for (a, z, t) in order {
            let Temp { mask, name } = &all[t];
            let free = |name: &String| {
                let lives = |end: usize| end > a || end == a && !place(a);
                self.0.get(name).map_or(!taken.contains(name), |n| n.mask == *mask)
                    && !named.iter().any(|(end, other)| other == name && lives(*end))
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

    /// A register for every name. Names with most others first; of the registers that it takes one that
    /// the fewest names of the same sweeps have: they would wait for each other.
    pub fn registers(&self) -> Vec<Register> {
        let mut order: Vec<_> = self.0.iter().collect();
        let width = |name: &Name| std::cmp::Reverse(name.with.len());
        order.sort_by_key(|(text, name)| (name.mask, width(name), *text));
        let color = |counts: [usize; 2]| {
            let mut found: Vec<Register> = Vec::new();
            for (text, name) in &order {
                let of = |number: usize, set: &BTreeSet<String>| {
                    let same = |r: &&Register| r.mask == name.mask && r.number == number;
                    found.iter().filter(same).filter(|r| set.contains(&r.name)).count()
                };
                let free = |&number: &usize| of(number, &name.with) == 0;
                let known = (0..counts[usize::from(name.mask)]).filter(free);
                let best = known.min_by_key(|&number| (of(number, &name.beside), number));
                let number = best.or_else(|| (0..).find(free)).unwrap_or_default();
                found.push(Register { name: (*text).clone(), mask: name.mask, number });
            }
            found
        };
        let count = |all: &[Register], mask| {
            let numbers = all.iter().filter(|r| r.mask == mask).map(|r| r.number + 1);
            numbers.max().unwrap_or(0)
        };
        // As many as it takes when every name has the first that is free.
        let least = color([0, 0]);
        let counts = [false, true].map(|mask| count(&least, mask));
        let apart = color(counts);
        let mut found =
            if [false, true].map(|mask| count(&apart, mask)) == counts { apart } else { least };
        found.sort_by_key(|r| (r.mask, r.number));
        found
    }
}

/// Puts names into a call, in the place of numbers.
fn rename(node: &mut Node, names: &[String]) {
    let Node::Call(call) = node else { return };
    for tensor in call.tensors_mut() {
        if let Buffer::Temp(t) = tensor.buffer {
            tensor.buffer = Buffer::Named(names[t].clone());
        }
    }
}

/// The temporaries of a node.
fn temps(node: &Node) -> impl Iterator<Item = usize> {
    node.call().into_iter().flat_map(Call::tensors).filter_map(Tensor::as_temp)
}

/// Drops calls whose result nobody reads.
pub fn drop_unread(body: &mut Vec<Node>) {
    let mut read = BTreeSet::new();
    for n in (0..body.len()).rev() {
        let Some(acts) = body[n].call().map(Call::acts) else { continue };
        let unread = |w: &Place| matches!(w, Place::Temp(_)) && !read.contains(w);
        match &acts[..] {
            [Act::Use { writes, .. }] if !writes.is_empty() && writes.iter().all(unread) => {
                body.remove(n);
            }
            _ => {
                let uses = acts.iter().flat_map(Act::uses);
                read.extend(uses.filter(|(_, write)| !write).map(|(p, _)| p.clone()));
            }
        }
    }
}

/// Drops scalars that nobody reads.
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
    remove(nodes, &|call| {
        let Operation::Let(name, value) = &call.operation else { return false };
        !matches!(value, Expr::Word(..)) && !used.contains(name)
    });
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
