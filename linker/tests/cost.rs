//! The cost model counts the calls of the emitted text.

use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::aiv::{Act, Call, Pipe, Sync, Use};
use avsg_linker::ascend::cost::calls::{Kernel, of_calls};
use avsg_linker::ascend::cost::{UNITS, Unit, Work};
use avsg_linker::ascend::functions::ALL;
use avsg_linker::ascend::{stage_one, statement};
use avsg_linker::tape::{Op, OpCode, Tape};

fn geometries() -> Vec<Params> {
    let wide = Params { spread: 2, retries: 7, page: 16, ..Params::wide(256, 1, 1024) };
    let lifetime = Lifetime::frequency();
    vec![wide, Params { lifetime, ..wide }, Params::paper(256, 1, 1024)]
}

fn sweeps(tape: &Tape) -> Vec<&Op> {
    tape.body.all().filter(|op| op.code == OpCode::Sweep).collect()
}

/// The calls of a sweep are the calls of one loop of the text, in the same order.
#[test]
fn sweeps_have_the_calls_of_the_loops_in_the_text() {
    for p in geometries() {
        let kernel = Kernel::new(&p).unwrap();
        let text = stage_one(&p).unwrap().body;
        let all = sweeps(&kernel.tape);
        assert_eq!(text.matches("; base += ").count(), all.len());
        let mut rest = text.as_str();
        for sweep in all {
            let calls = kernel.calls(sweep).expect("a loop");
            assert!(!calls.is_empty());
            let (_, body) = rest.split_once("; base += ").unwrap();
            let mut body = &body[..body.find("; base += ").unwrap_or(body.len())];
            let (mut barriers, mut counted) = (0, 0);
            for call in calls {
                let text = statement(call);
                let at = body.find(&text).unwrap_or_else(|| panic!("{text} in {body}"));
                barriers += body[..at].matches("PipeBarrier<PIPE_V>();").count();
                body = &body[at + text.len()..];
                // The barriers of functions are not in this text.
                let barrier = |sync: &&Sync| **sync == Sync::Barrier(Pipe::V);
                counted += call.sync.iter().filter(barrier).count();
            }
            assert_eq!(barriers, counted, "{calls:?}");
            rest = rest.split_once("; base += ").unwrap().1;
        }
    }
}

#[test]
fn more_lanes_never_cost_less() {
    let sum = |work: Work| UNITS.iter().map(|u| work.get(u.0)).sum::<f64>();
    for p in geometries() {
        let kernel = Kernel::new(&p).unwrap();
        let all = sweeps(&kernel.tape);
        for sweep in all {
            let calls = kernel.calls(sweep).unwrap();
            // A sweep without vector instructions is priced by its op.
            let vector = |act: Act| matches!(act, Act::Use { pipe: Pipe::V, .. });
            if !calls.iter().flat_map(Call::acts).any(vector) {
                continue;
            }
            let work = [1, 64, 65, 128].map(|lanes| sum(of_calls(calls, lanes)));
            assert!(work[0] > 0.0 && work.windows(2).all(|w| w[0] <= w[1]), "{work:?}");
            assert!(work[1] < work[2]);
        }
    }
}

/// Each GatherMask in the text of a function takes its documented time, and each Select the time of
/// what its public implementation runs: two instructions and three barriers.
#[test]
fn compactions_and_selections_have_prices_of_their_own() {
    let (mut compacting, mut selecting) = (0, 0);
    for p in geometries() {
        let kernel = Kernel::new(&p).unwrap();
        for call in sweeps(&kernel.tape).into_iter().flat_map(|sweep| kernel.calls(sweep).unwrap())
        {
            let text = call.function().map_or("", |call| call.function.text);
            let body = text.split_once("\n{\n").map_or("", |(_, body)| body);
            let compactions = body.matches(" Compact(").count();
            let work = of_calls(&[Call { sync: Vec::new(), ..call.clone() }], 256);
            assert_eq!(work.get(Unit::Compactions), 4.0 * compactions as f64, "{call:?}");
            compacting += compactions;
            if [&statement(call), body].iter().any(|text| text.trim_start().starts_with("Select("))
            {
                assert_eq!((work.get(Unit::Ops), work.get(Unit::Barriers)), (2.0, 3.0), "{call:?}");
                selecting += 1;
            }
        }
    }
    assert!(compacting > 10 && selecting > 10, "{compacting} and {selecting}");
}

