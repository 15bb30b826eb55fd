//! Where `TrainingJob`s stand in line, and when they will start and end, for their status.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::forecast::{Forecast, Length, Outlook};
use metronome_core::model::id::JobId;
use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::gangs::GangKey;
use crate::objects::GroupKind;

/// What can be said of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// Its place in line, from 1, of how many.
    pub position: Option<(usize, usize)>,
    pub starts: Option<Instant>,
    /// The earliest and the latest that is likely.
    pub ends: Option<(Instant, Instant)>,
}

/// By namespace and name.
pub type Foresight = BTreeMap<(Arc<str>, Arc<str>), Foreseen>;

impl World {
    pub fn has_training_jobs(&self) -> bool {
        self.training_jobs().next().is_some()
    }

    pub fn foreseen(&self, outlook: &Outlook) -> Foresight {
        let line = self.engine.line();
        let places: BTreeMap<JobId, usize> =
            line.iter().enumerate().map(|(at, job)| (*job, at + 1)).collect();
        let one = |(key, job): ((Arc<str>, Arc<str>), JobId)| {
            let waits = self.waits(job);
            let forecast = outlook.job(job);
            let foreseen = Foreseen {
                position: places.get(&job).map(|place| (*place, line.len())),
                starts: forecast.and_then(|forecast| forecast.start).filter(|_| waits),
                ends: forecast.and_then(|forecast| ends(forecast, outlook.from)),
            };
            (key, foreseen)
        };
        self.training_jobs().map(one).collect()
    }

    pub(super) fn training_jobs(&self) -> impl Iterator<Item = ((Arc<str>, Arc<str>), JobId)> {
        self.gangs.iter().filter_map(|(key, gang)| match key {
            GangKey::Declared { kind: GroupKind::Training, namespace, name } => {
                Some(((namespace.clone(), name.clone()), *gang.jobs.first()?))
            }
            _ => None,
        })
    }
}

/// People misjudge how long their jobs take by about a third, and rather say too little; measured paces hold better. Of
/// what is only guessed nothing is said.
fn ends(forecast: &Forecast, now: Instant) -> Option<(Instant, Instant)> {
    let (end, start) = (forecast.end?, forecast.start.map_or(now, |start| start.max(now)));
    let runs = end.since(start);
    let after = |percent: u64| start + Duration(runs.0 / 100 * percent);
    match forecast.length? {
        Length::Said => Some((after(90), after(130))),
        Length::Measured => Some((after(95), after(105))),
        Length::Overdue | Length::Guessed => None,
    }
}
