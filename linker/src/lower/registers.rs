//! Registers for a tile's temporaries: a linear scan over straight code.

use crate::aiv::{Act, Node, Place};

/// Names every temporary's register in the calls of a sweep's body; returns how many vector and mask
/// registers it takes. A call's result never shares a register with its operands: not every
/// instruction may write where it reads.
pub fn allocate(body: &mut [Node], masks: &[bool]) -> [usize; 2] {
    let mut last = vec![0; masks.len()];
    for (n, node) in body.iter().enumerate() {
        temps(node, &mut |t| last[t] = n);
    }
    let mut register: Vec<Option<usize>> = vec![None; masks.len()];
    let mut free: [Vec<bool>; 2] = [Vec::new(), Vec::new()];
    for (n, node) in body.iter_mut().enumerate() {
        let mut seen = Vec::new();
        temps(node, &mut |t| seen.push(t));
        for &t in &seen {
            if register[t].is_none() {
                let bank = &mut free[usize::from(masks[t])];
                let r = bank.iter().position(|&f| f).unwrap_or_else(|| {
                    bank.push(true);
                    bank.len() - 1
                });
                bank[r] = false;
                register[t] = Some(r);
            }
        }
        let Node::Call(call) = node else { continue };
        let name = |t: usize| {
            let letter = if masks[t] { 'm' } else { 'x' };
            register[t].map_or_else(String::new, |r| format!("{letter}{r}"))
        };
        for &t in &seen {
            call.text = call.text.replace(&format!("@{t}@"), &name(t));
        }
        for act in &mut call.acts {
            if let Act::Use { reads, writes, .. } = act {
                for place in reads.iter_mut().chain(writes) {
                    if let Place::Temp(t) = place {
                        *place = Place::Ub(name(*t));
                    }
                }
            }
        }
        for &t in &seen {
            if last[t] == n
                && let Some(r) = register[t]
            {
                free[usize::from(masks[t])][r] = true;
            }
        }
    }
    free.map(|bank| bank.len())
}

/// Drops calls whose result nobody reads.
pub fn drop_unread(body: &mut Vec<Node>) {
    let mut read = std::collections::BTreeSet::new();
    for n in (0..body.len()).rev() {
        let Node::Call(call) = &body[n] else { continue };
        if let [Act::Use { writes, .. }] = &call.acts[..] {
            let unread = |w: &Place| matches!(w, Place::Temp(t) if !read.contains(t));
            if !writes.is_empty() && writes.iter().all(unread) {
                body.remove(n);
                continue;
            }
        }
        for act in &call.acts {
            let Act::Use { reads, .. } = act else { continue };
            read.extend(
                reads.iter().filter_map(|r| if let Place::Temp(t) = r { Some(*t) } else { None }),
            );
        }
    }
}

/// Drops scalars that nobody reads.
pub fn drop_unused(nodes: &mut Vec<Node>) {
    let mut text = String::new();
    gather(nodes, &mut text);
    let words: Vec<_> =
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| w.starts_with('s')).collect();
    let once = |name: &str| words.iter().filter(|&&w| w == name).count() == 1;
    remove(nodes, &|call| {
        let name = call.text.strip_prefix("const int32_t ").and_then(|t| t.split(' ').next());
        name.is_some_and(|name| call.acts.is_empty() && name.starts_with('s') && once(name))
    });
}

fn gather(nodes: &[Node], text: &mut String) {
    for node in nodes {
        match node {
            Node::Call(call) => *text += &call.text,
            Node::Loop(head, body) => {
                *text += head;
                gather(body, text);
            }
            Node::Note(_) => {}
        }
        text.push('\n');
    }
}

fn remove(nodes: &mut Vec<Node>, which: &impl Fn(&crate::aiv::Call) -> bool) {
    nodes.retain(|node| !matches!(node, Node::Call(call) if which(call)));
    for node in nodes {
        if let Node::Loop(_, body) = node {
            remove(body, which);
        }
    }
}

fn temps(node: &Node, run: &mut impl FnMut(usize)) {
    let Node::Call(call) = node else { return };
    for act in &call.acts {
        if let Act::Use { reads, writes, .. } = act {
            for place in reads.iter().chain(writes) {
                if let Place::Temp(t) = place {
                    run(*t);
                }
            }
        }
    }
}
