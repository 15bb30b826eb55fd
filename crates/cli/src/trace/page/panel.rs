//! One panel: a span of time, with a row for each job and each link on one axis.

use metronome_core::model::units::Bandwidth;
use metronome_sim::report::axis::{self, Axis};
use metronome_sim::report::svg::{Anchor, Frame, Svg};
use metronome_sim::report::text::{escape, short, short_time};

use super::{Drawn, MOST_LINKS, bands, bytes, job_row, link_row};
use crate::trace::figures::Span;

/// A span of time that is drawn in equal columns.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) title: String,
    pub(super) span: Span,
    /// How long a column is.
    pub(super) column: u64,
    pub(super) is_zoom: bool,
}

impl View {
    /// How much time a closer look shows.
    pub(super) const ZOOM: u64 = 2_000_000_000;
    /// Less of it is not worth a picture.
    pub(super) const LEAST: u64 = 100_000_000;
    pub(super) const ZOOM_COLUMN: u64 = 5_000_000;
    const MOST_COLUMNS: u64 = 1_150;

    pub(super) fn whole(lasts: u64) -> Self {
        let column = lasts.div_ceil(Self::MOST_COLUMNS).max(Self::ZOOM_COLUMN);
        Self { title: "The whole run".to_owned(), span: (0, lasts.max(1)), column, is_zoom: false }
    }

    pub(super) fn zoom(title: &str, from: u64, to: u64) -> Self {
        Self { title: title.to_owned(), span: (from, to), column: Self::ZOOM_COLUMN, is_zoom: true }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = Span> + use<> {
        let ((from, to), column) = (self.span, self.column);
        (from..to).step_by(column as usize).map(move |at| (at, (at + column).min(to)))
    }

    /// The part of a span that is in view.
    pub(super) fn clip(&self, (from, to): Span) -> Option<Span> {
        let (from, to) = (from.max(self.span.0), to.min(self.span.1));
        (from < to).then_some((from, to))
    }
}

/// Where a panel is drawn into.
pub(super) struct Canvas<'a> {
    pub(super) drawn: &'a Drawn<'a>,
    pub(super) view: &'a View,
    pub(super) svg: Svg,
    pub(super) across: Axis,
}

const LEFT: f64 = 132.0;
const WIDTH: f64 = 1_150.0;
const TOP: f64 = 20.0;
const JOB: f64 = 58.0;
const STRIP: f64 = 8.0;
const LINK: f64 = 74.0;
const GAP: f64 = 12.0;

impl Canvas<'_> {
    /// Where a span lies that is in view.
    pub(super) fn across(&self, (from, to): Span) -> (f64, f64) {
        (self.at(from), self.at(to))
    }

    pub(super) fn at(&self, ns: u64) -> f64 {
        self.across.at(ns as f64 / 1e9)
    }

    /// The name of a row, what its full height is, and the lines at its bottom and top.
    fn label(&mut self, frame: Frame, (class, name): (&str, &str), rate: f64) {
        let (y, bottom) = (frame.y, frame.y + frame.height);
        let x = LEFT - 8.0;
        self.svg.text(&format!("row {class}"), (x, y + 12.0), Anchor::End, &short(name, 19));
        self.svg.text("mark", (x, y + 27.0), Anchor::End, &Bandwidth(rate as u64).to_string());
        if self.view.is_zoom {
            let in_column = bytes(rate / 8e9 * self.view.column as f64);
            let says = format!("= {in_column} / {}", short_time(self.view.column as f64 / 1e9));
            self.svg.text("mark", (x, y + 41.0), Anchor::End, &says);
        }
        for y in [y, bottom] {
            self.svg.line("grid", (LEFT, y), (LEFT + WIDTH, y));
        }
    }
}

pub(super) fn figure(drawn: &Drawn, view: &View) -> String {
    let links = &drawn.links[..drawn.links.len().min(MOST_LINKS)];
    let jobs = drawn.jobs.len() as f64 * (JOB + STRIP + GAP + 3.0);
    let height = jobs + links.len() as f64 * (LINK + GAP);
    let frame = Frame { x: LEFT, y: TOP, width: WIDTH, height };
    let (from, to) = (view.span.0 as f64 / 1e9, view.span.1 as f64 / 1e9);
    let across = Axis::across(frame, from, to);
    let svg = Svg::new(LEFT + WIDTH + 14.0, TOP + height + 38.0);
    let mut canvas = Canvas { drawn, view, svg, across };
    axis::draw_below(&mut canvas.svg, frame, &across, "seconds since the world began");
    bands::draw_windows(&mut canvas, frame);
    let mut y = TOP + 2.0;
    for (index, job) in drawn.jobs.iter().enumerate() {
        let row = Frame { y, height: JOB, ..frame };
        canvas.label(row, (&super::shades::hue(index), &job.job.name), job.rate);
        job_row::draw(&mut canvas, row, Frame { y: y + JOB + 3.0, height: STRIP, ..frame }, index);
        y += JOB + STRIP + GAP + 3.0;
    }
    for link in links {
        let row = Frame { y, height: LINK, ..frame };
        canvas.label(row, ("link", &link.link.name), link.link.rate_bps as f64);
        link_row::draw(&mut canvas, row, link);
        y += LINK + GAP;
    }
    bands::draw_directives(&mut canvas, frame);
    let says = format!(
        "{} to {} s, in columns of {}",
        (view.span.0 as f64 / 1e7).round() / 100.0,
        (view.span.1 as f64 / 1e7).round() / 100.0,
        short_time(view.column as f64 / 1e9)
    );
    let title = &view.title;
    format!(
        "<figure><figcaption><b>{}</b> <span>{says}</span></figcaption>\n{}</figure>\n",
        escape(title),
        canvas.svg.finish(title)
    )
}
