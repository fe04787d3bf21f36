//! The effects of statements.
//!
//! The effects of a function are those of its statements, with the places of the arguments in place of
//! those of the parameters. Inside of a function, parameters are taken to be memory of their own, and
//! so are the buffers that the function names; the analysis of the caller knows where they lie, and
//! refuses arguments that share memory which the function does not order.

use super::act::{Act, Part, Pipe, Place, Sync};
use super::node::{Argument, Call, Definition, FunctionCall, Loop, Node, Operation};
use std::collections::BTreeMap;

impl Call {
    /// Returns the effects of the statement, in order, with the synchronisation inside of functions.
    pub fn acts(&self) -> Vec<Act> {
        let one = |pipe, reads, writes| vec![Act::of(pipe, reads, writes)];
        match &self.operation {
            Operation::Set(..) | Operation::Return(_) => Vec::new(),
            Operation::Leave | Operation::Order => Vec::new(),
            Operation::WaitForAll => vec![Act::Sync(Sync::Flag(Pipe::Mte3, Pipe::Mte2))],
            Operation::Read { from, .. } => one(Pipe::S, vec![from.place()], Vec::new()),
            Operation::Write { to, .. } => one(Pipe::S, Vec::new(), vec![to.place()]),
            Operation::Count(_) => one(Pipe::S, vec![Place::Count], Vec::new()),
            Operation::Vector(vector) => vec![vector.act()],
            Operation::Copy { out, ub, gm, .. } => {
                let (ub, gm) = (vec![ub.place()], vec![gm.place()]);
                if *out { one(Pipe::Mte3, ub, gm) } else { one(Pipe::Mte2, gm, ub) }
            }
            Operation::Function(call) => call.acts(),
        }
    }
}

impl FunctionCall {
    fn acts(&self) -> Vec<Act> {
        let Definition { params, nodes } = &*self.function.definition;
        let names = params.iter().map(|param| param.name);
        Scope { args: names.zip(&self.args).collect(), round: 0 }.acts(nodes)
    }
}

/// A function under one call.
struct Scope<'a> {
    args: BTreeMap<&'static str, &'a Argument>,
    /// The round of the innermost loop.
    round: u32,
}

impl Scope<'_> {
    fn acts(&self, nodes: &[Node]) -> Vec<Act> {
        nodes.iter().flat_map(|node| self.of_node(node)).collect()
    }

    fn of_node(&self, node: &Node) -> Vec<Act> {
        match node {
            Node::Note(_) => Vec::new(),
            Node::Call(call) => {
                let before = call.sync.iter().map(|&sync| Act::Sync(sync));
                let acts = call.acts().into_iter();
                before.chain(acts.map(|act| act.with_places(&|place| self.place(place)))).collect()
            }
            // A branch on an argument that is a number is known.
            Node::If { condition, body, otherwise } => {
                match condition.value(&|name| self.number(name)) {
                    Some(0) => self.acts(otherwise),
                    Some(_) => self.acts(body),
                    None => vec![Act::Either(self.acts(body), self.acts(otherwise))],
                }
            }
            // Two rounds show how a round is ordered with the next one.
            Node::Loop(Loop { always, sync, body, .. }) => {
                let of_round = |round| Scope { args: self.args.clone(), round }.acts(body);
                let twice = [of_round(0), of_round(1)].concat();
                let rounds = if *always { twice } else { vec![Act::Either(twice, Vec::new())] };
                sync.iter().map(|&sync| Act::Sync(sync)).chain(rounds).collect()
            }
        }
    }

    fn number(&self, name: &str) -> Option<i32> {
        let Argument::Scalar(scalar) = self.args.get(name)? else { return None };
        scalar.value.value(&|_| None)
    }

    /// Returns a place with the argument in place of a parameter.
    fn place(&self, place: &Place) -> Place {
        let argument = match place {
            Place::Ub(name, _) | Place::Gm(name) => self.args.get(name.as_str()),
            Place::Temp(_) | Place::Count => None,
        };
        let of_round = matches!(place, Place::Ub(_, Part::Tile));
        let place = match argument {
            Some(Argument::Tensor(tensor)) => tensor.place(),
            Some(Argument::Global(global)) => global.place(),
            _ => place.clone(),
        };
        match place {
            // Bytes of its own stand for the part that a round touches.
            Place::Ub(name, _) if of_round => {
                Place::Ub(name, Part::Bytes(32 * self.round, 32 * (self.round + 1)))
            }
            place => place,
        }
    }
}
