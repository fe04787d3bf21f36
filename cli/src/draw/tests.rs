//! Tests of the chart.

use super::*;

fn series(name: &str, is_curve: bool, points: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), is_curve, points: points.to_vec() }
}

#[test]
fn a_chart_has_marks_ticks_and_the_chosen_s() {
    let points = [(2048.0, 97.4), (4096.0, 98.2)];
    let all = [series("AVSG <a>", false, &points), series(LRU, true, &points)];
    let text = svg("a & b", &all, Some(4096));
    assert!(text.starts_with("<svg") && text.contains("AVSG &lt;a&gt;"), "{text}");
    assert_eq!(text.matches("<circle").count(), 3, "two marks and that of the legend: {text}");
    for words in ["a &amp; b", ">take S = 4096<", ">2048<", ">97.40<", ">97.6<", LRU] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert_eq!(text, svg("a & b", &all, Some(4096)));
    assert!(!text.contains("no data") && svg("a", &[], None).contains("no data"));
}

#[test]
fn many_sizes_have_ticks_at_powers_of_two() {
    let many: Vec<_> = (1..=128).map(|n| (f64::from(n) * 64.0, 50.0)).collect();
    let sizes = ticks(&[series("AVSG", false, &many)]);
    assert_eq!((sizes[0], sizes[7], sizes.len()), (64.0, 8192.0, 8));
}
