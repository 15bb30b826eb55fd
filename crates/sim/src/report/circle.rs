//! The link circle: a round of time, clockwise from the top, with a ring for each job that is filled while it sends.

use super::sharing::Part;
use super::svg::{Anchor, Path, Ring, Svg};
use super::text::number;

/// How wide and high it is, with its marks.
pub(super) const SIZE: f64 = 262.0;
/// Where more is asked than carried.
const EDGE: f64 = 116.0;
const OUTERMOST: f64 = 108.0;
const INNERMOST: f64 = 36.0;
const THICKEST: f64 = 20.0;
/// Numbers of such rings would lie on each other.
const THIN: f64 = 12.0;

pub(super) fn draw(svg: &mut Svg, height: f64, parts: &[Part], crowded: &[(f64, f64)], about: &[String; 2]) {
    let centre = (SIZE / 2.0, height / 2.0);
    let thick = ((OUTERMOST - INNERMOST) / parts.len().max(1) as f64).min(THICKEST);
    let ring = |index: usize| Ring { centre, radius: OUTERMOST - thick * (index as f64 + 0.5) };
    draw_quarters(svg, centre);
    draw_edge(svg, Ring { centre, radius: EDGE }, crowded);
    for (index, part) in parts.iter().enumerate() {
        svg.explained(&part.actor.about(), &part.tip, |svg| {
            draw_arcs(svg, ring(index), thick, &part.course.arcs);
        });
    }
    // Above all arcs: the numbers of the rings, side by side where rings are thin.
    let aside = if thick < THIN { 0.03 } else { 0.0 };
    for (index, part) in parts.iter().enumerate() {
        let (x, y) = ring(index).at(aside * (index % 3) as f64);
        svg.text("count", (x, y + 3.5), Anchor::Middle, &part.actor.number.to_string());
    }
    svg.text("title", centre, Anchor::Middle, &about[0]);
    svg.text("mark", (centre.0, centre.1 + 14.0), Anchor::Middle, &about[1]);
}

/// Marks at each quarter, so that angles can be read as times.
fn draw_quarters(svg: &mut Svg, centre: (f64, f64)) {
    let [inner, outer] = [INNERMOST, EDGE + 6.0].map(|radius| Ring { centre, radius });
    for quarter in 0..4 {
        let rounds = f64::from(quarter) / 4.0;
        svg.line("grid", inner.at(rounds), outer.at(rounds));
    }
    let names = Ring { centre, radius: EDGE + 12.0 };
    for (rounds, name) in [(0.25, "¼"), (0.5, "½"), (0.75, "¾")] {
        let (x, y) = names.at(rounds);
        svg.text("mark", (x, y + 4.0), Anchor::Middle, name);
    }
}

/// Where more is asked than the link carries.
fn draw_edge(svg: &mut Svg, ring: Ring, crowded: &[(f64, f64)]) {
    let mut track = Path::default();
    track.arc(ring, (0.0, 1.0));
    svg.path("track edge", &track);
    let mut edge = Path::default();
    crowded.iter().for_each(|span| edge.arc(ring, *span));
    let share: f64 = crowded.iter().map(|(from, to)| to - from).sum();
    let tip = format!("more is asked than the link carries in {} % of the round", number(share * 100.0, 0));
    svg.explained("class=\"asked\"", &tip, |svg| svg.path("crowded edge", &edge));
}

fn draw_arcs(svg: &mut Svg, ring: Ring, thick: f64, arcs: &[(f64, f64)]) {
    let mut track = Path::default();
    track.arc(ring, (0.0, 1.0));
    svg.stroke("track", thick - 1.5, &track);
    let mut sends = Path::default();
    arcs.iter().for_each(|span| sends.arc(ring, *span));
    svg.stroke("arc", thick - 1.5, &sends);
}
