//! Ops on the lanes of a tile.

use super::{Lower, registers::Temp};
use crate::aiv::{Act, Call, Node, Pipe, Place, Sync};
use crate::tape::{Code, ColumnId, Op, Value};

/// A vector unit's use.
pub fn v(reads: &[&Place], writes: &[&Place]) -> Act {
    let all = |places: &[&Place]| places.iter().map(|&p| p.clone()).collect();
    Act::Use { pipe: Pipe::V, reads: all(reads), writes: all(writes) }
}

/// A scalar unit's use.
pub fn s(reads: &[&Place], writes: &[&Place]) -> Act {
    let all = |places: &[&Place]| places.iter().map(|&p| p.clone()).collect();
    Act::Use { pipe: Pipe::S, reads: all(reads), writes: all(writes) }
}

pub const BARRIER: Act = Act::Sync(Sync::Barrier(Pipe::V));
pub const TO_S: Act = Act::Sync(Sync::Flag(Pipe::V, Pipe::S));
const FROM_S: Act = Act::Sync(Sync::Flag(Pipe::S, Pipe::V));

/// The end of UB, which `Select` writes over.
pub const SCRATCH: &str = "184 KB and up";

pub fn ub(name: &str) -> Place {
    Place::Ub(name.into())
}

impl Lower<'_> {
    /// A new temporary, to be called so if it can.
    pub(super) fn temp(&mut self, mask: bool, name: &str) -> (String, Place) {
        self.temps.push(Temp { mask, name: name.into() });
        let n = self.temps.len() - 1;
        (format!("@{n}@"), Place::Temp(n))
    }

    /// What a value is called.
    pub(super) fn called(&self, value: Option<Value>) -> String {
        value.and_then(|v| self.called.get(&v)).cloned().unwrap_or_else(|| "part".into())
    }

    /// Text and place of a vector or mask. A constant is spread when somebody needs it as one.
    pub(super) fn operand(&mut self, value: Value) -> (String, Place) {
        if let Some(known) = self.at.get(&value) {
            return known.clone();
        }
        if self.all.contains(&value) {
            let (text, place) = self.temp(true, &self.called(Some(value)));
            let call =
                format!("Duplicate(U16({text}), static_cast<uint16_t>(0xffff), whole / 16);");
            self.call(Pipe::V, call, vec![], vec![place.clone()]);
            self.at.insert(value, (text.clone(), place.clone()));
            return (text, place);
        }
        let (text, place) = self.temp(false, &self.called(Some(value)));
        if let Some(Op { code: Code::Splat(n), .. }) = self.defs.get(&value) {
            let call = format!("Duplicate({text}, {n}, lanes);");
            self.call(Pipe::V, call, vec![], vec![place.clone()]);
        }
        self.at.insert(value, (text.clone(), place.clone()));
        (text, place)
    }

    /// A call whose result is a new temporary. `text` has `$d` for it and `$0`, `$1`.. for operands.
    fn make(
        &mut self,
        out: Option<Value>,
        mask: bool,
        text: &str,
        operands: &[Value],
        more: &[Place],
    ) {
        let operands: Vec<_> = operands.iter().map(|&o| self.operand(o)).collect();
        let (name, place) = self.temp(mask, &self.called(out));
        let mut text = text.replace("$d", &name);
        for (n, (operand, _)) in operands.iter().enumerate() {
            text = text.replace(&format!("${n}"), operand);
        }
        let reads = operands.into_iter().map(|o| o.1).chain(more.iter().cloned()).collect();
        self.call(Pipe::V, text, reads, vec![place.clone()]);
        self.at.extend(out.map(|out| (out, (name, place))));
    }

    /// The name of a block that holds one word.
    pub(super) fn word(&mut self, word: i32) -> (String, Place) {
        let bits = word.cast_unsigned();
        self.words.insert(bits);
        let name = format!("WORD_{bits:X}");
        (format!("{name}_AT"), Place::Ub(name))
    }

    /// The `bits` of a word under a constant; nothing to do where they are all there is.
    fn and(&mut self, out: Option<Value>, value: Value, mask: i32) {
        let range = self.ranges[value.0 as usize];
        if range.lo >= 0 && mask & (mask + 1) == 0 && range.hi <= mask {
            let same = self.operand(value);
            self.at.extend(out.map(|out| (out, same)));
            return;
        }
        let (word, place) = self.word(mask);
        self.make(out, false, &format!("AndWord($d, $0, {word}, lanes);"), &[value], &[place]);
    }

    /// Byte offsets of indices into a column of `len` elements.
    fn offsets(&mut self, index: Value, len: u32, shift: u32) -> (String, Place) {
        let range = self.ranges[index.0 as usize];
        let last = i32::try_from(len).unwrap_or(i32::MAX) - 1;
        let (mut text, mut place) = self.operand(index);
        if range.lo < 0 || range.hi > last {
            let (word, block) = self.word(last);
            let (name, to) = self.temp(false, "offset");
            let call = format!("AndWord({name}, {text}, {word}, lanes);");
            self.call(Pipe::V, call, vec![place, block], vec![to.clone()]);
            (text, place) = (name, to);
        }
        let (name, to) = self.temp(false, "offset");
        let call = format!("ShiftLeft(U32({name}), U32({text}), {shift}u, lanes);");
        self.call(Pipe::V, call, vec![place], vec![to.clone()]);
        (name, to)
    }

    pub(super) fn lane(&mut self, op: &Op) {
        let a = &op.args[..];
        let scalar = |n: usize| self.scalar(a[n]);
        match op.code {
            _ if !op.code.on_lanes() => self.whole(op, &[]),
            Code::Splat(_) => {}
            Code::Iota => {
                self.make(op.out, false, "Adds($d, iota, base, lanes);", &[], &[ub("iota")])
            }
            Code::Add => self.make(op.out, false, "Add($d, $0, $1, lanes);", a, &[]),
            Code::Sub => self.make(op.out, false, "Sub($d, $0, $1, lanes);", a, &[]),
            Code::Mul => self.make(op.out, false, "Mul($d, $0, $1, lanes);", a, &[]),
            Code::And | Code::Or => {
                let name = if op.code == Code::And { "And" } else { "Or" };
                let text = format!("{name}(U16($d), U16($0), U16($1), 2 * lanes);");
                self.make(op.out, false, &text, a, &[]);
            }
            Code::AddTo(n) => {
                self.make(op.out, false, &format!("Adds($d, $0, {n}, lanes);"), a, &[])
            }
            Code::MulTo(n) => {
                self.make(op.out, false, &format!("Muls($d, $0, {n}, lanes);"), a, &[])
            }
            Code::AndTo(n) => self.and(op.out, a[0], n),
            Code::Low(bits) => self.and(op.out, a[0], ((1u32 << bits) - 1).cast_signed()),
            Code::OrTo(n) => {
                let (word, place) = self.word(n);
                self.make(op.out, false, &format!("OrWord($d, $0, {word}, lanes);"), a, &[place]);
            }
            Code::AddScalar => {
                let text = format!("Adds($d, $0, {}, lanes);", self.bare(a[1]));
                self.make(op.out, false, &text, &a[..1], &[]);
            }
            // Halves are compared with the scalar itself.
            Code::SubScalar if self.halves.contains(&a[0]) => {}
            Code::SubScalar => {
                let text = format!("Adds($d, $0, -{}, lanes);", scalar(1));
                self.make(op.out, false, &text, &a[..1], &[]);
            }
            Code::MulScalar => {
                let text = format!("Muls($d, $0, {}, lanes);", self.bare(a[1]));
                self.make(op.out, false, &text, &a[..1], &[]);
            }
            Code::Shr(bits) => {
                let text = format!("ShiftRight(U32($d), U32($0), {bits}u, lanes);");
                self.make(op.out, false, &text, a, &[]);
            }
            Code::Dot(p, q) => self.dot(op, p, q),
            Code::Select if self.cuts_at_zero(a) => {
                self.make(op.out, false, "Maxs($d, $0, 0, lanes);", &a[2..], &[]);
            }
            Code::Select => {
                let text = "Select(F32($d), $0, F32($1), F32($2), SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);";
                self.make(op.out, false, text, a, &[]);
                self.scribbles();
            }
            Code::Eq => self.make(op.out, true, "Compare($d, $0, $1, CMPMODE::EQ, whole);", a, &[]),
            Code::EqTo(n) if self.halves.contains(&a[0]) => {
                let text = format!(
                    "CompareScalar($d, F16($0), static_cast<half>({n}.0f), CMPMODE::EQ, whole);"
                );
                self.make(op.out, true, &text, a, &[]);
            }
            Code::EqTo(n) => {
                let text = format!("CompareScalar($d, $0, {n}, CMPMODE::EQ, whole);");
                self.make(op.out, true, &text, a, &[]);
            }
            Code::Neg if self.halves.contains(&a[0]) => {
                let text =
                    "CompareScalar($d, F16($0), static_cast<half>(0.0f), CMPMODE::LT, whole);";
                self.make(op.out, true, text, a, &[]);
            }
            Code::Neg if self.below(a[0]).is_some() => {
                let (life, bound) = self.below(a[0]).unwrap_or((a[0], String::new()));
                let text = format!(
                    "CompareScalar($d, F16($0), static_cast<half>(static_cast<float>({bound})), CMPMODE::LT, whole);"
                );
                self.make(op.out, true, &text, &[life], &[]);
            }
            // A sign test that is only there to be turned round is made the right way at once.
            Code::Neg => {
                if self.uses.get(&op.out.unwrap_or(a[0])).is_some_and(|&n| n > self.turned(op.out))
                {
                    self.sign(op.out, a[0], -1);
                }
            }
            Code::MaskNot if self.everywhere(a[0]) => self.all.extend(op.out),
            Code::MaskNot => match self.defs.get(&a[0]) {
                Some(Op { code: Code::Neg, args, .. }) if !self.halves.contains(&args[0]) => {
                    let value = args[0];
                    self.sign(op.out, value, 0);
                }
                _ => self.make(op.out, true, "Not(U16($d), U16($0), whole / 16);", a, &[]),
            },
            Code::MaskAnd | Code::MaskOr => {
                let name = if op.code == Code::MaskAnd { "And" } else { "Or" };
                let text = format!("{name}(U16($d), U16($0), U16($1), whole / 16);");
                self.make(op.out, true, &text, a, &[]);
            }
            Code::Load => self.view(op, 0),
            Code::Item(column) => self.view(op, column),
            Code::Gather => self.gather(op, 2, "Gather($d, $c, U32($o), 0, lanes);"),
            Code::LifeAt => {
                self.gather(op, 1, "Gather(F16($d), $c, U32($o), 0, lanes);");
                self.halves.extend(op.out);
            }
            _ => self.effect(op),
        }
    }

    /// The last call is a `Select`, which writes over the end of UB.
    pub(super) fn scribbles(&mut self) {
        if let Some(Node::Call(Call { acts, .. })) = self.out.last_mut()
            && let [Act::Use { writes, .. }] = &mut acts[..]
        {
            writes.push(ub(SCRATCH));
        }
    }

    fn view(&mut self, op: &Op, column: usize) {
        let name = self.storage(op.columns[0], column);
        let view = format!("{name}[base]");
        let view = (view.clone(), Place::Ub(view));
        self.at.extend(op.out.map(|out| (out, view)));
    }

    fn gather(&mut self, op: &Op, shift: u32, text: &str) {
        let len = self.tape.column(op.columns[0]).len;
        let (offsets, place) = self.offsets(op.args[0], len, shift);
        let column = self.storage(op.columns[0], 0);
        let (name, to) = self.temp(false, &self.called(op.out));
        let text = text.replace("$d", &name).replace("$c", &column).replace("$o", &offsets);
        self.call(Pipe::V, text, vec![place, Place::Ub(column)], vec![to.clone()]);
        self.at.extend(op.out.map(|out| (out, (name, to))));
    }

    pub(super) fn helper(&mut self, text: String, acts: Vec<Act>) {
        self.out.push(Node::Call(Call { text, acts, sync: Vec::new() }));
    }

    fn effect(&mut self, op: &Op) {
        let a = &op.args[..];
        let column = op.columns.first().map(|&c| self.storage(c, 0)).unwrap_or_default();
        let (packed, stage) = (ub("packed"), ub("stage"));
        match op.code {
            Code::Store => self.store(op, &column),
            Code::Scatter | Code::SetLife(_) | Code::StepLife(_) => self.scatter(op),
            Code::Append => self.append(op.columns[0], a[1], &a[2..]),
            Code::Lookup => {
                let [(i, ip), (m, mp)] = [a[3], a[4]].map(|v| self.operand(v));
                let (name, place) = self.temp(false, &self.called(op.out));
                let from = self.gm(op.columns[0]);
                let text = format!(
                    "Lookup({name}, gm.{from}, {}, {}, {i}, {m}, lanes);",
                    self.scalar(a[1]),
                    self.scalar(a[2])
                );
                let (cells, gm) = (ub("cells"), Place::Gm(from));
                let read =
                    Act::Use { pipe: Pipe::Mte2, reads: vec![gm], writes: vec![cells.clone()] };
                let mut acts = vec![v(&[], &[&packed]), v(&[&ub("iota")], &[&stage])];
                acts.extend([BARRIER, v(&[&ip, &mp, &packed], &[&packed, &ub(SCRATCH)])]);
                for _ in 0..2 {
                    acts.extend([BARRIER, v(&[], &[&cells])]);
                    acts.extend([TO_S, s(&[&packed], &[]), read.clone()]);
                    acts.push(Act::Sync(Sync::Flag(Pipe::Mte2, Pipe::V)));
                    acts.push(v(&[&cells, &stage], &[&place]));
                }
                acts.push(FROM_S);
                self.helper(text, acts);
                self.at.extend(op.out.map(|out| (out, (name, place))));
            }
            _ => unreachable!("the checker keeps {:?} out of sweeps", op.code),
        }
    }

    /// Into the column at once, where the value is the last thing made and nobody else's.
    fn store(&mut self, op: &Op, column: &str) {
        let (value, view) = (op.args[1], format!("{column}[base]"));
        let place = Place::Ub(view.clone());
        if let Some(Op { code: Code::Splat(n), .. }) = self.defs.get(&value) {
            let text = format!("Duplicate({view}, {n}, lanes);");
            return self.call(Pipe::V, text, vec![], vec![place]);
        }
        let (text, from) = self.operand(value);
        if let (Some(Node::Call(last)), 1) = (self.out.last_mut(), self.uses[&value])
            && let [Act::Use { writes, .. }] = &mut last.acts[..]
            && writes[0] == from
            && matches!(from, Place::Temp(_))
        {
            writes[0] = place;
            last.text = last.text.replace(&text, &view);
            return;
        }
        self.call(Pipe::V, format!("Adds({view}, {text}, 0, lanes);"), vec![from], vec![place]);
    }

    fn append(&mut self, list: ColumnId, mask: Value, values: &[Value]) {
        let (m, mp) = self.operand(mask);
        let len = self.len_name(list);
        let packed = ub("packed");
        if values.is_empty() {
            let acts = vec![v(&[&mp, &ub("iota")], &[&packed])];
            return self.helper(format!("{len} += Count({m}, lanes);"), acts);
        }
        let values: Vec<_> = values.iter().map(|&v| self.operand(v)).collect();
        for (n, (x, xp)) in values.iter().enumerate() {
            let column = self.storage(list, n);
            let own = |name: &str| {
                let pair = |[a, b]: &[String; 2]| *a == column && b == name;
                name == column || self.overlays.iter().any(pair)
            };
            let closes = matches!(xp, Place::Ub(name) if own(name.trim_end_matches("[base]")));
            let helper = if closes { "Close" } else { "Append" };
            let text = format!("{helper}({column}, {len}, {x}, {m}, lanes, {});", n == 0);
            let text = if n + 1 == values.len() { format!("{len} += {text}") } else { text };
            let acts = append_acts(closes, xp, &mp, &Place::Ub(column));
            self.helper(text, acts);
        }
    }
}

/// What happens in `Append` or `Close`.
fn append_acts(closes: bool, value: &Place, mask: &Place, list: &Place) -> Vec<Act> {
    let (stage, packed, keep) = (ub("stage"), ub("packed"), ub("keep"));
    let mut behind = vec![v(&[list], &[&stage, &keep]), BARRIER];
    if closes {
        let pack = v(&[value, mask, &stage, &keep], &[&packed]);
        return vec![Act::Maybe(behind), pack, BARRIER, v(&[&packed], &[list])];
    }
    behind.extend([v(&[&stage, &keep], &[&packed]), BARRIER]);
    vec![Act::Maybe(behind), v(&[value, mask, &packed], &[list])]
}
