//! The job timeline: one row for each job in order of submission, pale while it waits, solid while it trains, hatched
//! while it holds nodes for nothing. The same job has the same row, and the same time the same place, under every
//! policy.

use metronome_core::model::units::Instant;

use super::axis::{self, Axis};
use super::svg::{Anchor, Frame, Path, Svg};
use super::text::{Unit, number};
use super::{Shown, figure, legend, tip};
use crate::outcome::{Fate, JobOutcome, Outcome, Segment, Use};
use crate::results::RunResult;

const FRAME: Frame = Frame { x: 62.0, y: 6.0, width: 400.0, height: 0.0 };
/// More rows than this are a carpet, and a large file.
const MOST_ROWS: usize = 400;

pub(super) fn section(shown: &[Shown]) -> String {
    let span = shown.iter().map(|shown| last_change(shown.outcome)).fold(0.0, f64::max);
    let unit = Unit::of_all(shown.iter().filter_map(|shown| shown.summary.figures.jct_s.mean));
    let pictures: String =
        shown.iter().map(|shown| figure(shown, &says(shown, unit), &picture(shown.outcome, span))).collect();
    let content = format!("{}<div class=\"panels\">\n{pictures}</div>\n", legend::uses());
    super::section("When each job waited and trained", &about(shown), &content)
}

fn about(shown: &[Shown]) -> String {
    let jobs = shown.iter().map(|shown| shown.outcome.jobs.len()).max().unwrap_or(0);
    let which =
        if jobs > MOST_ROWS { format!(" (the first {MOST_ROWS} of {jobs} jobs)") } else { String::new() };
    format!(
        "One row for each job, in order of submission{which}. A job that never completes runs on to the right edge. \
         Point at a row to see the job under every policy."
    )
}

fn says(shown: &Shown, unit: Unit) -> String {
    // Of the run that is pictured, not of all seeds.
    let figures = RunResult::of(shown.outcome).figures;
    let done = format!("{} of {} done", figures.jobs.completed, figures.jobs.submitted);
    let mean = figures.jct_s.mean.map(|mean| format!(", mean JCT {}", unit.tell(mean))).unwrap_or_default();
    let stuck = figures.jobs.deadlocked;
    let stuck = if stuck > 0 { format!(", {stuck} deadlocked") } else { String::new() };
    format!("{done}{mean}{stuck}")
}

/// When the last job was over, or the run if some never were.
pub(super) fn last_change(outcome: &Outcome) -> f64 {
    let ends = outcome.jobs.iter().map(|job| job.end.unwrap_or(outcome.ended));
    ends.max().unwrap_or(outcome.ended).as_secs_f64()
}

fn picture(outcome: &Outcome, span: f64) -> String {
    let rows = outcome.jobs.len().min(MOST_ROWS);
    let row = (560.0 / rows.max(1) as f64).clamp(2.5, 18.0);
    let frame = Frame { height: row * rows as f64, ..FRAME };
    let mut svg = Svg::new(FRAME.x + FRAME.width + 12.0, frame.y + frame.height + 38.0);
    let axis = axis::draw_time(&mut svg, frame, span, "time since the beginning");
    count_rows(&mut svg, frame, rows, row);
    for (index, job) in outcome.jobs.iter().take(MOST_ROWS).enumerate() {
        let at = Frame { y: frame.y + row * index as f64, height: row, ..frame };
        draw_job(&mut svg, index, job, &Row { at, axis, ended: outcome.ended });
    }
    svg.finish("job timeline")
}

fn count_rows(svg: &mut Svg, frame: Frame, rows: usize, row: f64) {
    let axis = Axis::up(frame, 0.0, rows as f64);
    for mark in axis.marks().into_iter().map(|mark| mark.max(1.0)) {
        let y = frame.y + (mark - 0.5) * row + 4.0;
        svg.text("mark", (frame.x - 5.0, y), Anchor::End, &number(mark, 0));
    }
    svg.text_up("says", (12.0, frame.y + frame.height / 2.0), "job");
}

struct Row {
    at: Frame,
    axis: Axis,
    ended: Instant,
}

impl Row {
    /// Nothing changes after the end of a run: what a job that is not over does then, it does for ever.
    fn stretch(&self, job: &JobOutcome, from: Instant, to: Instant) -> Frame {
        let for_ever = job.end.is_none() && to >= self.ended;
        let to = if for_ever { self.axis.to } else { to.as_secs_f64() };
        let (left, right) = (self.axis.at(from.as_secs_f64()), self.axis.at(to));
        let gap = (self.at.height * 0.12).min(1.5);
        Frame {
            x: left,
            y: self.at.y + gap,
            width: (right - left).max(0.1),
            height: self.at.height - 2.0 * gap,
        }
    }
}

fn draw_job(svg: &mut Svg, index: usize, job: &JobOutcome, row: &Row) {
    let about = format!("class=\"job class {}\" data-job=\"{index}\"", tip::class(job.priority));
    svg.explained(&about, &tip::of(job, row.ended), |svg| {
        svg.rect("hit", row.at);
        let mut waiting = Path::default();
        waiting.block(row.stretch(job, job.submit, job.end.unwrap_or(row.ended)));
        svg.path("waiting", &waiting);
        for (kind, class) in [(Use::Training, "training"), (Use::Holding, "holding")] {
            let mut path = Path::default();
            let stretches = segments(job, row.ended).into_iter().filter(|segment| segment.kind == kind);
            stretches.for_each(|segment| path.block(row.stretch(job, segment.from, segment.to)));
            svg.path(class, &path);
        }
    });
}

/// What was kept, or else what follows from the start and the end: right for jobs that were never interrupted.
fn segments(job: &JobOutcome, ended: Instant) -> Vec<Segment> {
    if !job.segments.is_empty() {
        return job.segments.clone();
    }
    let stretch = |kind, from, to| vec![Segment { kind, from, to, nodes: Vec::new() }];
    match (job.start, job.fate) {
        (Some(start), _) => stretch(Use::Training, start, job.end.unwrap_or(ended)),
        (None, Fate::Deadlocked) => stretch(Use::Holding, job.submit, ended),
        (None, _) => Vec::new(),
    }
}
