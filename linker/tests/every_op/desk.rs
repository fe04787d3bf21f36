//! Memory of every kind for small kernels, native and replayed.

use avsg_device::machine::Machine;
use avsg_device::machine::cpu::{Column, Cpu, Life, List, Scalar};
use avsg_device::machine::emu::Emu;
use avsg_linker::check::check;
use avsg_linker::record::Recording;
use avsg_linker::replay::Replay;
use avsg_linker::tape::{Range, Tape};

/// Words of a column, slots of the lifetimes.
pub const LEN: i32 = 256;
const WORDS: usize = LEN as usize;
const OUT: usize = 1024;

pub struct Desk<'a, M: Machine> {
    pub n: M::Scalar,
    pub s: M::Scalar,
    pub x: M::Column<'a>,
    pub y: M::Column<'a>,
    pub z: M::Column<'a>,
    pub life: M::Life<'a>,
    pub pairs: M::List<'a, 2>,
    pub more: M::List<'a, 2>,
    pub singles: M::List<'a, 1>,
    pub count: M::List<'a, 0>,
    pub input: M::Input<'a>,
    pub out: M::Output<'a>,
}

pub trait Kernel {
    fn run<M: Machine>(m: M, d: &mut Desk<'_, M>);
}

pub fn record<K: Kernel>() -> Tape {
    let recording = Recording::new(std::any::type_name::<K>());
    let m = recording.recorder();
    let pair = [("x", Range::new(0, (1 << 20) - 1)), ("lane", Range::below(256))];
    let mut desk = Desk {
        n: m.param("n", "Lanes.", Range::new(0, LEN)),
        s: m.param("s", "Some number.", Range::new(0, 100)),
        x: m.column("x", 256, Range::ANY),
        y: m.column("y", 256, Range::new(0, (1 << 20) - 1)),
        z: m.column("z", 256, Range::ANY),
        life: m.life("life", 256),
        pairs: m.list("pairs", 256, pair),
        more: m.list("more", 256, pair),
        singles: m.list("singles", 256, [("slot", Range::below(256))]),
        count: m.list("count", 100_000, []),
        input: m.input("input", Range::ANY),
        out: m.output("out", Range::ANY),
    };
    K::run(m, &mut desk);
    recording.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// What a kernel starts with and leaves: x, y, life, out.
type Memory = (Vec<i32>, Vec<i32>, Vec<i8>, Vec<i32>);

fn start() -> (Memory, Vec<i32>) {
    let word = |n: i32, a: u32| (n as u32).wrapping_mul(a).rotate_left(7) as i32;
    let x = (0..LEN).map(|n| word(n + 1, 2_654_435_761)).collect();
    let y = (0..LEN).map(|n| word(n / 2, 2_246_822_519) & 0xFFFFF).collect();
    let life = (0..LEN).map(|n| (word(n, 3_266_489_917) >> 8) as i8).collect();
    let input = (0..2 * LEN).map(|n| if n == 0 { 11 } else { word(n, 668_265_263) }).collect();
    ((x, y, life, vec![-1; OUT]), input)
}

fn native<C: Cpu, K: Kernel>(m: C, n: i32) -> Memory {
    let ((mut x, mut y, mut life, mut out), input) = start();
    x.resize(WORDS + 64, 0);
    y.resize(WORDS + 64, 0);
    life.resize(WORDS + 64, 0);
    let mut words = vec![vec![0x5A5A; WORDS + 64]; 6];
    let mut next = words.iter_mut();
    let mut cut = || next.next().expect("six columns").as_mut_slice();
    let desk = &mut Desk::<'_, C> {
        n: Scalar::new(n),
        s: Scalar::new(77),
        x: Column::new(&mut x),
        y: Column::new(&mut y),
        z: Column::new(cut()),
        life: Life::new(&mut life),
        pairs: List::new([cut(), cut()]),
        more: List::new([cut(), cut()]),
        singles: List::new([cut()]),
        count: List::new([]),
        input: &input,
        out: &mut out,
    };
    K::run(m, desk);
    (x[..WORDS].to_vec(), y[..WORDS].to_vec(), life[..WORDS].to_vec(), out)
}

fn replayed(tape: &Tape, width: usize, n: i32) -> Memory {
    let mut replay = Replay::new(tape, width).unwrap();
    let ((x, y, life, out), input) = start();
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

/// Runs a kernel on everything and compares; lengths include none, one, and ends inside tiles.
pub fn everywhere<K: Kernel>() {
    let tape = record::<K>();
    check(&tape).unwrap_or_else(|e| panic!("{e}\n{tape}"));
    for n in [0, 1, 2, 15, 16, 17, 100, 255, 256] {
        let want = replayed(&tape, 1, n);
        assert!(n == 0 || want != start().0, "the kernel did nothing");
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

/// The names of the ops of a tape.
pub fn codes(tape: &Tape) -> Vec<String> {
    let name =
        |code: String| code.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").into();
    tape.body.all().map(|op| name(format!("{:?}", op.code))).collect()
}
