//! The AscendC shim: right kernels give right numbers, wrong ones are refused by name.

#[path = "shim/mod.rs"]
mod shim;

use shim::{Launch, Mode, compile, gxx};

#[test]
fn adds() {
    if !gxx() {
        return;
    }
    let k = compile(include_str!("shim/right.cpp"));
    let a: Vec<i32> = (0..2048).collect();
    let b: Vec<i32> = (0..2048).map(|i| i * i % 1000).collect();
    for (mode, seed) in [(Mode::InOrder, 1), (Mode::Adversarial, 2), (Mode::Adversarial, 3)] {
        let mut c = vec![0; 2048];
        let peak = Launch::new("sum").input(&a).input(&b).device(&mut c).mode(mode, seed).run(&k);
        assert_eq!(peak, Ok(16384));
        assert!(c.iter().enumerate().all(|(i, &c)| c == a[i] + b[i] + 1), "{mode:?}");
    }
}
