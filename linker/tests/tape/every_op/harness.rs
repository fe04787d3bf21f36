//! Memory of every kind for small kernels, and their native and replayed runs.

use avsg_device::machine::Machine;
use avsg_device::machine::cpu::{Column, Cpu, Life, List, Scalar};
use avsg_device::machine::emu::Emu;
use avsg_linker::check::check;
use avsg_linker::record::Recording;
use avsg_linker::replay::Replay;
use avsg_linker::tape::{Range, Tape};

/// Words per column and number of lifetimes.
pub const LEN: i32 = 256;
const WORDS: usize = LEN as usize;
/// Words of the output.
const OUT: usize = 1024;

/// Arguments and memory of a kernel.
pub struct KernelMemory<'a, M: Machine> {
    pub n: M::Scalar,
    pub s: M::Scalar,
    pub x: M::Column<'a>,
    pub y: M::Column<'a>,
    pub z: M::Column<'a>,
    pub bytes: M::Column<'a>,
    pub life: M::Life<'a>,
    pub values: M::Life<'a>,
    pub pairs: M::List<'a, 2>,
    pub more: M::List<'a, 2>,
    pub singles: M::List<'a, 1>,
    pub count: M::List<'a, 0>,
    pub input: M::Input<'a>,
    pub out: M::Output<'a>,
}

pub trait Kernel {
    fn run<M: Machine>(m: M, d: &mut KernelMemory<'_, M>);
}

pub fn record<K: Kernel>() -> Tape {
    let recording = Recording::new(std::any::type_name::<K>());
    let m = recording.recorder();
    let pair = [("x", Range::new(0, (1 << 20) - 1)), ("lane", Range::below(256))];
    let mut memory = KernelMemory {
        n: m.param("n", "Lanes.", Range::new(0, LEN)),
        s: m.param("s", "A number.", Range::new(0, 100)),
        x: m.column("x", 256, Range::ANY),
        y: m.column("y", 256, Range::new(0, (1 << 20) - 1)),
        z: m.column("z", 256, Range::ANY),
        bytes: m.column("bytes", 256, Range::new(0, 255)),
        life: m.life("life", 256),
        values: m.working_life("values", 256),
        pairs: m.list("pairs", 256, pair),
        more: m.list("more", 256, pair),
        singles: m.list("singles", 256, [("slot", Range::below(256))]),
        count: m.list("count", 100_000, []),
        input: m.input("input", Range::ANY),
        out: m.output("out", Range::ANY),
    };
    K::run(m, &mut memory);
    recording.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// Contents of x, y, life and out, before or after a run.
type Contents = (Vec<i32>, Vec<i32>, Vec<i8>, Vec<i32>);

/// Returns the contents before a run, and the input.
fn initial_contents() -> (Contents, Vec<i32>) {
    let word = |n: i32, a: u32| (n as u32).wrapping_mul(a).rotate_left(7) as i32;
    let x = (0..LEN).map(|n| word(n + 1, 2_654_435_761)).collect();
    let y = (0..LEN).map(|n| word(n / 2, 2_246_822_519) & 0xFFFFF).collect();
    let life = (0..LEN).map(|n| (word(n, 3_266_489_917) >> 8) as i8).collect();
    let input = (0..2 * LEN).map(|n| if n == 0 { 11 } else { word(n, 668_265_263) }).collect();
    ((x, y, life, vec![-1; OUT]), input)
}

/// Runs a kernel on a machine with `n` lanes.
fn native<C: Cpu, K: Kernel>(m: C, n: i32) -> Contents {
    let ((mut x, mut y, mut life, mut out), input) = initial_contents();
    x.resize(WORDS + 64, 0);
    y.resize(WORDS + 64, 0);
    life.resize(WORDS + 64, 0);
    let mut values = vec![0x5A; WORDS + 64];
    let mut words = vec![vec![0x5A5A; WORDS + 64]; 7];
    let mut next = words.iter_mut();
    let mut column = || next.next().expect("seven columns").as_mut_slice();
    let memory = &mut KernelMemory::<'_, C> {
        n: Scalar::new(n),
        s: Scalar::new(77),
        x: Column::new(&mut x),
        y: Column::new(&mut y),
        z: Column::new(column()),
        bytes: Column::new(column()),
        life: Life::new(&mut life, WORDS),
        values: Life::new(&mut values, WORDS),
        pairs: List::new([column(), column()]),
        more: List::new([column(), column()]),
        singles: List::new([column()]),
        count: List::new([]),
        input: &input,
        out: &mut out,
    };
    K::run(m, memory);
    (x[..WORDS].to_vec(), y[..WORDS].to_vec(), life[..WORDS].to_vec(), out)
}

/// Runs a tape in the interpreter with `n` lanes.
fn replayed(tape: &Tape, width: usize, n: i32) -> Contents {
    let mut replay = Replay::new(tape, width).unwrap();
    let ((x, y, life, out), input) = initial_contents();
    for (name, words) in [("x", x), ("y", y), ("input", input), ("out", out)] {
        replay.bind(name, words).unwrap();
    }
    replay.bind_life("life", life).unwrap();
    replay.set("n", n).unwrap();
    replay.set("s", 77).unwrap();
    replay.run().unwrap_or_else(|e| panic!("{e}"));
    let [x, y, out] = ["x", "y", "out"].map(|name| replay.take(name).unwrap());
    (x, y, replay.take_life("life").unwrap(), out)
}

/// Runs a kernel on every machine and in the interpreter and compares the results. The numbers of
/// lanes include 0, 1 and some that are no multiple of a tile.
pub fn assert_same_on_every_machine<K: Kernel>() {
    let tape = record::<K>();
    check(&tape).unwrap_or_else(|e| panic!("{e}\n{tape}"));
    for n in [0, 1, 2, 15, 16, 17, 100, 255, 256] {
        let want = replayed(&tape, 1, n);
        assert!(n == 0 || want != initial_contents().0, "the kernel changed nothing");
        for width in [3, 16, 2048] {
            assert!(replayed(&tape, width, n) == want, "replay at width {width}, n = {n}");
        }
        assert!(native::<_, K>(Emu::<1>, n) == want, "Emu<1>, n = {n}");
        assert!(native::<_, K>(Emu::<3>, n) == want, "Emu<3>, n = {n}");
        assert!(native::<_, K>(Emu::<16>, n) == want, "Emu<16>, n = {n}");
        #[cfg(target_arch = "x86_64")]
        {
            use avsg_device::machine::avx512::Avx512;
            if let (Some(a), Some(b)) = (Avx512::<false>::detect(), Avx512::<true>::detect()) {
                assert!(native::<_, K>(a, n) == want, "AVX-512, extracted lanes, n = {n}");
                assert!(native::<_, K>(b, n) == want, "AVX-512, vpgatherdd, n = {n}");
            }
        }
    }
}

/// Returns the names of the operations of a tape.
pub fn op_names(tape: &Tape) -> Vec<String> {
    let name =
        |code: String| code.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").into();
    tape.body.all().map(|op| name(format!("{:?}", op.code))).collect()
}
