//! A bar chart of one figure: groups by scenario, bars by policy, means with the standard deviation over seeds. A
//! policy under which jobs never complete has pale bars: its times are no merit.

use std::path::Path;

use super::{Chart, Measured, metric};
use crate::report::Axis;
use crate::report::svg::{Anchor, Frame, Path as Shape, Svg};
use crate::report::text::{number, tidy};
use crate::results::Comparison;

const FRAME: Frame = Frame { x: 64.0, y: 62.0, width: 640.0, height: 260.0 };

struct Bar<'a> {
    policy: &'a str,
    mean: f64,
    deviation: f64,
    complete: bool,
}

pub(super) fn draw(chart: &Chart, measured: &Measured) -> String {
    let groups: Vec<(&str, Vec<Bar>)> =
        measured.scenarios.iter().map(|(file, of)| (name(file), bars(of, &chart.metric))).collect();
    let most =
        groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.mean + bar.deviation).fold(0.0, f64::max);
    let up = Axis::up(FRAME, 0.0, most * 1.05);
    let mut svg = Svg::new(FRAME.x + FRAME.width + 16.0, FRAME.y + FRAME.height + 46.0);
    svg.text("title", (8.0, 20.0), Anchor::Start, &chart.title);
    legend(&mut svg, groups.first().map_or(&[], |(_, bars)| bars));
    draw_values(&mut svg, up);
    let wide = FRAME.width / groups.len().max(1) as f64;
    for (index, (name, bars)) in groups.iter().enumerate() {
        let group = Frame { x: FRAME.x + index as f64 * wide, width: wide, ..FRAME };
        draw_group(&mut svg, name, bars, group, up);
    }
    svg.text("mark", (8.0, FRAME.y + FRAME.height + 40.0), Anchor::Start, &note(measured, &groups));
    svg.finish_alone(&chart.title, include_str!("chart.css"))
}

fn name(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file)
}

fn note(measured: &Measured, groups: &[(&str, Vec<Bar>)]) -> String {
    let pale = groups.iter().flat_map(|(_, bars)| bars).any(|bar| !bar.complete);
    let pale = if pale { "; pale: some jobs never complete, and times end with the run" } else { "" };
    format!("Means over {} seeds, with the standard deviation{pale}.", measured.seeds)
}

/// One for each policy that measured it.
fn bars<'a>(comparison: &'a Comparison, metric: &str) -> Vec<Bar<'a>> {
    let runs = |policy: &str| -> Vec<f64> {
        let of = comparison.results.iter().filter(|result| result.policy == policy);
        of.filter_map(|result| metric::value(&result.figures, metric)).collect()
    };
    let bar = |policy: &'a str, complete| {
        let runs = runs(policy);
        let mean = runs.iter().sum::<f64>() / runs.len().max(1) as f64;
        Bar { policy, mean, deviation: deviation(&runs, mean), complete }
    };
    let complete = |jobs: &crate::results::Jobs<f64>| jobs.unfinished + jobs.failed == 0.0;
    comparison.summary.iter().map(|row| bar(&row.policy, complete(&row.figures.jobs))).collect()
}

/// Of a sample; none of a single run.
fn deviation(runs: &[f64], mean: f64) -> f64 {
    let squares: f64 = runs.iter().map(|value| (value - mean).powi(2)).sum();
    if runs.len() > 1 { (squares / (runs.len() - 1) as f64).sqrt() } else { 0.0 }
}

fn legend(svg: &mut Svg, bars: &[Bar]) {
    let mut x = 8.0;
    for (index, bar) in bars.iter().enumerate() {
        svg.rect(&look(bar.policy, index), Frame { x, y: 34.0, width: 12.0, height: 12.0 });
        svg.text("mark", (x + 17.0, 44.0), Anchor::Start, bar.policy);
        x += 34.0 + 6.6 * bar.policy.chars().count() as f64;
    }
}

fn look(policy: &str, index: usize) -> String {
    if policy == "metronome" { "bar ours".into() } else { format!("bar p{}", index % 6) }
}

fn draw_values(svg: &mut Svg, up: Axis) {
    for mark in up.marks() {
        svg.line("grid", (FRAME.x, up.at(mark)), (FRAME.x + FRAME.width, up.at(mark)));
        svg.text("mark", (FRAME.x - 6.0, up.at(mark) + 4.0), Anchor::End, &number(mark, up.decimals()));
    }
}

fn draw_group(svg: &mut Svg, name: &str, bars: &[Bar], group: Frame, up: Axis) {
    let step = group.width * 0.86 / bars.len().max(1) as f64;
    for (index, bar) in bars.iter().enumerate() {
        let x = group.x + group.width * 0.07 + index as f64 * step;
        draw_bar(svg, &look(bar.policy, index), bar, Frame { x, width: step * 0.82, ..group }, up);
    }
    let below = group.y + group.height + 17.0;
    svg.text("title", (group.x + group.width / 2.0, below), Anchor::Middle, name);
}

fn draw_bar(svg: &mut Svg, look: &str, bar: &Bar, at: Frame, up: Axis) {
    let (top, bottom) = (up.at(bar.mean), at.y + at.height);
    let pale = if bar.complete { "" } else { " pale" };
    svg.rect(&format!("{look}{pale}"), Frame { y: top, height: bottom - top, ..at });
    let middle = at.x + at.width / 2.0;
    let highest = up.at(bar.mean + bar.deviation);
    if bar.deviation > 0.0 {
        let lowest = up.at((bar.mean - bar.deviation).max(0.0));
        let mut whisker = Shape::default();
        [(middle, lowest), (middle, highest)].into_iter().for_each(|at| whisker.to(at));
        svg.path("whisker", &whisker);
    }
    svg.text("value", (middle, highest - 4.0), Anchor::Middle, &tidy(bar.mean));
}
