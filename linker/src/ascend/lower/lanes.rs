//! Lowers operations on the lanes of a tile.

use super::Lower;
use crate::ascend::aiv::{
    Buffer, Call, Comparison, Expr, Node, Operation, Rounding, Scalar, Temp, Tensor, Type, Vector,
    VectorOp, aligned_lanes, lanes,
};
use crate::ascend::functions::{append, life, lookup, mix};
use crate::check::Why;
use crate::tape::{ColumnId, Op, OpCode, Value};

/// Returns a 32-bit number as an operand.
pub fn number(n: impl Into<Expr>) -> Option<Scalar> {
    Some(Scalar::new(n, Type::I32))
}

/// Returns an instruction on the live lanes of tensors, with or without a scalar.
pub fn vector(op: VectorOp, to: Tensor, from: Vec<Tensor>, scalar: Option<Scalar>) -> Vector {
    Vector { op, to, from, scalar, n: lanes() }
}

/// Returns `to[i] = base + i` for the live lanes of a tile.
pub fn iota(to: Tensor) -> Vector {
    vector(VectorOp::Adds, to, vec![Tensor::named("iota")], number(Expr::name("base")))
}

/// Returns an instruction that has 16-bit lanes only, on the 16-bit halves of the operands.
fn bits(op: VectorOp, to: Tensor, from: Vec<Tensor>, n: Expr) -> Vector {
    let from = from.into_iter().map(|t| t.viewed_as(Type::U16)).collect();
    Vector { n, ..vector(op, to.viewed_as(Type::U16), from, None) }
}

/// Returns an operation of each lane with one word.
fn with_word(op: VectorOp, to: Tensor, mut from: Vec<Tensor>, word: i32) -> Vector {
    from.push(Tensor::word(word.cast_unsigned()));
    vector(op, to, from, None)
}

/// Returns a shift of unsigned numbers.
fn shift(op: VectorOp, to: Tensor, from: Tensor, by: u32) -> Vector {
    let [to, from] = [to, from].map(|t| t.viewed_as(Type::U32));
    vector(op, to, vec![from], Some(Scalar::new(by.cast_signed(), Type::U32)))
}

/// Returns the operand to which an instruction or a hash writes its result as the last thing.
fn result_mut(call: &mut Call) -> Option<&mut Tensor> {
    match &mut call.operation {
        Operation::Vector(vector) => Some(&mut vector.to),
        Operation::Function(hash) if *hash.function == mix::MIX => hash.args[0].tensor_mut(),
        _ => None,
    }
}

