//! What was predicted against what was measured: a point for each pair, and the line on which both are equal.

use super::chart::{legend, look};
use crate::report::Axis;
use crate::report::svg::{Anchor, Frame, Path, Svg};
use crate::report::text::number;

/// One pair of figures, under a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub policy: String,
    pub predicted: f64,
    pub measured: f64,
}

const FRAME: Frame = Frame { x: 64.0, y: 62.0, width: 420.0, height: 420.0 };
/// Half of a mark.
const DOT: f64 = 2.5;

/// Both axes are the same; pale lines are `within`, a share, above and below.
pub fn scatter(title: &str, axes: [&str; 2], within: f64, points: &[Point]) -> String {
    let most = points.iter().flat_map(|point| [point.predicted, point.measured]).fold(0.0, f64::max) * 1.05;
    let (across, up) = (Axis::across(FRAME, 0.0, most), Axis::up(FRAME, 0.0, most));
    let mut policies: Vec<&str> = Vec::new();
    for point in points {
        if !policies.contains(&point.policy.as_str()) {
            policies.push(&point.policy);
        }
    }
    let mut svg = Svg::new(FRAME.x + FRAME.width + 24.0, FRAME.y + FRAME.height + 52.0);
    svg.text("title", (8.0, 20.0), Anchor::Start, title);
    legend(&mut svg, &policies);
    let (right, below) = (FRAME.x + FRAME.width, FRAME.y + FRAME.height);
    for mark in up.marks() {
        svg.line("grid", (FRAME.x, up.at(mark)), (right, up.at(mark)));
        svg.text("mark", (FRAME.x - 6.0, up.at(mark) + 4.0), Anchor::End, &number(mark, up.decimals()));
        svg.text("mark", (across.at(mark), below + 17.0), Anchor::Middle, &number(mark, across.decimals()));
    }
    for share in [1.0, 1.0 - within, 1.0 + within] {
        let mut line = Path::default();
        line.to((across.at(0.0), up.at(0.0)));
        let end = most / share.max(1.0);
        line.to((across.at(end), up.at(end * share)));
        svg.path("whisker", &line);
    }
    for point in points {
        let (x, y) = (across.at(point.predicted), up.at(point.measured));
        let dot = Frame { x: x - DOT, y: y - DOT, width: 2.0 * DOT, height: 2.0 * DOT };
        svg.rect(&look(&point.policy, &policies), dot);
    }
    svg.text("title", (FRAME.x + FRAME.width / 2.0, below + 40.0), Anchor::Middle, axes[0]);
    svg.text_up("title", (16.0, FRAME.y + FRAME.height / 2.0), axes[1]);
    svg.finish_alone(title, include_str!("chart.css"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_a_point_and_every_policy_is_named() {
        let point = |policy: &str, predicted, measured| Point { policy: policy.into(), predicted, measured };
        let points = [point("fair", 100.0, 104.0), point("metronome", 90.0, 91.0), point("fair", 50.0, 52.0)];
        let svg = scatter("A title", ["simulated", "measured"], 0.05, &points);
        assert_eq!(svg.matches(r#"width="5" height="5""#).count(), 3, "{svg}");
        assert!(svg.contains(">fair<") && svg.contains(">metronome<") && svg.contains("A title"));
    }
}
