//! How jobs share a link: for each policy one link at one moment of the run, with the jobs that met there. One round of
//! the circle, how much slower than alone each job is and the load over time, shared fairly and as was decided.

mod changes;
mod table;

use metronome_core::model::job::Priority;

use super::areas;
use super::circle;
use super::legend;
use super::pace::{self, Pace};
use super::svg::{Frame, Svg};
use super::text::{count, escape, percent, short_time, tidy, time};
use super::{Shown, tip};
use crate::encounter::{Circle, Course, Encounter, JobCourse, Sharer};
use crate::outcome::JobOutcome;

const WIDTH: f64 = 544.0;
const BETWEEN: f64 = 26.0;

pub(super) fn section(shown: &[Shown]) -> String {
    let met: Vec<String> = shown.iter().filter_map(meeting).collect();
    if met.is_empty() {
        return String::new();
    }
    super::section("How jobs share a link", ABOUT, &met.concat())
}

const ABOUT: &str = "One link at one moment of the run: that at which what the policy decides about links is predicted to \
     win most or, where it decides nothing, at which most is lost. Both ways to share are simulated from \
     the same starts with the same noise; only lanes differ. On the circle time goes clockwise from the \
     top: a ring for each job, filled while it sends, and around them an edge, solid where more is asked \
     than the link carries. Numbers tell jobs apart; their colours are those of their priorities.";

/// The jobs of an encounter as they are drawn and told about everywhere in it.
struct Cast<'a> {
    encounter: &'a Encounter,
    jobs: Vec<Actor<'a>>,
}

pub(super) struct Actor<'a> {
    /// From 1, as it is written in the pictures.
    pub(super) number: usize,
    pub(super) sharer: &'a Sharer,
    job: &'a JobOutcome,
    /// Of those with its priority, which it is: they have shades of one colour.
    shade: usize,
}

/// As many shades of one colour as can be told apart.
const SHADES: usize = 5;

impl Actor<'_> {
    pub(super) fn name(&self) -> String {
        let model = self.job.model.as_ref().map(|model| format!(" · {model}")).unwrap_or_default();
        format!("{}{model}", self.job.name)
    }

    pub(super) fn priority(&self) -> Priority {
        self.job.priority
    }

    /// The classes that give it its colour.
    pub(super) fn look(&self) -> String {
        format!("class {} shade d{}", tip::class(self.job.priority), self.shade % SHADES)
    }

    /// What to find it by, and its colour.
    pub(super) fn about(&self) -> String {
        format!("class=\"{}\" data-job=\"{}\"", self.look(), self.sharer.job)
    }
}

/// What a job does in one course.
pub(super) struct Part<'a> {
    pub(super) actor: &'a Actor<'a>,
    pub(super) course: &'a JobCourse,
    /// What is told about it while the pointer is on it.
    pub(super) tip: String,
}

