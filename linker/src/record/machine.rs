//! The kernel language as seen by the recorder: every method writes one op.

use super::{Input, Life, List, Mask, Output, Recorder, Scalar, Tile, Vector, Words};
use crate::tape::{Code, ColumnId, Value};
use avsg_device::machine::Machine;

impl<'t> Recorder<'t> {
    fn scalar_of(self, code: Code, args: &[Value], columns: &[ColumnId]) -> Scalar<'t> {
        Scalar { m: self, value: self.define(code, args, columns) }
    }
    fn vector_of(self, code: Code, args: &[Value], columns: &[ColumnId]) -> Vector<'t> {
        Vector { m: self, value: self.define(code, args, columns) }
    }
    fn mask_of(self, code: Code, args: &[Value]) -> Mask<'t> {
        Mask { m: self, value: self.define(code, args, &[]) }
    }
}

impl<'t> Machine for Recorder<'t> {
    type V = Vector<'t>;
    type Mask = Mask<'t>;
    type Scalar = Scalar<'t>;
    type Tile = Tile;
    type Column<'a> = Words;
    type Life<'a> = Life;
    type List<'a, const W: usize> = List<W>;
    type Input<'a> = Input;
    type Output<'a> = Output;

    fn scalar(self, value: i32) -> Scalar<'t> {
        self.scalar_of(Code::Constant(value), &[], &[])
    }
    fn max(self, a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> {
        self.scalar_of(Code::Max, &[a.value, b.value], &[])
    }
    fn min(self, a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> {
        self.scalar_of(Code::Min, &[a.value, b.value], &[])
    }
    fn if_ne(self, a: Scalar<'t>, b: Scalar<'t>, then: i32) -> Scalar<'t> {
        self.scalar_of(Code::IfNe(then), &[a.value, b.value], &[])
    }
    fn if_gt(self, a: Scalar<'t>, b: Scalar<'t>, then: i32) -> Scalar<'t> {
        self.scalar_of(Code::IfGt(then), &[a.value, b.value], &[])
    }

    fn sweep(self, n: Scalar<'t>, mut body: impl FnMut(Tile)) {
        self.control(Code::Sweep, &[n.value], |t| {
            body(Tile(t));
            None
        });
    }
    fn repeat(self, max: u32, n: Scalar<'t>, mut body: impl FnMut(Scalar<'t>)) {
        self.control(Code::Repeat { max }, &[n.value], |r| {
            body(Scalar { m: self, value: r });
            None
        });
    }
    fn bisect(
        self,
        hint: Scalar<'t>,
        need: Scalar<'t>,
        mut count: impl FnMut(Scalar<'t>) -> Scalar<'t>,
    ) -> Scalar<'t> {
        let value = self.control(Code::Bisect, &[hint.value, need.value], |t| {
            Some(count(Scalar { m: self, value: t }).value)
        });
        Scalar { m: self, value: value.expect("a bisection defines a scalar") }
    }

    fn iota(self, t: Tile) -> Vector<'t> {
        self.vector_of(Code::Iota, &[t.0], &[])
    }
    fn splat(self, value: i32) -> Vector<'t> {
        self.vector_of(Code::Splat(value), &[], &[])
    }
    fn shr(self, v: Vector<'t>, bits: u32) -> Vector<'t> {
        self.vector_of(Code::Shr(bits), &[v.value], &[])
    }
    fn low(self, v: Vector<'t>, bits: u32) -> Vector<'t> {
        self.vector_of(Code::Low(bits), &[v.value], &[])
    }
    fn dot(self, x: Vector<'t>, p: i32, q: i32) -> Vector<'t> {
        self.vector_of(Code::Dot(p, q), &[x.value], &[])
    }
    fn select(self, mask: Mask<'t>, yes: Vector<'t>, no: Vector<'t>) -> Vector<'t> {
        self.vector_of(Code::Select, &[mask.value, yes.value, no.value], &[])
    }
    fn eq(self, a: Vector<'t>, b: Vector<'t>) -> Mask<'t> {
        self.mask_of(Code::Eq, &[a.value, b.value])
    }
    fn eq_to(self, a: Vector<'t>, b: i32) -> Mask<'t> {
        self.mask_of(Code::EqTo(b), &[a.value])
    }
    fn neg(self, v: Vector<'t>) -> Mask<'t> {
        self.mask_of(Code::Neg, &[v.value])
    }

    fn load(self, t: Tile, column: &Words) -> Vector<'t> {
        self.vector_of(Code::Load, &[t.0], &[column.0])
    }
    fn store(self, t: Tile, column: &mut Words, v: Vector<'t>) {
        self.push(Code::Store, &[t.0, v.value], &[column.0]);
    }
    fn gather(self, column: &Words, index: Vector<'t>) -> Vector<'t> {
        self.vector_of(Code::Gather, &[index.value], &[column.0])
    }
    fn scatter(
        self,
        t: Tile,
        column: &mut Words,
        index: Vector<'t>,
        v: Vector<'t>,
        mask: Mask<'t>,
    ) {
        self.push(Code::Scatter, &[t.0, index.value, v.value, mask.value], &[column.0]);
    }

    fn len<const W: usize>(self, list: &List<W>) -> Scalar<'t> {
        self.scalar_of(Code::Len, &[], &[list.0])
    }
    fn clear<const W: usize>(self, list: &mut List<W>) {
        self.push(Code::Clear, &[], &[list.0]);
    }
    fn item<const W: usize>(self, t: Tile, list: &List<W>, column: usize) -> Vector<'t> {
        self.vector_of(Code::Item(column), &[t.0], &[list.0])
    }
    fn append<const W: usize>(
        self,
        t: Tile,
        list: &mut List<W>,
        mask: Mask<'t>,
        values: [Vector<'t>; W],
    ) {
        let args: Vec<Value> =
            [t.0, mask.value].into_iter().chain(values.iter().map(|v| v.value)).collect();
        self.push(Code::Append, &args, &[list.0]);
    }
    fn take<'a, const W: usize>(self, to: &mut List<W>, from: &mut List<W>) {
        self.push(Code::Take, &[], &[to.0, from.0]);
    }

    fn age(self, life: &mut Life, by: Scalar<'t>, settle: bool) {
        self.push(Code::Age { settle }, &[by.value], &[life.0]);
    }
    fn count_le(self, life: &Life, t: Scalar<'t>) -> Scalar<'t> {
        self.scalar_of(Code::CountLe, &[t.value], &[life.0])
    }
    fn append_lt(self, list: &mut List<1>, life: &Life, t: Scalar<'t>, limit: Scalar<'t>) {
        self.push(Code::AppendLt, &[t.value, limit.value], &[list.0, life.0]);
    }
    fn append_eq(self, list: &mut List<1>, life: &Life, t: Scalar<'t>, limit: Scalar<'t>) {
        self.push(Code::AppendEq, &[t.value, limit.value], &[list.0, life.0]);
    }
    fn life_at(self, life: &Life, slot: Vector<'t>) -> Vector<'t> {
        self.vector_of(Code::LifeAt, &[slot.value], &[life.0])
    }
    fn set_life(self, t: Tile, life: &mut Life, slot: Vector<'t>, value: i8, mask: Mask<'t>) {
        self.push(Code::SetLife(value), &[t.0, slot.value, mask.value], &[life.0]);
    }
    fn step_life(
        self,
        t: Tile,
        life: &mut Life,
        slot: Vector<'t>,
        rule: &[i8; 256],
        mask: Mask<'t>,
    ) {
        let code = Code::StepLife(self.rule(rule));
        self.push(code, &[t.0, slot.value, mask.value], &[life.0]);
    }

    fn get(self, from: &Input, at: Scalar<'t>) -> Scalar<'t> {
        self.scalar_of(Code::Get, &[at.value], &[from.0])
    }
    fn peek(self, from: &Output, at: Scalar<'t>) -> Scalar<'t> {
        self.scalar_of(Code::Peek, &[at.value], &[from.0])
    }
    fn put(self, to: &mut Output, at: Scalar<'t>, value: Scalar<'t>) {
        self.push(Code::Put, &[at.value, value.value], &[to.0]);
    }
    fn fetch(self, column: &mut Words, from: &Input, at: Scalar<'t>, n: Scalar<'t>) {
        self.push(Code::Fetch, &[at.value, n.value], &[column.0, from.0]);
    }
    fn publish(self, to: &mut Output, at: Scalar<'t>, column: &Words, n: Scalar<'t>) {
        self.push(Code::Publish, &[at.value, n.value], &[to.0, column.0]);
    }
    fn publish_list<const W: usize>(
        self,
        to: &mut Output,
        at: Scalar<'t>,
        list: &List<W>,
        column: usize,
    ) {
        self.push(Code::PublishList(column), &[at.value], &[to.0, list.0]);
    }
    fn lookup(
        self,
        t: Tile,
        from: &Input,
        base: Scalar<'t>,
        n: Scalar<'t>,
        index: Vector<'t>,
        mask: Mask<'t>,
    ) -> Vector<'t> {
        let args = [t.0, base.value, n.value, index.value, mask.value];
        self.vector_of(Code::Lookup, &args, &[from.0])
    }
}
