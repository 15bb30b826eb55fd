//! Axes: where a value lies, and which values are worth a mark.

use super::svg::{Anchor, Frame, Svg};
use super::text::{Unit, number};

/// Values along one edge of a frame, from the left or from the bottom.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub from: f64,
    pub to: f64,
    start: f64,
    end: f64,
}

/// Marks are about this far apart.
const GAP: f64 = 64.0;

impl Axis {
    /// From left to right; a span of nothing is as wide as one.
    pub fn across(frame: Frame, from: f64, to: f64) -> Self {
        Self { from, to: wide(from, to), start: frame.x, end: frame.x + frame.width }
    }

    /// From the bottom up.
    pub fn up(frame: Frame, from: f64, to: f64) -> Self {
        Self { from, to: wide(from, to), start: frame.y + frame.height, end: frame.y }
    }

    pub fn at(&self, value: f64) -> f64 {
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// Round values, in whole steps of 1, 2 or 5 of some power of ten.
    pub fn marks(&self) -> Vec<f64> {
        let most = ((self.end - self.start).abs() / GAP).max(2.0);
        let step = round_step((self.to - self.from) / most);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|mark| mark as f64 * step).collect()
    }

    /// Decimals that tell two marks apart.
    pub fn decimals(&self) -> usize {
        match self.marks().as_slice() {
            [first, second, ..] => (-(second - first).log10()).ceil().max(0.0) as usize,
            _ => 1,
        }
    }
}

fn wide(from: f64, to: f64) -> f64 {
    if to > from { to } else { from + 1.0 }
}

/// The smallest of 1, 2, 5, 10, … that is no smaller.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|step| *step >= least * 0.999);
    step.unwrap_or(10.0 * power)
}

/// The time axis below a frame: lines upwards, marks with numbers, the unit at the end.
pub(super) fn draw_time(svg: &mut Svg, frame: Frame, seconds: f64, says: &str) -> Axis {
    let unit = Unit::of(seconds);
    let axis = Axis::across(frame, 0.0, seconds / unit.seconds);
    draw_below(svg, frame, &axis, &format!("{says}, {}", unit.name));
    Axis { to: axis.to * unit.seconds, ..axis }
}

pub fn draw_below(svg: &mut Svg, frame: Frame, axis: &Axis, says: &str) {
    let bottom = frame.y + frame.height;
    let decimals = axis.decimals();
    for mark in axis.marks() {
        let x = axis.at(mark);
        svg.line("grid", (x, frame.y), (x, bottom));
        svg.text("mark", (x, bottom + 14.0), Anchor::Middle, &number(mark, decimals));
    }
    svg.text("says", (frame.x + frame.width / 2.0, bottom + 30.0), Anchor::Middle, says);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { x: 40.0, y: 10.0, width: 400.0, height: 200.0 };

    #[test]
    fn marks_are_round_and_within() {
        let marks = Axis::across(FRAME, 0.0, 7.3).marks();
        assert_eq!(marks, [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(Axis::across(FRAME, 1.0, 1.5).marks().len(), 6);
        assert_eq!(Axis::across(FRAME, 1.0, 1.5).decimals(), 1);
    }

    #[test]
    fn values_lie_where_they_belong() {
        let across = Axis::across(FRAME, 0.0, 8.0);
        assert_eq!([across.at(0.0), across.at(4.0), across.at(8.0)], [40.0, 240.0, 440.0]);
        let up = Axis::up(FRAME, 0.0, 1.0);
        assert_eq!([up.at(0.0), up.at(1.0)], [210.0, 10.0]);
    }

    #[test]
    fn a_span_of_nothing_can_be_drawn() {
        let axis = Axis::across(FRAME, 0.0, 0.0);
        assert!(axis.at(0.0).is_finite() && !axis.marks().is_empty());
    }
}
