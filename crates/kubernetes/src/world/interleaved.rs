//! How `TrainingJob`s stand among each other on links, for their status.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::model::id::JobId;
use metronome_core::model::units::Duration;

use super::World;

/// How a job that runs stands on links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnLinks {
    /// Nothing is known of links.
    NoFabric,
    /// What it sends is not known.
    NoTraffic,
    /// It meets nobody there.
    Alone,
    /// It meets so many, and nothing is predicted to be better than to share fairly.
    Shares { with: usize },
    /// It has a class or a weight of its own among so many.
    HasClass { class: u8, among: usize },
    /// Its iterations begin at times of their own among so many.
    TakesTurns { period: Duration, among: usize },
}

/// By namespace and name.
pub type Interleaved = BTreeMap<(Arc<str>, Arc<str>), OnLinks>;

impl World {
    /// How jobs stand on links, once after each time that it was looked at.
    pub fn interleaved(&mut self) -> Option<Interleaved> {
        self.interleaved.take()
    }

    pub(super) fn look_at_links(&mut self) {
        let running = self.training_jobs().filter(|(_, job)| !self.waits(*job));
        let stand = running.map(|(key, job)| (key, self.on_links(job))).collect();
        self.interleaved = Some(stand);
    }

    fn on_links(&self, job: JobId) -> OnLinks {
        let snapshot = self.engine.snapshot();
        if snapshot.contention.has_no_links() {
            return OnLinks::NoFabric;
        }
        let Some(flow) = snapshot.contention.flow(job) else { return OnLinks::NoTraffic };
        let others = snapshot.contention.jobs_sharing_links_nearby(&flow.route, |other| other == job).len();
        let lane = self.engine.traffic_policy(job);
        let turn = lane.pace.map(|pace| pace.turn).or(lane.turn);
        match turn {
            Some(turn) => OnLinks::TakesTurns { period: turn.period, among: others + 1 },
            None if !lane.is_default() => OnLinks::HasClass { class: lane.class, among: others + 1 },
            None if others == 0 => OnLinks::Alone,
            None => OnLinks::Shares { with: others },
        }
    }
}

impl OnLinks {
    /// What a condition says of it: its status, its reason and why.
    pub fn says(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::NoFabric => ("Unknown", "NoFabric", "nothing is known of links: there is no fabric".into()),
            Self::NoTraffic => ("Unknown", "NoTraffic", "what it sends is not known".into()),
            Self::Alone => ("False", "Alone", "it meets nobody on links".into()),
            Self::Shares { with } => {
                let why = format!("it shares links fairly with {}: nothing better is foreseen", jobs(*with));
                ("False", "SharesFairly", why)
            }
            Self::HasClass { class, among } => {
                ("True", "HasClass", format!("it has class {class} among {} on links", jobs(*among)))
            }
            Self::TakesTurns { period, among } => {
                ("True", "TakesTurns", format!("it takes turns of {period} among {} on links", jobs(*among)))
            }
        }
    }
}

fn jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
