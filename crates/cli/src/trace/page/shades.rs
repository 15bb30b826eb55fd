//! Colours: a hue for each job, and a shade for how it stands on a link.

use metronome_sim::report::text::escape;

use super::{Drawn, DrawnLink};

/// How a job stands on a link among the jobs that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shade {
    /// All jobs have the same priority.
    Equal,
    First,
    Second,
    Later,
}

impl Shade {
    pub(super) const ALL: [Self; 4] = [Self::Equal, Self::First, Self::Second, Self::Later];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::First => "first",
            Self::Second => "second",
            Self::Later => "later",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Equal => "same class as all others",
            Self::First => "served first",
            Self::Second => "served after one class",
            Self::Later => "served after several classes",
        }
    }
}

/// The class of a job's colour.
pub(super) fn hue(job: usize) -> String {
    const HUES: usize = 6;
    format!("j{}", job % HUES)
}

/// How a job stands on a link at a moment, among jobs that run then.
pub(super) fn at(drawn: &Drawn, link: &DrawnLink, job: usize, ns: u64) -> Shade {
    let runs = |job: usize| {
        let job = drawn.jobs[job].job;
        job.started_ns.is_some_and(|at| at <= ns) && job.ended_ns.is_none_or(|at| ns < at)
    };
    let prio = |at: usize| {
        let standings = &link.link.parts[at].standings;
        let last = standings.partition_point(|standing| standing.at_ns <= ns).checked_sub(1)?;
        // A job without a leaf of its own has that of its members, of the first priority.
        Some(standings[last].prio.unwrap_or(0))
    };
    let mut own = 0;
    let mut all: Vec<u8> = Vec::new();
    for (at, (owner, _)) in link.parts.iter().enumerate() {
        let Some((owner, prio)) = owner.filter(|owner| runs(*owner)).zip(prio(at)) else { continue };
        all.push(prio);
        if owner == job {
            own = prio;
        }
    }
    all.sort_unstable();
    all.dedup();
    match all.iter().position(|prio| *prio == own) {
        _ if all.len() < 2 => Shade::Equal,
        Some(0) => Shade::First,
        Some(1) => Shade::Second,
        _ => Shade::Later,
    }
}

pub(super) fn legend(drawn: &Drawn) -> String {
    let key = |class: &str, look: &str, says: &str| {
        format!(
            "<li class=\"{class}\"><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">\
             <rect class=\"{look}\" width=\"26\" height=\"10\"/></svg>{}</li>",
            escape(says)
        )
    };
    let jobs = drawn.jobs.iter().enumerate().map(|(at, job)| key(&hue(at), "part equal", &job.job.name));
    let phases = [("computing", "computing"), ("sending", "sending"), ("held", "held until its turn")];
    let phases = phases.map(|(look, says)| key("j0", look, says));
    let fair = key("j0", "band fair", "shared equally");
    let shades = Shade::ALL.map(|shade| key("j0", &format!("part {}", shade.class()), shade.in_words()));
    format!(
        "<ul class=\"legend\">{}</ul>\n<ul class=\"legend\"><li class=\"of\">strips:</li>{}\
         <li class=\"of\">links:</li>{}<li class=\"of\">windows:</li>{fair}</ul>\n",
        jobs.collect::<String>(),
        phases.concat(),
        shades.concat(),
    )
}
