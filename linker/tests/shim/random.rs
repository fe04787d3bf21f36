//! Random programs that the hazard checker accepts give the same data in every permitted order, and
//! the synchronisation that the checker proposes is sufficient and mostly needed.

use super::harness::{CompiledKernels, Mode, RunFailure, ShimLaunch};

type Instruction = [i32; 4];

const EDGES: &str =
    "MTE2_V MTE2_S MTE2_MTE3 V_MTE2 V_MTE3 V_S MTE3_V MTE3_S MTE3_MTE2 S_V S_MTE2 S_MTE3";
const BARRIERS: [&str; 3] = ["PIPE_V", "PIPE_MTE2", "PIPE_MTE3"];

/// The result of a program, and the memory after it.
type Run = (Result<u32, RunFailure>, Vec<i32>);

fn run(k: &CompiledKernels, program: &[Instruction], mode: Mode, seed: u64) -> Run {
    let mut code = vec![program.len() as i32, 0, 0, 0];
    code.extend(program.iter().flatten());
    let mut mem: Vec<i32> = (0..1024).map(|i| i * 13 % 509).collect();
    let result = ShimLaunch::new("interpret").input(&code).device(&mut mem).mode(mode, seed).run(k);
    (result, mem)
}

/// A linear congruential generator of instructions.
struct ProgramGenerator(u64);

impl ProgramGenerator {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as i32 % bound
    }

    /// Returns an instruction that moves or computes data in UB or memory.
    fn instruction(&mut self) -> Instruction {
        let (a, b) = (self.below(6) * 4, self.below(6) * 4);
        let n = [8, 32, 40, 64][self.below(4) as usize];
        match self.below(7) {
            operation @ (4 | 5) => [operation, a, self.below(40), n],
            operation => [operation, a, b, n],
        }
    }
}

/// Returns the instruction for the synchronisation that the message names.
fn remedy(text: &str) -> Instruction {
    let name = text.split("missing ").nth(1).expect("the message names a synchronisation");
    let inside = name.split(['<', '>']).nth(1).expect("the name has a template argument");
    if let Some(barrier) = BARRIERS.iter().position(|b| *b == inside) {
        return [7 + barrier as i32, 0, 0, 0];
    }
    let edge = inside.trim_start_matches("HardEvent::");
    [10, EDGES.split(' ').position(|e| e == edge).expect("an edge") as i32, 0, 0]
}

/// Returns a program that the checker accepts, and the indices of the synchronisation in it.
fn accepted_program(
    k: &CompiledKernels,
    generator: &mut ProgramGenerator,
) -> (Vec<Instruction>, Vec<usize>) {
    let (mut program, mut synced) = (Vec::new(), Vec::new());
    while program.len() < 30 {
        let next = generator.instruction();
        loop {
            program.push(next);
            match run(k, &program, Mode::InOrder, 1).0 {
                Ok(_) => break,
                Err(e) if e.text.starts_with("hazard: ") => {
                    program.pop();
                    synced.push(program.len());
                    program.push(remedy(&e.text));
                    assert!(program.len() < 100, "what is proposed does not suffice: {e:?}");
                }
                Err(e) => {
                    // The operands overlap partly or exceed UB, so another instruction is drawn.
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
    let Some(k) = kernels!("random.cpp") else { return };
    let mut generator = ProgramGenerator(7);
    let (mut needed, mut spare, mut shown) = (0, 0, 0);
    for number in 0..30 {
        let (program, synced) = accepted_program(&k, &mut generator);
        let (result, expected) = run(&k, &program, Mode::InOrder, 1);
        assert!(result.is_ok(), "{result:?}");
        for seed in 0..10 {
            for mode in [Mode::Adversarial, Mode::Unchecked] {
                let (result, mem) = run(&k, &program, mode, seed);
                assert!(result.is_ok(), "{number} {mode:?}: {result:?}");
                assert_eq!(mem, expected, "{number} {mode:?} {seed}: {program:?}");
            }
        }
        for &at in &synced {
            let mut without = program.clone();
            without.remove(at);
            // An instruction may need two flags, and the second may imply the first.
            if run(&k, &without, Mode::InOrder, 1).0.is_ok() {
                spare += 1;
                continue;
            }
            needed += 1;
            let differs = |seed| run(&k, &without, Mode::Unchecked, seed).1 != expected;
            shown += usize::from((0..20).any(differs));
        }
    }
    let what = format!("{shown} of {needed} missing ones changed data; {spare} were not needed");
    // Not every hazard changes the data, because both orders may write the same values.
    assert!(spare * 4 < needed && needed > 150 && shown * 2 > needed, "{what}");
    println!("{what}");
}
