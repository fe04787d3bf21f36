//! Tests of learned lifetimes.

use super::*;

#[test]
fn a_table_of_any_words_is_learned_from() {
    let p = Params::wide(64, 1, 256);
    for step in [i32::MIN, -17, -1, 0, 1, 15, 63, i32::MAX - 1, i32::MAX] {
        let mut header = [0; header::WORDS];
        header[header::STEP as usize] = step;
        let mut learned = [0; 2048];
        let words = words(&p);
        learned[sample_part(&p)..words].fill(-1);
        learned[part::RESULT..sample_part(&p)].fill(i32::MIN);
        learn(&p, &mut header, &mut learned[..words]);
        let first = header[header::SAMPLE as usize] as usize;
        assert!(first + sample_slots(&p) <= 256, "step {step}: the sample begins at {first}");
        assert!((-112..=112).contains(&header[header::MOVES_FROM as usize]), "step {step}");
    }
}

#[test]
fn a_class_moves_in_the_steps_that_its_width_divides() {
    for step in 1..200 {
        let moving = LOG_STEPS.iter().filter(|&&log| step % (1 << log) == 0).count() as i32;
        assert_eq!(lowest_that_moves(step), 16 * (8 - moving), "step {step}");
    }
}

#[test]
fn a_hit_raises_the_level_of_a_frequent_slot_and_lowers_that_of_an_old_one() {
    let after = |class: usize, level: usize| AFTER_HIT[16 * (15 - class) + level] - NEW;
    assert_eq!((after(0, 0), after(0, 9)), (0, 9), "a second hit changes nothing");
    assert!(after(1, 1) > 1 && after(1, 14) >= 14 && after(15, 14) < 14);
    assert!((1..16).all(|class| (0..16).all(|level| (1..=15).contains(&after(class, level)))));
}