/// Counts the vector instructions and the scalar accesses to the unified buffer in the functions'
/// texts.
#[test]
fn functions_have_the_instructions_that_the_model_assumes() {
    let vector = [
        "Adds(",
        "Maxs(",
        "Select(",
        "Compares(",
        "GatherMask(",
        "Duplicate(",
        "Or(",
        "Gather(",
        "Cast(",
        "ShiftLeft(",
        "ShiftRight(",
        "AndWord(",
        "Muls(",
        "Add(",
        "Compact(",
        "CompactAfterTail(",
        "And(",
        "Not(",
        "Compare(",
        "Sub(",
        "Mul(",
        "Max(",
    ];
    for (function, ops, accesses) in [
        ("Mix", 2, 0),
        ("SumOfProducts", 5, 0),
        ("Compact", 1, 0),
        ("Count", 1, 0),
        // One instruction if the list ends with a block, otherwise two more and a copy.
        ("Append", 3, 0),
        ("AppendInPlace", 3, 0),
        ("CompactAfterTail", 5, 0),
        // Four accesses for two lanes, and three for a single one.
        ("ScatterAll", 0, 7),
        ("ScatterMasked", 2, 0),
        // Twelve accesses for four lanes: twice five and two more.
        ("ScatterBoth", 2, 12),
        // Three accesses for two lanes, and two for a single one.
        ("SetLifetimeAll", 0, 5),
        ("SetLifetimeMasked", 1, 0),
        ("SelectWords", 1, 0),
        // One instruction per pass, and eight words of the first block.
        ("WriteIota", 1, 1),
        // The second instruction doubles the indices that the first one wrote.
        ("Indices", 2, 0),
        // In the searches below, the work for one link is counted once.
        ("GatherLinks", 9, 0),
        ("SelectFirstLink", 4, 0),
        ("Find", 6, 0),
        ("FindFree", 19, 0),
        ("RefreshLifetimeAll", 6, 3),
        ("RefreshLifetimeMasked", 1, 0),
        ("DecayLifetimes", 2, 0),
        ("EndStepUses", 3, 0),
        ("CountLe", 2, 0),
        // At least two instructions for the numbers, and eight for each run.
        ("AppendSlots", 10, 0),
    ] {
        let body = ALL.iter().find(|known| known.name == function);
        let body = body.unwrap_or_else(|| panic!("there is no function {function}")).text;
        let body = body.split_once("\n{\n").unwrap().1;
        let word = |name: &str| {
            let begins = |&(at, _): &(usize, &str)| {
                !body[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            };
            body.match_indices(name).filter(begins).count()
        };
        assert_eq!(vector.iter().map(|name| word(name)).sum::<usize>(), ops, "{function}: {body}");
        assert_eq!(word("GetValue(") + word("SetValue("), accesses, "{function}");
    }
}

#[test]
fn a_geometry_that_does_not_fit_is_refused_with_its_bytes() {
    let p = Params { spread: 4, ..Params::wide(2048, 1, 8192) };
    let error = Kernel::new(&p).err().expect("176 KB of table leave no room").to_string();
    assert!(error.contains("bytes of unified buffer"), "{error}");
}

/// The text of a function defines its name and uses exactly the functions, buffers and constants that
/// the function declares.
#[test]
fn functions_declare_what_they_use() {
    for function in ALL {
        assert!(function.text.contains(&format!("{}(", function.name)), "{}", function.name);
        let code = function.text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: Vec<_> = code.collect();
        let code = code.join("\n");
        let words: Vec<_> = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for other in ALL.iter().filter(|other| other.name != function.name && other.name != "U32") {
            let calls = words.contains(&other.name);
            let declared =
                function.uses.iter().any(|u| matches!(u, Use::Function(h) if h == other));
            assert_eq!(calls, declared, "{} and {}", function.name, other.name);
        }
        for buffer in [
            "packed",
            "lane_scratch",
            "mask_scratch",
            "iota",
            "scratch",
            "lifetimes",
            "rule",
            "entry_blocks",
        ] {
            let refers = words.contains(&format!("{}_AT", buffer.to_uppercase()).as_str());
            let declared =
                function.uses.iter().any(|u| matches!(u, Use::Buffer(b) if *b == buffer));
            assert_eq!(refers, declared, "{} and {buffer}", function.name);
        }
        let numbers = [
            "LINKS",
            "LINK_BITS",
            "SLOT_BITS",
            "FINGERPRINT_SHIFT",
            "RESULT_BITS",
            "SEARCH_IDS",
            "SEARCH_WORDS",
            "WIDE",
            "PLANE_PIECES",
            "POSITION_WORD_AT",
            "SLOT_WORD_AT",
            "FINGERPRINT_WORD_AT",
            "RESULT_WORD_AT",
        ];
        for (refers, kind) in [
            (words.contains(&"SLOT_TILE"), "SlotTile"),
            (words.contains(&"LIFE_TILE"), "LifeTile"),
            (numbers.iter().any(|name| words.contains(name)), "Searches"),
        ] {
            let declared = function.uses.iter().any(|used| format!("{used:?}") == kind);
            assert_eq!(refers, declared, "{} and {kind}", function.name);
        }
    }
}