impl Lower<'_> {
    /// Returns a new temporary, with the name that the text gives it.
    pub(super) fn temp(&mut self, mask: bool, name: &str) -> Tensor {
        self.temps += 1;
        Tensor::temporary(Temp { number: self.temps, mask, name: name.into() })
    }

    /// Returns a new temporary, which holds a value from now on.
    pub(super) fn temp_of(&mut self, value: Option<Value>, mask: bool) -> Tensor {
        let name = value.and_then(|v| self.called.get(&v)).cloned();
        let temp = self.temp(mask, &name.unwrap_or_else(|| "x".into()));
        self.at.extend(value.map(|value| (value, temp.clone())));
        temp
    }

    pub(super) fn call(&mut self, call: impl Into<Call>) {
        self.out.push(Node::Call(call.into()));
    }

    /// Returns the memory of a vector or mask. A constant is written to all lanes before its first
    /// use.
    pub(super) fn operand(&mut self, value: Value) -> Tensor {
        if let Some(known) = self.at.get(&value) {
            return known.clone();
        }
        let all = self.all.contains(&value);
        let to = self.temp_of(Some(value), all);
        if all {
            let ones = Some(Scalar::new(0xffff, Type::U16));
            let mask = to.clone().viewed_as(Type::U16);
            let n = aligned_lanes() / 16;
            self.call(Vector { n, ..vector(VectorOp::Duplicate, mask, vec![], ones) });
        } else if let Some(Op { code: OpCode::Splat(n), .. }) = self.defs.get(&value) {
            let n = number(*n);
            self.call(vector(VectorOp::Duplicate, to.clone(), vec![], n));
        }
        to
    }

    /// Adds a call whose result is a new temporary.
    fn make(
        &mut self,
        out: Option<Value>,
        mask: bool,
        operands: &[Value],
        call: impl FnOnce(Tensor, Vec<Tensor>) -> Vector,
    ) {
        let operands: Vec<_> = operands.iter().map(|&o| self.operand(o)).collect();
        let to = self.temp_of(out, mask);
        self.call(call(to, operands));
    }

    /// Adds an instruction on all live lanes.
    fn plain(&mut self, op: &Op, instruction: VectorOp, scalar: Option<Scalar>) {
        let vectors = if scalar.is_some() { &op.args[..1] } else { &op.args[..] };
        self.make(op.out, false, vectors, |to, from| vector(instruction, to, from, scalar));
    }

    /// Adds a comparison of two vectors, or of a vector with a scalar.
    fn compare(&mut self, out: Option<Value>, of: &[Value], with: Option<(Comparison, Scalar)>) {
        self.make(out, true, of, |to, from| {
            let (compare, from, scalar) = match with {
                None => (VectorOp::Compare(Comparison::Equal), from, None),
                Some((how, scalar)) => {
                    let view = (scalar.ty == Type::F16).then_some(Type::F16);
                    let from = from.into_iter().map(|t| Tensor { view, ..t }).collect();
                    (VectorOp::Compares(how), from, Some(scalar))
                }
            };
            Vector { n: aligned_lanes(), ..vector(compare, to, from, scalar) }
        });
    }

    fn with_word(&mut self, instruction: VectorOp, op: &Op, word: i32) {
        self.make(op.out, false, &op.args, |to, from| with_word(instruction, to, from, word));
    }

    /// Returns the byte offsets of indices in a column of `len` elements of `1 << by` bytes.
    /// Indices that may be out of range are masked with `len - 1`, which is then a power of two less 1.
    fn offsets(&mut self, index: Value, len: u32, by: u32) -> Tensor {
        let range = self.ranges[index.0 as usize];
        let last = i32::try_from(len).unwrap_or(i32::MAX) - 1;
        let mut from = self.operand(index);
        if range.lo < 0 || range.hi > last {
            let to = self.temp(false, "offset");
            self.call(with_word(VectorOp::AndWord, to.clone(), vec![from], last));
            from = to;
        }
        let to = self.temp(false, "offset");
        self.call(shift(VectorOp::ShiftLeft, to.clone(), from, by));
        to
    }

    pub(super) fn lane(&mut self, op: &Op) -> Result<(), Why> {
        let a = &op.args[..];
        match op.code {
            _ if !op.code.on_lanes() => return self.whole(op, &[]),
            OpCode::Splat(_) => {}
            OpCode::Iota => {
                self.make(op.out, false, &[], |to, _| iota(to));
            }
            OpCode::Add => self.plain(op, VectorOp::Add, None),
            OpCode::Sub => self.plain(op, VectorOp::Sub, None),
            OpCode::Mul => self.plain(op, VectorOp::Mul, None),
            OpCode::And | OpCode::Or => {
                let name = if op.code == OpCode::And { VectorOp::And } else { VectorOp::Or };
                self.make(op.out, false, a, |to, from| {
                    bits(name, to, from, Expr::from(2) * lanes())
                });
            }
            OpCode::AddTo(n) => self.plain(op, VectorOp::Adds, number(n)),
            OpCode::MulTo(n) => self.plain(op, VectorOp::Muls, number(n)),
            OpCode::AndTo(n) => self.with_word(VectorOp::AndWord, op, n),
            OpCode::OrTo(n) => self.with_word(VectorOp::OrWord, op, n),
            // The compare of a lifetime takes the scalar itself.
            OpCode::SubScalar if self.halves.contains(&a[0]) => {}
            OpCode::AddScalar => self.plain(op, VectorOp::Adds, number(self.scalar(a[1]))),
            OpCode::SubScalar => {
                self.plain(op, VectorOp::Adds, number(self.scalar(a[1]).negative()));
            }
            OpCode::MulScalar => self.plain(op, VectorOp::Muls, number(self.scalar(a[1]))),
            OpCode::Shr(by) => self.make(op.out, false, a, |to, mut from| {
                shift(VectorOp::ShiftRight, to, from.remove(0), by)
            }),
            OpCode::Below(_) => {
                // It is the same vector, so its uses are those of both.
                let from = self.operand(a[0]);
                let others = self.uses[&a[0]] - 1;
                op.out.iter().for_each(|out| *self.uses.entry(*out).or_default() += others);
                self.at.extend(op.out.map(|out| (out, from)));
            }
            OpCode::Madd(p, q) => self.madd(op, p, q),
            // Select takes 32-bit lanes as floats and does not change their bits.
            OpCode::Select => self.make(op.out, false, a, |to, mut from| {
                from[1..].iter_mut().for_each(|value| value.view = Some(Type::F32));
                vector(VectorOp::Select, to.viewed_as(Type::F32), from, None)
            }),
            OpCode::Eq => match self.defs.get(&a[1]) {
                Some(&Op { code: OpCode::Splat(n), .. }) => {
                    let ty = if self.halves.contains(&a[0]) { Type::F16 } else { Type::I32 };
                    let with = (Comparison::Equal, Scalar::new(n, ty));
                    self.compare(op.out, &a[..1], Some(with));
                }
                _ => self.compare(op.out, a, None),
            },
            OpCode::IsNegative => match self.lifetime_difference(a[0]) {
                Some((from, bound)) => {
                    let bound = Scalar::new(bound, Type::F16);
                    self.compare(op.out, &[from], Some((Comparison::Less, bound)));
                }
                // A sign test that is only negated is lowered with its negation.
                None => {
                    let used = self.uses.get(&op.out.unwrap_or(a[0]));
                    if used.is_some_and(|&n| n > self.negations(op.out)) {
                        self.sign(op.out, a[0], -1);
                    }
                }
            },
            OpCode::MaskNot if self.is_never_negative(a[0]) => self.all.extend(op.out),
            OpCode::MaskNot => match self.defs.get(&a[0]) {
                Some(Op { code: OpCode::IsNegative, args, .. })
                    if self.lifetime_difference(args[0]).is_none() =>
                {
                    let value = args[0];
                    self.sign(op.out, value, 0);
                }
                _ => self.mask(op, VectorOp::Not),
            },
            OpCode::MaskAnd => self.mask(op, VectorOp::And),
            OpCode::MaskOr => self.mask(op, VectorOp::Or),
            OpCode::Load => self.view(op, 0),
            OpCode::Item(column) => self.view(op, column),
            OpCode::Gather => self.gather(op, 2, None),
            OpCode::GatherLife => {
                self.gather(op, 1, Some(Type::F16));
                if self.is_only_compared(op.out) {
                    self.halves.extend(op.out);
                } else {
                    self.lifetimes_as_words(op.out);
                }
            }
            _ => return self.effect(op),
        }
        Ok(())
    }

    fn mask(&mut self, op: &Op, instruction: VectorOp) {
        self.make(op.out, true, &op.args, |to, from| {
            bits(instruction, to, from, aligned_lanes() / 16)
        });
    }

    fn view(&mut self, op: &Op, column: usize) {
        let view = Tensor::tile(self.storage(op.columns[0], column));
        self.at.extend(op.out.map(|out| (out, view)));
    }

    fn gather(&mut self, op: &Op, by: u32, view: Option<Type>) {
        let len = self.tape.column(op.columns[0]).len;
        let offsets = self.offsets(op.args[0], len, by).viewed_as(Type::U32);
        let column = Tensor::named(self.storage(op.columns[0], 0));
        let to = Tensor { view, ..self.temp_of(op.out, false) };
        self.call(vector(VectorOp::Gather, to, vec![column, offsets], number(0)));
    }

    /// Returns whether no operation but a comparison, or a subtraction before one, uses a value.
    fn is_only_compared(&self, value: Option<Value>) -> bool {
        let compares = |code| matches!(code, OpCode::SubScalar | OpCode::IsNegative | OpCode::Eq);
        let mut users = self.tape.body.all().filter(|op| op.args.iter().any(|&v| Some(v) == value));
        users.all(|op| compares(op.code))
    }

    /// Converts gathered lifetimes, which are halfs, to words.
    fn lifetimes_as_words(&mut self, value: Option<Value>) {
        let Some(value) = value else { return };
        let halves = self.operand(value).viewed_as(Type::F16);
        let to = self.temp_of(Some(value), false);
        let cast = VectorOp::Cast(Rounding::Nearest);
        self.call(vector(cast, to, vec![halves], None));
    }

    fn effect(&mut self, op: &Op) -> Result<(), Why> {
        let a = &op.args[..];
        match op.code {
            OpCode::Store => self.store(op, &self.storage(op.columns[0], 0)),
            OpCode::Scatter | OpCode::SetLife(_) | OpCode::StepLife(_) => self.scatter(op),
            OpCode::Append => self.append(op.columns[0], a[1], &a[2..]),
            OpCode::Lookup => {
                let [index, mask] = [a[3], a[4]].map(|v| self.operand(v));
                let to = self.temp_of(op.out, false);
                let (from, bounds) = (self.gm(op.columns[0]), [a[1], a[2]].map(|v| self.scalar(v)));
                self.call(lookup::lookup(to, from, bounds, [index, mask]));
            }
            _ => return Err(Why::NoCall),
        }
        Ok(())
    }

    /// Lowers a store. If the last call makes the value and no other operation uses it, that call
    /// writes the column.
    fn store(&mut self, op: &Op, column: &str) {
        let (value, view) = (op.args[1], Tensor::tile(column));
        if let Some(Op { code: OpCode::Splat(n), .. }) = self.defs.get(&value) {
            let n = number(*n);
            return self.call(vector(VectorOp::Duplicate, view, vec![], n));
        }
        let from = self.operand(value);
        if self.uses[&value] == 1
            && from.temp().is_some()
            && let Some(Node::Call(call)) = self.out.last_mut()
            && let Some(to) = result_mut(call)
            && to.buffer == from.buffer
        {
            *to = Tensor { view: to.view, ..view };
            return;
        }
        self.call(vector(VectorOp::Adds, view, vec![from], number(0)));
    }

    fn append(&mut self, list: ColumnId, mask: Value, values: &[Value]) {
        let mask = self.operand(mask);
        let len = self.len_name(list);
        if values.is_empty() {
            return self.call(append::count(len, mask));
        }
        let values: Vec<_> = values.iter().map(|&v| self.operand(v)).collect();
        let last = values.len() - 1;
        for (n, value) in values.into_iter().enumerate() {
            let column = self.storage(list, n);
            let own = |name: &str| {
                let pair = |[a, b]: &[String; 2]| *a == column && b == name;
                name == column || self.overlays.iter().any(pair)
            };
            let in_place = matches!(&value.buffer, Buffer::Named(name) if value.tile && own(name));
            let function = if in_place { &append::APPEND_IN_PLACE } else { &append::APPEND };
            let to = (column, len.clone());
            self.call(append::append(function, to, [value, mask.clone()], n == 0, n == last));
        }
    }

    /// Writes one lifetime to the tile's slots under a mask.
    pub(super) fn fill(&mut self, n: i8, column: &str, mask: Value) {
        let tile = Tensor::tile(column);
        let value = Some(life::lifetime(n));
        if self.all.contains(&mask) {
            return self.call(vector(VectorOp::Duplicate, tile, vec![], value));
        }
        let mask = self.operand(mask);
        let fill = self.temp(false, "fill").viewed_as(Type::F16);
        self.call(vector(VectorOp::Duplicate, fill.clone(), vec![], value));
        let from = vec![mask, fill, tile.clone()];
        self.call(vector(VectorOp::Select, tile, from, None));
    }
}
