//! The kernels of an operator package, called as CANN's operator compiler calls them: with a pointer to
//! their launch scalars, or with a null pointer and constants if it knows all shapes.

use std::ptr::null_mut;

use avsg_device::memory::{clear_state, table_words};
use avsg_device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::opp::project;

use super::{Compiled, EVERY_ORDER, Places, RunOptions, SplitMix64, TestEngine, shim_launch};

/// Returns what CANN's operator compiler puts before the kernels of an operator package: the class of the tiling data, and
/// the macro that reads it, for tiling data which `declared` declares with CANN's macros. A launch that passes no tiling data
/// gets `known`, as if the compiler knew all shapes.
fn tiling_header(declared: &str, known: &[i32]) -> String {
    let fields: Vec<(String, Option<usize>)> = declared.lines().filter_map(field).collect();
    let members = fields.iter().map(|(declarator, _)| format!("    int32_t {declarator};\n"));
    let mut words = known.iter().map(i32::to_string);
    let mut take = |n: usize| words.by_ref().take(n).collect::<Vec<_>>().join(", ");
    let values = fields.iter().map(|(_, length)| match length {
        None => take(1),
        Some(n) => format!("{{{}}}", take(*n)),
    });
    let values: Vec<_> = values.collect();
    HEADER.replace("@MEMBERS@", &members.collect::<String>()).replace("@KNOWN@", &values.join(", "))
}

/// Returns the declarator of a field, and the length of an array, from a line that declares one.
fn field(line: &str) -> Option<(String, Option<usize>)> {
    let (kind, arguments) = line.trim().strip_suffix(");")?.split_once('(')?;
    let arguments: Vec<_> = arguments.split(", ").collect();
    match (kind, &arguments[..]) {
        ("TILING_DATA_FIELD_DEF", ["int32_t", name]) => Some(((*name).into(), None)),
        ("TILING_DATA_FIELD_DEF_ARR", ["int32_t", n, name]) => {
            Some((format!("{name}[{n}]"), Some(n.parse().ok()?)))
        }
        _ => None,
    }
}

/// A copy of the tiling data passes through the start of UB, and ends with a barrier over all pipes.
const HEADER: &str = include_str!("operator_compiler.h.in");

/// Compiles the kernels of the operator package of a geometry behind the text of the operator compiler.
fn compile(p: &Params, known: &[i32]) -> Option<Compiled> {
    let all = ascendc(p, Abi::Operator).expect("a small geometry fits");
    let files = project(p, "ascend910b", &all);
    let launch = files.iter().find(|file| file.path == "op_host/avsg_launch.h").expect("a header");
    let declared = std::str::from_utf8(&launch.bytes).expect("UTF-8");
    let names = ["avsg_plan", "avsg_transfer", "avsg_step", "avsg_reset"];
    let kernels = all.kernels.iter().filter(|kernel| names.contains(&kernel.name));
    let texts: String = kernels.map(|kernel| kernel.text.as_str()).collect();
    let header = tiling_header(declared, known);
    Compiled::single(&format!("#define AVSG_SHIM_SEVERAL_FILES\n{header}{}", all.whole(&texts)))
}

/// A kernel that read its scalars but by the macro would read a null pointer.
#[test]
fn operators_get_their_scalars_by_a_pointer_or_as_constants() {
    let p = Params { page: 16, spread: 2, retries: 7, ..Params::wide(64, 4, 256) };
    let (mut random, states, units) = (SplitMix64::new(3), 7, 70);
    let mut places = Places::random(&mut random, &p, states, Some(5));
    places.base = Some(70);
    let (sizes, format) = ((states, units, 28), &[(33, 33), (7, 12)]);
    let mut engine = TestEngine::new(&mut random, &p, places, sizes, format, 8);
    engine.operator = true;
    // A batch in which most of the requests have tokens.
    let mut batches = std::iter::repeat_with(|| engine.random_batch(&mut random, 7));
    let b = batches.find(|b| b.k == 64 && b.rows() > 14).expect("such a batch");
    let cores = 5;
    let Some(kernels) = compile(&p, &engine.scalars(&b, cores)) else { return };
    let before = engine.contents();
    let mut cleared = vec![0; table_words(&p)];
    clear_state(&p, &mut cleared);
    for (known_shapes, mode) in
        EVERY_ORDER.into_iter().flat_map(|mode| [(false, mode), (true, mode)])
    {
        engine.known_shapes = known_shapes;
        let options = RunOptions { cores, mode, seed: 1 };
        engine.restore(&before);
        let what = format!("{options:?}, known shapes: {known_shapes}");
        let want = engine.expect_as_on_cpu(&b, &what, |engine, two| {
            let kernels = if two { &[&kernels, &kernels][..] } else { &[&kernels] };
            Ok(engine.step_emitted(&b, kernels, options)?.0)
        });
        assert!(want.miss_count() > 50, "{}", want.miss_count());
        let tables = engine.tables.as_mut_ptr().cast();
        let reset = shim_launch("avsg_reset", options).device(&mut engine.tables);
        let reset = reset.raw(tables).raw(null_mut()).raw(null_mut());
        reset.run(&kernels.kernels).unwrap_or_else(|e| panic!("{e:?}"));
        let mut tables = engine.tables.chunks_exact(table_words(&p));
        assert!(tables.all(|table| table == cleared), "{options:?}");
    }
}
