//! Colours of series. A policy has the same colour in every chart.

use plotters::style::RGBColor;

/// The palette: that of Okabe and Ito, which colour-blind readers can distinguish, then three more.
const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(127, 127, 127),
    RGBColor(140, 86, 75),
    RGBColor(188, 189, 34),
];

/// The beginnings of the names of policies, and the places of their colours in the palette. The first
/// that fits a name counts.
const POLICIES: [(&str, usize); 7] = [
    ("wide, frequency", 1),
    ("wide", 0),
    ("AVSG", 0),
    ("paper", 2),
    ("exact LRU", 3),
    ("LRU", 3),
    ("Belady", 4),
];

/// Returns a colour for each series. A policy has its own; every other name has the first colour that
/// no series of the chart has.
pub(super) fn of(names: &[&str]) -> Vec<RGBColor> {
    let policy = |name: &str| POLICIES.iter().find(|(start, _)| name.starts_with(start));
    let mut taken = [false; PALETTE.len()];
    let mut places: Vec<Option<usize>> = Vec::with_capacity(names.len());
    for name in names {
        // Two rules of one policy have two colours.
        let place = policy(name).map(|&(_, place)| place).filter(|&place| !taken[place]);
        place.into_iter().for_each(|place| taken[place] = true);
        places.push(place);
    }
    let colour = |(index, place): (usize, Option<usize>)| {
        let free = || taken.iter().position(|taken| !taken).unwrap_or(index % PALETTE.len());
        let place = place.unwrap_or_else(free);
        taken[place] = true;
        PALETTE[place]
    };
    places.into_iter().enumerate().map(colour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_one_colour_in_every_chart() {
        let all = of(&["paper", "wide, constant", "wide, frequency", "exact LRU", "Belady OPT"]);
        assert_eq!(of(&["exact LRU", "paper"]), [all[3], all[0]]);
        assert_eq!(of(&["something", "wide"])[1], all[1]);
    }

    #[test]
    fn series_of_a_chart_have_different_colours() {
        let names = ["wide, frequency 0.8", "wide, frequency 0.9", "S1", "wide", "S2", "S3"];
        let colours = of(&names);
        for (index, colour) in colours.iter().enumerate() {
            assert!(!colours[..index].contains(colour), "{}", names[index]);
        }
        assert_eq!(of(&["x"; 12]).len(), 12);
    }
}
