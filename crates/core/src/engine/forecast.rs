//! When waiting jobs will start and end: the same decisions, run ahead of time.
//!
//! A second engine is restored from the state of the first, and is told what the world would report if everything went
//! as it is known to go: steps take as long as their job says, jobs end when their work is done. Whatever the policy
//! does about ranks, quotas and room is foreseen because it is done, not because it is modelled a second time.
//!
//! **Taken for granted.** Nobody else comes, nothing breaks, no step fails, and no owner changes their mind. A job
//! takes as long as it said, or as its own reports say (`Length`); of one that says nothing, or has said too little,
//! the length is a guess, and a forecast says on how many guesses it rests.
//!
//! **Left out.** Links: a running job keeps its pace, whoever comes beside it. What a world takes to start a job that
//! has never run. Policies that place members one by one: only their world knows which members wait for each other.
//!
//! **Cost.** One copy of the state and its index: it grows with nodes and jobs. Then one decision for each instant at
//! which something happens, two for each job that starts and ends before the one asked about, at most `MOST_EVENTS`.
//! So it is made where somebody asks, and never as a part of a decision.

mod displaced_bookings;
mod duration;
mod event_queue;
mod run_ahead;
#[cfg(test)]
mod tests;
mod what_if;

use std::collections::BTreeMap;

use crate::engine::State;
use crate::model::cluster::Name;
use crate::model::id::JobId;
use crate::model::units::{Duration, Instant};

pub use displaced_bookings::{Gives, GivesWay};
pub use duration::Length;
use run_ahead::Ahead;
pub use what_if::{Change, Shift, WhatIf, what_if};

/// A look ahead ends after so much has happened: the starts and ends of about ten thousand jobs.
pub const MOST_EVENTS: u64 = 50_000;

/// A job of which nothing is known is taken to run as long again as it has, and at least so long.
pub const LEAST_GUESS: Duration = Duration(10 * Duration::MINUTE.0);

/// A job past its time is taken to run longer by this part of what it has run. People misjudge by a part of the whole:
/// where lengths scatter by 30 %, who is found past its time runs another fifth in the mean, and here a little more.
pub const OVERDUE_PART: u64 = 4;

/// Whose start and end are looked for. The look ahead ends when they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    One(JobId),
    Everybody,
}

/// Why a look ahead went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything that was looked for has come.
    Seen,
    /// Nothing more would happen by itself.
    NothingMore,
    /// `MOST_EVENTS` have happened.
    TooFar,
    /// Members are placed one by one, and nobody here knows which of them wait for each other.
    MembersApart,
}

/// How many other jobs whose length was guessed have run by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guesses {
    /// Of these nothing was known.
    pub unknown: u32,
    /// These were past their time.
    pub overdue: u32,
}

/// What is foreseen of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub name: Name,
    /// When it starts next; of a job that runs, since when it does. None if that was not seen.
    pub start: Option<Instant>,
    pub end: Option<Instant>,
    /// How it is known how long it takes, once it has started.
    pub length: Option<Length>,
    /// What its start rests on.
    pub guesses: Guesses,
}

/// What is foreseen from one instant on, for every job that was not over then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    pub from: Instant,
    pub stopped: Stopped,
    jobs: BTreeMap<JobId, Forecast>,
}

impl Outlook {
    pub fn job(&self, job: JobId) -> Option<&Forecast> {
        self.jobs.get(&job)
    }

    pub fn jobs(&self) -> impl ExactSizeIterator<Item = (JobId, &Forecast)> {
        self.jobs.iter().map(|(id, forecast)| (*id, forecast))
    }
}

/// Looks ahead from `now`, which may be later than the state's own time if nothing has happened since.
pub fn look_ahead(state: &State, now: Instant, sought: Sought) -> Outlook {
    Ahead::from(state.clone(), now).until(sought)
}
