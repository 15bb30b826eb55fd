//! Link load over time: for each level of the topology one row for each link, as a heat map, with its mean and its
//! peak. Times are those of the timeline above.

use super::axis;
use super::heat::{self, SHADES};
use super::svg::{Anchor, Frame, Svg};
use super::text::{escape, percent, short, time};
use super::timeline::last_change;
use super::{Shown, figure};
use crate::outcome::{LinkLoad, Outcome};

const FRAME: Frame = Frame { x: 62.0, y: 0.0, width: 400.0, height: 0.0 };
/// Rows with a name of their own; more than these are told by their level only.
const NAMED: usize = 16;
/// Letters of a name that fit beside a row; the tip has all of it.
const FITS: usize = 10;
/// More rows than this are finer than the picture: the busiest are shown.
const MOST_ROWS: usize = 96;

pub(super) fn section(shown: &[Shown]) -> String {
    if shown.iter().all(|shown| shown.outcome.links.is_empty()) {
        return String::new();
    }
    let span = shown.iter().map(|shown| last_change(shown.outcome)).fold(0.0, f64::max);
    let pictures: String = shown
        .iter()
        .map(|shown| figure(shown, &says(shown.outcome), &picture(shown.outcome, span)))
        .collect();
    let content = format!("{}<div class=\"panels\">\n{pictures}</div>\n", scale());
    super::section("How busy the links were", ABOUT, &content)
}

const ABOUT: &str = "One row for each direction of a link; the colour is the share of its rate in use. \
     Means are over the whole run, peaks over one stretch of it. Point at a row for its own.";

/// The levels with a link, in the order in which they first appear, those with the fewest links first.
fn levels(outcome: &Outcome) -> Vec<(&str, Vec<&LinkLoad>)> {
    let mut levels: Vec<(&str, Vec<&LinkLoad>)> = Vec::new();
    for link in &outcome.links {
        match levels.iter_mut().find(|(name, _)| *name == link.level) {
            Some((_, links)) => links.push(link),
            None => levels.push((&link.level, vec![link])),
        }
    }
    levels.sort_by_key(|(_, links)| links.len());
    levels
}

fn says(outcome: &Outcome) -> String {
    let about = |(level, links): &(&str, Vec<&LinkLoad>)| {
        let mean = links.iter().map(|link| mean(link, outcome)).sum::<f64>() / links.len() as f64;
        let peak = links.iter().map(|link| peak(link, outcome)).fold(0.0, f64::max);
        format!("{level} links: mean {}, peak {}", percent(mean), percent(peak))
    };
    levels(outcome).iter().map(about).collect::<Vec<_>>().join("; ")
}

/// Over the time until the last job was over.
fn mean(link: &LinkLoad, outcome: &Outcome) -> f64 {
    share(link, link.carried, last_change(outcome))
}

fn peak(link: &LinkLoad, outcome: &Outcome) -> f64 {
    let bin = outcome.bin.as_secs_f64();
    link.bins.iter().map(|bytes| share(link, *bytes, bin)).fold(0.0, f64::max)
}

/// Of what the link could carry in that time.
fn share(link: &LinkLoad, bytes: f64, seconds: f64) -> f64 {
    let could = link.rate.0 as f64 / 8.0 * seconds;
    if could > 0.0 { bytes / could } else { 0.0 }
}

fn picture(outcome: &Outcome, span: f64) -> String {
    let levels = levels(outcome);
    let heights: Vec<f64> = levels.iter().map(|(_, links)| height(links.len())).collect();
    let bottom = heights.iter().map(|height| height + TITLE).sum::<f64>();
    let mut svg = Svg::new(FRAME.x + FRAME.width + 12.0, bottom + 38.0);
    axis::draw_time(&mut svg, Frame { height: bottom, ..FRAME }, span, "time since the beginning");
    let mut y = TITLE;
    for ((level, links), height) in levels.iter().zip(heights) {
        draw_level(&mut svg, level, links, &Level { outcome, span, frame: Frame { y, height, ..FRAME } });
        y += height + TITLE;
    }
    svg.finish("link load over time")
}

const TITLE: f64 = 20.0;

fn height(links: usize) -> f64 {
    let row = if links <= NAMED { 15.0 } else { 3.0 };
    row * links.min(MOST_ROWS) as f64
}

struct Level<'a> {
    outcome: &'a Outcome,
    span: f64,
    frame: Frame,
}

fn draw_level(svg: &mut Svg, name: &str, links: &[&LinkLoad], level: &Level) {
    let links = busiest(links);
    let title = format!("{name} links, {} each", links[0].rate);
    svg.text("title", (level.frame.x, level.frame.y - 5.0), Anchor::Start, &title);
    let rows: Vec<Vec<f64>> = links.iter().map(|link| shares(link, level.outcome)).collect();
    let lasted = last_change(level.outcome) / level.span.max(f64::MIN_POSITIVE);
    heat::draw(svg, Frame { width: level.frame.width * lasted, ..level.frame }, &rows);
    let row = level.frame.height / links.len() as f64;
    for (index, link) in links.iter().enumerate() {
        let at = Frame { y: level.frame.y + row * index as f64, height: row, ..level.frame };
        svg.explained("class=\"link\"", &tip(link, level.outcome), |svg| {
            svg.rect("hit", at);
            if links.len() <= NAMED {
                let below = at.y + at.height * 0.72;
                svg.text("mark", (at.x - 5.0, below), Anchor::End, &short(&link.name, FITS));
            }
        });
    }
}

/// In their own order, without the least busy if there are too many.
fn busiest<'a>(links: &[&'a LinkLoad]) -> Vec<&'a LinkLoad> {
    let mut carried: Vec<f64> = links.iter().map(|link| link.carried).collect();
    carried.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = carried.get(MOST_ROWS - 1).copied().unwrap_or(f64::NEG_INFINITY);
    links.iter().filter(|link| link.carried >= least).take(MOST_ROWS).copied().collect()
}

/// One share for each column, from the beginning to the end of the run.
fn shares(link: &LinkLoad, outcome: &Outcome) -> Vec<f64> {
    let bin = outcome.bin.as_secs_f64();
    let columns = if bin > 0.0 { (last_change(outcome) / bin).ceil() as usize } else { 0 };
    let bytes = heat::coarser(&link.bins, columns);
    bytes.into_iter().map(|bytes| share(link, bytes, bin)).collect()
}

fn tip(link: &LinkLoad, outcome: &Outcome) -> String {
    format!(
        "{} · {}\nmean {}, peak {} over {}",
        link.name,
        link.rate,
        percent(mean(link, outcome)),
        percent(peak(link, outcome)),
        time(outcome.bin.as_secs_f64()),
    )
}

fn scale() -> String {
    let key = |shade: usize| {
        let says = match shade {
            0 => "idle",
            shade if shade + 1 == SHADES => "full",
            _ => "",
        };
        let block = format!(r#"<rect class="heat s{shade}" width="26" height="10"/>"#);
        format!("<li><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">{block}</svg>{}</li>", escape(says))
    };
    format!("<ul class=\"legend scale\">{}</ul>\n", (0..SHADES).map(key).collect::<String>())
}
