//! Registers for a tile's temporaries: every name has one, and names that live at once have different ones.

use crate::aiv::{Act, Call, Node, Place};
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
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, Name>);

#[derive(Debug, Default)]
struct Name {
    mask: bool,
    /// Those that live when it does.
    with: BTreeSet<String>,
    /// Those of the same sweeps.
    beside: BTreeSet<String>,
}

/// Calls that may write where they read.
const IN_PLACE: &str =
    "AndWord OrWord ShiftRight ShiftLeft Adds Muls Maxs Add Sub Mul And Or Not Select";

impl Names {
    /// Names every temporary in the calls of a sweep's body. A temporary takes over the name of one that
    /// ends where it begins, if that call may write where it reads. `taken` are the kernel's other names.
    pub fn name(&mut self, body: &mut [Node], all: &[Temp], taken: &mut BTreeSet<String>) {
        let mut lives: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (n, t) in body.iter().enumerate().flat_map(|(n, node)| temps(node).map(move |t| (n, t)))
        {
            lives.entry(t).or_insert((n, n)).1 = n;
        }
        let place = |n: usize| {
            let op = body[n].call().and_then(|call| call.text.split_once('('));
            op.is_some_and(|(op, _)| IN_PLACE.split(' ').any(|p| p == op))
        };
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
    for t in temps(node).collect::<BTreeSet<_>>() {
        let Node::Call(call) = &mut *node else { continue };
        call.text = call.text.replace(&format!("@{t}@"), &names[t]);
        for act in &mut call.acts {
            let Act::Use { reads, writes, .. } = act else { continue };
            let all = reads.iter_mut().chain(writes);
            all.filter(|p| **p == Place::Temp(t)).for_each(|p| *p = Place::Ub(names[t].clone()));
        }
    }
}

/// The temporaries of a node.
fn temps(node: &Node) -> impl Iterator<Item = usize> {
    let places = node.call().into_iter().flat_map(Call::uses);
    places.filter_map(|(p, _)| if let Place::Temp(t) = p { Some(*t) } else { None })
}

/// Drops calls whose result nobody reads.
pub fn drop_unread(body: &mut Vec<Node>) {
    let mut read = BTreeSet::new();
    for n in (0..body.len()).rev() {
        let Node::Call(call) = &body[n] else { continue };
        let unread = |w: &Place| matches!(w, Place::Temp(_)) && !read.contains(w);
        match &call.acts[..] {
            [Act::Use { writes, .. }] if !writes.is_empty() && writes.iter().all(unread) => {
                body.remove(n);
            }
            _ => read.extend(call.uses().filter(|(_, write)| !write).map(|(p, _)| p.clone())),
        }
    }
}

/// Drops scalars that nobody reads.
pub fn drop_unused(nodes: &mut Vec<Node>) {
    let text = |node: &Node| match node {
        Node::Call(call) => call.text.clone(),
        Node::Loop(l) => l.bound.clone(),
        Node::Note(_) => String::new(),
    };
    let text = nodes.iter().flat_map(Node::all).map(text).collect::<Vec<_>>().join("\n");
    // A field of the same name is another thing.
    let words: Vec<_> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').collect();
    let once = |name: &str| words.iter().filter(|&&w| w == name).count() == 1;
    remove(nodes, &|call| {
        let name = call.text.strip_prefix("const int32_t ").and_then(|t| t.split(' ').next());
        call.acts.is_empty() && name.is_some_and(once)
    });
}

fn remove(nodes: &mut Vec<Node>, which: &impl Fn(&Call) -> bool) {
    nodes.retain_mut(|node| match node {
        Node::Call(call) => !which(call),
        Node::Loop(l) => {
            remove(&mut l.body, which);
            true
        }
        Node::Note(_) => true,
    });
}
