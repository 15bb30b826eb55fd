//! A bar chart of one figure: groups by scenario, bars by policy, means with the standard deviation over seeds. A
//! policy under which jobs never complete has pale bars: its times are no merit.

mod lines;

use std::path::Path;

use super::{Along, Chart, Measured, metric};
use crate::report::Axis;
use crate::report::svg::{Anchor, Frame, Path as Shape, Svg};
use crate::report::text::{number, tidy};
use crate::results::Comparison;

const FRAME: Frame = Frame { x: 64.0, y: 62.0, width: 640.0, height: 260.0 };

pub(super) struct Bar<'a> {
    policy: &'a str,
    mean: f64,
    deviation: f64,
    complete: bool,
}

impl<'a> Bar<'a> {
    /// A figure of everything that was run, not the mean of some.
    pub(super) fn exact(policy: &'a str, value: f64) -> Self {
        Self { policy, mean: value, deviation: 0.0, complete: true }
    }
}

pub(super) fn draw(chart: &Chart, measured: &Measured) -> String {
    let meant = |file: &String| chart.scenarios.is_empty() || chart.scenarios.contains(file);
    let scenarios = measured.scenarios.iter().filter(|(file, _)| meant(file));
    let groups: Vec<(&str, Vec<Bar>)> =
        scenarios.map(|(file, of)| (name(file), bars(of, &chart.metric))).collect();
    if let Some(along) = &chart.along {
        return lines::draw(&chart.title, along, &groups, &note(measured, &groups));
    }
    draw_groups(&chart.title, &groups, &note(measured, &groups))
}

/// The same as lines along some quantity.
pub(super) fn draw_lines(title: &str, along: &Along, groups: &[(&str, Vec<Bar>)], note: &str) -> String {
    lines::draw(title, along, groups, note)
}

/// Groups of bars by name, and what is to be known of them all.
pub(super) fn draw_groups(title: &str, groups: &[(&str, Vec<Bar>)], note: &str) -> String {
    let policies = policies(groups);
    let most =
        groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.mean + bar.deviation).fold(0.0, f64::max);
    let up = Axis::up(FRAME, 0.0, most * 1.05);
    let mut svg = Svg::new(FRAME.x + FRAME.width + 16.0, FRAME.y + FRAME.height + 46.0);
    svg.text("title", (8.0, 20.0), Anchor::Start, title);
    legend(&mut svg, &policies);
    draw_values(&mut svg, up);
    let wide = FRAME.width / groups.len().max(1) as f64;
    for (index, (name, bars)) in groups.iter().enumerate() {
        let group = Frame { x: FRAME.x + index as f64 * wide, width: wide, ..FRAME };
        draw_group(&mut svg, name, bars, &policies, Place { group, up });
    }
    svg.text("mark", (8.0, FRAME.y + FRAME.height + 40.0), Anchor::Start, note);
    svg.finish_alone(title, include_str!("chart.css"))
}

fn name(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file)
}

fn note(measured: &Measured, groups: &[(&str, Vec<Bar>)]) -> String {
    let pale = groups.iter().flat_map(|(_, bars)| bars).any(|bar| !bar.complete);
    let pale = if pale { "; pale: some jobs never complete, and times end with the run" } else { "" };
    match measured.seeds {
        1 => format!("One run each{pale}."),
        seeds => format!("Means over {seeds} seeds, with the standard deviation{pale}."),
    }
}

/// Each once, in the order in which they appear: the same colour in every scenario.
fn policies<'a>(groups: &[(&str, Vec<Bar<'a>>)]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for bar in groups.iter().flat_map(|(_, bars)| bars) {
        if !names.contains(&bar.policy) {
            names.push(bar.policy);
        }
    }
    names
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

pub(super) fn legend(svg: &mut Svg, policies: &[&str]) {
    let mut x = 8.0;
    for policy in policies {
        svg.rect(&look(policy, policies), Frame { x, y: 34.0, width: 12.0, height: 12.0 });
        svg.text("mark", (x + 17.0, 44.0), Anchor::Start, policy);
        x += 34.0 + 6.6 * policy.chars().count() as f64;
    }
}

pub(super) fn look(policy: &str, all: &[&str]) -> String {
    let index = all.iter().position(|other| *other == policy).unwrap_or_default();
    if policy == "metronome" { "bar ours".into() } else { format!("bar p{}", index % 6) }
}

fn draw_values(svg: &mut Svg, up: Axis) {
    for mark in up.marks() {
        svg.line("grid", (FRAME.x, up.at(mark)), (FRAME.x + FRAME.width, up.at(mark)));
        svg.text("mark", (FRAME.x - 6.0, up.at(mark) + 4.0), Anchor::End, &number(mark, up.decimals()));
    }
}

/// Where a group stands, and how high its values are.
#[derive(Clone, Copy)]
struct Place {
    group: Frame,
    up: Axis,
}

fn draw_group(svg: &mut Svg, name: &str, bars: &[Bar], policies: &[&str], at: Place) {
    let Place { group, up } = at;
    let step = group.width * 0.86 / bars.len().max(1) as f64;
    for (index, bar) in bars.iter().enumerate() {
        let x = group.x + group.width * 0.07 + index as f64 * step;
        draw_bar(svg, &look(bar.policy, policies), bar, Frame { x, width: step * 0.82, ..group }, up);
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
