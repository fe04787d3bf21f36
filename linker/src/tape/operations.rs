//! The table of operations.

/// Calls a macro with the table. [`OpCode`](super::OpCode), its signatures, the text of a tape and
/// the recorder are made from it.
///
/// A row is `Code = method(operands; constants) -> result |what its block binds|, text;`. Operands
/// are in the order of the method's parameters. An operand is a value by its type, or a column by
/// its role and by the recorder's type for it. The text is a format string over the names of the
/// row.
///
/// The rows of `operators` name a trait and its method. Those of `others` and `blocks` name no
/// method: it takes a body, or has other parameters than its op, so the recorder's is written by
/// hand.
macro_rules! operations {
    ($derive:ident) => { $derive! {
        operators {
            ScalarAdd = Add add(a: Scalar, b: Scalar) -> Scalar, "{a} + {b}";
            ScalarSub = Sub sub(a: Scalar, b: Scalar) -> Scalar, "{a} - {b}";
            ScalarMul = Mul mul(a: Scalar, b: Scalar) -> Scalar, "{a} * {b}";
            ScalarAddTo = Add add(a: Scalar; n: i32) -> Scalar, "{a} + {n}";

            Add = Add add(a: Vector, b: Vector) -> Vector, "{a} + {b}";
            Sub = Sub sub(a: Vector, b: Vector) -> Vector, "{a} - {b}";
            Mul = Mul mul(a: Vector, b: Vector) -> Vector, "{a} * {b}";
            And = BitAnd bitand(a: Vector, b: Vector) -> Vector, "{a} & {b}";
            Or = BitOr bitor(a: Vector, b: Vector) -> Vector, "{a} | {b}";
            AddTo = Add add(a: Vector; n: i32) -> Vector, "{a} + {n}";
            MulTo = Mul mul(a: Vector; n: i32) -> Vector, "{a} * {n}";
            AndTo = BitAnd bitand(a: Vector; n: i32) -> Vector, "{a} & {n:#x}";
            OrTo = BitOr bitor(a: Vector; n: i32) -> Vector, "{a} | {n:#x}";
            AddScalar = Add add(a: Vector, s: Scalar) -> Vector, "{a} + {s}";
            SubScalar = Sub sub(a: Vector, s: Scalar) -> Vector, "{a} - {s}";
            MulScalar = Mul mul(a: Vector, s: Scalar) -> Vector, "{a} * {s}";

            MaskAnd = BitAnd bitand(a: Mask, b: Mask) -> Mask, "{a} & {b}";
            MaskOr = BitOr bitor(a: Mask, b: Mask) -> Mask, "{a} | {b}";
            MaskNot = Not not(a: Mask) -> Mask, "!{a}";
        }
        methods {
            Constant = scalar(; value: i32) -> Scalar, "{value}";
            Max = max(a: Scalar, b: Scalar) -> Scalar, "max({a}, {b})";
            Min = min(a: Scalar, b: Scalar) -> Scalar, "min({a}, {b})";
            ScalarNe = ne(a: Scalar, b: Scalar) -> Scalar, "{a} != {b}";
            ScalarGt = gt(a: Scalar, b: Scalar) -> Scalar, "{a} > {b}";

            // A heading of the emitted text.
            Phase = phase(; phase: Phase, does: &'static str), "# {phase}: {does}";

            Iota = iota(t: Tile) -> Vector, "iota {t}";
            Splat = splat(; value: i32) -> Vector, "splat {value}";
            Shr = shr(v: Vector; bits: u32) -> Vector, "{v} >> {bits}";
            Below = below(v: Vector; n: u32) -> Vector, "{v}, known to be below {n}";
            Madd = madd(x: Vector; p: i32, q: i32) -> Vector, "madd {x} by {p}, {q}";
            Select = select(mask: Mask, yes: Vector, no: Vector) -> Vector,
                "select {mask} ? {yes} : {no}";
            Eq = eq(a: Vector, b: Vector) -> Mask, "{a} == {b}";
            IsNegative = is_negative(v: Vector) -> Mask, "{v} < 0";

            Load = load(t: Tile, column: (Streamed &Words)) -> Vector, "load {column}[{t}]";
            Store = store(t: Tile, column: (Streamed &mut Words), v: Vector),
                "store {column}[{t}] = {v}";
            Gather = gather(column: (Gathered &Words), index: Vector) -> Vector,
                "gather {column}[{index}]";
            Scatter = scatter(t: Tile, column: (Scattered &mut Words), index: Vector, v: Vector,
                mask: Mask), "scatter {column}[{index}] = {v} where {mask}";

            Len = len[const W: usize](list: (WholeRead &List<W>)) -> Scalar, "len {list}";
            Clear = clear[const W: usize](list: (WholeWrite &mut List<W>)), "clear {list}";
            Item = item[const W: usize](t: Tile, list: (Streamed &List<W>); column: usize) -> Vector,
                "item {list}.{column}[{t}]";
            Append = append[const W: usize](t: Tile, list: (Appended &mut List<W>), mask: Mask,
                values: [Vector; W]), "{}", match &values[..] {
                    [] => format!("count {list} where {mask}"),
                    _ => format!("append {list} <- {} where {mask}", values.join(", ")),
                };
            MoveList = move_list['a, const W: usize](to: (WholeWrite &mut List<W>),
                from: (WholeWrite &mut List<W>)), "take {to} <- {from}";

            Age = age(life: (WholeWrite &mut Life), by: Scalar, from: Scalar),
                "age {life} from {from} on by {by}";
            MapLife = map_life(to: (WholeWrite &mut Life), life: (WholeRead &Life),
                table: (WholeRead &Words)), "map {to} <- {life} by {table}";
            Threshold = threshold(life: (WholeRead &Life), hint: Scalar, need: Scalar) -> Scalar,
                "threshold of {life} from {hint} for {need}";
            AppendLife = append_life(list: (WholeWrite &mut List<1>), life: (WholeRead &Life),
                t: Scalar, limit: Scalar; equal: bool),
                "append {list} <- {life} {} {t}, until {limit}", if equal { "==" } else { "<" };
            GatherLife = gather_life(life: (Gathered &Life), slot: Vector) -> Vector,
                "gather {life}[{slot}]";

            ReadOutput = read_output(from: (WholeRead &Output), at: Scalar) -> Scalar,
                "read {from}[{at}]";
            WriteOutput = write_output(to: (WholeWrite &mut Output), at: Scalar, value: Scalar),
                "write {to}[{at}] = {value}";
            CopyIn = copy_in(column: (WholeWrite &mut Words), from: (WholeRead &Input), at: Scalar,
                n: Scalar), "copy in {column} <- {from}[{at}], {n} words";
            CopyOut = copy_out(to: (WholeWrite &mut Output), at: Scalar, column: (WholeRead &Words),
                n: Scalar), "copy out {to}[{at}] <- {column}, {n} words";
            CopyOutList = copy_out_list[const W: usize](to: (WholeWrite &mut Output), at: Scalar,
                list: (WholeRead &List<W>); column: usize), "copy out {to}[{at}] <- {list}.{column}";
            Synchronise = synchronise(), "synchronise";
            Lookup = lookup(t: Tile, from: (Gathered &Input), base: Scalar, n: Scalar, index: Vector,
                mask: Mask) -> Vector, "lookup {from}[{base} + {index}] below {n} where {mask}";
        }
        others {
            Find = (slot: (WholeWrite &mut Words), sequence: (WholeRead &Words),
                id: (WholeRead &Words), n: Scalar, link: (WholeRead &Words),
                held: (WholeRead &Words); links: Links),
                "find {slot} <- {id} by {sequence}, {n} ids, {} retries, in {link}, {held}",
                links.retries;
            FindFree = (position: (WholeWrite &mut Words), sequence: (WholeRead &Words), n: Scalar,
                link: (WholeRead &Words), held: (WholeRead &Words); links: Links),
                "find {position} <- free by {sequence}, {n} ids, {} retries, in {link}, {held}",
                links.retries;
            SetLife = (t: Tile, life: (Scattered &mut Life), slot: Vector, mask: Mask; value: i8),
                "scatter {life}[{slot}] = {value} where {mask}";
            StepLife = (t: Tile, life: (Scattered &mut Life), slot: Vector, mask: Mask; rule: Rule),
                "step {life}[{slot}] by the rule where {mask}";
        }
        blocks {
            Sweep = (n: Scalar) |t: Tile|, "sweep {n} |{t}|";
            Repeat = (n: Scalar; max: u32) |r: Scalar|, "repeat {n}, at most {max} |{r}|";
            When = (condition: Scalar), "when {condition}";
        }
    } };
}

pub(crate) use operations;
