//! A trace as one HTML file: figures in a table, the whole run as a picture, and closer looks at moments that matter. It
//! needs nothing beside itself: no script, font or image from elsewhere.

mod bands;
mod crowding;
mod job_row;
mod link_row;
mod panel;
mod shades;
mod tables;

use metronome_sim::report::STYLE;
use metronome_sim::report::text::{escape, percent, short_time, tidy, time};

use super::document::{Job, Trace};
use super::figures::{Curve, Span, active, on_the_wire, sending, shared, slowest_link};
use panel::View;

/// A trace with what all panels need of it.
#[derive(Debug)]
struct Drawn<'a> {
    trace: &'a Trace,
    jobs: Vec<DrawnJob<'a>>,
    /// Those that several jobs crossed, or all where there is none; the busiest first.
    links: Vec<DrawnLink<'a>>,
}

#[derive(Debug)]
struct DrawnJob<'a> {
    job: &'a Job,
    /// What each member hands to its host.
    curves: Vec<Curve<'a>>,
    /// What leaves over the link that carries most of it.
    wire: Option<Curve<'a>>,
    /// The rate that its members can send at.
    rate: f64,
    active: Option<Span>,
    sending: Vec<Span>,
}

#[derive(Debug)]
struct DrawnLink<'a> {
    link: &'a super::document::Link,
    curve: Curve<'a>,
    parts: Vec<(Option<usize>, Curve<'a>)>,
}

/// More links would say the same again: they are in the data.
const MOST_LINKS: usize = 2;

impl DrawnLink<'_> {
    /// How busy it is, in steps within which links are as busy as each other.
    fn twentieths(&self, lasts: u64) -> u64 {
        (self.curve.rate((0, lasts)) / self.link.rate_bps.max(1) as f64 * 20.0).round() as u64
    }
}

impl<'a> Drawn<'a> {
    fn of(trace: &'a Trace) -> Self {
        let job = |job: &'a Job| {
            let sending = sending(trace, job);
            DrawnJob {
                job,
                curves: job.members.iter().map(|member| Curve::of(trace, &member.bytes)).collect(),
                wire: on_the_wire(trace, job).map(|(_, counter)| Curve::of(trace, counter)),
                rate: slowest_link(trace, job),
                active: active(&sending),
                sending,
            }
        };
        let link = |link: &'a super::document::Link| {
            let number =
                |name: &Option<String>| trace.jobs.iter().position(|job| Some(&job.name) == name.as_ref());
            DrawnLink {
                link,
                curve: Curve::of(trace, &link.bytes),
                parts: link
                    .parts
                    .iter()
                    .map(|part| (number(&part.job), Curve::of(trace, &part.bytes)))
                    .collect(),
            }
        };
        let is_shared = |link: &&super::document::Link| link.crossed_by.len() > 1;
        let any = trace.links.iter().any(|link| is_shared(&link));
        let mut links: Vec<DrawnLink> =
            trace.links.iter().filter(|link| !any || is_shared(link)).map(link).collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.twentieths(trace.lasts_ns())));
        Self { trace, jobs: trace.jobs.iter().map(job).collect(), links }
    }
}

/// The page as the text of one file.
pub(crate) fn html(trace: &Trace) -> String {
    let drawn = Drawn::of(trace);
    let parts = [
        header(trace),
        tables::summary(trace),
        tables::links(&drawn),
        pictures(&drawn),
        tables::directives(trace),
        tables::profiles(trace),
        footer(trace),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} – trace – Metronome</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body class=\"trace\">\n{}\n</main>\n\
         </body>\n</html>\n",
        escape(&trace.scenario),
        include_str!("page/trace.css"),
        parts.concat(),
    )
}

fn header(trace: &Trace) -> String {
    let policy = escape(&trace.policy);
    let says = format!(
        "Recorded in the local world under <b>{policy}</b>, rates and bytes divided by {}, seed {}. \
         The run lasted {}.",
        trace.scale,
        trace.seed,
        time(trace.lasts_ns() as f64 / 1e9),
    );
    format!(
        "<header>\n<p class=\"name\"><b>Metronome</b> · trace of {}</p>\n<h1>{}</h1>\n<p>{says}</p>\n</header>\n<main>\n",
        escape(&trace.scenario),
        escape(&headline(trace)),
    )
}

