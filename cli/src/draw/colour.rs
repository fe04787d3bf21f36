//! Colours of series. A policy has the same colour in every chart.

use plotters::style::RGBColor;

use crate::baseline::{LRU, OPTIMUM};

/// The palette: that of Okabe and Ito, which colour-blind readers can distinguish, then three more. The
/// first ones belong to policies.
const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(127, 127, 127),
    RGBColor(140, 86, 75),
    RGBColor(188, 189, 34),
];

/// The beginnings of the names of policies, and the places of their colours in the palette. The first
/// that fits a name counts.
const POLICIES: [(&str, usize); 5] =
    [("wide", 0), ("AVSG", 0), ("paper", 1), (LRU, 2), (OPTIMUM, 3)];
/// The first place in the palette that belongs to no policy.
const FREE: usize = 4;

/// Returns a colour for each series. A policy has its own; every other name has the first other colour
/// that no series of the chart has.
pub(super) fn of(names: &[&str]) -> Vec<RGBColor> {
    let mut free = (FREE..PALETTE.len()).cycle();
    let mut colour = |name: &&str| {
        let policy = POLICIES.iter().find(|(start, _)| name.starts_with(start));
        PALETTE[policy.map_or_else(|| free.next().unwrap_or(FREE), |&(_, place)| place)]
    };
    names.iter().map(&mut colour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_one_colour_in_every_chart() {
        let all = of(&["paper, default rule", "wide, default rule", LRU, OPTIMUM]);
        assert_eq!(of(&[LRU, "paper, default rule"]), [all[2], all[0]]);
        assert_eq!(of(&["AVSG", LRU]), all[1..3]);
        assert_eq!(of(&["something", "wide"])[1], all[1]);
    }

    #[test]
    fn series_of_a_chart_have_different_colours() {
        let names = ["S1", "AVSG", "S2", "LRU crate", LRU, "S3", "paper, default rule", OPTIMUM];
        let colours = of(&names);
        for (index, colour) in colours.iter().enumerate() {
            assert!(!colours[..index].contains(colour), "{}", names[index]);
        }
        assert_eq!(of(&["x"; 12]).len(), 12);
    }
}
