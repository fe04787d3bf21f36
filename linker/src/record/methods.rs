//! The kernel language of the recorder: every method writes one op.

use super::{Input, Life, List, Mask, Output, Recorder, Scalar, Tile, Vector, Words};
use crate::tape::operations::operations;
use crate::tape::{Op, OpCode, Rule};
use avsg_device::machine::Machine;
use avsg_device::machine::Memory;
use avsg_device::machine::links::Links;
use avsg_device::machine::phase::Phase;

/// The type of a parameter from the notation of the table.
macro_rules! parameter {
    (($role:ident $($column:tt)+)) => { $($column)+ };
    ([$value:ident; $n:ident]) => { [$value<'t>; $n] };
    (Tile) => { Tile };
    ($value:ident) => { $value<'t> };
}

/// Adds an operand to an op.
macro_rules! with {
    ($op:ident, $arg:ident, ($($column:tt)+)) => {
        $op.column($arg.0)
    };
    ($op:ident, $arg:ident, [$value:ident; $n:ident]) => {
        $arg.into_iter().fold($op, |op, v| op.arg(v.value))
    };
    ($op:ident, $arg:ident, $value:ident) => {
        $op.arg($arg.value)
    };
}

/// Defines the methods of the table.
macro_rules! methods {
    (operators { $($operators:tt)* } methods { $(
        $code:ident = $f:ident $([$($generic:tt)*])?
            ($($arg:ident: $kind:tt),* $(; $($constant:ident: $ty:ty),+)?)
            $(-> $out:ident)?, $($text:expr),+;
    )* } $($rest:tt)*) => {$(
        fn $f$(<$($generic)*>)?(self, $($arg: parameter!($kind),)* $($($constant: $ty),+)?)
            $(-> $out<'t>)? {
            let op = Op::new(OpCode::$code $(($($constant),+))?);
            $(let op = with!(op, $arg, $kind);)*
            self.write(op)
        }
    )*};
}

impl Memory for Recorder<'_> {
    type Column<'a> = Words;
    type Life<'a> = Life;
    type List<'a, const W: usize> = List<W>;
}

impl<'t> Machine for Recorder<'t> {
    type V = Vector<'t>;
    type Mask = Mask<'t>;
    type Scalar = Scalar<'t>;
    type Tile = Tile;
    type Input<'a> = Input;
    type Output<'a> = Output;

    operations!(methods);

    fn sweep(self, n: Scalar<'t>, mut body: impl FnMut(Tile)) {
        let op = Op::new(OpCode::Sweep).arg(n.value);
        let block = self.body(&op, |tile| {
            body(Tile { value: tile.expect("a sweep binds a tile") });
        });
        self.write(op.block(block))
    }
    fn repeat(self, max: u32, n: Scalar<'t>, mut body: impl FnMut(Scalar<'t>)) {
        let op = Op::new(OpCode::Repeat(max)).arg(n.value);
        let block = self.body(&op, |r| body(self.scalar_of(r.expect("a repeat binds a scalar"))));
        self.write(op.block(block))
    }
    fn when_else<C>(
        self,
        condition: Scalar<'t>,
        both: &mut C,
        mut body: impl FnMut(&mut C),
        mut otherwise: impl FnMut(&mut C),
    ) {
        let op = Op::new(OpCode::When).arg(condition.value);
        let yes = self.body(&op, |_| body(both));
        let no = self.body(&op, |_| otherwise(both));
        self.write(op.block(yes).block(no))
    }
    fn written(self, output: &Output) -> Input {
        Input(output.0)
    }
    fn name_scalar(self, name: &'static str, value: Scalar<'t>) -> Scalar<'t> {
        value.named(name)
    }
    fn name_vector(self, name: &'static str, v: Vector<'t>) -> Vector<'t> {
        v.named(name)
    }
    fn name_mask(self, name: &'static str, mask: Mask<'t>) -> Mask<'t> {
        mask.named(name)
    }
    fn find(
        self,
        links: &Links,
        slot: &mut Words,
        [sequence, id]: [&Words; 2],
        n: Scalar<'t>,
        [link, held]: [&Words; 2],
    ) {
        let columns = [slot.0, sequence.0, id.0, link.0, held.0];
        self.op(OpCode::Find(*links), &[n.value], &columns)
    }

    fn find_free(
        self,
        links: &Links,
        position: &mut Words,
        sequence: &Words,
        n: Scalar<'t>,
        [link, held]: [&Words; 2],
    ) {
        let columns = [position.0, sequence.0, link.0, held.0];
        self.op(OpCode::FindFree(*links), &[n.value], &columns)
    }

    fn set_life(self, t: Tile, life: &mut Life, slot: Vector<'t>, value: i8, mask: Mask<'t>) {
        self.op(OpCode::SetLife(value), &[t.value, slot.value, mask.value], &[life.0])
    }

    fn step_life(
        self,
        t: Tile,
        life: &mut Life,
        slot: Vector<'t>,
        rule: &[i8; 256],
        mask: Mask<'t>,
    ) {
        let code = OpCode::StepLife(Rule(*rule));
        self.op(code, &[t.value, slot.value, mask.value], &[life.0])
    }
}
