//! Random programs: what the hazard checker accepts gives the same data in every order that clocks
//! allow, and the synchronisation that it proposes is both enough and needed.

use super::harness::{Failure, Kernels, Launch, Mode, compile, gxx};

type Instruction = [i32; 4];

const EDGES: [&str; 12] = [
    "MTE2_V",
    "MTE2_S",
    "MTE2_MTE3",
    "V_MTE2",
    "V_MTE3",
    "V_S",
    "MTE3_V",
    "MTE3_S",
    "MTE3_MTE2",
    "S_V",
    "S_MTE2",
    "S_MTE3",
];
const BARRIERS: [&str; 3] = ["PIPE_V", "PIPE_MTE2", "PIPE_MTE3"];

fn run(
    k: &Kernels,
    program: &[Instruction],
    mode: Mode,
    seed: u64,
) -> (Result<u32, Failure>, Vec<i32>) {
    let mut code = vec![program.len() as i32, 0, 0, 0];
    code.extend(program.iter().flatten());
    let mut mem: Vec<i32> = (0..1024).map(|i| i * 13 % 509).collect();
    let result = Launch::new("interpret").input(&code).device(&mut mem).mode(mode, seed).run(k);
    (result, mem)
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as i32 % sides
    }

    /// Something that moves or makes data, on UB or memory that others use too.
    fn instruction(&mut self) -> Instruction {
        let (a, b) = (self.roll(6) * 4, self.roll(6) * 4);
        let n = [8, 32, 40, 64][self.roll(4) as usize];
        match self.roll(7) {
            what @ (4 | 5) => [what, a, self.roll(40), n],
            what => [what, a, b, n],
        }
    }
}

/// What the message says is missing, as an instruction.
fn remedy(text: &str) -> Instruction {
    let named = text.split("missing ").nth(1).expect("a hazard proposes something");
    let inside = named.split(['<', '>']).nth(1).expect("with a template argument");
    if let Some(barrier) = BARRIERS.iter().position(|b| *b == inside) {
        return [7 + barrier as i32, 0, 0, 0];
    }
    let edge = inside.trim_start_matches("HardEvent::");
    [10, EDGES.iter().position(|e| *e == edge).expect("an edge") as i32, 0, 0]
}

/// A program that the checker accepts, and where in it the synchronisation stands.
fn grown(k: &Kernels, dice: &mut Dice) -> (Vec<Instruction>, Vec<usize>) {
    let (mut program, mut synced) = (Vec::new(), Vec::new());
    while program.len() < 30 {
        let next = dice.instruction();
        loop {
            program.push(next);
            match run(k, &program, Mode::InOrder, 1).0 {
                Ok(_) => break,
                Err(e) if e.text.starts_with("hazard: ") => {
                    program.pop();
                    synced.push(program.len());
                    program.push(remedy(&e.text));
                    assert!(program.len() < 100, "the proposals do not help: {e:?}");
                }
                Err(e) => {
                    // Operands that partly overlap, or more than UB has: another instruction.
                    let rule = e.text.split(':').next().expect("a rule");
                    assert!(["overlap", "bounds"].contains(&rule), "{e:?}");
                    program.pop();
                    break;
                }
            }
        }
    }
    (program, synced)
}

#[test]
fn accepted_programs_do_not_depend_on_the_order() {
    if !gxx() {
        return;
    }
    let k = compile(include_str!("random.cpp"));
    let mut dice = Dice(7);
    let (mut needed, mut spare, mut shown) = (0, 0, 0);
    for turn in 0..60 {
        let (program, synced) = grown(&k, &mut dice);
        let (result, expected) = run(&k, &program, Mode::InOrder, 1);
        assert!(result.is_ok(), "{result:?}");
        for seed in 0..10 {
            for mode in [Mode::Adversarial, Mode::Unchecked] {
                let (result, mem) = run(&k, &program, mode, seed);
                assert!(result.is_ok(), "{turn} {mode:?}: {result:?}");
                assert_eq!(mem, expected, "{turn} {mode:?} {seed}: {program:?}");
            }
        }
        for &at in &synced {
            let mut without = program.clone();
            without.remove(at);
            // One instruction may need two flags of which the second brings what the first did.
            if run(&k, &without, Mode::InOrder, 1).0.is_ok() {
                spare += 1;
                continue;
            }
            needed += 1;
            shown += usize::from(
                (0..20).any(|seed| run(&k, &without, Mode::Unchecked, seed).1 != expected),
            );
        }
    }
    assert!(spare * 4 < needed, "{spare} proposals were not needed, {needed} were");
    assert!(needed > 300, "only {needed} synchronisations in all programs");
    // Not every hazard changes a number: both orders may well write the same.
    assert!(shown * 2 > needed, "only {shown} of {needed} missing ones changed any data");
    println!("{shown} of {needed} missing synchronisations changed data; {spare} more were spare");
}
