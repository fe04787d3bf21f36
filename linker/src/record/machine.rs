//! The kernel language of the recorder: every method writes one op.

use super::{Input, Life, List, Mask, Output, Recorder, Scalar, Tile, Vector, Words};
use crate::tape::{OpCode, Value};
use avsg_device::machine::Machine;
use avsg_device::machine::links::Links;
use avsg_device::machine::phase::Phase;

/// Defines methods of `Machine`, with their generics in brackets. After `=` come the op that the
/// method writes and its operands in the order of the tape: values, then columns. The result is the
/// value that the op defines.
macro_rules! ops {
    ($(fn $f:ident $([$($generic:tt)*])? ($($arg:ident: $ty:ty),*) $(-> $out:ty)?
        = $code:expr, [$($value:ident),*], [$($column:expr),*];)*) => {
        $(fn $f$(<$($generic)*>)?(self, $($arg: $ty),*) $(-> $out)? {
            self.op($code, &[$($value.value),*], &[$($column.0),*])
        })*
    };
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

    ops! {
        fn scalar(value: i32) -> Scalar<'t> = OpCode::Constant(value), [], [];
        fn max(a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> = OpCode::Max, [a, b], [];
        fn min(a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> = OpCode::Min, [a, b], [];
        fn ne(a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> = OpCode::ScalarNe, [a, b], [];
        fn gt(a: Scalar<'t>, b: Scalar<'t>) -> Scalar<'t> = OpCode::ScalarGt, [a, b], [];
        fn not(c: Scalar<'t>) -> Scalar<'t> = OpCode::ScalarNot, [c], [];
        fn phase(phase: Phase, does: &'static str) = OpCode::Phase(phase, does), [], [];

        fn iota(t: Tile) -> Vector<'t> = OpCode::Iota, [t], [];
        fn splat(value: i32) -> Vector<'t> = OpCode::Splat(value), [], [];
        fn shr(v: Vector<'t>, bits: u32) -> Vector<'t> = OpCode::Shr(bits), [v], [];
        fn low_bits(v: Vector<'t>, bits: u32) -> Vector<'t> = OpCode::LowBits(bits), [v], [];
        fn madd(x: Vector<'t>, p: i32, q: i32) -> Vector<'t> = OpCode::Madd(p, q), [x], [];
        fn select(mask: Mask<'t>, yes: Vector<'t>, no: Vector<'t>) -> Vector<'t>
            = OpCode::Select, [mask, yes, no], [];
        fn eq(a: Vector<'t>, b: Vector<'t>) -> Mask<'t> = OpCode::Eq, [a, b], [];
        fn eq_to(a: Vector<'t>, b: i32) -> Mask<'t> = OpCode::EqTo(b), [a], [];
        fn is_negative(v: Vector<'t>) -> Mask<'t> = OpCode::IsNegative, [v], [];

        fn load(t: Tile, column: &Words) -> Vector<'t> = OpCode::Load, [t], [column];
        fn store(t: Tile, column: &mut Words, v: Vector<'t>) = OpCode::Store, [t, v], [column];
        fn gather(column: &Words, index: Vector<'t>) -> Vector<'t> = OpCode::Gather, [index], [column];
        fn scatter(t: Tile, column: &mut Words, index: Vector<'t>, v: Vector<'t>, mask: Mask<'t>)
            = OpCode::Scatter, [t, index, v, mask], [column];

        fn len[const W: usize](list: &List<W>) -> Scalar<'t> = OpCode::Len, [], [list];
        fn clear[const W: usize](list: &mut List<W>) = OpCode::Clear, [], [list];
        fn item[const W: usize](t: Tile, list: &List<W>, column: usize) -> Vector<'t>
            = OpCode::Item(column), [t], [list];
        fn take['a, const W: usize](to: &mut List<W>, from: &mut List<W>) = OpCode::Take, [], [to, from];

        fn find(links: &Links, slot: &mut Words, queries: [&Words; 2], n: Scalar<'t>, table: [&Words; 2])
            = OpCode::Find(links.retries), [n], [slot, queries[0], queries[1], table[0], table[1]];
        fn find_free(links: &Links, position: &mut Words, sequence: &Words, n: Scalar<'t>, table: [&Words; 2])
            = OpCode::FindFree(links.retries), [n], [position, sequence, table[0], table[1]];

        fn age(life: &mut Life, by: Scalar<'t>, settle: bool) = OpCode::Age { settle }, [by], [life];
        fn count_le(life: &Life, t: Scalar<'t>) -> Scalar<'t> = OpCode::CountLe, [t], [life];
        fn append_lt(list: &mut List<1>, life: &Life, t: Scalar<'t>, limit: Scalar<'t>)
            = OpCode::AppendLt, [t, limit], [list, life];
        fn append_eq(list: &mut List<1>, life: &Life, t: Scalar<'t>, limit: Scalar<'t>)
            = OpCode::AppendEq, [t, limit], [list, life];
        fn gather_life(life: &Life, slot: Vector<'t>) -> Vector<'t> = OpCode::GatherLife, [slot], [life];
        fn set_life(t: Tile, life: &mut Life, slot: Vector<'t>, value: i8, mask: Mask<'t>)
            = OpCode::SetLife(value), [t, slot, mask], [life];

        fn read_input(from: &Input, at: Scalar<'t>) -> Scalar<'t> = OpCode::ReadInput, [at], [from];
        fn read_output(from: &Output, at: Scalar<'t>) -> Scalar<'t> = OpCode::ReadOutput, [at], [from];
        fn write_output(to: &mut Output, at: Scalar<'t>, value: Scalar<'t>) = OpCode::WriteOutput, [at, value], [to];
        fn fetch(column: &mut Words, from: &Input, at: Scalar<'t>, n: Scalar<'t>)
            = OpCode::Fetch, [at, n], [column, from];
        fn publish(to: &mut Output, at: Scalar<'t>, column: &Words, n: Scalar<'t>)
            = OpCode::Publish, [at, n], [to, column];
        fn share(column: &mut Words, row: &mut Output, at: Scalar<'t>, first: Scalar<'t>,
            len: Scalar<'t>, n: Scalar<'t>) = OpCode::Share, [at, first, len, n], [column, row];
        fn publish_list[const W: usize](to: &mut Output, at: Scalar<'t>, list: &List<W>, column: usize)
            = OpCode::PublishList(column), [at], [to, list];
        fn lookup(t: Tile, from: &Input, base: Scalar<'t>, n: Scalar<'t>, index: Vector<'t>, mask: Mask<'t>)
            -> Vector<'t> = OpCode::Lookup, [t, base, n, index, mask], [from];
    }

    // These methods have closures, lists of operands, or tables of constants, which the macro does
    // not cover.

    fn sweep(self, n: Scalar<'t>, mut body: impl FnMut(Tile)) {
        self.control(OpCode::Sweep, &[n.value], |tile| {
            body(Tile { value: tile.expect("a sweep binds a tile") });
            None
        })
    }
    fn repeat(self, max: u32, n: Scalar<'t>, mut body: impl FnMut(Scalar<'t>)) {
        self.control(OpCode::Repeat { max }, &[n.value], |r| {
            body(self.scalar_of(r.expect("a repeat binds a scalar")));
            None
        })
    }
    fn when(self, condition: Scalar<'t>, mut body: impl FnMut()) {
        self.control(OpCode::When, &[condition.value], |_| {
            body();
            None
        })
    }
    fn name_scalar(self, name: &'static str, value: Scalar<'t>) -> Scalar<'t> {
        self.name(value.value, name);
        value
    }
    fn name_vector(self, name: &'static str, v: Vector<'t>) -> Vector<'t> {
        self.name(v.value, name);
        v
    }
    fn name_mask(self, name: &'static str, mask: Mask<'t>) -> Mask<'t> {
        self.name(mask.value, name);
        mask
    }
    fn bisect(
        self,
        hint: Scalar<'t>,
        need: Scalar<'t>,
        mut count: impl FnMut(Scalar<'t>) -> Scalar<'t>,
    ) -> Scalar<'t> {
        let args = [hint.value, need.value];
        self.control(OpCode::Bisect, &args, |t| {
            Some(count(self.scalar_of(t.expect("a bisection binds a scalar"))).value)
        })
    }

    fn append<const W: usize>(
        self,
        t: Tile,
        list: &mut List<W>,
        mask: Mask<'t>,
        values: [Vector<'t>; W],
    ) {
        let args: Vec<Value> =
            [t.value, mask.value].into_iter().chain(values.map(|v| v.value)).collect();
        self.op(OpCode::Append, &args, &[list.0])
    }

    fn step_life(
        self,
        t: Tile,
        life: &mut Life,
        slot: Vector<'t>,
        rule: &[i8; 256],
        mask: Mask<'t>,
    ) {
        let code = OpCode::StepLife(self.rule(rule));
        self.op(code, &[t.value, slot.value, mask.value], &[life.0])
    }
}
