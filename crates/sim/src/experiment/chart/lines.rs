//! Lines instead of bars: each scenario is a point along some quantity, each policy a line through them.

use super::{Bar, FRAME, draw_values, legend, look, policies};
use crate::experiment::Along;
use crate::report::Axis;
use crate::report::svg::{Anchor, Frame, Path, Svg};
use crate::report::text::tidy;

/// Half of a mark.
const DOT: f64 = 3.0;

/// More points than this have marks only now and then.
const MOST_MARKS: usize = 20;

pub(super) fn draw(title: &str, along: &Along, groups: &[(&str, Vec<Bar>)], note: &str) -> String {
    let policies = policies(groups);
    let most = groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.mean).fold(0.0, f64::max);
    let bounds = along.at.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    let (across, up) = (Axis::across(FRAME, bounds.0, bounds.1), Axis::up(FRAME, 0.0, most * 1.05));
    let mut svg = Svg::new(FRAME.x + FRAME.width + 16.0, FRAME.y + FRAME.height + 62.0);
    svg.text("title", (8.0, 20.0), Anchor::Start, title);
    legend(&mut svg, &policies);
    draw_values(&mut svg, up);
    draw_points(&mut svg, along, across);
    for policy in &policies {
        let points: Vec<(f64, f64)> = along
            .at
            .iter()
            .zip(groups)
            .filter_map(|(x, (_, bars))| {
                let bar = bars.iter().find(|bar| bar.policy == *policy)?;
                Some((across.at(*x), up.at(bar.mean)))
            })
            .collect();
        draw_line(&mut svg, &look(policy, &policies), &points);
    }
    svg.text("mark", (8.0, FRAME.y + FRAME.height + 56.0), Anchor::Start, note);
    svg.finish_alone(title, include_str!("../chart.css"))
}

fn draw_points(svg: &mut Svg, along: &Along, across: Axis) {
    let below = FRAME.y + FRAME.height + 17.0;
    let each = along.at.len().div_ceil(MOST_MARKS);
    for x in along.at.iter().step_by(each.max(1)) {
        svg.text("mark", (across.at(*x), below), Anchor::Middle, &tidy(*x));
    }
    svg.text("title", (FRAME.x + FRAME.width / 2.0, below + 18.0), Anchor::Middle, &along.title);
}

fn draw_line(svg: &mut Svg, look: &str, points: &[(f64, f64)]) {
    let mut line = Path::default();
    points.iter().for_each(|point| line.to(*point));
    svg.path(&format!("line {look}"), &line);
    for (x, y) in points {
        svg.rect(look, Frame { x: x - DOT, y: y - DOT, width: 2.0 * DOT, height: 2.0 * DOT });
    }
}
