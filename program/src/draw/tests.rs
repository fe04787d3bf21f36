//! Tests of the chart.

use super::*;

#[test]
fn a_chart_has_marks_ticks_and_the_chosen_s() {
    let points = [(2048.0, 97.4), (4096.0, 98.2)];
    let curves = [("exact LRU", points.to_vec())];
    let own = [("a <b>", points[0]), ("learned", points[1])];
    let text = svg("a & b", &curves, &own, Some(4096));
    assert!(text.starts_with("<svg") && text.contains("AVSG, a &lt;b&gt;"), "{text}");
    assert_eq!(text.matches("<circle").count(), 4, "two marks and those of the legend: {text}");
    for words in ["a &amp; b", ">take S = 4096<", ">2048<", ">97.40<", ">97.6<", ">exact LRU<"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert_eq!(text, svg("a & b", &curves, &own, Some(4096)));
    assert!(!text.contains("no data") && svg("a", &[], &[], None).contains("no data"));
}

#[test]
fn many_sizes_have_ticks_at_powers_of_two() {
    let many: Vec<_> = (1..=128).map(|n| ("learned", (f64::from(n) * 64.0, 51.23))).collect();
    let text = svg("a", &[], &many, None);
    assert_eq!(text.matches(">51.23<").count(), 8, "64 to 8192: {text}");
    assert!([">64<", ">8192<"].iter().all(|tick| text.contains(tick)), "{text}");
}
