//! What one more job would change: two looks ahead, with it and without it.

use std::cmp::Reverse;
use std::sync::Arc;

use super::run_ahead::Ahead;
use super::{Forecast, GivesWay, Outlook, Sought, Stopped, look_ahead};
use crate::engine::State;
use crate::model::id::JobId;
use crate::model::job::JobSpec;
use crate::model::report::{DeadlinePrediction, Reason};
use crate::model::units::{Duration, Instant};

/// What would come of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum WhatIf {
    /// It would not be taken in.
    Refused(Reason),
    Taken {
        job: JobId,
        /// With it.
        outlook: Outlook,
        /// Those whose start or end would be another, the most delayed first.
        changes: Vec<Change>,
        /// Where the look ahead without it ended.
        without: Stopped,
        /// How it would stand to its deadline, if it has one that counts.
        due: Option<DeadlinePrediction>,
        /// Those with deadlines from whose bookings something would be taken.
        gives_way: Vec<GivesWay>,
    },
}

/// A job that would start or end at another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub before: Forecast,
    pub after: Forecast,
}

/// How one time moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    Same,
    Sooner(Duration),
    Later(Duration),
    /// It was foreseen before, and no longer is.
    Lost,
    /// It was not foreseen before.
    Found,
}

/// What would happen if this job were submitted now. Two looks ahead, each until nobody is left.
pub fn what_if(state: &State, now: Instant, spec: Arc<JobSpec>) -> WhatIf {
    let mut ahead = Ahead::from(state.clone(), now);
    let job = ahead.submit(spec);
    if let Some(reason) = ahead.refusal(job) {
        return WhatIf::Refused(reason);
    }
    let (due, gives_way) = ahead.until_judged(job).map_or((None, Vec::new()), |(due, who)| (Some(due), who));
    let outlook = ahead.until(Sought::Everybody);
    let before = look_ahead(state, now, Sought::Everybody);
    let (changes, without) = (changes(&before, &outlook), before.stopped);
    WhatIf::Taken { job, changes, outlook, without, due, gives_way }
}

fn changes(before: &Outlook, after: &Outlook) -> Vec<Change> {
    let pairs = before.jobs().filter_map(|(id, before)| Some((before.clone(), after.job(id)?.clone())));
    let changes = pairs.map(|(before, after)| Change { before, after });
    let mut changes: Vec<Change> = changes.filter(Change::is_one).collect();
    // Stable: among equals the older job comes first.
    changes.sort_by_key(|change| Reverse(change.end().rank()));
    changes
}

impl Change {
    pub fn start(&self) -> Shift {
        Shift::between(self.before.start, self.after.start)
    }

    pub fn end(&self) -> Shift {
        Shift::between(self.before.end, self.after.end)
    }

    fn is_one(&self) -> bool {
        self.start() != Shift::Same || self.end() != Shift::Same
    }
}

impl Shift {
    fn between(before: Option<Instant>, after: Option<Instant>) -> Self {
        match (before, after) {
            (Some(before), Some(after)) if after > before => Self::Later(after.since(before)),
            (Some(before), Some(after)) if after < before => Self::Sooner(before.since(after)),
            (Some(_), None) => Self::Lost,
            (None, Some(_)) => Self::Found,
            _ => Self::Same,
        }
    }

    /// Who is hurt most has the greatest.
    fn rank(self) -> (u8, u64) {
        match self {
            Self::Lost => (4, 0),
            Self::Later(by) => (3, by.0),
            Self::Same => (2, 0),
            Self::Sooner(by) => (1, u64::MAX - by.0),
            Self::Found => (0, 0),
        }
    }
}
