//! Prints Stage One of a geometry: K, N_q, S, spread, R, page, frequency.
use avsg_device::params::*;
fn main() {
    let a: Vec<u32> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let p = Params::wide(a[0], a[1], a[2]);
    let lifetime = if a[6] > 0 { Lifetime::frequency() } else { Lifetime::Constant(127) };
    let p = Params { spread: a[3], retries: a[4], page: a[5], lifetime, ..p };
    let t = avsg_linker::write::stage_one(&p).unwrap();
    println!("{}\n{}\n{}\n/*\n{}*/", t.constants, t.setup, t.body, t.plan);
}