impl<'a> Part<'a> {
    fn of((actor, course): (&'a Actor<'a>, &'a JobCourse)) -> Self {
        let mut part = Self { actor, course, tip: String::new() };
        part.tip = part.told();
        part
    }

    /// Seconds of an iteration.
    pub(super) fn mean(&self) -> f64 {
        self.course.mean.as_secs_f64()
    }

    /// Over that of an iteration alone.
    pub(super) fn slowdown(&self) -> f64 {
        self.mean() / self.actor.sharer.period.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn told(&self) -> String {
        let Sharer { period, duty, demand, lane, .. } = self.actor.sharer;
        let alone = short_time(period.as_secs_f64());
        let (sends, takes) = (percent(*duty), percent(*demand));
        let (mean, times) = (short_time(self.mean()), tidy(self.slowdown()));
        format!(
            "{}. {}\nalone an iteration takes {alone}; it sends for {sends} of it and takes {takes} of the link\n{}\n\
             here {mean}, {times} × alone",
            self.actor.number,
            self.actor.name(),
            table::in_words(lane),
        )
    }
}

impl<'a> Cast<'a> {
    fn of(shown: &Shown<'a>) -> Option<Self> {
        let encounter = shown.outcome.encounter.as_ref()?;
        let mut jobs: Vec<Actor> = Vec::new();
        for (index, sharer) in encounter.sharers.iter().enumerate() {
            let job = shown.outcome.jobs.get(sharer.job)?;
            let same = |other: &&Actor| tip::class(other.job.priority) == tip::class(job.priority);
            let shade = jobs.iter().filter(same).count();
            jobs.push(Actor { number: index + 1, sharer, job, shade });
        }
        Some(Self { encounter, jobs })
    }

    fn parts<'b>(&'b self, course: &'b Course) -> Vec<Part<'b>> {
        self.jobs.iter().zip(&course.jobs).map(Part::of).collect()
    }

    /// How much slower than alone the jobs are on average.
    fn slowdown(&self, course: &Course) -> f64 {
        let parts = self.parts(course);
        parts.iter().map(Part::slowdown).sum::<f64>() / parts.len().max(1) as f64
    }

    /// How much slower than alone anybody is in any course.
    fn most(&self) -> f64 {
        let Encounter { fair, decided, .. } = self.encounter;
        let courses = [Some(fair), decided.as_ref()].into_iter().flatten();
        courses.flat_map(|course| self.parts(course)).map(|part| part.slowdown()).fold(1.1, f64::max)
    }
}

/// Open where something was decided: there is something to compare.
fn meeting(shown: &Shown) -> Option<String> {
    let cast = Cast::of(shown)?;
    let open = if cast.encounter.decided.is_some() { " open" } else { "" };
    Some(format!(
        "<details class=\"meeting\"{open}><summary><b class=\"{}\">{}</b> <span>{}</span></summary>\n{}\
         <div class=\"panels two\">\n{}</div>\n{}</details>\n",
        legend::class(&shown.summary.policy, shown.index),
        escape(&shown.summary.policy),
        escape(&says(&cast)),
        changes::of(shown.outcome),
        figures(&cast),
        table::of(&cast),
    ))
}

fn says(cast: &Cast) -> String {
    let Encounter { at, link, rate, more, beyond, fair, decided, .. } = cast.encounter;
    let crossing = count((cast.jobs.len() + more) as f64, "job");
    let others =
        if *beyond > 0 { format!(", {beyond} more concerned by way of other links") } else { String::new() };
    let slower = format!("{} × alone shared fairly", tidy(cast.slowdown(fair)));
    let decided = decided.as_ref().map(|course| format!(", {} × as decided", tidy(cast.slowdown(course))));
    format!(
        "{link}, {rate}, {} after the beginning: {crossing}{others}; iterations take {slower}{}",
        time(at.as_secs_f64()),
        decided.unwrap_or_default(),
    )
}

fn figures(cast: &Cast) -> String {
    let Encounter { fair, decided, .. } = cast.encounter;
    let courses = [Some(("shared fairly", fair)), decided.as_ref().map(|course| ("as decided", course))];
    courses.into_iter().flatten().map(|(title, course)| figure(cast, title, course)).collect()
}

fn figure(cast: &Cast, title: &str, course: &Course) -> String {
    let crowded: f64 = course.crowded.iter().map(|(from, to)| to - from).sum();
    let says = format!("more is asked than carried in {} of the round", percent(crowded));
    format!(
        "<figure><figcaption><b>{title}</b> <span>{says}</span></figcaption>\n{}</figure>\n",
        picture(cast, title, course)
    )
}

fn picture(cast: &Cast, title: &str, course: &Course) -> String {
    let Encounter { circle: round, link, .. } = cast.encounter;
    let parts = cast.parts(course);
    let top = circle::SIZE.max(pace::height(parts.len()));
    let frame = Frame { x: 46.0, y: top + BETWEEN, width: WIDTH - 58.0, height: 130.0 };
    let pace = Pace { left: circle::SIZE + 14.0, right: WIDTH - 6.0, most: cast.most() };
    let mut svg = Svg::new(WIDTH, frame.y + frame.height + 38.0);
    circle::draw(&mut svg, top, &parts, &course.crowded, &about_round(*round));
    pace::draw(&mut svg, pace, &parts);
    areas::draw(&mut svg, frame, &parts, course, round.time());
    svg.finish_described(&format!("{link}, {title}"), &described(&parts))
}

fn about_round(circle: Circle) -> [String; 2] {
    let time = short_time(circle.time().as_secs_f64());
    match circle {
        Circle::Common(_) => [time, "in common".to_owned()],
        Circle::Longest(_) => [time, "the longest".to_owned()],
    }
}

/// The same in words.
fn described(parts: &[Part]) -> String {
    let each = parts.iter().map(|part| {
        let Actor { number, .. } = part.actor;
        let (mean, times) = (short_time(part.mean()), tidy(part.slowdown()));
        format!("{number}. {}: {mean}, {times} times alone", part.actor.name())
    });
    format!("Mean iteration times: {}.", each.collect::<Vec<_>>().join("; "))
}
