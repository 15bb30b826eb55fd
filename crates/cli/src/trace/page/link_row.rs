//! The row of a link: what its sending end has sent, job upon job, each in its own hue, shaded by how it stands.

use std::collections::BTreeMap;

use metronome_sim::report::svg::{Frame, Path};

use super::panel::Canvas;
use super::shades::{self, Shade, hue};
use super::{Drawn, DrawnLink};
use crate::trace::figures::Span;

/// A column of one job: from and to where it reaches, as parts of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    span: Span,
    bottom: f64,
    top: f64,
}

/// Whose pieces they are: of a job, as it stands; or of senders that no job is known for.
type Look = Option<(usize, Shade)>;

/// Less is not seen.
const LEAST_HEIGHT: f64 = 0.003;

pub(super) fn draw(canvas: &mut Canvas, frame: Frame, link: &DrawnLink) {
    let columns: Vec<Span> = canvas.view.columns().collect();
    let pieces = match link.parts.is_empty() {
        true => whole(canvas.drawn, link, &columns),
        false => stacked(canvas.drawn, link, &columns),
    };
    for (look, pieces) in pieces {
        let (about, class) = match look {
            Some((job, shade)) => (hue(job), format!("part {}", shade.class())),
            None => ("others".to_owned(), "part equal".to_owned()),
        };
        let path = outline(canvas, frame, &pieces);
        canvas.svg.explained(&format!("class=\"{about}\""), &tip(canvas.drawn, look), |svg| {
            svg.path(&class, &path);
        });
    }
}

fn tip(drawn: &Drawn, look: Look) -> String {
    match look {
        Some((job, _)) => drawn.jobs[job].job.name.clone(),
        None => "senders that no job is known for".to_owned(),
    }
}

/// A link that one job crosses at a time is not divided: all bytes are that job's.
fn whole(drawn: &Drawn, link: &DrawnLink, columns: &[Span]) -> BTreeMap<Look, Vec<Piece>> {
    let owner = |name: &String| drawn.jobs.iter().position(|job| job.job.name == *name);
    let only = match &link.link.crossed_by[..] {
        [name] => owner(name).map(|job| (job, Shade::Equal)),
        _ => None,
    };
    let rate = link.link.rate_bps as f64;
    let piece = |span: &Span| Piece { span: *span, bottom: 0.0, top: link.curve.rate(*span) / rate };
    let pieces = columns.iter().map(piece).filter(|piece| piece.top > LEAST_HEIGHT);
    BTreeMap::from([(only, pieces.collect())])
}

fn stacked(drawn: &Drawn, link: &DrawnLink, columns: &[Span]) -> BTreeMap<Look, Vec<Piece>> {
    let rate = link.link.rate_bps as f64;
    let mut order: Vec<&(Option<usize>, _)> = link.parts.iter().collect();
    // In the order of jobs, so that a job is on the same side of another on every link.
    order.sort_by_key(|(job, _)| job.unwrap_or(usize::MAX));
    let mut all: BTreeMap<Look, Vec<Piece>> = BTreeMap::new();
    for span in columns {
        let mut bottom = 0.0;
        for (job, curve) in &order {
            let top = bottom + curve.rate(*span) / rate;
            let middle = span.0.midpoint(span.1);
            let look = job.map(|job| (job, shades::at(drawn, link, job, middle)));
            if top - bottom > LEAST_HEIGHT {
                all.entry(look).or_default().push(Piece { span: *span, bottom, top });
            }
            bottom = top;
        }
    }
    all
}

/// One shape for each run of touching pieces: along the top to the right, and back along the bottom.
fn outline(canvas: &Canvas, frame: Frame, pieces: &[Piece]) -> Path {
    let y = |part: f64| frame.y + frame.height * (1.0 - part.min(1.06));
    let mut path = Path::default();
    for run in pieces.chunk_by(|one, next| one.span.1 == next.span.0) {
        let corners = |top: bool| {
            move |piece: &Piece| {
                let (left, right) = canvas.across(piece.span);
                let y = y(if top { piece.top } else { piece.bottom });
                if top { [(left, y), (right, y)] } else { [(right, y), (left, y)] }
            }
        };
        let there = run.iter().flat_map(corners(true));
        let back = run.iter().rev().flat_map(corners(false));
        path.shape(&there.chain(back).collect::<Vec<_>>());
    }
    path
}