/// What the directives did to iterations, by job.
fn headline(trace: &Trace) -> String {
    let change = |job: &Job| {
        let (before, after) = (job.iterations.before_ms?, job.iterations.after_ms?);
        let [before, after] = [before, after].map(|ms| short_time(ms / 1e3));
        Some(format!("{}: {before} → {after}", job.name))
    };
    let changes: Vec<String> = trace.jobs.iter().filter_map(change).collect();
    let is_directed = trace.jobs.iter().any(|job| job.first_directive_ns().is_some());
    let only = |job: &Job| {
        let ms = job.iterations.after_ms.or(job.iterations.before_ms)?;
        Some(format!("{}: {}", job.name, short_time(ms / 1e3)))
    };
    let means: Vec<String> = trace.jobs.iter().filter_map(only).collect();
    match (changes.is_empty(), is_directed) {
        (false, _) => format!("Mean iteration before and after directives: {}", changes.join("; ")),
        (true, true) if means.is_empty() => {
            "Directives were given; too few iterations were counted".to_owned()
        }
        (true, true) => format!("Mean iteration under directives: {}", means.join("; ")),
        (true, false) if means.is_empty() => NO_DIRECTIVE.to_owned(),
        (true, false) => format!("{NO_DIRECTIVE}. Mean iteration: {}", means.join("; ")),
    }
}

const NO_DIRECTIVE: &str = "No directive was given: jobs shared all links fairly";

fn pictures(drawn: &Drawn) -> String {
    let views = views(drawn);
    let figures: String = views.iter().map(|view| panel::figure(drawn, view)).collect();
    let more = match drawn.links.len().saturating_sub(MOST_LINKS) {
        0 => String::new(),
        more => format!(" The {MOST_LINKS} busiest are drawn; {more} more are in the data."),
    };
    section("What jobs sent", &format!("{ABOUT}{more}"), &format!("{}{figures}", shades::legend(drawn)))
}

const ABOUT: &str = "Upper rows: the filled curve is the rate of a job on the link that carries most of it; the line is \
     what its members hand to their hosts, on average, where it may wait for the link. Thin upright lines are beginnings of \
     iterations, where the trainer records them. The strip below says what the job does. Lower rows: what the sending end of \
     a link has sent, job upon job, by the counters of its HTB leaves; the shade is the priority that the leaf was given. The \
     kernel follows a new priority once a leaf has run empty. Bands are windows of a rotation; numbers are directives.";

/// The whole run, then the moments around the first directive and near the end of sharing.
fn views(drawn: &Drawn) -> Vec<View> {
    let trace = drawn.trace;
    let mut views = vec![View::whole(trace.lasts_ns())];
    let first = trace.jobs.iter().filter_map(Job::first_directive_ns).min();
    let all_shared = || (0..trace.jobs.len()).flat_map(|index| shared(trace, index));
    let begin = all_shared().map(|(from, _)| from).min();
    let end = all_shared().map(|(_, to)| to).max();
    match first {
        Some(first) => {
            let before = first.saturating_sub(View::ZOOM).max(begin.unwrap_or(0));
            // Directives may come with the start of a job: then there is nothing before.
            if before + View::LEAST < first {
                views.push(View::zoom("Before the first directive", before, first));
            }
            views.push(View::zoom("After the first directive", first, first + View::ZOOM));
        }
        None => {
            views.extend(begin.map(|begin| View::zoom("When jobs meet on links", begin, begin + View::ZOOM)));
        }
    }
    // A look that shows mostly the same as the one before is left out.
    let shown = views.last().map_or(0, |view| if view.is_zoom { view.span.0 + View::ZOOM / 2 } else { 0 });
    let end = end.filter(|end| end.saturating_sub(View::ZOOM) >= shown);
    views.extend(end.map(|end| View::zoom("Near the end of sharing", end.saturating_sub(View::ZOOM), end)));
    views
}

fn footer(trace: &Trace) -> String {
    let sampling = &trace.sampling;
    let merged = match sampling.merged {
        1 => String::new(),
        merged => format!("; {merged} looks are merged into one sample, since the run is long"),
    };
    format!(
        "<footer><p>The recorder looked at all counters every {} on average{merged}. It used {} of one core, \
         beside the jobs. Bytes include headers of Ethernet, IP and TCP.</p></footer>\n",
        short_time(sampling.step_ns as f64 / 1e9),
        percent(sampling.busy),
    )
}

/// A section with a heading and one line that says what is seen.
fn section(heading: &str, says: &str, content: &str) -> String {
    format!("<section>\n<h2>{heading}</h2>\n<p class=\"says\">{says}</p>\n{content}</section>\n")
}

/// Seconds since the world began, to the millisecond.
fn at(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Bytes as people say them.
fn bytes(count: f64) -> String {
    match count {
        count if count >= 1e9 => format!("{} GB", tidy(count / 1e9)),
        count if count >= 1e6 => format!("{} MB", tidy(count / 1e6)),
        count => format!("{} KB", tidy(count / 1e3)),
    }
}

#[cfg(test)]
mod tests;
